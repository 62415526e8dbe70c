r"""Where the lines of a text begin, kept up to date as it changes."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable

from specedit.edit.document import Span

_LINE_END = re.compile(r"\r\n|\r|\n")


class Lines:
    r"""The offsets at which the lines of a text begin. Only `\n`, `\r\n` and `\r` end a line.

    There is always a line; the text after the last line end, perhaps none, is the last. A change costs what lies
    between it and the one before: the starts after the last change are stored as they were, and the distance that they
    have moved is kept beside them.
    """

    __slots__ = ("_moved_by", "_moved_from", "_starts")

    def __init__(self, text: str) -> None:
        """Find the lines of `text`."""
        self._starts = [0, *(match.end() for match in _LINE_END.finditer(text))]
        self._moved_from = len(self._starts)
        self._moved_by = 0

    def __len__(self) -> int:
        return len(self._starts)

    def start(self, line: int) -> int:
        """The offset where `line`, from 0, begins."""
        return self._starts[line] + (self._moved_by if line >= self._moved_from else 0)

    def content(self, line: int, text: str) -> Span:
        """The span of `line` without its end; `text` is the text that these are the lines of."""
        start = self.start(line)
        if line + 1 == len(self):
            return Span(start, len(text))
        end = self.start(line + 1)
        return Span(start, end - (2 if text.endswith("\r\n", start, end) else 1))

    def at(self, offset: int) -> int:
        """The line, from 0, that holds `offset`; the end of a line belongs to it."""
        return self._search(bisect_right, offset) - 1

    def splice(self, span: Span, new_length: int, text: str) -> None:
        """Follow a change: `new_length` characters came for those of `span`, which gave `text`."""
        first = max(1, self._search(bisect_left, span.start))
        after = self._search(bisect_right, span.end)
        new_end = span.start + new_length
        # From a character before, to see a \r there; to a character beyond, to see a \n there.
        found = (match.end() for match in _LINE_END.finditer(text, max(0, span.start - 1), new_end + 1))
        new_starts = [start for start in found if start <= new_end]
        self._move_boundary(after)
        self._starts[first:after] = new_starts
        self._moved_from = first + len(new_starts)
        self._moved_by += new_end - span.end

    def _search(self, bisect: Callable[[list[int], int, int, int], int], offset: int) -> int:
        boundary = self._moved_from
        if boundary < len(self) and offset >= self.start(boundary):
            return bisect(self._starts, offset - self._moved_by, boundary, len(self))
        return bisect(self._starts, offset, 0, boundary)

    def _move_boundary(self, line: int) -> None:
        starts, by = self._starts, self._moved_by
        if line > self._moved_from:
            starts[self._moved_from : line] = [start + by for start in starts[self._moved_from : line]]
        else:
            starts[line : self._moved_from] = [start - by for start in starts[line : self._moved_from]]
        self._moved_from = line
