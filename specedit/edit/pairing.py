"""Brackets and quotes that belong together, near enough for any language."""

from __future__ import annotations

import re
from collections.abc import Iterator

from specedit.edit.lexemes import CLOSERS, OPENERS

LONG_QUOTES = ('"""', "'''", "`")
"""Quotes that a line's end does not close."""

# An apostrophe between letters quotes nothing, nor does that of a lifetime in Rust.
_MARK = re.compile(r"\\.|\"\"\"|'''|(?<!\w)(?<![&<])'|(?<=\w)'(?!\w)|[\"`()\[\]{}\n]", re.DOTALL)


def open_quote(text: str) -> str:
    """The quote that is open at the end of `text`; nothing where none is."""
    quotes = [quote for _, _, quote in _marks(text, "")]
    return quotes[-1] if quotes else ""


def open_brackets(text: str) -> int:
    """How many brackets `text` opens and does not close."""
    depth = 0
    for _, mark, _ in _marks(text, ""):
        depth = max(0, depth + (mark in OPENERS) - (mark in CLOSERS))
    return depth


def unopened(text: str, line_before: str, line_after: str = "") -> Iterator[int]:
    """The offsets where `text` closes brackets, or the quote, that it has not opened itself.

    `line_before` and `line_after` stand around it on its line, and tell whether it begins within quotes, or within
    brackets in quotes (`"a {|}"`).
    """
    quote = open_quote(line_before)
    is_closed = line_after.lstrip()[:1] in CLOSERS
    if quote and is_closed and open_brackets(line_before[line_before.rfind(quote) + len(quote) :]):
        for first in unopened(text, ""):
            yield first
            yield from (first + 1 + at for at in unopened(text[first + 1 :], quote))
            return
        return
    depth = 0
    for at, mark, now in _marks(text, quote):
        if quote and not now:
            if mark != "\n":
                yield at
            quote = ""
        elif mark in OPENERS:
            depth += 1
        elif mark in CLOSERS:
            if depth == 0:
                yield at
            depth = max(0, depth - 1)


def _marks(text: str, quote: str) -> Iterator[tuple[int, str, str]]:
    """Each bracket outside of quotes and each quote that opens or closes, with the quote that is open after it."""
    for found in _MARK.finditer(text):
        mark = found[0]
        if quote:
            ends_line = mark == "\n" and quote not in LONG_QUOTES
            if ends_line or mark == quote or (len(mark) == len(LONG_QUOTES[0]) and mark[0] == quote):
                quote = ""
                yield found.start(), mark, quote
        elif mark[0] in "\"'`":
            quote = mark
            yield found.start(), mark, quote
        elif mark in OPENERS or mark in CLOSERS:
            yield found.start(), mark, quote
