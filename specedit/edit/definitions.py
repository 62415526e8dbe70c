"""What a file defines, as short as it can be told: signatures, and the first lines of what is said about them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tree_sitter import Node, QueryCursor

from specedit.edit.prompt import shown_text
from specedit.edit.syntax import root_of, symbols_query

_MOST_LINES = 12
_MOST_COMMENT_LINES = 3
_FIELDS = frozenset({"expression_statement", "field_definition", "public_field_definition"})
_COMMENT = re.compile(r"\s*(?://|/?\*)")
_SHOWN_WHOLE = frozenset({"struct", "union", "enum", "interface", "type", "trait", "object", "macro"})


@dataclass(frozen=True, slots=True)
class Definition:
    r"""One function, class or type.

    Attributes:
        name: its own.
        owner: the name of the class or type that it is a member of; nothing where there is none.
        text: its signature and the beginning of its description, in whole lines with `\n` line ends.
    """

    name: str
    owner: str
    text: str


@lru_cache(maxsize=256)
def definitions_of(text: str, language: str) -> tuple[Definition, ...]:
    """The definitions in `text`, in its order; members follow what they belong to. `language` is a grammar's."""
    source = shown_text(text).encode("utf-8")
    lines = source.decode("utf-8").split("\n")
    found = []
    outer: list[tuple[int, str, str]] = []
    for kind, node, name, receiver in _matches(source, language):
        while outer and outer[-1][0] <= node.start_byte:
            outer.pop()
        owner = receiver or (outer[-1][1] if outer else "")
        inside = outer[-1][2] if outer else ""
        outer.append((node.end_byte, name, kind))
        # What is defined within a function can't be used elsewhere.
        if kind != "scope" and inside not in ("function", "method"):
            found.append(Definition(name, owner, _shown(node, kind, lines)))
    return tuple(found)


def _matches(source: bytes, language: str) -> list[tuple[str, Node, str, str]]:
    """Each definition once: its kind, its node, its name and that of its receiver."""
    found = {}
    for _, captures in QueryCursor(symbols_query(language)).matches(root_of(source, language)):
        names = {part: captures[part][0].text or b"" for part in ("name", "receiver") if part in captures}
        for kind, nodes in captures.items():
            if kind not in names:
                name, receiver = (names.get(part, b"").decode("utf-8") for part in ("name", "receiver"))
                found[nodes[0].start_byte, name] = kind, nodes[0], name, receiver
    return sorted(found.values(), key=lambda match: (match[1].start_byte, -match[1].end_byte))


def _shown(node: Node, kind: str, lines: Sequence[str]) -> str:
    first, last = node.start_point.row, node.end_point.row
    body = _body(node)
    if body is None or kind in _SHOWN_WHOLE:
        shown = list(lines[first : min(last, first + _MOST_LINES - 1) + 1])
    else:
        shown = list(lines[first : body.start_point.row])
        if opening := _upto(lines[body.start_point.row], body.start_point.column):
            shown.append(opening)
        shown = [*shown[:_MOST_LINES], *_docstring(body, lines), *(_fields(body, lines) if kind == "class" else ())]
    return "\n".join([*_comment_above(first, lines), *shown]) + "\n"


def _body(node: Node) -> Node | None:
    for holder in (node, node.child_by_field_name("value"), node.child_by_field_name("right")):
        if holder and (body := holder.child_by_field_name("body")):
            return body
    return None


def _upto(line: str, column_bytes: int) -> str:
    return line.encode("utf-8")[:column_bytes].decode("utf-8", "ignore").rstrip()


def _docstring(body: Node, lines: Sequence[str]) -> list[str]:
    """The first line of what Python code says about itself."""
    first = body.named_children[0] if body.named_children else None
    if first is None or first.type != "expression_statement" or first.children[0].type != "string":
        return []
    line = lines[first.start_point.row]
    quote = next((quote for quote in ('"""', "'''") if quote in line), "")
    return [line if first.start_point.row == first.end_point.row or not quote else line.rstrip() + quote]


def _fields(body: Node, lines: Sequence[str]) -> Iterator[str]:
    """The fields of a class, each by its first line."""
    for child in body.named_children[:_MOST_LINES]:
        if child.type in _FIELDS and child.children[0].type != "string":
            yield lines[child.start_point.row]


def _comment_above(first: int, lines: Sequence[str]) -> list[str]:
    """The comment right above a line; nothing where it is long."""
    start = first
    while start and _COMMENT.match(lines[start - 1]):
        start -= 1
    return list(lines[start:first]) if first - start <= _MOST_COMMENT_LINES else []
