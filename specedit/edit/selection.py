"""The region that a selection in an editor means."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from specedit.edit.document import Document, Span
from specedit.edit.region import Region, _around, _parser_input, _Symbol, _symbols, language_of, line_range, whole_file


def selected(document: Document, span: Span) -> Region:
    """What to rewrite where `span` is selected.

    An empty selection means the innermost function, class or type around it, else its line. Any other means the whole
    lines that it touches, of which only the selected text may change; blanks beside it count as selected, and a
    selection that ends where a line begins does not touch that line.
    """
    region = enclosing(document, span.start) if span.start == span.end else None
    return region or _lines_of(document, span)


def enclosing(document: Document, offset: int) -> Region | None:
    """The innermost function, class or type with the line of `offset`; None where there is none or no grammar."""
    language = language_of(document.path or Path())
    if language is None:
        return None
    line = _line_at(document, offset)
    start, end = (len(_parser_input(document.text[:edge])) for edge in (line.start, line.end))
    source = _parser_input(document.text)
    around = [
        _around(document, symbol.span(source), f"{symbol.kind} {symbol.name}")
        for symbol in _known_symbols(source, language)
        if symbol.start_byte < end and start < symbol.end_byte
    ]
    return min(around, key=lambda region: region.span.end - region.span.start, default=None)


@lru_cache(maxsize=2)
def _known_symbols(source: bytes, language: str) -> tuple[_Symbol, ...]:
    """The symbols of a text; editors ask for the same one at each move of the cursor."""
    return tuple(_symbols(source, language))


def _lines_of(document: Document, span: Span) -> Region:
    text, whole = document.text, whole_file(document)
    first, last = _line_at(document, span.start), _line_at(document, max(span.start, span.end - 1))
    lines = Span(first.start, last.end)
    if lines == whole.span:
        label = whole.label
    elif lines.start == lines.end:
        label = "the end of the file"
    else:
        numbers = (document.line_number(offset) for offset in (lines.start, lines.end - 1))
        label = line_range(document, *numbers).label
    is_from_start = not text[lines.start : span.start].strip()
    is_to_end = not text[span.end : lines.end].strip()
    user_span = Span(lines.start if is_from_start else span.start, lines.end if is_to_end else span.end)
    # Nothing is selected of a line where only the cursor is in it.
    return Region(lines, lines if span.start == span.end else user_span, label)


def _line_at(document: Document, offset: int) -> Span:
    """The whole line with `offset`; nothing at the end of a text with a final newline."""
    number = document.line_number(offset)
    spans = document.line_spans
    return spans[number - 1] if number <= len(spans) else Span(len(document.text), len(document.text))
