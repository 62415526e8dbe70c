"""What a user can set in the editor, and which of it holds where.

An editor sends options twice: as `initializationOptions` when it starts the server, and as the section `specedit` of
its settings, for each folder. The first are the user's own. The second may come from a repository that was cloned, so
what chooses a model or an engine, starts processes, names files, or lifts a guard is not taken from there.

Nothing wrong in them stops the server: a key that is not known, or whose value doesn't fit, is told and left out.
"""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from specedit.config import PLACES, Count, NotNegative, server_url
from specedit.errors import ConfigError
from specedit_lsp import convert

INITIALIZATION = "initializationOptions"
"""How the first source is called in warnings."""

CONFIGURATION = "the editor's settings (section specedit)"
"""How the second one is."""

_SHOWN_CHARS = 60


class InlineOptions(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Completions at the cursor.

    Attributes:
        enabled: give any.
        debounce_ms: how long typing must rest before the model is asked.
        max_new_tokens: the most tokens of one that comes by itself.
        invoked_max_new_tokens: the most tokens of one that was asked for.
        alternatives: how many are given where they were asked for.
        prefix_tokens: about how much of the text before the cursor the model is shown; None chooses by what the model
            runs on, as do the next two.
        suffix_tokens: about how much of the text after it.
        context_tokens: about how much of other files; 0 shows none.
        multi_line: give more than the rest of the line.
    """

    enabled: bool = True
    debounce_ms: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 75
    max_new_tokens: Count = 64
    invoked_max_new_tokens: Count = 128
    alternatives: Annotated[int, msgspec.Meta(ge=1, le=10)] = 3
    prefix_tokens: Count | None = None
    suffix_tokens: NotNegative | None = None
    context_tokens: NotNegative | None = None
    multi_line: bool = True


class RewriteOptions(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Rewriting a selection.

    Attributes:
        max_new_tokens: the most tokens of an answer; None takes that of the settings, else 1.5 x the region + 256.
        temperature: at most 100; 0 takes that of the settings, which is greedy unless one is set there.
        allow_deletions: give answers that make much of the region vanish.
        allow_syntax_errors: give answers after which a file no longer parses.
        confirm: have the editor ask before it applies a whole rewrite, where it can.
    """

    max_new_tokens: Count | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0.0, le=100.0)] = 0.0
    allow_deletions: bool = False
    allow_syntax_errors: bool = False
    confirm: bool = True


class NextEditOptions(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Proposing the next edit after the user's own.

    Attributes:
        enabled: propose any.
        model: ask the model too, where repeating the last edit gives nothing.
    """

    enabled: bool = True
    model: bool = True


class Options(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """All options; in JSON their names are written `inline.debounceMs`, `warmUp`.

    Attributes:
        inline: completions at the cursor.
        rewrite: rewriting a selection.
        next_edit: proposing the next edit.
        engine: where the model runs: the URL of an OpenAI-compatible server, or "shared", a `specedit serve` of this
            user that is started where none runs; None takes what the user's own settings file says, else "shared".
        model: name, hub id or path of the model; None takes that of the settings file, else of a server that runs, else
            the default for this machine.
        warm_up: get the model ready when the editor starts, not at the first request.
        idle_exit_minutes: a server that was started ends after so long without work.
        log_file: where to log; None takes a file in the user's log directory.
        log_level: how much to log.
    """

    inline: InlineOptions = InlineOptions()
    rewrite: RewriteOptions = RewriteOptions()
    next_edit: NextEditOptions = NextEditOptions()
    engine: str | None = None
    model: str | None = None
    warm_up: bool = True
    idle_exit_minutes: Annotated[float, msgspec.Meta(gt=0.0, le=100_000.0)] = 30.0
    log_file: str | None = None
    log_level: Literal["debug", "info", "warning", "error"] = "info"


DEFAULTS = Options()
"""What holds where nothing is set."""

_USERS_OWN = frozenset({"engine", "model", "warmUp", "idleExitMinutes", "logFile", "logLevel"}) | {
    f"rewrite.{name}" for name in ("allowDeletions", "allowSyntaxErrors", "confirm")
}


def parse(
    given: Any, source: str, *, base: Options = DEFAULTS, is_users_own: bool = True
) -> tuple[Options, tuple[str, ...]]:
    """The options with what `given` sets, and what is wrong with it, each with what to do.

    A key with null, or with an empty text, counts as not given. `{"inline": {"debounceMs": "fast"}}` gives `base` and
    a warning that ends: inline.debounceMs is "fast"; it must be a whole number from 0 to 10000. It stays 75.

    Args:
        given: what the editor sent, as JSON; None is nothing.
        source: how warnings call where it came from.
        base: what holds where nothing is given.
        is_users_own: whether it can only come from the user; a repository may not set all options.
    """
    reader = _Reader(source, is_users_own)
    return reader.overlaid(base, given, ""), tuple(reader.warnings)


_Part = TypeVar("_Part", bound=msgspec.Struct)


class _Reader:
    def __init__(self, source: str, is_users_own: bool) -> None:
        self.warnings: list[str] = []
        self._source = source
        self._is_users_own = is_users_own

    def overlaid(self, base: _Part, given: Any, prefix: str) -> _Part:
        if given is None:
            return base
        if not isinstance(given, Mapping):
            self._warn(
                f"{prefix.rstrip('.') or 'what it holds'} is {_shown(given)}; it must be an object. It is left out."
            )
            return base
        fields = {field.encode_name: field for field in msgspec.structs.fields(base)}
        changed = {}
        for key, value in given.items():
            if key not in fields:
                self._warn(_unknown(prefix, str(key), fields))
            elif value is not None:
                field = fields[key]
                changed[field.name] = self._value(prefix + key, value, field.type, getattr(base, field.name))
        return msgspec.structs.replace(base, **changed)

    def _value(self, key: str, value: Any, wanted: Any, standing: Any) -> Any:
        """The value to take for `key`: the one that was given, or the one that stands."""
        if isinstance(standing, msgspec.Struct):
            return self.overlaid(standing, value, f"{key}.")
        if value == "":
            return standing
        # JSON has one kind of number.
        value = int(value) if isinstance(value, float) and value.is_integer() else value
        try:
            found = _checked(key, msgspec.convert(value, wanted))
        except msgspec.ValidationError:
            from msgspec.inspect import type_info

            self._warn(
                f"{key} is {_shown(value)}; it must be {_right(type_info(wanted))}. It stays {_shown(standing)}."
            )
            return standing
        except ConfigError as error:
            self._warn(f"{key} is wrong: {error} It stays {_shown(standing)}.")
            return standing
        if found == standing:
            return standing
        if key in _USERS_OWN and not self._is_users_own:
            self._warn(
                f"{key} is left out: a repository may bring settings of its own, and this one is for you alone to "
                f"decide. If it is yours, give it in {INITIALIZATION} (VS Code does when it starts the server anew)."
            )
            return standing
        if key == "engine" and found == "local":
            self._warn('engine is "local", which is for the command line: a server of yours is shared instead.')
            return "shared"
        return found

    def _warn(self, text: str) -> None:
        self.warnings.append(f"{self._source}: {text}")


def _checked(key: str, value: Any) -> Any:
    """The value, if it is one that means something.

    Raises:
        ConfigError: it does not; says what would.
    """
    match key:
        case "engine" if value not in PLACES:
            try:
                server_url(value)
            except ConfigError as error:
                raise ConfigError(f'{error} Or choose "shared".') from error
        # Not by Path, which raises for the home of nobody.
        case "logFile" if not os.path.isabs(os.path.expanduser(value)):  # noqa: PTH111, PTH117
            raise ConfigError(f"{_shown(value)} is no absolute path. Write one that begins with / or ~.")
    return value


def _unknown(prefix: str, key: str, known: Iterable[str]) -> str:
    known = sorted(known)
    by_folded = {name.lower(): name for name in known}
    near = difflib.get_close_matches(key.replace("_", "").lower(), by_folded, 1)
    hint = f"Did you mean {prefix}{by_folded[near[0]]}?" if near else f"It may be one of: {', '.join(known)}."
    return f"{prefix}{key[:_SHOWN_CHARS]} is no option. {hint}"


def _right(info: Any) -> str:
    """What values of a type, as msgspec describes it, are in words."""
    from msgspec import inspect

    match info:
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType():
            return f"a whole number{_bounds(info)}"
        case inspect.FloatType():
            return f"a number{_bounds(info)}"
        case inspect.LiteralType(values=values):
            return f"one of: {', '.join(map(str, values))}"
        case inspect.UnionType(types=types):
            return " or ".join(_right(each) for each in types)
        case inspect.NoneType():
            return "null"
    return "a text"


def _bounds(number: Any) -> str:
    most = f" to {number.le:g}" if number.le is not None else ""
    if number.gt is not None:
        return f" above {number.gt:g}{most}"
    return f" from {number.ge:g}{most or ' on'}"


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 3] + "..."


class OptionsStore:
    """The options in force, for the editor as a whole and for each folder that is open in it."""

    def __init__(self) -> None:
        """All at their defaults, with no folder open."""
        self._own = DEFAULTS
        self._everywhere = DEFAULTS
        self._folders: dict[str, str] = {}
        self._overlays: dict[str, Options] = {}
        self._warned: frozenset[str] = frozenset()

    @property
    def own(self) -> Options:
        """Those that the user gave when the editor started the server: the only ones that say what runs."""
        return self._own

    @property
    def folders(self) -> list[str]:
        """The URIs of the open folders, as the editor wrote them."""
        return list(self._folders.values())

    def initialize(self, given: Any, folders: Sequence[str]) -> list[str]:
        """Take the user's own options and the first folders; gives warnings to show.

        Args:
            given: `initializationOptions`, as JSON.
            folders: their URIs.
        """
        self._own, warnings = parse(given, INITIALIZATION)
        self._everywhere = self._own
        self._overlays = {}
        self._folders = {convert.canonical(uri): uri for uri in folders}
        return list(warnings)

    def configure(self, given: Mapping[str | None, Any]) -> list[str]:
        """Take the editor's settings in place of those that it sent before; gives warnings that were not given yet.

        Args:
            given: the section `specedit` by the URI of a folder, as JSON; that of None is for everywhere.
        """
        said: list[str] = []

        def read(value: Any, base: Options) -> Options:
            options, warnings = parse(value, CONFIGURATION, base=base, is_users_own=False)
            said.extend(warnings)
            return options

        self._everywhere = read(given.get(None), self._own)
        keys = {convert.canonical(uri): value for uri, value in given.items() if uri is not None}
        self._overlays = {key: read(value, self._everywhere) for key, value in keys.items() if key in self._folders}
        # Editors repeat for each folder what is set for all.
        new = [warning for warning in dict.fromkeys(said) if warning not in self._warned]
        self._warned = frozenset(said)
        return new

    def change_folders(self, added: Iterable[str], removed: Iterable[str]) -> None:
        """Folders were opened and closed in the editor; what was set for those that closed is forgotten."""
        for key in map(convert.canonical, removed):
            self._folders.pop(key, None)
            self._overlays.pop(key, None)
        self._folders.update((convert.canonical(uri), uri) for uri in added)

    def for_uri(self, uri: str | None) -> Options:
        """The options for a document: those of the innermost open folder that holds it, else those for everywhere."""
        key = self._folder_of(uri)
        return self._overlays.get(key, self._everywhere) if key is not None else self._everywhere

    def root_of(self, uri: str) -> Path | None:
        """The innermost open folder that holds a document, where it is one on disk."""
        key = self._folder_of(uri)
        return None if key is None else convert.path_of(self._folders[key])

    def _folder_of(self, uri: str | None) -> str | None:
        if uri is None or not self._folders:
            return None
        parts = convert.canonical(uri).split("/")
        holding = [key for key in self._folders if _starts_with(parts, key.rstrip("/").split("/"))]
        return max(holding, key=len, default=None)


def _starts_with(parts: Sequence[str], beginning: Sequence[str]) -> bool:
    return list(parts[: len(beginning)]) == list(beginning)
