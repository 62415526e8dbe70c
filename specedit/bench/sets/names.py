"""Names as people write them: their words, the way those are joined, and new names for old ones."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z]*|[a-z]+|[0-9]+")

_RESERVED = (
    "and any as assert async auto await bool break case catch chan char class const continue def default defer del "
    "delete do double elif else enum except export extends extern False false final finally float fn for from func "
    "global go goto if impl import in instanceof int interface is lambda let long loop map match mod move mut new "
    "nil None none nonlocal not null object or package pass print private pub public raise range ref register "
    "return select Self self short signed sizeof static string struct super switch this throw trait True true try "
    "type typedef typeof undefined union unsafe unsigned use var void volatile where while with yield "
)
RESERVED = frozenset(_RESERVED.split())
"""Words that are no names in one language or another."""


def words_of(name: str) -> list[str]:
    """The words of a name, as they are written in it: `maxTokenCount` and `max_token_count` have three."""
    return _WORD.findall(name)


def plural(word: str) -> str:
    """The plural of a regular English noun in lower case."""
    if re.search(r"(?:s|x|z|ch|sh)$", word):
        return f"{word}es"
    return f"{word[:-1]}ies" if re.search(r"[^aeiou]y$", word) else f"{word}s"


def in_the_case_of(word: str, model: str) -> str:
    """`word`, in lower case, written as `model` is: `token`, `Token` or `TOKEN`."""
    if model.isupper() and len(model) > 1:
        return word.upper()
    return word[:1].upper() + word[1:] if model[:1].isupper() else word


def new_name(old: str, text: str, *, snake: bool) -> str | None:
    """A name for what `old` means, joined as `old` is and not yet in `text`; None where there is none.

    Args:
        old: the name.
        text: of the file.
        snake: whether names that start in lower case are joined by underscores.
    """
    present = text.lower()
    for word in reversed(words_of(old)):
        if synonym := _synonyms().get(word.lower()):
            start = old.rindex(word)
            name = f"{old[:start]}{_joined(synonym.split(), word, snake=snake)}{old[start + len(word) :]}"
            if name.lower() not in present and name not in RESERVED:
                return name
    return None


def renamed_word(name: str, old: str, new: str) -> str:
    """`name` with the word `old` or its plural replaced by `new`, in the same case and number."""

    def written(match: re.Match[str]) -> str:
        word = match[0].lower()
        if word == old:
            return in_the_case_of(new, match[0])
        return in_the_case_of(plural(new), match[0]) if word == plural(old) else match[0]

    return _WORD.sub(written, name)


def _joined(words: list[str], model: str, *, snake: bool) -> str:
    """The words as one name, in the case of the word `model`."""
    if model.isupper() and len(model) > 1:
        return "_".join(words).upper()
    if model[:1].islower() and snake:
        return "_".join(words)
    return in_the_case_of(words[0], model) + "".join(word.title() for word in words[1:])


@cache
def _synonyms() -> dict[str, str]:
    table = Path(__file__).with_name("synonyms.txt").read_text(encoding="utf-8")
    return dict(line.split(": ") for line in table.split("\n") if line and not line.startswith("#"))
