"""The exceptions that specedit raises on purpose. Each message says what happened and what to do.

```
SpecEditError
├── ConfigError             a setting, a key or an environment variable is wrong
├── UsageError              a request that can't be meant: a range past the end, an unknown symbol, bad sampling
├── ModelError              the target model can't be had
│   ├── ModelNotFoundError  nothing by this name, id or path, or not yet pulled
│   ├── FetchError          the download failed: no network, no space, refused
│   ├── IntegrityError      what arrived is not what was pinned: wrong hash, truncated
│   └── UnsupportedModelError  loaded, but it can't be driven exactly (its tokenizer or its architecture)
├── EngineError             generation failed
│   ├── ContextOverflowError   prompt plus answer do not fit the model's context
│   ├── MarkerTextError        the text holds marker strings of the model, and goes through a remote chat template
│   ├── FimUnsupportedError    the engine's model can't fill in the middle, or no way to ask it is known
│   ├── UnreachableError       no engine answers there: refused, gone in mid-answer, timed out
│   ├── OverloadedError        too many requests wait
│   ├── ShuttingDownError      the engine takes no more requests
│   └── OutOfMemoryError       the device has no memory left for this request
└── FileError               a file can't be read or written safely
    ├── RefusedFileError    a rule forbids it: secret, ignored, outside the root, read-only, undecodable
    └── StaleFileError      it changed on disk since it was read
```
"""


class SpecEditError(Exception):
    """Base of all errors that specedit raises on purpose; `str(error)` is meant for the user."""


class ConfigError(SpecEditError):
    """A setting, a key or an environment variable is wrong."""


class UsageError(SpecEditError):
    """The request can't be meant: a range past the end, an unknown symbol, a bad sampling value."""


class ModelError(SpecEditError):
    """The target model can't be had."""


class ModelNotFoundError(ModelError):
    """No model by this name, id or path, or it has not been pulled yet."""


class FetchError(ModelError):
    """A download failed: no network, no disk space, access refused."""


class IntegrityError(ModelError):
    """What arrived is not what was pinned: a wrong hash or a truncated file."""


class UnsupportedModelError(ModelError):
    """The model loaded but can't be driven exactly; the message names what stands in the way."""


class EngineError(SpecEditError):
    """Generation failed."""


class ContextOverflowError(EngineError):
    """Prompt plus answer do not fit the model's context; nothing was generated."""


class MarkerTextError(EngineError):
    """The text holds marker strings of the model, which a remote chat template would take for its own.

    The message quotes the line, so it is for the user alone and for no log.
    """


class FimUnsupportedError(EngineError):
    """The engine's model can't fill in the middle, or no way to ask it for that is known."""


class UnreachableError(EngineError):
    """No engine answers at the address: it refuses, is gone in mid-answer, or takes too long."""


class OverloadedError(EngineError):
    """Too many requests wait for the engine."""


class ShuttingDownError(EngineError):
    """The engine takes no more requests: it is shutting down."""


class OutOfMemoryError(EngineError):
    """The device has no memory left for this request; other requests go on."""


class FileError(SpecEditError):
    """A file can't be read or written safely; it is untouched."""


class RefusedFileError(FileError):
    """A rule forbids reading or writing this file: secret, ignored, outside the root, read-only, undecodable."""


class StaleFileError(FileError):
    """The file changed on disk after it was read, so the edit made for the older text was dropped."""
