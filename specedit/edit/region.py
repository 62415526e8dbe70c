"""The part of a document that an edit is about: all of it, a range of lines, or a symbol."""

from __future__ import annotations

import difflib
import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tree_sitter import Language, Node, Parser, Query, QueryCursor

from specedit.edit.document import Document, Span
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


@dataclass(frozen=True, slots=True)
class Grammar:
    """One language: where its parser comes from, and what counts as a symbol in it.

    Attributes:
        module: the installed module that holds the parser.
        factory: the function in it that returns the parser.
        symbols: a tree-sitter query. Each match captures `@name` and the definition, under a word for what it
            is. `@receiver` prefixes the name; `@scope` is no symbol, it only prefixes the names within it.
        leading: node types that belong to a definition when they stand directly above it.
        nests: whether the name of a definition prefixes the names within it.
    """

    module: str
    factory: str
    symbols: str
    leading: frozenset[str] = frozenset()
    nests: bool = True


_PYTHON_SYMBOLS = """
(function_definition name: (identifier) @name) @function
(class_definition name: (identifier) @name) @class
"""

_JAVASCRIPT_SYMBOLS = """
(function_declaration name: (identifier) @name) @function
(generator_function_declaration name: (identifier) @name) @function
(class_declaration name: (_) @name) @class
(method_definition name: (_) @name) @method
(variable_declarator name: (identifier) @name
  value: [(arrow_function) (function_expression) (generator_function)]) @function
(variable_declarator name: (identifier) @name value: (class)) @class
(variable_declarator name: (identifier) @name value: (object)) @object
(pair key: (property_identifier) @name value: [(arrow_function) (function_expression)]) @function
(assignment_expression left: (member_expression) @name
  right: [(arrow_function) (function_expression) (class)]) @function
"""

_TYPESCRIPT_SYMBOLS = """
(abstract_class_declaration name: (_) @name) @class
(public_field_definition name: (_) @name value: [(arrow_function) (function_expression)]) @method
(interface_declaration name: (_) @name) @interface
(type_alias_declaration name: (_) @name) @type
(enum_declaration name: (_) @name) @enum
(internal_module name: (identifier) @name) @namespace
"""

_GO_SYMBOLS = """
(function_declaration name: (identifier) @name) @function
(method_declaration
  receiver: (parameter_list (parameter_declaration type: [
    (type_identifier) @receiver
    (generic_type type: (type_identifier) @receiver)
    (pointer_type (type_identifier) @receiver)
    (pointer_type (generic_type type: (type_identifier) @receiver))]))
  name: (field_identifier) @name) @method
(type_spec name: (type_identifier) @name) @type
(type_alias name: (type_identifier) @name) @type
"""

_RUST_SYMBOLS = """
(function_item name: (identifier) @name) @function
(function_signature_item name: (identifier) @name) @function
(struct_item name: (type_identifier) @name) @struct
(enum_item name: (type_identifier) @name) @enum
(union_item name: (type_identifier) @name) @union
(trait_item name: (type_identifier) @name) @trait
(type_item name: (type_identifier) @name) @type
(mod_item name: (identifier) @name body: (_)) @module
(macro_definition name: (identifier) @name) @macro
(impl_item type: [
  (type_identifier) @name
  (generic_type type: (type_identifier) @name)
  (scoped_type_identifier name: (type_identifier) @name)
  (generic_type type: (scoped_type_identifier name: (type_identifier) @name))]) @scope
"""

_C_FUNCTION_NAMES = "(function_declarator declarator: (identifier) @name)"
_C_SYMBOLS = f"""
(function_definition declarator: [
  {_C_FUNCTION_NAMES}
  (pointer_declarator {_C_FUNCTION_NAMES})
  (pointer_declarator (pointer_declarator {_C_FUNCTION_NAMES}))]) @function
(struct_specifier name: (type_identifier) @name body: (_)) @struct
(union_specifier name: (type_identifier) @name body: (_)) @union
(enum_specifier name: (type_identifier) @name body: (_)) @enum
(type_definition declarator: (type_identifier) @name) @type
(preproc_function_def name: (identifier) @name) @macro
"""

_COMMENT = frozenset({"comment"})
_DECORATED = frozenset({"comment", "decorator"})

GRAMMARS = {
    "c": Grammar("tree_sitter_c", "language", _C_SYMBOLS, _COMMENT, nests=False),
    "go": Grammar("tree_sitter_go", "language", _GO_SYMBOLS, _COMMENT),
    "javascript": Grammar(
        "tree_sitter_javascript",
        "language",
        _JAVASCRIPT_SYMBOLS + "(field_definition property: (_) @name value: (arrow_function)) @method",
        _DECORATED,
    ),
    "python": Grammar("tree_sitter_python", "language", _PYTHON_SYMBOLS),
    "rust": Grammar(
        "tree_sitter_rust",
        "language",
        _RUST_SYMBOLS,
        frozenset({"attribute_item", "line_comment", "block_comment"}),
    ),
    "tsx": Grammar("tree_sitter_typescript", "language_tsx", _JAVASCRIPT_SYMBOLS + _TYPESCRIPT_SYMBOLS, _DECORATED),
    "typescript": Grammar(
        "tree_sitter_typescript", "language_typescript", _JAVASCRIPT_SYMBOLS + _TYPESCRIPT_SYMBOLS, _DECORATED
    ),
}

_LANGUAGE_OF_SUFFIX = {
    ".c": "c",
    ".h": "c",
    ".go": "go",
    ".js": "javascript",
    ".jsx": "javascript",
    ".mjs": "javascript",
    ".cjs": "javascript",
    ".py": "python",
    ".pyi": "python",
    ".pyw": "python",
    ".rs": "rust",
    ".ts": "typescript",
    ".mts": "typescript",
    ".cts": "typescript",
    ".tsx": "tsx",
}

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
    source = _parser_input(document.text)
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


def language_of(path: Path) -> str | None:
    """The language of a file as its name's suffix tells it, or None if no grammar is known for it."""
    return _LANGUAGE_OF_SUFFIX.get(path.suffix.lower())


def parses(text: str, language: str | None) -> bool | None:
    """Whether `text` is free of syntax errors in `language`; None where no grammar is known for that."""
    if language not in GRAMMARS:
        return None
    return not _parse(_parser_input(text), language).has_error


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


def _around(document: Document, span: Span, label: str) -> Region:
    """The whole lines around `span`; the user's span is as wide where nothing else stands on those lines."""
    first, last = document.line_number(span.start), document.line_number(span.end - 1)
    lines = document.lines_span(first, last)
    alone_before = not document.text[lines.start : span.start].strip()
    alone_after = _REST_OF_LINE.fullmatch(document.text, span.end, lines.end)
    start = lines.start if alone_before else span.start
    end = lines.end if alone_after else span.end
    return Region(lines, Span(start, end), label)


def _symbols(source: bytes, language: str) -> Iterator[_Symbol]:
    """Every symbol once, in the order of the text, by its full name."""
    grammar = GRAMMARS[language]
    matches = [
        (kind, nodes[0], captures)
        for _, captures in QueryCursor(_query(language)).matches(_parse(source, language))
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


def _parser_input(text: str) -> bytes:
    """UTF-8 for tree-sitter, with one character in the place of each of `text`.

    A lone carriage return ends a line, which not all grammars know. An undecodable byte becomes "?".
    """
    return re.sub(r"\r(?!\n)", "\n", text).encode("utf-8", "replace")


def _parse(source: bytes, language: str) -> Node:
    return Parser(_language(language)).parse(source).root_node


@cache
def _language(language: str) -> Language:
    grammar = GRAMMARS[language]
    return Language(getattr(importlib.import_module(grammar.module), grammar.factory)())


@cache
def _query(language: str) -> Query:
    return Query(_language(language), GRAMMARS[language].symbols)
