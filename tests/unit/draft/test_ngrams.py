from __future__ import annotations

import numpy as np
import pytest

from specedit.draft.ngrams import _PAIR_SHARE, Table, belief_in, empty_table, followers, probability, row_of

# After 7: 1 in half of all places, 2 in a quarter; after 3 7: 2 nearly always. After 9: 4 always.
HALF, QUARTER = round(32 * np.log(2)), round(32 * np.log(4))
TABLE = Table.of(
    {
        "keys2": np.array([(3 << 32) + 7], dtype=np.uint64),
        "starts2": np.array([0, 1], dtype=np.uint32),
        "next2": np.array([2], dtype=np.uint32),
        "prob2": np.array([0], dtype=np.uint8),
        "keys1": np.array([7, 9], dtype=np.uint32),
        "starts1": np.array([0, 2, 3], dtype=np.uint32),
        "next1": np.array([1, 2, 4], dtype=np.uint32),
        "prob1": np.array([HALF, QUARTER, 0], dtype=np.uint8),
    }
)
PAIR, ONE = _PAIR_SHARE, 1 - _PAIR_SHARE


def found(previous, last, least=0.0, room=8, table=TABLE):
    tokens, probs = np.zeros(room, dtype=np.int32), np.zeros(room)
    count = followers(table, previous, last, least, tokens, probs)
    return dict(zip(tokens[:count].tolist(), probs[:count].tolist(), strict=True))


@pytest.mark.parametrize(
    ("previous", "last", "expected"),
    [
        (3, 7, {2: PAIR + ONE / 4, 1: ONE / 2}),
        (5, 7, {1: 1 / 2, 2: 1 / 4}),
        (-1, 7, {1: 1 / 2, 2: 1 / 4}),
        (3, 9, {4: 1}),
        (3, 8, {}),
        (7, 3, {}),
    ],
)
def test_followers_of_two_tokens_and_of_one_add_up(previous, last, expected):
    assert found(previous, last) == pytest.approx(expected, abs=0.005)
    for token in range(10):
        prob = probability(TABLE, previous, last, token)
        assert prob == pytest.approx(expected.get(token, 0), abs=0.005)
    assert sum(found(previous, last).values()) <= 1 + 1e-6


def test_improbable_followers_and_those_without_room_are_left_out():
    assert found(5, 7, least=0.4).keys() == {1}
    assert found(5, 7, least=0.6) == {}
    assert found(5, 7, room=1).keys() == {1}


def test_the_belief_in_a_follower_has_steps():
    assert [belief_in(TABLE, 5, 7, token) for token in (1, 2, 3)] == [5, 4, 1]
    assert belief_in(TABLE, 3, 9, 4) == 6
    assert belief_in(empty_table(), 5, 7, 1) == 0


def test_an_empty_table_knows_nothing():
    assert found(5, 7, table=empty_table()) == {}
    assert probability(empty_table(), 5, 7, 1) == 0


@pytest.mark.parametrize("size", [0, 1, 2, 3, 8])
def test_rows_are_found_by_key(size):
    keys = np.arange(size, dtype=np.int64) * 3
    assert [row_of(keys, int(key)) for key in keys] == list(range(size))
    assert [row_of(keys, key) for key in (-1, 1, 3 * size)] == [-1, -1, -1]
