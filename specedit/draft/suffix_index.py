"""SuffixIndex: where the end of one token sequence stands earlier in a text that only grows.

For each of a few orders k a hash table holds the latest place of every run of k tokens, and each place points to the
one before it that ends in the same run (hash chains, as in LZ77 compressors). Adding a token costs one table entry an
order; looking up walks a bounded number of links, whatever the text's length.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from specedit.draft.native import jit
from specedit.draft.tree import IntArray

Tokens = npt.NDArray[np.int32]

#: The arrays of an index, as kernels take them: slab, length, heads, links.
IndexArrays = tuple[Tokens, int, Tokens, Tokens]

#: Stands between two texts of one index; no token equals it, so no match and no draft crosses it.
BOUNDARY = -1
#: Matches are followed back for this many tokens; longer ones count as this long.
MAX_MATCH = 32
#: Lengths of the runs that are indexed, longest first.
ORDERS = (16, 8, 4, 2, 1)
#: Links followed for each order in one lookup.
MAX_LINKS = 48

_BASE = 0x9E3779B97F4A7C15  # odd and without pattern: 2**64 over the golden ratio
_NUM_ORDERS = len(ORDERS)
_NONE_BARRED = np.zeros(0, dtype=np.bool_)
_RUNS = np.array(ORDERS, dtype=np.int64)
_POWERS = np.array([pow(_BASE, k, 1 << 64) for k in ORDERS], dtype=np.uint64)


class Match(NamedTuple):
    """An occurrence of a suffix: `tokens[end - length : end]` equals its last `length` tokens."""

    end: int
    length: int


class SuffixIndex:
    """Finds places of the text that end as a query does, and what follows there.

    Matches of 1, 2, 4, 8 and 16 tokens are found exactly, the latest first; lengths between them are the longest among
    the `MAX_LINKS` latest places of the next shorter one.
    """

    def __init__(self, capacity: int = 512, *, indexed: int | None = None) -> None:
        """Make room for `capacity` tokens, of which `indexed` are no boundaries (None: all); it grows as needed."""
        self._length = 0
        capacity = max(capacity, 16)
        self._reserve(capacity, capacity if indexed is None else max(indexed, 16))

    def __len__(self) -> int:
        return self._length

    @property
    def tokens(self) -> Tokens:
        """[length] the indexed text; a view, not to be written."""
        return self.slab[: self._length]

    @property
    def arrays(self) -> IndexArrays:
        """What `find_matches` looks into."""
        return self.slab, self._length, self.heads, self.links

    @property
    def memory_bytes(self) -> int:
        """What the text and the tables take: 64 to 104 bytes for each token of the capacity."""
        return self.slab.nbytes + self.heads.nbytes + self.links.nbytes

    def extend(self, token_ids: Sequence[int] | IntArray | Tokens) -> None:
        """Append tokens to the text; use `BOUNDARY` to keep two texts apart."""
        start, end = self._length, self._length + len(token_ids)
        if end > len(self.slab):
            known = self.tokens
            self._length = 0
            grown = max(end, 2 * len(known))
            self._reserve(grown, grown)
            self.slab[:start] = known
            insert_runs(self.slab, 0, start, self.heads, self.links)
        self.slab[start:end] = token_ids
        insert_runs(self.slab, start, end, self.heads, self.links)
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
        tail = np.asarray(query[-MAX_MATCH:], dtype=np.int32)
        end, length = find_longest(self.arrays, tail, _NONE_BARRED if barred is None else barred)
        return Match(end, length) if length else None

    def following(self, end: int, count: int) -> Tokens:
        """At most `count` tokens from position `end` on, never past the text's end or a boundary."""
        run = self.tokens[end : end + count]
        stops = np.flatnonzero(run == BOUNDARY)
        return run[: stops[0]] if len(stops) else run

    def _reserve(self, capacity: int, indexed: int) -> None:
        self.slab: Tokens = np.empty(capacity, dtype=np.int32)
        table = 1 << (2 * indexed - 1).bit_length()
        self.heads: Tokens = np.zeros((_NUM_ORDERS, table), dtype=np.int32)
        self.links: Tokens = np.zeros((_NUM_ORDERS, capacity + 1), dtype=np.int32)


@jit
def match_length(text: Tokens, end: int, query: Tokens, size: int, limit: int) -> int:
    """How many tokens before `text[end]` equal those before `query[size]`, at most `limit`."""
    limit = min(limit, end, size)
    length = 0
    while length < limit and text[end - 1 - length] == query[size - 1 - length] and text[end - 1 - length] >= 0:
        length += 1
    return length


@jit
def _hashing(slots: int) -> tuple[np.uint64, int]:
    """Shift and mask that take a hash to one of `slots`, a power of two."""
    shift = np.uint64(64)
    mask = slots - 1
    while slots > 1:
        slots >>= 1
        shift -= np.uint64(1)
    return shift, mask


@jit
def insert_runs(text: Tokens, start: int, end: int, heads: Tokens, links: Tokens) -> None:
    """Enter the runs that end after `text[start]` to `text[end - 1]`; entries are ends, 0 is none."""
    shift, mask = _hashing(heads.shape[1])
    base = np.uint64(_BASE)
    since_boundary = 0
    hashes = np.zeros(_NUM_ORDERS, dtype=np.uint64)
    first = max(0, start - _RUNS[0])
    for place in range(first, end):
        token = text[place]
        if token < 0:
            since_boundary = 0
            hashes[:] = 0
            continue
        since_boundary += 1
        for order in range(_NUM_ORDERS):
            run = _RUNS[order]
            value = hashes[order] * base + np.uint64(int(token) + 1)
            if since_boundary > run:
                value -= _POWERS[order] * np.uint64(int(text[place - run]) + 1)
            hashes[order] = value
            if place < start or since_boundary < run:
                continue
            slot = np.int64((value * base) >> shift)
            while True:
                entry = heads[order, slot]
                if entry == 0 or match_length(text, entry, text, place + 1, run) == run:
                    break
                slot = (slot + 1) & mask
            links[order, place + 1] = entry
            heads[order, slot] = place + 1


@jit
def find_matches(
    index: IndexArrays,
    query: Tokens,
    size: int,
    max_links: int,
    ends: IntArray,
    lengths: IntArray,
    enough: int = 1 << 30,
) -> int:
    """Collect places that end as `query[:size]` does and that something follows, from the longest order down.

    Args:
        index: `SuffixIndex.arrays`: the text, how much of it is in use, the latest end of each run, the one before it.
        query: the tokens whose end is looked for; a boundary ends it.
        size: how many of them count.
        max_links: places looked at for each order.
        ends: [room] receives the places, each once.
        lengths: [room] receives the match lengths, at most `MAX_MATCH`.
        enough: with so many from the longer orders, shorter ones are left out.

    Returns:
        How many were found.
    """
    text, length, heads, links = index
    shift, mask = _hashing(heads.shape[1])
    base = np.uint64(_BASE)
    usable = 0
    while usable < min(size, MAX_MATCH) and query[size - 1 - usable] >= 0:
        usable += 1
    count = 0
    for order in range(_NUM_ORDERS):
        run = _RUNS[order]
        if usable < run:
            continue
        if count >= enough:
            break
        value = np.uint64(0)
        for place in range(size - run, size):
            value = value * base + np.uint64(int(query[place]) + 1)
        slot = np.int64((value * base) >> shift)
        while True:
            entry = heads[order, slot]
            if entry == 0 or match_length(text, entry, query, size, run) == run:
                break
            slot = (slot + 1) & mask
        for _ in range(max_links):
            if entry == 0 or count == len(ends):
                break
            if entry < length and text[entry] >= 0:
                known = False
                for other in range(count):
                    if ends[other] == entry:
                        known = True
                        break
                if not known:
                    ends[count] = entry
                    lengths[count] = match_length(text, entry, query, size, MAX_MATCH)
                    count += 1
            entry = links[order, entry]
    return count


@jit
def find_longest(index: IndexArrays, query: Tokens, barred: npt.NDArray[np.bool_]) -> tuple[int, int]:
    """End and length of the longest match of `query`, of equal ones the latest; 0, 0 where there is none.

    Places that a token of `barred` [vocabulary, or none] follows do not count.
    """
    ends = np.empty(_NUM_ORDERS * MAX_LINKS, dtype=np.int64)
    lengths = np.empty(_NUM_ORDERS * MAX_LINKS, dtype=np.int64)
    text = index[0]
    best_end, best_length = 0, 0
    # Places of a longer order match longer than any other: mostly the first order that has some is all it takes.
    for enough in (1, len(ends)):
        for row in range(find_matches(index, query, len(query), MAX_LINKS, ends, lengths, enough)):
            end, length = ends[row], lengths[row]
            better = length > best_length or (length == best_length and end > best_end)
            if better and not (len(barred) > 0 and barred[text[end]]):
                best_end, best_length = end, length
        if best_length > 0:
            break
    return best_end, best_length
