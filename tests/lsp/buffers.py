"""The texts that an editor has open: it types into them, makes the edits that it is asked to, and tells the server."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from tests.lsp.harness import Editor, applied

_WIDTHS: Mapping[str, Callable[[str], int]] = {
    "utf-8": lambda character: len(character.encode("utf-8", "surrogatepass")),
    "utf-16": lambda character: 2 if ord(character) > 0xFFFF else 1,
    "utf-32": lambda character: 1,
}


@dataclass
class Buffer:
    """A text, and its version."""

    text: str
    version: int = 1


@dataclass
class Buffers:
    """All texts of an editor.

    Attributes:
        editor: who has them open.
        encoding: what it counts characters in.
        refuses: why it does not apply edits; empty where it does.
        drops: say that an edit was applied, and change nothing.
        edits: the parameters of those that it was asked to apply.
    """

    editor: Editor
    encoding: str = "utf-16"
    refuses: str = ""
    drops: bool = False
    edits: list[Any] = field(default_factory=list)
    _by_uri: dict[str, Buffer] = field(default_factory=dict)
    _names: Iterator[int] = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        self.editor.answers["workspace/applyEdit"] = self._apply

    def __getitem__(self, uri: str) -> str:
        return self._by_uri[uri].text

    def version(self, uri: str) -> int:
        return self._by_uri[uri].version

    def open(self, text: str, uri: str = "", *, language: str = "plaintext") -> str:
        uri = uri or f"untitled:Untitled-{next(self._names)}"
        self._by_uri[uri] = Buffer(text)
        return self.editor.open(uri, text, language=language)

    def close(self, uri: str) -> None:
        del self._by_uri[uri]
        self.editor.notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    def replace(self, uri: str, start: int, end: int, new: str) -> None:
        """Put `new` in the place of what stands from offset `start` to `end`."""
        buffer = self._by_uri[uri]
        range_ = {"start": self.position(uri, start), "end": self.position(uri, end)}
        buffer.text = buffer.text[:start] + new + buffer.text[end:]
        buffer.version += 1
        self.editor.change(uri, buffer.version, {"range": range_, "text": new})

    def type(self, uri: str, text: str, at: int | None = None) -> None:
        """Type at an offset, else at the end."""
        place = len(self[uri]) if at is None else at
        self.replace(uri, place, place, text)

    def position(self, uri: str, offset: int) -> dict[str, int]:
        """What an editor that counts in `encoding` calls the place."""
        text = self[uri]
        lines = _line_starts(text)
        line = max(number for number, start in enumerate(lines) if start <= offset)
        return {"line": line, "character": sum(map(_WIDTHS[self.encoding], text[lines[line] : offset]))}

    def range(self, uri: str, start: int = 0, end: int | None = None) -> dict[str, Any]:
        return {
            "start": self.position(uri, start),
            "end": self.position(uri, len(self[uri]) if end is None else end),
        }

    def text_range(self, uri: str, text: str) -> tuple[dict[str, int], dict[str, int]]:
        """Where `text` first stands: start and end."""
        start = self[uri].index(text)
        return self.position(uri, start), self.position(uri, start + len(text))

    def with_edits(self, uri: str, edits: Sequence[Mapping[str, Any]]) -> str:
        """The text after edits in the editor's units, written from the specification."""
        return applied(self[uri], [{**edit, "range": self._in_utf16(uri, edit["range"])} for edit in edits])

    def _in_utf16(self, uri: str, range_: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self._place_in_utf16(uri, place) for name, place in range_.items()}

    def _place_in_utf16(self, uri: str, place: Mapping[str, int]) -> dict[str, int]:
        text, units, width = self[uri], 0, _WIDTHS[self.encoding]
        at = _line_starts(text)[place["line"]]
        left = place["character"]
        while left > 0:
            left -= width(text[at])
            units += _WIDTHS["utf-16"](text[at])
            at += 1
        assert left == 0, f"{place} is within a character"
        return {"line": place["line"], "character": units}

    def _apply(self, params: Any) -> Any:
        self.edits.append(params)
        if self.refuses:
            return {"applied": False, "failureReason": self.refuses}
        if self.drops:
            return {"applied": True}
        for uri, version, edits in _by_document(params["edit"]):
            buffer = self._by_uri[uri]
            if version not in (None, buffer.version):
                return {"applied": False, "failureReason": f"{uri} has version {buffer.version}"}
            new = self.with_edits(uri, edits)
            buffer.text, buffer.version = new, buffer.version + 1
            last_first = sorted(edits, key=lambda edit: _place(edit["range"]["start"]), reverse=True)
            changes = [{"range": edit["range"], "text": edit["newText"]} for edit in last_first]
            self.editor.change(uri, buffer.version, *changes)
        return {"applied": True}


def _by_document(edit: Mapping[str, Any]) -> Iterator[tuple[str, int | None, Sequence[Any]]]:
    for change in edit.get("documentChanges") or ():
        yield change["textDocument"]["uri"], change["textDocument"]["version"], change["edits"]
    for uri, edits in (edit.get("changes") or {}).items():
        yield uri, None, edits


def _place(position: Mapping[str, int]) -> tuple[int, int]:
    return position["line"], position["character"]


def _line_starts(text: str) -> list[int]:
    return [0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", text))]
