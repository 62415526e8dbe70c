r"""An editor's text as the specification has it, slow and plain, and random changes to it: what a mirror is held to.

It keeps code units, not characters, and finds lines and positions by walking over them, so that it shares no idea with
what it checks.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from lsprotocol.types import (
    DidChangeTextDocumentParams,
    Position,
    PositionEncodingKind,
    Range,
    TextDocumentContentChangeEvent,
    TextDocumentContentChangePartial,
    TextDocumentContentChangeWholeDocument,
    VersionedTextDocumentIdentifier,
)

#: Line ends are so frequent that changes often part or join them. Form feed, NEL, U+2028 and the like end no line.
_PIECES = (
    *("\n", "\r\n", "\r", "\n\r", "\r\r\n", "a", "b", " ", "\t", "word", "é", "ß", "中", "e\u0301", "\u200d"),
    *("\x0c", "\x0b", "\x1c", "\x85", "\u2028", "\u2029", "\ufeff", "\x00", "😋", "👩\u200d🚀", "𐐀", "\U0010ffff"),
    *("\ud83d", "\ude0b", "\udfff"),
)
_UNIT_CODECS = {
    PositionEncodingKind.Utf8: ("utf-8", 1),
    PositionEncodingKind.Utf16: ("utf-16-le", 2),
    PositionEncodingKind.Utf32: ("utf-32-le", 4),
}


class ReferenceEditor:
    """A text in code units of `encoding`, changed as LSP says."""

    def __init__(self, text: str, encoding: PositionEncodingKind) -> None:
        self.encoding = encoding
        self.version = 1
        self.units = self._encoded(text)

    @property
    def text(self) -> str:
        codec, size = _UNIT_CODECS[self.encoding]
        return b"".join(unit.to_bytes(size, "little") for unit in self.units).decode(codec, "surrogatepass")

    def change(self, event: TextDocumentContentChangeEvent) -> None:
        if not isinstance(event, TextDocumentContentChangePartial):
            self.units = self._encoded(event.text)
            return
        ends = sorted((self.index(event.range.start), self.index(event.range.end)))
        self.units[ends[0] : ends[1]] = self._encoded(event.text)

    def index(self, position: Position) -> int:
        """The index into the units that `position` means."""
        index, line = 0, 0
        while line < position.line:
            while index < len(self.units) and not self._line_end(index):
                index += 1
            if index == len(self.units):
                return index
            index += self._line_end(index)
            line += 1
        start = index
        while index < len(self.units) and not self._line_end(index) and index - start < position.character:
            index += 1
        while self._continues(index):
            index -= 1
        return index

    def positions(self) -> Iterator[tuple[int, Position]]:
        r"""Every place between characters: its code-point offset and position; that inside of \r\n has none."""
        index = offset = line = start = 0
        while True:
            yield offset, Position(line, index - start)
            if index == len(self.units):
                return
            if length := self._line_end(index):
                line, start = line + 1, index + length
                index, offset = start, offset + length
                continue
            index, offset = index + 1, offset + 1
            while self._continues(index):
                index += 1

    def _encoded(self, text: str) -> list[int]:
        codec, size = _UNIT_CODECS[self.encoding]
        data = text.encode(codec, "surrogatepass")
        return [int.from_bytes(data[at : at + size], "little") for at in range(0, len(data), size)]

    def _line_end(self, index: int) -> int:
        """The length of the line end at `index`, 0 where there is none."""
        if self.units[index] == 0x0D:
            return 2 if self.units[index + 1 : index + 2] == [0x0A] else 1
        return int(self.units[index] == 0x0A)

    def _continues(self, index: int) -> bool:
        """Whether the unit at `index` goes on with a character that the one before began."""
        if not 0 < index < len(self.units):
            return False
        unit, before = self.units[index], self.units[index - 1]
        if self.encoding == PositionEncodingKind.Utf8:
            return 0x80 <= unit < 0xC0
        if self.encoding == PositionEncodingKind.Utf16:
            return 0xDC00 <= unit < 0xE000 and 0xD800 <= before < 0xDC00
        return False


@dataclass
class RandomTyping:
    """Random notifications for a reference editor, which makes the changes as they are drawn."""

    editor: ReferenceEditor
    rng: random.Random
    uri: str = "file:///fuzz.py"

    def notification(self) -> tuple[DidChangeTextDocumentParams, list[str]]:
        """Usually one change, sometimes several; and the text after each."""
        events, texts = [], []
        for _ in range(self.rng.choice((1, 1, 1, 2, 4))):
            events.append(self._event())
            self.editor.change(events[-1])
            texts.append(self.editor.text)
        self.editor.version += 1
        identifier = VersionedTextDocumentIdentifier(self.editor.version, self.uri)
        return DidChangeTextDocumentParams(identifier, events), texts

    def _event(self) -> TextDocumentContentChangeEvent:
        if self.rng.random() < 0.02:
            return TextDocumentContentChangeWholeDocument(random_text(self.rng, 40))
        start = random_position(self.rng, self.editor)
        shape = self.rng.random()
        if shape < 0.4:
            end = start
        elif shape < 0.8:
            end = Position(start.line + self.rng.choice((0, 0, 0, 1)), self.rng.randrange(12))
        else:
            end = random_position(self.rng, self.editor)
        growing = len(self.editor.units) < 120
        return TextDocumentContentChangePartial(Range(start, end), random_text(self.rng, 6 if growing else 1))


def random_position(rng: random.Random, editor: ReferenceEditor) -> Position:
    """Mostly in the text; sometimes past the end of a line or of the text, or in the middle of a character."""
    lines = 2 + sum(unit in (0x0A, 0x0D) for unit in editor.units)
    far = rng.random() < 0.03
    return Position(rng.randrange(lines), 2**31 - 1 if far else rng.randrange(14))


def random_text(rng: random.Random, most: int) -> str:
    """Up to `most` pieces, with halves of characters and all that is said to end a line somewhere."""
    return "".join(rng.choices(_PIECES, k=rng.randrange(most + 1)))
