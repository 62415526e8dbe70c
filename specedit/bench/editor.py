"""What an editor waits for: the language server's start, a keystroke in a long file, a completion at the cursor.

Everything is measured from the editor's end of the connection, with the server in a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from specedit.bench.lsp_connection import Connection, completing, initialize_params, opening, typing

_SERVER = (sys.executable, "-m", "specedit_lsp")
_CAPABILITIES = {"textDocument": {"inlineCompletion": {}}, "workspace": {"configuration": True}}
#: Requests of no work, to tell what a round trip alone takes.
_PING = {"command": "specedit.statistics", "arguments": []}
_MODEL_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Start:
    """Seconds until `initialize` is answered, with no other process of ours, and what they go into; best of all runs.

    Attributes:
        interpreter: Python alone.
        libraries: pygls and LSP's types.
        ours: the server's other modules.
        answered: all of it, from the start of the process to the answer.
    """

    interpreter: float
    libraries: float
    ours: float
    answered: float


@dataclass(frozen=True, slots=True)
class Keystrokes:
    """Milliseconds that a character typed into a long file takes of the server, a round trip taken off."""

    lines: int
    typed: int
    median_ms: float
    largest_ms: float
    round_trip_ms: float


@dataclass(frozen=True, slots=True)
class Completion:
    """A completion, from the request to the answer."""

    what: str
    seconds: float
    text: str


def measure_start(runs: int) -> Start:
    """Start the server `runs` times, each in an empty home."""
    interpreter = _best(runs, lambda: _python("pass"))
    with_libraries = _best(runs, lambda: _python("import pygls.lsp.server, lsprotocol.converters"))
    with_ours = _best(runs, lambda: _python("import specedit_lsp.server"))
    answered = _best(runs, _initialize)
    return Start(interpreter, with_libraries - interpreter, with_ours - with_libraries, answered)


def measure_keystrokes(lines: int, typed: int) -> Keystrokes:
    """Type into the middle of a Python file of so many lines, one change and one look at its cost after the other."""
    text = "".join(f"value_{number} = compute(value_{number - 1}, scale={number})\n" for number in range(lines))
    uri, line = "file:///long.py", lines // 2
    with _editor({"warmUp": False}) as editor:
        editor.notify("textDocument/didOpen", opening(uri, text))
        _ping(editor)
        empty = [_ping(editor) for _ in range(typed)]
        costs = []
        for version, character in enumerate("x" * typed, start=2):
            editor.notify("textDocument/didChange", typing(uri, version, line, version - 2, character))
            costs.append(_ping(editor))
    round_trip = median(empty)
    return Keystrokes(
        lines, typed, (median(costs) - round_trip) * 1000, (max(costs) - round_trip) * 1000, round_trip * 1000
    )


def measure_completions(
    source: str, options: Mapping[str, Any], env: Mapping[str, str] | None = None
) -> Iterator[Completion]:
    """Complete in the middle of `source`: first, again after a character more, and at the end of another line.

    The model's server is found or started as for any editor; its start is not counted.
    """
    lines = source.splitlines()
    places = [number for number, line in enumerate(lines) if line.strip().startswith("return ") and len(line) > 14]
    if not places:
        raise ValueError("the source has no line that returns something")
    line = places[len(places) // 2]
    stem = lines[line][: lines[line].index("return ") + len("return ")]
    text = "\n".join((*lines[:line], stem, *lines[line + 1 :])) + "\n"
    uri = "file:///source.py"
    with _editor({**options, "inline": {"debounceMs": 0, **options.get("inline", {})}}, env) as editor:
        editor.until(lambda: _settled(editor.told("specedit/status")), patience=_MODEL_SECONDS)
        editor.notify("textDocument/didOpen", opening(uri, text))
        yield _completion(editor, "first", uri, line, len(stem))
        rest = lines[line][len(stem) :]
        for version, typed in enumerate(rest[:3], start=2):
            editor.notify("textDocument/didChange", typing(uri, version, line, len(stem) + version - 2, typed))
            yield _completion(editor, f"after {version - 1} more", uri, line, len(stem) + version - 1)
        other = places[len(places) // 2 - 1] if len(places) > 1 else line
        yield _completion(editor, "at another line", uri, other, len(lines[other]) - 2)


def _completion(editor: Connection, what: str, uri: str, line: int, character: int) -> Completion:
    start = time.perf_counter()
    params = completing(uri, line, character)
    found = editor.request("textDocument/inlineCompletion", params, patience=_MODEL_SECONDS)
    items: Sequence[Mapping[str, str]] = found["items"]
    return Completion(what, time.perf_counter() - start, items[0]["insertText"] if items else "")


def _settled(statuses: Sequence[Mapping[str, Any]]) -> bool:
    return bool(statuses) and statuses[-1]["state"] in ("ready", "error")


def _ping(editor: Connection) -> float:
    start = time.perf_counter()
    editor.request("workspace/executeCommand", _PING)
    return time.perf_counter() - start


def _initialize() -> float:
    start = time.perf_counter()
    with _editor({"warmUp": False}):
        return time.perf_counter() - start


def _python(code: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - start


def _best(runs: int, measure: Callable[[], float]) -> float:
    return min(measure() for _ in range(runs))


@contextmanager
def _editor(options: Mapping[str, Any], env: Mapping[str, str] | None = None) -> Iterator[Connection]:
    """A server that has answered `initialize`; without `env` it is kept apart from all that runs."""
    with tempfile.TemporaryDirectory() as place:
        apart = {"SPECEDIT_RUNTIME": place, "XDG_STATE_HOME": place, "XDG_CONFIG_HOME": place}
        connection = Connection(_SERVER, cwd=Path(place), env={**os.environ, **(apart if env is None else env)})
        with closing(connection):
            connection.request("initialize", initialize_params(options=options, capabilities=_CAPABILITIES))
            connection.notify("initialized", {})
            yield connection
