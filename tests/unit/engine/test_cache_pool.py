"""The pool of KV caches: what is reused, what is kept, what goes when there is too much."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from specedit.engine.cache_pool import CachePool
from specedit.engine.kv_cache import KVCache

ROW_BYTES = 2 * 4 * torch.float32.itemsize
#: What a small cache takes: slabs begin with room for so many rows.
CACHE_BYTES = 64 * ROW_BYTES
ROOMY = 1 << 30


def pool_of(limit_bytes=ROOMY):
    return CachePool(lambda: KVCache(1), limit_bytes)


def read(lease, token_ids):
    """Put rows for the tokens that the cache lacks; a row holds its token."""
    missing = torch.tensor(token_ids[lease.cache.length :], dtype=torch.float32)
    rows = missing[None, None, :, None].expand(1, 1, -1, 4)
    lease.cache.append(0, rows, rows)


def rows_of(cache):
    empty = torch.empty(1, 1, 0, 4)
    keys, _ = cache.append(0, empty, empty)
    return keys[0, 0, :, 0].tolist()


def answered(pool, prompt, answer=()):
    """A request that came to its end; the rows that it found."""
    prompt_ids = np.array(prompt, dtype=np.int32)
    lease = pool.lend(prompt_ids)
    assert rows_of(lease.cache) == prompt[: lease.reused], "rows of another text"
    read(lease, [*prompt, *answer][:-1])
    pool.touch(lease)
    pool.end(lease, np.array([*prompt, *answer], dtype=np.int32))
    return lease.reused


FILE = list(range(100))


def test_the_next_request_finds_the_rows_up_to_the_first_other_token():
    pool = pool_of()
    assert answered(pool, [*FILE, 7, 7, 7]) == 0
    assert answered(pool, [*FILE, 8, 8, 8]) == len(FILE)
    changed = [*FILE[:60], 7, *FILE[60:]]
    assert answered(pool, changed) == 60
    assert answered(pool, changed) == len(changed) - 1, "the last token is run again for its logits"


def test_the_answer_is_part_of_what_the_next_turn_finds():
    pool = pool_of()
    answered(pool, FILE, [5, 6, 7])
    assert answered(pool, [*FILE, 5, 6, 7, 8]) == len(FILE) + 2


def test_a_request_that_shares_little_takes_nothing_from_what_was_kept():
    pool = pool_of()
    answered(pool, FILE)
    assert answered(pool, [*FILE[:10], *[7] * 50]) == 10
    assert answered(pool, FILE) == len(FILE) - 1


def test_a_cache_in_use_is_copied_and_stays_as_it_is():
    pool = pool_of()
    first = pool.lend(np.array([*FILE, 1, 1], dtype=np.int32))
    read(first, FILE[:80])
    second = pool.lend(np.array([*FILE, 2, 2], dtype=np.int32))
    assert second.reused == 80
    read(second, [*FILE, 2])
    assert rows_of(first.cache) == FILE[:80]
    assert rows_of(second.cache) == [*FILE, 2]


def test_what_a_longer_cache_holds_too_is_not_kept_twice():
    pool = pool_of()
    answered(pool, [1] * 10)
    answered(pool, [*[1] * 9, *[2] * 91])
    answered(pool, [*[1] * 8, *[3] * 92])
    kept = len(pool)
    answered(pool, [*[1] * 9, *[2] * 91, 4])
    assert len(pool) == kept
    assert answered(pool, [*[1] * 8, *[3] * 92]) == 99


def test_a_request_that_ended_early_costs_nobody_a_longer_cache():
    pool = pool_of()
    prompt = np.array(FILE, dtype=np.int32)
    first = pool.lend(prompt)
    read(first, FILE[:10])
    second = pool.lend(prompt)
    read(first, FILE[:99])
    pool.end(first, prompt)
    pool.end(second, prompt)
    assert pool.lend(prompt).reused == 99


def test_too_many_bytes_cost_the_cache_that_was_not_used_for_the_longest_time():
    pool = pool_of(3 * CACHE_BYTES)
    texts = [[number] * 50 for number in range(4)]
    for text in texts[:3]:
        answered(pool, text)
    assert answered(pool, texts[0]) == 49
    answered(pool, texts[3])
    assert pool.num_bytes <= 3 * CACHE_BYTES
    assert [answered(pool, texts[number]) for number in (0, 2, 3)] == [49] * 3
    assert answered(pool, texts[1]) == 0


def test_idle_caches_go_before_those_of_paused_answers_and_those_are_emptied_not_lost():
    pool = pool_of(2 * CACHE_BYTES)
    paused = pool.lend(np.array([1] * 50, dtype=np.int32))
    read(paused, [1] * 49)
    answered(pool, [2] * 50)
    running = pool.lend(np.array([3] * 50, dtype=np.int32))
    read(running, [3] * 49)
    pool.touch(running)
    assert paused.cache.length == 49
    assert len(pool) == 2
    more = pool.lend(np.array([4] * 50, dtype=np.int32))
    read(more, [4] * 49)
    pool.touch(more)
    assert (paused.cache.length, running.cache.length, more.cache.length) == (0, 49, 49)
    read(paused, [1] * 49)
    pool.touch(paused)
    assert rows_of(paused.cache) == [1] * 49
    assert running.cache.length == 0


def test_the_cache_in_use_stays_however_large_it_is():
    pool = pool_of(0)
    lease = pool.lend(np.array([1] * 50, dtype=np.int32))
    read(lease, [1] * 49)
    pool.touch(lease)
    assert lease.cache.length == 49


def test_without_memory_all_others_go():
    pool = pool_of()
    answered(pool, [1] * 50)
    paused = pool.lend(np.array([2] * 50, dtype=np.int32))
    read(paused, [2] * 49)
    lease = pool.lend(np.array([3] * 50, dtype=np.int32))
    read(lease, [3] * 49)
    assert pool.evict_all_but(lease)
    assert pool.num_bytes == lease.cache.num_bytes
    assert not pool.evict_all_but(lease), "there is nothing more to give"


@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_asked_the_rows_are_right_and_the_bytes_within_bounds(seed):
    rng = np.random.default_rng(seed)
    pool = pool_of(4 * CACHE_BYTES)
    paused: list = []
    for _ in range(200):
        prompt = rng.integers(0, 2, rng.integers(2, 12)).tolist()
        if rng.random() < 0.7:
            answered(pool, prompt, rng.integers(0, 2, 3).tolist())
        else:
            lease = pool.lend(np.array(prompt, dtype=np.int32))
            read(lease, prompt[:-1])
            pool.touch(lease)
            paused.append((lease, prompt))
        if paused and rng.random() < 0.3:
            lease, prompt = paused.pop(int(rng.integers(len(paused))))
            assert rows_of(lease.cache) in ([], prompt[:-1])
            read(lease, prompt[:-1])
            pool.end(lease, np.array(prompt, dtype=np.int32))
        assert pool.num_bytes <= 4 * CACHE_BYTES
