"""The languages that are understood: their grammars, what counts as a symbol in them, and trees of their text.

A tree is made of any text, whole file or not.
"""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tree_sitter import Language, Node, Parser, Query


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


def language_of(path: Path) -> str | None:
    """The language of a file as its name's suffix tells it, or None if no grammar is known for it."""
    return _LANGUAGE_OF_SUFFIX.get(path.suffix.lower())


def parses(text: str, language: str | None) -> bool | None:
    """Whether `text` is free of syntax errors in `language`; None where no grammar is known for that."""
    if language not in GRAMMARS:
        return None
    return not root_of(parser_input(text), language).has_error


def parser_input(text: str) -> bytes:
    """UTF-8 for tree-sitter, with one character in the place of each of `text`.

    A lone carriage return ends a line, which not all grammars know. An undecodable byte becomes "?".
    """
    return re.sub(r"\r(?!\n)", "\n", text).encode("utf-8", "replace")


def root_of(source: bytes, language: str) -> Node:
    r"""The root of the tree of `source`, UTF-8 with `\n` line ends; what can't be parsed is an error node in it.

    `language` is one of `GRAMMARS`.
    """
    return Parser(_language(language)).parse(source).root_node


@cache
def symbols_query(language: str) -> Query:
    """The query that finds the definitions of a language."""
    return Query(_language(language), GRAMMARS[language].symbols)


@cache
def _language(language: str) -> Language:
    grammar = GRAMMARS[language]
    return Language(getattr(importlib.import_module(grammar.module), grammar.factory)())
