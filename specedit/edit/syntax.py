"""Tree-sitter trees of text that need not be a whole file."""

from __future__ import annotations

import importlib
from functools import cache

from tree_sitter import Language, Node, Parser, Query

from specedit.edit.region import GRAMMARS


def root_of(source: bytes, language: str) -> Node:
    r"""The root of the tree of `source`, UTF-8 with `\n` line ends; what can't be parsed is an error node in it.

    `language` is one of `region.GRAMMARS`.
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
