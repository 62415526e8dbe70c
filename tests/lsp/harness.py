"""A language server in a process of its own, and an editor at the other end that does what editors do."""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from specedit.bench.lsp_connection import Connection, completing, initialize_params, opening, typing

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 60.0

#: What an editor says it can do, unless a test says otherwise.
CAPABILITIES: dict[str, Any] = {
    "general": {"positionEncodings": ["utf-16"]},
    "window": {"workDoneProgress": True, "showMessage": {}},
    "workspace": {
        "applyEdit": True,
        "configuration": True,
        "workspaceFolders": True,
        "didChangeConfiguration": {"dynamicRegistration": True},
        "workspaceEdit": {"documentChanges": True, "changeAnnotationSupport": {}},
    },
    "textDocument": {
        "inlineCompletion": {},
        "codeAction": {
            "codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["quickfix", "refactor", "refactor.rewrite"]}},
            "tagSupport": {"valueSet": [1]},
        },
    },
}


def environment(place: Path) -> dict[str, str]:
    """Variables that keep a server, and the one it may start, apart from the user's."""
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("SPECEDIT_")},
        "SPECEDIT_RUNTIME": str(place / "run"),
        "XDG_STATE_HOME": str(place / "state"),
        "XDG_CONFIG_HOME": str(place / "none"),
        "SPECEDIT_DEVICE": "cpu",
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(ROOT),
    }


class Editor(Connection):
    """An editor, with the exchanges that are usual. It says that every edit was applied, unless told otherwise."""

    def __init__(self, command: Sequence[str], **given: Any) -> None:
        super().__init__(command, **given)
        self.answers["workspace/applyEdit"] = {"applied": True}

    def initialize(
        self,
        *folders: Path,
        options: Mapping[str, Any] | None = None,
        capabilities: Mapping[str, Any] = CAPABILITIES,
    ) -> Any:
        params = initialize_params(*folders, options=options or {}, capabilities=capabilities)
        result = self.request("initialize", params)
        self.notify("initialized", {})
        return result

    def open(self, uri: str | Path, text: str, *, language: str = "python", version: int = 1) -> str:
        name = uri.as_uri() if isinstance(uri, Path) else uri
        self.notify("textDocument/didOpen", opening(name, text, language=language, version=version))
        return name

    def change(self, uri: str, version: int, *changes: Mapping[str, Any]) -> None:
        params = {"textDocument": {"uri": uri, "version": version}, "contentChanges": list(changes)}
        self.notify("textDocument/didChange", params)

    def type(self, uri: str, version: int, line: int, character: int, text: str) -> None:
        self.notify("textDocument/didChange", typing(uri, version, line, character, text))

    def complete_at(self, uri: str, line: int, character: int, **context: Any) -> list[Any]:
        """The items of an inline completion."""
        found = self.request("textDocument/inlineCompletion", completing(uri, line, character, **context))
        items: list[Any] = found["items"]
        return items

    def command(self, name: str, *arguments: Any, patience: float = PATIENCE_SECONDS) -> Any:
        params = {"command": name, "arguments": list(arguments)}
        return self.request("workspace/executeCommand", params, patience=patience)

    def cancel(self, request_id: int) -> None:
        self.notify("$/cancelRequest", {"id": request_id})

    def shutdown(self) -> int:
        """End the server as an editor does; gives its exit code."""
        self.request("shutdown")
        self.notify("exit")
        return self.process.wait(PATIENCE_SECONDS)

    def next(self, method: str, after: int = 0, *, patience: float = PATIENCE_SECONDS) -> Any:
        """The parameters of the notification number `after` (from 0) of that method, waited for."""
        return self.until(lambda: self.told(method)[after:] or None, patience=patience)[0]

    @property
    def messages(self) -> list[str]:
        """What was shown to the user."""
        return [params["message"] for params in self.told("window/showMessage")]


@contextmanager
def running(
    place: Path, *arguments: str | Path, module: str = "specedit_lsp", env: Mapping[str, str] | None = None
) -> Iterator[Editor]:
    """A server for as long as the block lasts; its stderr goes to a file in `place`."""
    with (place / f"{time.monotonic_ns()}.stderr").open("wb") as stderr:
        editor = Editor(
            [sys.executable, "-m", module, *map(str, arguments)],
            cwd=place,
            stderr=stderr,
            env={**environment(place), **(env or {})},
        )
    try:
        yield editor
    finally:
        editor.close()


@contextmanager
def scripted(place: Path, **script: Any) -> Iterator[Editor]:
    """A server whose model follows a script; see `scripted_lsp`."""
    file = place / "script.json"
    file.write_text(json.dumps({"record": str(place / "record.jsonl"), **script}))
    with running(place, file, module="tests.lsp.scripted_lsp") as editor:
        yield editor


def recorded(place: Path, event: str = "asked") -> list[dict[str, Any]]:
    """What a scripted model was asked, or how its answers ended."""
    file = place / "record.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    return [line for line in lines if line["event"] == event]


def applied(text: str, edits: Sequence[Mapping[str, Any]]) -> str:
    """`text` after LSP text edits in UTF-16, written from the specification: all ranges are in `text`."""
    lines = [0]
    position = 0
    while position < len(text):
        if text[position] == "\r" and text[position + 1 : position + 2] == "\n":
            position += 1
        if text[position] in "\r\n":
            lines.append(position + 1)
        position += 1

    def offset(place: Mapping[str, int]) -> int:
        assert place["line"] < len(lines), f"{place} is past the end of the text"
        at, units = lines[place["line"]], 0
        while units < place["character"]:
            assert at < len(text), f"{place} is past the end of the text"
            assert text[at] not in "\r\n", f"{place} is past the end of its line"
            units += 2 if ord(text[at]) > 0xFFFF else 1
            at += 1
        return at

    places = sorted((offset(edit["range"]["start"]), offset(edit["range"]["end"]), edit["newText"]) for edit in edits)
    assert all(one[1] <= other[0] for one, other in itertools.pairwise(places)), "edits overlap"
    for start, end, new_text in reversed(places):
        text = text[:start] + new_text + text[end:]
    return text
