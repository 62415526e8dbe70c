from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specedit.draft.suffix_index import BOUNDARY, MAX_LINKS, MAX_MATCH, ORDERS, Match, SuffixIndex, find_matches


def matches_of(text, query):
    """{place: length} of all places that end as the query does; those that nothing follows too."""
    found = {}
    for end in range(1, len(text) + 1):
        most = min(end, len(query), MAX_MATCH)
        length = 0
        while length < most and text[end - 1 - length] == query[-1 - length] != BOUNDARY:
            length += 1
        if length:
            found[end] = length
    return found


def usable(text, end):
    return end < len(text) and text[end] != BOUNDARY


def by_force(text, query):
    """The longest match that something follows, the latest of equal ones."""
    found = [(length, end) for end, length in matches_of(text, query).items() if usable(text, end)]
    return Match(max(found)[1], max(found)[0]) if found else None


def as_documented(text, query):
    """The best of the latest places of each order."""
    found = matches_of(text, query)
    seen = set()
    for run in ORDERS:
        seen |= set([end for end, length in found.items() if length >= run][-MAX_LINKS:])
    best = max(((found[end], end) for end in seen if usable(text, end)), default=None)
    return Match(best[1], best[0]) if best else None


def indexed(text, capacity=16):
    index = SuffixIndex(capacity)
    index.extend(text)
    return index


def places(index, query, max_links=MAX_LINKS):
    ends = np.empty(len(ORDERS) * max_links, dtype=np.int64)
    lengths = np.empty_like(ends)
    count = find_matches(index.arrays, np.asarray(query, dtype=np.int32), len(query), max_links, ends, lengths)
    return list(zip(ends[:count].tolist(), lengths[:count].tolist(), strict=True))


def morse(size):
    return [bin(place).count("1") & 1 for place in range(size)]


def fibonacci(size):
    one, other = [0], [0, 1]
    while len(other) < size:
        one, other = other, other + one
    return other[:size]


def de_bruijn(order):
    """Each run of `order` bits once."""
    text, seen = [0] * order, {(0,) * order}
    while True:
        for bit in (1, 0):
            if (run := (*text[1 - order :], bit)) not in seen:
                seen.add(run)
                text.append(bit)
                break
        else:
            return text


ADVERSARIAL = {
    "one token": [7] * 200,
    "period 2": [1, 2] * 100,
    "period 17": list(range(17)) * 12,
    "Fibonacci": fibonacci(233),
    "de Bruijn": de_bruijn(7),
    "Thue-Morse": morse(256),
    "no run twice": list(range(200)),
    "boundaries everywhere": [1, BOUNDARY, 1, 1, BOUNDARY, BOUNDARY] * 30,
    "largest tokens": [2**31 - 1, 2**31 - 2, 0] * 50,
}


def check(text, queries):
    index = indexed(text)
    for query in queries:
        found = matches_of(text, query)
        got = index.longest_match(query)
        assert got == as_documented(text, query), (text, query)
        best = by_force(text, query)
        if len(found) <= MAX_LINKS:
            assert got == best, (text, query)
        elif best is not None and sum(not usable(text, end) for end in found) < MAX_LINKS:
            if best.length in ORDERS:
                assert got == best, (text, query)
            assert got.length >= max(run for run in ORDERS if run <= best.length), (text, query)
        seen = places(index, query)
        assert len({end for end, _ in seen}) == len(seen), "each place once"
        assert all(found[end] == length and usable(text, end) for end, length in seen), (text, query)


@pytest.mark.parametrize("alphabet", [1, 2, 4, 50])
def test_random_texts_equal_brute_force(alphabet):
    generator = random.Random(alphabet)
    for _ in range(500):
        share = generator.choice([0, 0.05])
        text = [generator.randrange(alphabet) for _ in range(generator.randrange(90))]
        text = [BOUNDARY if generator.random() < share else token for token in text]
        cut = generator.randrange(len(text) + 1)
        made = [generator.randrange(alphabet) for _ in range(generator.randrange(12))]
        check(text, [made, text, text[:cut], [*made, *text[:cut]]])


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_adversarial_texts_equal_brute_force(name):
    text = ADVERSARIAL[name]
    for size in range(0, len(text), 13):
        check(
            text[:size], [text[:size], text[: size // 2], [*text[: size // 3], *text[:size]], text[size - 3 : size + 2]]
        )


@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(st.sampled_from([0, 1, 2, BOUNDARY]), max_size=40), max_size=8), st.data())
def test_chunks_make_the_same_index_as_one_text(chunks, data):
    text = [token for chunk in chunks for token in chunk]
    growing, whole = SuffixIndex(16), indexed(text, capacity=512)
    reserved = SuffixIndex(512)
    for chunk in chunks:
        growing.extend(chunk)
        reserved.extend(chunk)
    assert growing.tokens.tolist() == reserved.tokens.tolist() == text
    assert (reserved.heads == whole.heads).all()
    assert (reserved.links == whole.links).all()
    for _ in range(3):
        query = data.draw(st.lists(st.sampled_from([0, 1, 2]), max_size=20))
        assert places(growing, query) == places(whole, query)


def test_growth_past_the_capacity_loses_nothing():
    generator = random.Random(3)
    text, index = [], SuffixIndex(16)
    while len(text) < 3000:
        chunk = [generator.randrange(30) for _ in range(generator.choice([1, 2, 7, 300]))]
        text += chunk
        index.extend(chunk)
        query = [*text[-60:-40], *text[-20:-9]] if generator.random() < 0.5 else text[-9:]
        assert index.longest_match(query) == as_documented(text, query)


def test_each_order_is_exact_however_often_its_run_stands_there():
    # 2,000 places end in 1; long ago one of them ended in a longer run.
    for run in ORDERS:
        lesson = [*range(100, 100 + run - 1), 1]
        text = [*lesson, 50, *[1, 60] * 2000]
        assert indexed(text).longest_match(lesson) == (Match(run, run) if run > 1 else Match(len(text) - 1, 1))


def test_a_match_counts_up_to_the_most_tokens():
    text = [*range(100), 7, *range(100), 8]
    assert indexed(text).longest_match(list(range(100))) == Match(201, MAX_MATCH)


def test_the_example_of_the_docstring():
    index = SuffixIndex()
    index.extend([1, 2, 3, 4, 2, 3, 9])
    match = index.longest_match([0, 2, 3])
    assert match == Match(end=6, length=2)
    assert index.following(match.end, 5).tolist() == [9]


def test_a_barred_token_may_not_follow():
    barred = np.zeros(10, dtype=np.bool_)
    barred[9] = True
    index = indexed([1, 2, 3, 5, 2, 3, 9])
    assert index.longest_match([2, 3]) == Match(6, 2)
    assert index.longest_match([2, 3], barred) == Match(3, 2)
    assert index.longest_match([5, 2, 3], barred) == Match(3, 2)


def test_nothing_is_found_across_a_boundary():
    assert indexed([1, 2, BOUNDARY, 3, 4, 5]).longest_match([1, 2, 3]) == Match(4, 1)
    assert indexed([1, 2, BOUNDARY, 3]).longest_match([1, 2]) is None
    assert indexed([1, 2, 3, 4]).longest_match([1, BOUNDARY, 3]) == Match(3, 1)
    assert indexed([BOUNDARY, BOUNDARY, 5]).longest_match([BOUNDARY, BOUNDARY]) is None


def test_what_is_indexed_later_is_found():
    index = indexed(range(2000), capacity=512)
    index.extend([5, 6, 99])
    assert index.longest_match([4, 5, 6]) == Match(7, 3)
    assert index.longest_match([5, 6]) == Match(2002, 2)


def test_nothing_is_found_in_nothing():
    assert SuffixIndex().longest_match([1]) is None
    assert indexed([1, 2]).longest_match([]) is None
    assert indexed([1]).longest_match([1]) is None


def test_a_run_ends_at_a_boundary_and_at_the_end():
    index = indexed([1, 2, BOUNDARY, 3, 4])
    assert index.following(0, 9).tolist() == [1, 2]
    assert index.following(3, 9).tolist() == [3, 4]
    assert index.following(5, 9).tolist() == []


@pytest.mark.parametrize("capacity", [16, 512, 1000, 1024, 1025, 100_000])
def test_memory_is_bounded_and_reported(capacity):
    index = SuffixIndex(capacity)
    assert index.memory_bytes == index.slab.nbytes + index.heads.nbytes + index.links.nbytes
    assert 64 * capacity <= index.memory_bytes < 104 * capacity + 100
