r"""Text as it stands in a file: its characters, the bytes they came from, its lines, and edits to it.

Positions are code-point offsets. Only `\n`, `\r\n` and `\r` end a line: form feed, NEL or U+2028 are
characters like any other, as they are to editors and compilers.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from specedit.errors import RefusedFileError, UsageError

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_SURROGATE = re.compile("[\ud800-\udfff]")

# Longest first: the mark of UTF-32 LE starts with that of UTF-16 LE.
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

# A declaration counts in a comment or an XML head on one of the first two lines (PEP 263, Emacs, Vim), or in
# an HTML head.
_DECLARED_IN_COMMENT = re.compile(
    rb"""^[ \t\f]*(?:\#|//|/\*|--|;|%|"|<!--|<\?xml\b)[^\r\n]*?"""
    rb"""(?:coding|charset|fenc)[ \t]*[:=][ \t]*["']?([-\w.]+)""",
    re.MULTILINE,
)
_DECLARED_IN_HTML = re.compile(rb"""<meta\b[^>]*\bcharset\s*=\s*["']?([-\w.]+)""", re.IGNORECASE)
_FIRST_TWO_LINES = re.compile(rb"(?:[^\r\n]*(?:\r\n|\r|\n|\Z)){2}")
_HTML_HEAD_BYTES = 1024
_PRINTABLE_ASCII = bytes(range(0x20, 0x7F))


def split_lines(text: str) -> list[str]:
    """The lines of `text`, each with its end; joined they are `text` again. The empty text has no lines."""
    return _LINE.findall(text)


@dataclass(frozen=True, slots=True)
class Span:
    """Code-point offsets `start` up to, not including, `end`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class TextEdit:
    """Put `new_text` in the place of the characters of `span`."""

    span: Span
    new_text: str


@dataclass(frozen=True)
class Document:
    """An unchanging text with what is needed to write it back as the same bytes.

    Attributes:
        text: the characters, without a byte-order mark; a byte that UTF-8 can't decode is a lone surrogate.
        path: where it came from, for messages only.
        version: the number an editor gave this text; edits made for another version don't fit.
        codec: Python's name of the encoding.
        bom: the byte-order mark the file starts with, or nothing.
    """

    text: str
    path: Path | None = None
    version: int = 0
    codec: str = "utf-8"
    bom: bytes = b""

    @classmethod
    def from_bytes(cls, data: bytes, path: Path | None = None) -> Document:
        """Decode a file so that `to_bytes` gives back the same bytes, which is checked here.

        The encoding is, first that fits: that of the byte-order mark; UTF-8; the one that the file declares;
        else UTF-8 with each undecodable byte kept as a lone surrogate. Text in plain ASCII takes the declared
        encoding, for that is how its readers will read what an edit adds.

        Raises:
            RefusedFileError: the file is binary, or its bytes would not survive.
        """
        for codec, bom in _encodings(data):
            try:
                document = cls(data[len(bom) :].decode(codec, _errors(codec)), path, codec=codec, bom=bom)
                if document.to_bytes() == data:
                    return document
            except (UnicodeError, RefusedFileError):
                continue
        if b"\0" in data:
            raise RefusedFileError(
                f"{_name(path)} is binary or damaged (it holds NUL bytes): specedit changes only text. "
                "If it is UTF-16 or UTF-32 text, save it anew with a byte-order mark."
            )
        raise RefusedFileError(
            f"{_name(path)} can't be decoded without changing bytes that the edit doesn't touch. "
            "Convert it to UTF-8 first."
        )

    def to_bytes(self) -> bytes:
        """The byte-order mark and the encoded text.

        Raises:
            RefusedFileError: the text holds a character that the codec lacks.
        """
        try:
            return self.bom + self.text.encode(self.codec, _errors(self.codec))
        except UnicodeEncodeError as error:
            character = self.text[error.start]
            raise RefusedFileError(
                f"{_name(self.path)} is encoded as {self.codec}, which has no {_describe(character)} "
                f"(line {self.line_number(error.start)} of the new text). "
                "Ask for an edit without it, or convert the file to UTF-8."
            ) from None

    @cached_property
    def line_spans(self) -> tuple[Span, ...]:
        """One span a line, its end included, end to end over the whole text; none for the empty text."""
        return tuple(Span(*match.span()) for match in _LINE.finditer(self.text))

    @cached_property
    def line_ending(self) -> str:
        r"""The most frequent line end, the first in the text of those as frequent; "\n" if there is none."""
        counts = Counter(re.findall(r"\r\n|\r|\n", self.text))
        return max(counts, key=counts.__getitem__, default="\n")

    def line_number(self, offset: int) -> int:
        """The 1-based line that holds `offset`; the end of a text with a final newline is one line on."""
        at_end_of_line = offset == len(self.text) and self.text.endswith(("\r", "\n"))
        return max(1, bisect_right(self.line_spans, offset, key=lambda span: span.start)) + at_end_of_line

    def lines_span(self, first: int, last: int) -> Span:
        """The span of the whole lines `first` to `last`, 1-based, both included; the empty text has a line 1.

        Raises:
            UsageError: there are no such lines.
        """
        if not self.text and first == last == 1:
            return Span(0, 0)
        line_count = len(self.line_spans)
        if not 1 <= first <= last <= line_count:
            lines = "1 line" if line_count == 1 else f"{line_count} lines"
            raise UsageError(
                f"{_name(self.path)} has {lines}: there is no range {first}:{last}. "
                f"Give first and last line, both counted from 1, first not after last."
            )
        return Span(self.line_spans[first - 1].start, self.line_spans[last - 1].end)

    def undecodable_lines(self, span: Span) -> list[int]:
        """The 1-based numbers of the lines in `span` with bytes that the codec couldn't decode."""
        found = _SURROGATE.finditer(self.text, span.start, span.end)
        return sorted({self.line_number(match.start()) for match in found})

    def apply(self, edits: Iterable[TextEdit]) -> Document:
        """The document with all `edits` made at once; their spans are in this document's text, in any order.

        Insertions at one offset keep the order they are given in. The version stays: whoever owns it counts.

        Raises:
            ValueError: two edits overlap, or one lies outside the text.
            RefusedFileError: a new text holds a lone surrogate, which is no character.
        """
        return replace(self, text="".join(self._pieces(edits)))

    def _pieces(self, edits: Iterable[TextEdit]) -> Iterator[str]:
        position = 0
        for edit in sorted(edits, key=lambda edit: (edit.span.start, edit.span.end)):
            if not position <= edit.span.start <= edit.span.end <= len(self.text):
                raise ValueError(f"{edit.span} overlaps another edit or lies outside the text")
            if surrogate := _SURROGATE.search(edit.new_text):
                raise RefusedFileError(
                    f"the new text for {_name(self.path)} holds {_describe(surrogate[0])}, half a character, "
                    "which can't be written. Ask again, or with another seed."
                )
            yield self.text[position : edit.span.start]
            yield edit.new_text
            position = edit.span.end
        yield self.text[position:]


def _encodings(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Pairs (codec, byte-order mark) that `data` may be written in, best guess first."""
    for bom, codec in _BYTE_ORDER_MARKS:
        if data.startswith(bom) and (codec != "utf-8" or b"\0" not in data):
            yield codec, bom
    if b"\0" in data:
        return
    declared = _declared_codec(data)
    if declared is not None and data.isascii():
        yield declared, b""
    if declared is not None and not _is_utf8(data):
        yield declared, b""
    yield "utf-8", b""


def _declared_codec(data: bytes) -> str | None:
    """The codec that `data` names for itself, if Python has it and it holds ASCII as ASCII."""
    head = _FIRST_TWO_LINES.match(data)
    found = _DECLARED_IN_COMMENT.search(head[0] if head else data)
    if found is None and data.lstrip().startswith(b"<"):
        found = _DECLARED_IN_HTML.search(data[:_HTML_HEAD_BYTES])
    if found is None:
        return None
    name = re.sub(r"-(?:unix|dos|mac)$", "", found[1].decode("ascii"), flags=re.IGNORECASE)
    try:
        codec = codecs.lookup(name).name
        keeps_ascii = _PRINTABLE_ASCII.decode(codec) == _PRINTABLE_ASCII.decode("ascii")
    except (LookupError, UnicodeError, ValueError):
        return None
    return codec if keeps_ascii else None


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _errors(codec: str) -> str:
    return "surrogateescape" if codec == "utf-8" else "strict"


def _describe(character: str) -> str:
    shown = f" ({character})" if character.isprintable() else ""
    return f"U+{ord(character):04X}{shown}"


def _name(path: Path | None) -> str:
    return "the text" if path is None else str(path)
