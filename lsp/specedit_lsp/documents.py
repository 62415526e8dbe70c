"""The documents that are open in the editor, character for character as they stand there."""

from __future__ import annotations

import logging
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from lsprotocol.types import (
    DidChangeTextDocumentParams,
    Position,
    PositionEncodingKind,
    Range,
    TextDocumentContentChangeEvent,
    TextDocumentContentChangePartial,
    TextDocumentItem,
)

from specedit.edit.document import Document, Span
from specedit_lsp import convert
from specedit_lsp.lines import Lines

_log = logging.getLogger(__name__)

_TWO_HALVES = re.compile("[\ud800-\udbff][\udc00-\udfff]")

# The first suffix is given to documents without a file; the others say the same language.
_SUFFIXES = {
    "bash": (".sh",),
    "c": (".c", ".h"),
    "clojure": (".clj",),
    "cpp": (".cpp", ".hpp", ".cc", ".cxx", ".h"),
    "csharp": (".cs",),
    "css": (".css",),
    "dart": (".dart",),
    "elixir": (".ex", ".exs"),
    "go": (".go",),
    "haskell": (".hs",),
    "html": (".html", ".htm"),
    "java": (".java",),
    "javascript": (".js", ".mjs", ".cjs", ".jsx"),
    "javascriptreact": (".jsx", ".js"),
    "json": (".json",),
    "julia": (".jl",),
    "kotlin": (".kt", ".kts"),
    "lua": (".lua",),
    "markdown": (".md",),
    "perl": (".pl", ".pm"),
    "php": (".php",),
    "python": (".py", ".pyi", ".pyw"),
    "r": (".r", ".R"),
    "ruby": (".rb",),
    "rust": (".rs",),
    "scala": (".scala",),
    "shellscript": (".sh",),
    "sql": (".sql",),
    "swift": (".swift",),
    "toml": (".toml",),
    "typescript": (".ts", ".mts", ".cts"),
    "typescriptreact": (".tsx",),
    "xml": (".xml",),
    "yaml": (".yaml", ".yml"),
    "zig": (".zig",),
}


@dataclass(frozen=True, slots=True)
class TextChange:
    """A change that was made: `new_text` came for `old_text`, which was `span` of the text before."""

    span: Span
    old_text: str
    new_text: str


class OpenDocument:
    """A document as the editor has it. What works on it for longer takes a `snapshot`.

    Attributes:
        uri: as the editor wrote it when it opened the document.
        version: the editor's number of the text.
        language_id: the editor's name of the language.
        path: the file, for `file:` URIs; the text in it may be another.
        text: the characters, in code points.
    """

    def __init__(self, item: TextDocumentItem, encoding: PositionEncodingKind) -> None:
        """Take the document as it is opened; positions in it count the units of `encoding`."""
        self.uri = item.uri
        self.version = item.version
        self.language_id = getattr(item.language_id, "value", item.language_id)
        self.path = convert.path_of(item.uri)
        self._encoding = encoding
        self.text = self._whole(item.text)
        self._lines = Lines(self.text)
        self._snapshot: Document | None = None

    def snapshot(self) -> Document:
        """The text as it is now, unchanging, with the editor's version.

        Its path is the file's; a document that is no file has a bare name instead, with a suffix that says its
        language.
        """
        if self._snapshot is None or self._snapshot.version != self.version:
            self._snapshot = Document(self.text, self.path or Path(self._bare_name()), self.version)
        return self._snapshot

    def offset(self, position: Position) -> int:
        """The code-point offset of `position`, by the rules of `convert`."""
        return convert.to_offset(self.text, position, self._encoding, self._lines)

    def position(self, offset: int) -> Position:
        """The position of the code-point offset `offset`."""
        return convert.to_position(self.text, offset, self._encoding, self._lines)

    def span(self, range_: Range) -> Span:
        """The span of a range."""
        return convert.to_span(self.text, range_, self._encoding, self._lines)

    def range(self, span: Span) -> Range:
        """The range of a span."""
        return convert.to_range(self.text, span, self._encoding, self._lines)

    def apply(self, event: TextDocumentContentChangeEvent) -> TextChange | None:
        """Make the change that the editor made; gives it, or None where it leaves the text as it is.

        A text that is given whole counts as the change of the part that differs.
        """
        if isinstance(event, TextDocumentContentChangePartial):
            return self._replace(self.span(event.range), event.text)
        whole = self._whole(event.text)
        span, new_end = _difference(self.text, whole)
        return self._replace(span, whole[span.start : new_end])

    def _replace(self, span: Span, new_text: str) -> TextChange | None:
        change = self._with_whole_characters(TextChange(span, self.text[span.start : span.end], new_text))
        if change.old_text == change.new_text:
            return None
        span = change.span
        self.text = self.text[: span.start] + change.new_text + self.text[span.end :]
        self._lines.splice(span, len(change.new_text), self.text)
        self._snapshot = None
        return change

    def _with_whole_characters(self, change: TextChange) -> TextChange:
        """The change with what it makes whole: half a character that now stands beside its other half."""
        if self._encoding != PositionEncodingKind.Utf16:
            return change
        start, end = change.span.start, change.span.end
        before, after = self.text[max(0, start - 1) : start], self.text[end : end + 1]
        if not _TWO_HALVES.search(before + change.new_text + after):
            return change
        start, end = start - len(before), end + len(after)
        return TextChange(Span(start, end), self.text[start:end], self._whole(before + change.new_text + after))

    def _whole(self, text: str) -> str:
        """`text` as an editor has it that thinks in UTF-16: two halves of a character are the character."""
        if self._encoding != PositionEncodingKind.Utf16:
            return text
        return _TWO_HALVES.sub(lambda halves: halves[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le"), text)

    def _bare_name(self) -> str:
        name = re.split(r"[/\\\0]", unquote(re.split("[?#]", self.uri)[0]))[-1].rpartition(":")[2]
        name = "untitled" if name in ("", ".", "..") else name
        suffixes = _SUFFIXES.get(self.language_id, ())
        return name if not suffixes or name.endswith(suffixes) else name + suffixes[0]


class Documents:
    """All open documents. Those whose URIs are spelled differently but mean the same are one.

    Attributes:
        encoding: the unit that the editor counts in; agreed on before the first document is opened.
    """

    def __init__(self, encoding: PositionEncodingKind = PositionEncodingKind.Utf16) -> None:
        """No documents yet."""
        self.encoding = encoding
        self._by_key: dict[str, OpenDocument] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    def open(self, item: TextDocumentItem) -> OpenDocument:
        """Take a document; one that was open already is taken anew."""
        key = convert.canonical(item.uri)
        if self._by_key.pop(key, None) is not None:
            _log.warning("%s was opened twice; the text that came last counts", item.uri)
        document = self._by_key[key] = OpenDocument(item, self.encoding)
        return document

    def change(self, params: DidChangeTextDocumentParams) -> tuple[TextChange, ...]:
        """Make the changes that the editor made; each is in the text that the one before left.

        A change of a document that is not open is dropped. One with a version that is not above the last is made, as
        the editor made it.
        """
        identifier = params.text_document
        document = self.get(identifier.uri)
        if document is None:
            _log.warning("a change of %s was dropped: the editor has not opened it", identifier.uri)
            return ()
        if identifier.version <= document.version:
            _log.warning("%s goes from version %s to %s", document.uri, document.version, identifier.version)
        changes = _made(document, params.content_changes)
        document.version = identifier.version
        self.touch(document.uri)
        return changes

    def close(self, uri: str) -> OpenDocument | None:
        """Forget a document; gives it, or None where it was not open."""
        return self._by_key.pop(convert.canonical(uri), None)

    def get(self, uri: str) -> OpenDocument | None:
        """The open document of that URI, however it is spelled."""
        return self._by_key.get(convert.canonical(uri))

    def touch(self, uri: str) -> None:
        """Count a document, if it is open, as the one used last."""
        key = convert.canonical(uri)
        if (document := self._by_key.pop(key, None)) is not None:
            self._by_key[key] = document

    def recent(self) -> list[OpenDocument]:
        """All open documents, the one used last first: opened, changed or touched."""
        return list(reversed(self._by_key.values()))


def _made(document: OpenDocument, events: Sequence[TextDocumentContentChangeEvent]) -> tuple[TextChange, ...]:
    return tuple(change for event in events if (change := document.apply(event)) is not None)


def _difference(old: str, new: str) -> tuple[Span, int]:
    """The smallest span of `old` that, put in its place a part of `new`, gives `new`; and where that part ends."""
    shorter = min(len(old), len(new))
    head = _longest(shorter, lambda length: old.startswith(new[:length]))
    tail = _longest(shorter - head, lambda length: old.endswith(new[len(new) - length :]))
    return Span(head, len(old) - tail), len(new) - tail


def _longest(most: int, fits: Callable[[int], bool]) -> int:
    """The largest length up to `most` that fits, where all shorter ones do."""
    return bisect_right(range(most + 1), False, key=lambda length: not fits(length)) - 1
