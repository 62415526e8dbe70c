"""Names in code: their words, and one name in the ways that code spells it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

Spelling = Literal["exact", "variant", "compound", "prose"]

_WORD = re.compile(r"[A-Z]+\d*(?![a-z])|[A-Z]?[a-z]+\d*|[^\W_A-Za-z]+")
_NAME = re.compile(r"(_*)([^\W_](?:\w*[^\W_])?)(_*)")
_SHORTEST = 3


def words_of(name: str) -> tuple[str, ...]:
    """The words of an identifier in lower case: `HTTPServer_v2` has `http`, `server`, `v2`."""
    return tuple(word.lower() for word in _WORD.findall(name))


def is_name(text: str) -> bool:
    """Whether `text` is one identifier."""
    return text.isidentifier()


def snake(words: Sequence[str]) -> str:
    """`user_name`."""
    return "_".join(words)


def pascal(words: Sequence[str]) -> str:
    """`UserName`."""
    return "".join(word.capitalize() for word in words)


def camel(words: Sequence[str]) -> str:
    """`userName`."""
    return words[0] + pascal(words[1:]) if words else ""


def _screaming(words: Sequence[str]) -> str:
    return snake(words).upper()


def _kebab(words: Sequence[str]) -> str:
    return "-".join(words)


def _spaced(words: Sequence[str]) -> str:
    return " ".join(words)


def _titled(words: Sequence[str]) -> str:
    return " ".join(word.capitalize() for word in words)


def _sentence(words: Sequence[str]) -> str:
    return " ".join(words).capitalize()


_SPELLINGS: tuple[tuple[Callable[[Sequence[str]], str], Spelling], ...] = (
    (snake, "variant"),
    (camel, "variant"),
    (pascal, "variant"),
    (_screaming, "variant"),
    (_kebab, "variant"),
    (_spaced, "prose"),
    (_titled, "prose"),
    (_sentence, "prose"),
)


def spellings(old: str, new: str) -> dict[str, tuple[str, Spelling]]:
    """How each spelling of the name `old` reads once it is called `new`, and which kind of spelling that is.

    Names of one or two letters, and what is no name, have the exact spelling only. Underscores that both names have
    at their ends stand in every spelling.

    Example: `spellings("user_name", "account_name")["UserName"]` is `("AccountName", "variant")`.
    """
    found: dict[str, tuple[str, Spelling]] = {old: (new, "exact")}
    for spelled, meant, kind in _other_spellings(old, new):
        if spelled != meant:
            found.setdefault(spelled, (meant, kind))
    return found


def _other_spellings(old: str, new: str) -> Iterator[tuple[str, str, Spelling]]:
    old_parts, new_parts = _NAME.fullmatch(old), _NAME.fullmatch(new)
    if old_parts is None or new_parts is None or len(old) < _SHORTEST:
        return
    (before, core, after), (new_before, new_core, new_after) = old_parts.groups(), new_parts.groups()
    old_words, new_words = words_of(core), words_of(new_core)
    if (before, after) != (new_before, new_after) or not old_words or not new_words:
        return
    for spell, kind in _SPELLINGS:
        spelled, meant = spell(old_words), spell(new_words)
        if kind == "variant" and spell is not _kebab:
            spelled, meant = before + spelled + after, before + meant + after
        if spell not in (_kebab, _spaced) or len(old_words) > 1:
            yield spelled, meant, kind
