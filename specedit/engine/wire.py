"""What specedit's server and its client tell each other beside what OpenAI's API has.

It travels in a field `specedit`: of the request's body (`Extension`), of `usage` in the answer (`Usage` of
`engine.api`, as it is), and of a streamed chunk (`ChunkExtension`).
"""

from __future__ import annotations

from typing import Literal

import msgspec

from specedit.engine.api import ContextFile, Hints, Priority, TraceStep

#: What `/v1/models` says under `owned_by`: only such a server gets and gives extensions.
OWNER = "specedit"


class Extension(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The field `specedit` of a request.

    Attributes:
        hints: what the caller guesses about the answer.
        priority: which queue to wait in; None leaves it to the server: "inline" with a `suffix`, else "rewrite".
        limit: what holds where no limit of tokens is given: "context" is as many as fit, "prediction" is 1.5 x the
            prediction + 256; None is OpenAI's default, as many as fit for a chat and 16 for a completion.
        plain: decode one token a step, to compare with.
        trace: tell each step.
        typed: with a `suffix`, the beginning of a word at the gap; the answer begins with it, and `prompt` ends before
            it.
        files: with a `suffix`, other text to know, the most stable first.
        name: with a `suffix`, what the file with the gap is called, as those of `files`.
    """

    hints: Hints = msgspec.field(default_factory=Hints)
    priority: Priority | None = None
    limit: Literal["context", "prediction"] | None = None
    plain: bool = False
    trace: bool = False
    typed: str = ""
    files: tuple[ContextFile, ...] = ()
    name: str = ""


class ChunkExtension(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The field `specedit` of a streamed chunk, where the request asked for a trace.

    Attributes:
        step: what made the chunk.
    """

    step: TraceStep
