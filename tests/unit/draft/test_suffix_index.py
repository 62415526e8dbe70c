from __future__ import annotations

import random

import pytest

from specedit.draft.suffix_index import BOUNDARY, Match, SuffixIndex


def by_force(text, query, max_match):
    best = None
    for end in range(1, len(text)):
        if text[end] == BOUNDARY:
            continue
        length = 0
        while length < min(end, len(query), max_match) and text[end - 1 - length] == query[-1 - length]:
            length += 1
        if length and (best is None or length >= best.length):
            best = Match(end, length)
    return best


@pytest.mark.parametrize("alphabet", [1, 2, 4])
@pytest.mark.parametrize("max_match", [1, 3, 64])
def test_the_longest_latest_match_equals_brute_force(alphabet, max_match):
    generator = random.Random(alphabet * 100 + max_match)
    for _ in range(150):
        text = [generator.randrange(alphabet) for _ in range(generator.randrange(40))]
        text = [BOUNDARY if generator.random() < 0.05 else token for token in text]
        query = [generator.randrange(alphabet) for _ in range(generator.randrange(12))]
        index = SuffixIndex(max_match)
        index.extend(text)
        assert index.longest_match(query) == by_force(text, query, max_match)


def test_the_example_of_the_docstring():
    index = SuffixIndex()
    index.extend([1, 2, 3, 4, 2, 3, 9])
    match = index.longest_match([0, 2, 3])
    assert match == Match(end=6, length=2)
    assert index.following(match.end, 5).tolist() == [9]


def test_what_is_indexed_later_is_found():
    index = SuffixIndex()
    index.extend(range(2000))
    index.extend([5, 6, 99])
    assert index.longest_match([4, 5, 6]) == Match(7, 3)
    assert index.longest_match([5, 6]) == Match(2002, 2)


def test_a_run_ends_at_a_boundary_and_at_the_end():
    index = SuffixIndex()
    index.extend([1, 2, BOUNDARY, 3, 4])
    assert index.following(0, 9).tolist() == [1, 2]
    assert index.following(3, 9).tolist() == [3, 4]
