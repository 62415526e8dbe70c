"""Settings and where they come from: defaults < the user's file < the project's file < `SPECEDIT_*` < flags.

A cloned repository is not trusted. Its file may set only what can't harm: lengths, sampling, speed. Which model runs,
what is sent where, what counts as a secret and which guards are lifted is decided by the user alone: in their own file,
the environment, or flags.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_args, get_type_hints
from urllib.parse import urlsplit

import msgspec
import platformdirs
from pathspec import GitIgnoreSpec

from specedit.errors import ConfigError

Count = Annotated[int, msgspec.Meta(ge=1)]
"""A whole number of at least one."""

NotNegative = Annotated[int, msgspec.Meta(ge=0)]
"""A whole number that may be zero."""

DrafterName = Literal["cursor", "replay", "lookup", "ngram"]
"""A part of the drafter."""

DRAFTERS: tuple[DrafterName, ...] = get_args(DrafterName)
"""All of them."""

PLACES = ("local", "shared")
"""What `engine` may be besides an address."""


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All settings; immutable.

    Attributes:
        model: name, hub id or path of the target model; None takes the default for this machine.
        engine: where the model runs: the URL of an OpenAI-compatible server, "local" (in this process) or "shared" (a
            `specedit serve` that is started where none runs); None takes a server that runs, else this process.
        api_key: what the server at such a URL asks for.
        send_prediction: send the expected answer to servers that are not specedit's too.
        engine_timeout_seconds: the longest that a server may send nothing, such as while it reads a prompt.
        device: "auto", or what torch calls it: "cpu", "cuda", "cuda:1", "mps".
        dtype: "auto", "float32", "bfloat16" or "float16".
        draft_budget: the most draft tokens verified in one step; 0 drafts none, None lets the engine choose.
        drafters: what drafts are made from: "cursor" (the file, from where the answer stands in it), "replay" (changes
            that were made before), "lookup" (any text seen so far), "ngram" (short runs of tokens).
        max_new_tokens: the most tokens in an answer; None allows 1.5 x the region + 256.
        temperature: 0 is greedy, at most 100.
        top_p: sample from the most probable tokens that hold this much probability together; 1 is all.
        allow_deletions: apply answers that make much of the region vanish.
        allow_syntax_errors: apply answers after which a file no longer parses.
        allow_ignored: read files that git ignores.
        secret_patterns: files that are never read, besides the known secrets, as `.gitignore` lines.
        max_file_bytes: larger files are refused.
    """

    model: str | None = None
    engine: str | None = None
    api_key: str | None = None
    send_prediction: bool = False
    engine_timeout_seconds: Annotated[float, msgspec.Meta(gt=0.0, le=86_400.0)] = 600.0
    device: str = "auto"
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    draft_budget: NotNegative | None = None
    drafters: Annotated[tuple[DrafterName, ...], msgspec.Meta(min_length=1)] = DRAFTERS
    max_new_tokens: Count | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0.0, le=100.0)] = 0.0
    top_p: Annotated[float, msgspec.Meta(gt=0.0, le=1.0)] = 1.0
    allow_deletions: bool = False
    allow_syntax_errors: bool = False
    allow_ignored: bool = False
    secret_patterns: tuple[str, ...] = ()
    max_file_bytes: Count = 5_000_000

    def __repr__(self) -> str:
        """All settings by name, the key only as given or not."""
        hidden = {"api_key": "..."} if self.api_key else {}
        shown = (f"{name}={hidden.get(name, getattr(self, name))!r}" for name in self.__struct_fields__)
        return f"Settings({', '.join(shown)})"


_FOR_THE_PROJECT = frozenset({"draft_budget", "drafters", "max_new_tokens", "temperature", "top_p"})
_NEVER_FOR_THE_PROJECT = frozenset(Settings.__struct_fields__) - _FOR_THE_PROJECT | {"commands", "model_paths"}
_VARIABLE_PREFIX = "SPECEDIT_"
_SEPARATORS = {"drafters": ",", "secret_patterns": os.pathsep}


def cache_dir(env: Mapping[str, str] = os.environ) -> Path:
    """Where models, measured costs and compiled kernels are kept: SPECEDIT_CACHE, else the user's cache directory.

    It need not exist yet.
    """
    chosen = env.get("SPECEDIT_CACHE")
    return Path(chosen).expanduser().absolute() if chosen else platformdirs.user_cache_path("specedit")


def user_config_file() -> Path:
    """Where the platform has the user's settings. The file need not exist."""
    return Path(platformdirs.user_config_dir("specedit")) / "config.toml"


def server_url(text: str) -> str:
    """The address of an OpenAI-compatible server, without `/v1`: what its paths are appended to.

    `http://Host:8080/v1/` is `http://host:8080`.

    Raises:
        ConfigError: it is no http(s) address, or holds more than one: a user name, a query.
    """
    try:
        parts = urlsplit(text.strip())
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigError(f"{text!r} is not an address: {error}. Write one such as http://127.0.0.1:8080.") from error
    if parts.username is not None or parts.password is not None:
        raise ConfigError(
            "the engine's address holds a user name or password. Leave it out: a key belongs in SPECEDIT_API_KEY."
        )
    if parts.scheme not in ("http", "https") or not host or re.search(r"[\s\x00-\x1f]", text.strip()):
        raise ConfigError(f"{text!r} is not an http:// or https:// address. Write one such as http://127.0.0.1:8080.")
    if parts.query or parts.fragment:
        raise ConfigError(f"{text!r} has a query or fragment, which an engine's address can't have. Leave it out.")
    name = f"[{host}]" if ":" in host else host
    path = parts.path.rstrip("/").removesuffix("/v1").rstrip("/")
    return f"{parts.scheme}://{name}{'' if port is None else f':{port}'}{path}"


def load_settings(
    project_dir: Path,
    *,
    env: Mapping[str, str] = os.environ,
    user_file: Path | None = None,
    flags: Mapping[str, Any] = MappingProxyType({}),
) -> Settings:
    """The settings for an edit in `project_dir`; for each one the last source that gives it wins.

    Args:
        project_dir: the project's root; its `specedit.toml` is read, else `[tool.specedit]` of its `pyproject.toml`.
        env: where `SPECEDIT_MODEL` and the like are looked up; an empty value counts as not given. Patterns are
            separated as in PATH, drafters by commas.
        user_file: the user's file; `user_config_file()` if not given. It need not exist.
        flags: settings given on the command line; None counts as not given.

    Raises:
        ConfigError: a file can't be read or is no TOML, a key is unknown, a value doesn't fit, or the project sets what
            only the user may set.
    """
    if user_file is None:
        user_file = user_config_file()
    sources = (
        _from_file(user_file),
        _from_project(project_dir),
        _from_environment(env),
        {key: _value(key, value, "the command line") for key, value in flags.items() if value is not None},
    )
    return Settings(**{key: value for source in sources for key, value in source.items()})


def _from_file(file: Path) -> dict[str, Any]:
    return {key: _value(key, value, str(file)) for key, value in _read_toml(file).items()}


def _from_project(directory: Path) -> dict[str, Any]:
    file = directory / "specedit.toml"
    if file.exists():
        table = _read_toml(file)
    else:
        file = directory / "pyproject.toml"
        table = _tool_table(file)
    for key in table:
        if key in _NEVER_FOR_THE_PROJECT:
            raise ConfigError(
                f"{file} sets {key!r}, which a project may not: its author would decide what runs on your "
                f"machine or leaves it. Set it in your own file, as {_VARIABLE_PREFIX}{key.upper()}, or as a flag."
            )
        if key not in _FOR_THE_PROJECT:
            raise _unknown(key, str(file), _FOR_THE_PROJECT)
    return {key: _value(key, value, str(file)) for key, value in table.items()}


def _tool_table(pyproject: Path) -> dict[str, Any]:
    """`[tool.specedit]`, or nothing. A file that doesn't speak of specedit may be broken: it may be what is edited."""
    try:
        if b"specedit" not in pyproject.read_bytes():
            return {}
    except OSError:
        return {}
    tool = _read_toml(pyproject).get("tool", {})
    table = tool.get("specedit", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        raise ConfigError(f"{pyproject} has tool.specedit, but not as a table. Write [tool.specedit].")
    return table


def _from_environment(env: Mapping[str, str]) -> dict[str, Any]:
    """Variables that don't even look like a setting belong to other parts, and are left alone."""
    given = {}
    for variable, text in env.items():
        key = variable.removeprefix(_VARIABLE_PREFIX).lower()
        if key == variable.lower() or not text:
            continue
        if key in Settings.__struct_fields__:
            value = text.split(_SEPARATORS[key]) if key in _SEPARATORS else text
            given[key] = _value(key, value, variable, strict=False)
        elif difflib.get_close_matches(key, Settings.__struct_fields__, cutoff=0.8):
            raise _unknown(key, f"the environment ({variable})", Settings.__struct_fields__)
    return given


def _read_toml(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"{file} can't be read: {error.strerror}. Check its permissions.") from error
    except ValueError as error:
        raise ConfigError(f"{file} is not valid TOML: {error}. Correct or remove it.") from error


def _value(key: str, value: Any, source: str, *, strict: bool = True) -> Any:
    """The value of one setting, checked against its type."""
    if key not in Settings.__struct_fields__:
        raise _unknown(key, source, Settings.__struct_fields__)
    if key == "drafters":
        _check_drafters(value, source)
    try:
        checked = msgspec.convert(value, get_type_hints(Settings, include_extras=True)[key], strict=strict)
    except msgspec.ValidationError as error:
        shown = "something that is no key" if key == "api_key" else repr(value)
        raise ConfigError(f"{source} sets {key} to {shown}: {error}. Correct or remove it.") from error
    match key:
        case "secret_patterns":
            _check_patterns(checked, source)
        case "engine":
            _check_engine(checked, source)
        case "api_key":
            _check_key(checked, source)
    return checked


def _check_engine(engine: str, source: str) -> None:
    if engine in PLACES:
        return
    try:
        server_url(engine)
    except ConfigError as error:
        raise ConfigError(f'{source} sets engine: {error} Or choose "local" or "shared".') from error


def _check_key(key: str, source: str) -> None:
    if not re.fullmatch(r"[!-~]+", key):
        raise ConfigError(
            f"{source} sets api_key to something that is no key: only printable ASCII characters without blanks can be "
            "sent. Correct or remove it."
        )


def _check_drafters(names: Any, source: str) -> None:
    unknown = [name for name in names if name not in DRAFTERS] if isinstance(names, list | tuple) else []
    if unknown or names in ([], ()):
        wrong = f"{unknown[0]!r} is no drafter" if unknown else "drafters is empty"
        hint = "To draft nothing, set draft_budget to 0." if not unknown else ""
        raise ConfigError(f"{source}: {wrong}. Choose from: {', '.join(DRAFTERS)}. {hint}".rstrip())


def _check_patterns(patterns: Iterable[str], source: str) -> None:
    for pattern in patterns:
        try:
            GitIgnoreSpec.from_lines([pattern])
        except (ValueError, re.error) as error:
            raise ConfigError(f"{source} has {pattern!r} in secret_patterns, which is no .gitignore line.") from error


def _unknown(key: str, source: str, known: Iterable[str]) -> ConfigError:
    known = sorted(known)
    near = difflib.get_close_matches(key, known, 1)
    hint = f"Did you mean {near[0]}?" if near else f"It may have: {', '.join(known)}."
    return ConfigError(f"{source} sets {key!r}, which is not a setting. {hint}")
