from __future__ import annotations

import pytest
import torch

from specedit.engine.kv_cache import KVCache


def rows(*values):
    return torch.tensor(values, dtype=torch.float64)[None, None, :, None]


def filled(*values, layers=2):
    cache = KVCache(layers)
    for layer in range(layers):
        cache.append(layer, rows(*values), rows(*values) + 100)
    return cache


def content(cache, layer=1):
    keys, values = cache.append(layer, rows(), rows())
    assert torch.equal(values, keys + 100)
    return keys[0, 0, :, 0].tolist()


@pytest.mark.parametrize(("rolled_back", "left"), [(0, [1, 2, 3]), (1, [1, 2]), (3, [])])
def test_rolling_back_leaves_no_stale_row(rolled_back, left):
    cache = filled(1, 2, 3)
    cache.truncate(cache.length - rolled_back)
    assert cache.length == len(left)
    assert content(cache) == left


@pytest.mark.parametrize("length", [-2, 4])
def test_rolling_back_what_is_not_there_is_an_error(length):
    cache = filled(1, 2, 3)
    with pytest.raises(ValueError, match="3 stand"):
        cache.truncate(length)
    assert content(cache) == [1, 2, 3]


def test_a_path_is_kept_and_its_siblings_go():
    cache = filled(1, 2, 10, 11, 12, 13, 14)
    cache.keep(2, [0, 2, 4])
    assert content(cache, 0) == content(cache, 1) == [1, 2, 10, 12, 14]


def test_keeping_nothing_of_a_draft_keeps_the_committed_rows():
    cache = filled(1, 2, 10, 11)
    cache.keep(2, [])
    assert content(cache) == [1, 2]


@pytest.mark.parametrize("path", [[1, 0], [0, 0], [0, 2], [-1]])
def test_a_path_that_does_not_stand_is_an_error(path):
    cache = filled(1, 2, 10, 11)
    with pytest.raises(ValueError, match="can't keep"):
        cache.keep(2, path)
    assert content(cache) == [1, 2, 10, 11]


def test_growing_keeps_what_stands_and_rarely_copies():
    cache = KVCache(1)
    copies, last = 0, None
    for number in range(3000):
        keys, _ = cache.append(0, rows(number), rows(number))
        copies += keys.data_ptr() != last
        last = keys.data_ptr()
    assert keys[0, 0, :, 0].tolist() == list(range(3000))
    assert copies <= 7, "each doubling, and no more"


def test_memory_is_reported():
    cache = filled(1, 2, layers=2)
    assert cache.num_bytes == 2 * 2 * 64 * 8


def test_a_fork_has_the_first_rows_and_a_life_of_its_own():
    cache = filled(1, 2, 3, 4, 5)
    fork = cache.fork(3)
    for layer in range(2):
        fork.append(layer, rows(8, 9), rows(8, 9) + 100)
    cache.truncate(2)
    assert content(fork, 0) == content(fork, 1) == [1, 2, 3, 8, 9]
    assert content(cache) == [1, 2]
    with pytest.raises(ValueError, match="can't fork at 6 rows: 5 stand"):
        fork.fork(6)
    assert fork.fork(0).length == 0


def test_an_empty_cache_holds_no_memory():
    cache = filled(1, 2)
    assert cache.num_bytes > 0
    cache.truncate(0)
    assert cache.num_bytes == 0
