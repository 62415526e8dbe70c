"""The part of a text that has the most names in common with another."""

from __future__ import annotations

import re
from collections.abc import Set
from functools import lru_cache

from specedit.edit.lexemes import KEYWORDS
from specedit.edit.prompt import shown_text

WINDOW_LINES = 20
LEAST_SHARED = 2

_STEP = 10
_IDENTIFIER = re.compile(r"[^\W\d]\w{2,}")


def identifiers_of(text: str) -> tuple[str, ...]:
    """The names in `text` of at least three characters that are no keywords, each once, in order."""
    return tuple(dict.fromkeys(name for name in _IDENTIFIER.findall(text) if name not in KEYWORDS))


def most_similar(text: str, names: Set[str]) -> tuple[int, str] | None:
    r"""The 20 lines of `text` that are likest to a text with these names, and the number of the first, from 0.

    The likeness is the share of names that are common (Jaccard). None where no lines have two of them. The lines end
    in `\n`.
    """
    best: tuple[float, int, str] | None = None
    for first, window, own in _windows(text):
        shared = len(own & names)
        likeness = shared / len(own | names) if shared >= LEAST_SHARED else 0.0
        if likeness and (best is None or likeness > best[0]):
            best = likeness, first, window
    return best and best[1:]


@lru_cache(maxsize=64)
def _windows(text: str) -> tuple[tuple[int, str, frozenset[str]], ...]:
    lines = shown_text(text).split("\n")
    windows = ((first, "\n".join(lines[first : first + WINDOW_LINES])) for first in range(0, len(lines), _STEP))
    return tuple((first, window.rstrip() + "\n", frozenset(identifiers_of(window))) for first, window in windows)
