"""Static n-grams: which tokens follow one or two others in code at large, from a table shipped with the package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from specedit.draft.native import jit
from specedit.draft.suffix_index import Tokens

#: Share of the two-token context in the estimate, where the table has it; the rest comes from one token.
_PAIR_SHARE = 0.9
#: Upper ends of the buckets that `belief_in` tells apart; 0 is an empty table, 1 a follower that the table lacks.
_EVIDENCE_STEPS = np.array([0.03, 0.1, 0.3, 0.6])


class Table(NamedTuple):
    """Followers of contexts in compressed rows: those of context i are `next[starts[i] : starts[i + 1]]`.

    Attributes:
        pair_keys: [pairs] ascending, first token * 2**32 + second.
        pair_starts: [pairs + 1].
        pair_next: [pair followers] in falling probability.
        pair_probs: [pair followers].
        keys: [tokens] ascending.
        starts: [tokens + 1].
        next: [followers] in falling probability.
        probs: [followers].
    """

    pair_keys: npt.NDArray[np.int64]
    pair_starts: npt.NDArray[np.int64]
    pair_next: Tokens
    pair_probs: npt.NDArray[np.float32]
    keys: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    next: Tokens
    probs: npt.NDArray[np.float32]

    @classmethod
    def of(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Table:
        """A table from the arrays of a table file."""
        return cls(
            arrays["keys2"].astype(np.int64),
            arrays["starts2"].astype(np.int64),
            arrays["next2"].astype(np.int32),
            np.exp(arrays["prob2"].astype(np.float32) / np.float32(-32)),
            arrays["keys1"].astype(np.int64),
            arrays["starts1"].astype(np.int64),
            arrays["next1"].astype(np.int32),
            np.exp(arrays["prob1"].astype(np.float32) / np.float32(-32)),
        )


def empty_table() -> Table:
    """A table that knows nothing."""
    none = {name: np.zeros(0, dtype=np.uint32) for name in ("keys2", "next2", "prob2", "keys1", "next1", "prob1")}
    starts = {name: np.zeros(1, dtype=np.uint32) for name in ("starts2", "starts1")}
    return Table.of(none | starts)


@jit
def row_of(keys: npt.NDArray[np.int64], key: int) -> int:
    """Where `key` stands in `keys`, or -1."""
    low, high = 0, len(keys)
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low if low < len(keys) and keys[low] == key else -1


@jit
def followers(
    table: Table, previous: int, last: int, least: float, tokens: Tokens, probs: npt.NDArray[np.float64]
) -> int:
    """Collect the tokens that may follow `previous, last`, with their probabilities of at least `least`.

    Args:
        table: the n-grams.
        previous, last: the context.
        least: less probable followers are left out.
        tokens: [room] receives the followers, each once.
        probs: [room] receives their probabilities.

    Returns:
        How many there are.
    """
    count = 0
    pair = row_of(table.pair_keys, (previous << 32) + last) if previous >= 0 else -1
    if pair >= 0:
        for at in range(table.pair_starts[pair], table.pair_starts[pair + 1]):
            prob = table.pair_probs[at] * _PAIR_SHARE
            if prob < least or count == len(tokens):
                break
            tokens[count] = table.pair_next[at]
            probs[count] = prob
            count += 1
    single = row_of(table.keys, last)
    if single < 0:
        return count
    share = 1.0 - _PAIR_SHARE if pair >= 0 else 1.0
    for at in range(table.starts[single], table.starts[single + 1]):
        prob = table.probs[at] * share
        if prob < least:
            break
        token = table.next[at]
        known = False
        for other in range(count):
            if tokens[other] == token:
                probs[other] += prob
                known = True
                break
        if not known and count < len(tokens):
            tokens[count] = token
            probs[count] = prob
            count += 1
    return count


@jit
def probability(table: Table, previous: int, last: int, token: int) -> float:
    """The table's probability of `token` after `previous, last`; 0 where it does not know it."""
    prob = 0.0
    pair = row_of(table.pair_keys, (previous << 32) + last) if previous >= 0 else -1
    if pair >= 0:
        for at in range(table.pair_starts[pair], table.pair_starts[pair + 1]):
            if table.pair_next[at] == token:
                prob = table.pair_probs[at] * _PAIR_SHARE
                break
    single = row_of(table.keys, last)
    if single >= 0:
        for at in range(table.starts[single], table.starts[single + 1]):
            if table.next[at] == token:
                prob += table.probs[at] * (1.0 - _PAIR_SHARE if pair >= 0 else 1.0)
                break
    return prob


@jit
def belief_in(table: Table, previous: int, last: int, token: int) -> int:
    """How much the table speaks for a follower, in 7 steps: 0 for an empty table, 1 for a token it lacks."""
    if len(table.keys) == 0:
        return 0
    prob = probability(table, previous, last, token)
    if prob <= 0.0:
        return 1
    step = 2
    for bound in _EVIDENCE_STEPS:
        if prob >= bound:
            step += 1
    return step
