"""The part of a document that an edit is about: all of it, a range of lines, a symbol, or what is selected."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tree_sitter import Node, QueryCursor

from specedit.edit.document import Document, Span
from specedit.edit.syntax import GRAMMARS, language_of, parser_input, root_of, symbols_query
from specedit.errors import UsageError


@dataclass(frozen=True, slots=True)
class Region:
    """What the model is asked to rewrite.

    Attributes:
        span: whole lines, their ends included.
        user_span: what was asked for, within `span`; the edit may change nothing outside it.
        label: how to name it to people and models: "lines 10-40", "function Name.method", "the whole file".
    """

    span: Span
    user_span: Span
    label: str


# Nodes that hold one definition and nothing else of its kind: the definition is all of them.
_WRAPPERS = frozenset(
    {
        "ambient_declaration",
        "declaration",
        "decorated_definition",
        "export_statement",
        "expression_statement",
        "lexical_declaration",
        "type_declaration",
        "type_definition",
        "variable_declaration",
    }
)

# What may follow a definition on its last line and still be part of it.
_REST_OF_LINE = re.compile(r"[ \t;,]*(?:(?:#|//|/\*)[^\r\n]*)?(?:\r\n|\r|\n|\Z)")


@dataclass(frozen=True, slots=True)
class _Symbol:
    kind: str
    name: str
    start_byte: int
    end_byte: int

    def span(self, source: bytes) -> Span:
        return Span(*(len(source[:byte].decode("utf-8")) for byte in (self.start_byte, self.end_byte)))


def whole_file(document: Document) -> Region:
    """The region that is all of the document."""
    span = Span(0, len(document.text))
    return Region(span, span, "the whole file")


def line_range(document: Document, first: int, last: int) -> Region:
    """The region of the lines `first` to `last`, 1-based, both included.

    Raises:
        UsageError: there are no such lines.
    """
    span = document.lines_span(first, last)
    return Region(span, span, f"line {first}" if first == last else f"lines {first}-{last}")


def symbol(document: Document, name: str) -> Region:
    """The region of the function, class or type called `name`, with its decorators, attributes, doc comments.

    A dotted name starts at the outermost definition (`Class.method`, `outer.inner`). Where nothing is called so,
    it may leave out the outer parts (`method`). `::` is read as a dot.

    Raises:
        UsageError: nothing has this name, or several things have, or the language is not known.
    """
    language = language_of(document.path) if document.path else None
    where = document.path or "the text"
    if language is None:
        raise UsageError(
            f"--symbol can't be used on {where}: it works for {', '.join(sorted(GRAMMARS))}. "
            "Give the lines instead: --range FIRST:LAST."
        )
    source = parser_input(document.text)
    known = list(_symbols(source, language))
    wanted = name.replace("::", ".")
    found = [entry for entry in known if entry.name == wanted]
    found = found or [entry for entry in known if entry.name.endswith(f".{wanted}")]
    if not found:
        raise UsageError(f"{where} has no symbol {name!r}. {_near(wanted, [entry.name for entry in known])}")
    regions = [_around(document, entry.span(source), f"{entry.kind} {entry.name}") for entry in found]
    if len(regions) > 1:
        raise UsageError(f"{where} has {len(regions)} symbols {name!r}. {_choices(document, regions)}")
    return regions[0]


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
    start, end = (len(parser_input(document.text[:edge])) for edge in (line.start, line.end))
    source = parser_input(document.text)
    around = [
        _around(document, symbol.span(source), f"{symbol.kind} {symbol.name}")
        for symbol in _known_symbols(source, language)
        if symbol.start_byte < end and start < symbol.end_byte
    ]
    return min(around, key=lambda region: region.span.end - region.span.start, default=None)


def _near(wanted: str, names: list[str]) -> str:
    if not names:
        return "No functions, classes or types were found in it. Give the lines instead: --range FIRST:LAST."
    by_last_part = {name.rpartition(".")[2]: name for name in names}
    near = difflib.get_close_matches(wanted, names, 3) + [
        by_last_part[part] for part in difflib.get_close_matches(wanted.rpartition(".")[2], by_last_part, 3)
    ]
    if near:
        return f"Did you mean {' or '.join(dict.fromkeys(near))}?"
    return f"It has, among others: {', '.join(list(dict.fromkeys(names))[:8])}."


def _choices(document: Document, regions: list[Region]) -> str:
    choices = (
        f"{region.label}, --range {document.line_number(region.span.start)}:{document.line_number(region.span.end - 1)}"
        for region in regions
    )
    return f"Say which one by its lines or its full name: {'; '.join(choices)}."


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


def _around(document: Document, span: Span, label: str) -> Region:
    """The whole lines around `span`; the user's span is as wide where nothing else stands on those lines."""
    first, last = document.line_number(span.start), document.line_number(span.end - 1)
    lines = document.lines_span(first, last)
    alone_before = not document.text[lines.start : span.start].strip()
    alone_after = _REST_OF_LINE.fullmatch(document.text, span.end, lines.end)
    start = lines.start if alone_before else span.start
    end = lines.end if alone_after else span.end
    return Region(lines, Span(start, end), label)


@lru_cache(maxsize=2)
def _known_symbols(source: bytes, language: str) -> tuple[_Symbol, ...]:
    """The symbols of a text; editors ask for the same one at each move of the cursor."""
    return tuple(_symbols(source, language))


def _symbols(source: bytes, language: str) -> Iterator[_Symbol]:
    """Every symbol once, in the order of the text, by its full name."""
    grammar = GRAMMARS[language]
    matches = [
        (kind, nodes[0], captures)
        for _, captures in QueryCursor(symbols_query(language)).matches(root_of(source, language))
        for kind, nodes in captures.items()
        if kind not in ("name", "receiver")
    ]
    outer: list[tuple[int, str]] = []
    seen = set()
    for kind, node, captures in sorted(matches, key=lambda match: (match[1].start_byte, -match[1].end_byte)):
        while outer and outer[-1][0] <= node.start_byte:
            outer.pop()
        prefix = outer[-1][1] if outer else ""
        name = prefix + ".".join(_node_text(captures[part][0]) for part in ("receiver", "name") if part in captures)
        if grammar.nests:
            outer.append((node.end_byte, f"{name}."))
        start, end = _whole_definition(node, source, grammar.leading)
        if kind != "scope" and (name, start) not in seen:
            seen.add((name, start))
            yield _Symbol(kind, name, start, end)


def _whole_definition(node: Node, source: bytes, leading: frozenset[str]) -> tuple[int, int]:
    """The bytes of a definition with its wrappers and what belongs to it directly above."""
    while (parent := node.parent) and parent.type in _WRAPPERS:
        if sum(child.type == node.type for child in parent.children) > 1:
            break
        node = parent
    first = node
    while (above := first.prev_sibling) and above.type in leading:
        line_start = source.rfind(b"\n", 0, above.start_byte) + 1
        if source[line_start : above.start_byte].strip() or not _adjoin(source, above, first):
            break
        first = above
    return first.start_byte, node.end_byte


def _adjoin(source: bytes, above: Node, below: Node) -> bool:
    """Whether no empty line stands between. Some comment nodes hold the end of their line, others don't."""
    between = source[above.start_byte : below.start_byte]
    gap = between[len(between.rstrip()) :]
    return gap.count(b"\n") <= 1


def _node_text(node: Node) -> str:
    return (node.text or b"").decode("utf-8")
