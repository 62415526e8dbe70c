"""SuffixIndex: where the end of one token sequence stands earlier in a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from specedit.draft.tree import IntArray

#: Stands between two texts of one index; no token equals it, so no match and no draft crosses it.
BOUNDARY = -1


class Match(NamedTuple):
    """An occurrence of a suffix: `tokens[end - length : end]` equals its last `length` tokens."""

    end: int
    length: int


class SuffixIndex:
    """Finds the longest suffix of a query that also stands in the indexed text, and what follows it there.

    The text only grows. A lookup narrows the candidate positions one token at a time, so it costs one pass over the
    text plus a pass over the survivors for each further token of the match.
    """

    def __init__(self, max_match: int = 64) -> None:
        """Matches longer than `max_match` tokens count as `max_match`; the latest of them wins."""
        if max_match < 1:
            raise ValueError(f"max_match must be at least 1, not {max_match}")
        self._max_match = max_match
        self._slab = np.empty(1024, dtype=np.int64)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def tokens(self) -> IntArray:
        """[length] the indexed text; a view, not to be written."""
        return self._slab[: self._length]

    def extend(self, token_ids: Sequence[int] | IntArray) -> None:
        """Append tokens to the text; use `BOUNDARY` to keep two texts apart."""
        end = self._length + len(token_ids)
        if end > len(self._slab):
            grown = np.empty(max(end, 2 * len(self._slab)), dtype=np.int64)
            grown[: self._length] = self.tokens
            self._slab = grown
        self._slab[self._length : end] = token_ids
        self._length = end

    def longest_match(
        self, query: Sequence[int] | IntArray, barred: npt.NDArray[np.bool_] | None = None
    ) -> Match | None:
        """The longest suffix of `query` in the text that something follows; of equal ones the latest.

        If the text is [1, 2, 3, 4, 2, 3, 9] and the query [0, 2, 3], the match is tokens 4:6, and 9 follows it.

        Args:
            query: the tokens whose end is looked for.
            barred: [vocabulary] tokens that may not be the one that follows, such as special tokens.

        Returns:
            The match, or None where not even the last token of the query has a usable occurrence.
        """
        limit = min(len(query), self._max_match)
        if limit == 0 or self._length < 2:
            return None
        text = self.tokens
        ends = np.flatnonzero(text[:-1] == query[-1]) + 1
        following = text[ends]
        usable = following != BOUNDARY
        if barred is not None:
            usable &= ~barred[following]
        ends = ends[usable]
        if not len(ends):
            return None
        length = 1
        while length < limit:
            starts = ends - length - 1
            longer = ends[(starts >= 0) & (text[starts] == query[-1 - length])]
            if not len(longer):
                break
            ends, length = longer, length + 1
        return Match(int(ends[-1]), length)

    def following(self, end: int, count: int) -> IntArray:
        """At most `count` tokens from position `end` on, never past the text's end or a boundary."""
        run = self.tokens[end : end + count]
        stops = np.flatnonzero(run == BOUNDARY)
        return run[: stops[0]] if len(stops) else run
