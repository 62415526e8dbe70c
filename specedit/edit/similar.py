"""The part of a text that has the most names in common with another."""

from __future__ import annotations

import re
from collections.abc import Set
from functools import lru_cache

from specedit.edit.lexemes import KEYWORDS
from specedit.edit.prompt import shown_text

WINDOW_LINES = 16
LEAST_SHARED = 3

_STEP = 8
_IDENTIFIER = re.compile(r"[^\W\d]\w{2,}")


def identifiers_of(text: str) -> tuple[str, ...]:
    """The names in `text` of at least three characters that are no keywords, each once, in order."""
    return tuple(dict.fromkeys(name for name in _IDENTIFIER.findall(text) if name not in KEYWORDS))


def most_similar(text: str, names: Set[str]) -> str:
    r"""The lines of `text`, at most 16, that are likest to a text with these names, from the first that has one on.

    The likeness is the share of names that are common (Jaccard). Nothing where no lines have three of them. Line ends
    are `\n`.
    """
    best = 0.0, ""
    for window, own in _windows(text):
        shared = len(own & names)
        likeness = shared / len(own | names) if shared >= LEAST_SHARED else 0.0
        best = max(best, (likeness, window), key=lambda found: found[0])
    lines = best[1].split("\n")
    having = [number for number, line in enumerate(lines) if not names.isdisjoint(identifiers_of(line))]
    return "\n".join(lines[having[0] : having[-1] + 1]) + "\n" if having else ""


@lru_cache(maxsize=64)
def _windows(text: str) -> tuple[tuple[str, frozenset[str]], ...]:
    lines = shown_text(text).split("\n")
    windows = ("\n".join(lines[first : first + WINDOW_LINES]) for first in range(0, len(lines), _STEP))
    return tuple((window, frozenset(identifiers_of(window))) for window in windows)
