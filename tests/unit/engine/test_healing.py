from __future__ import annotations

import random

import pytest

from specedit.engine.healing import Healing, SpelledTokens

PIECES = [b"a", b"ab", b"abc", b"b", b"\xc3", b"\xa9", b"\xc3\xa9!", b"", b"ab"]


def healing(text, **changes):
    settings = {"vocab_size": len(PIECES)} | changes
    return Healing(SpelledTokens(enumerate(PIECES)), text.encode(), **settings)


def fitting(found):
    return None if found is None else found.tolist()


def test_tokens_that_begin_the_text_or_that_it_begins_fit():
    assert healing("ab").fitting().tolist() == [0, 1, 2, 8]
    assert healing("abcd").fitting().tolist() == [0, 1, 2, 8]
    assert healing("b").fitting().tolist() == [3]


@pytest.mark.parametrize("seed", range(20))
def test_those_found_are_those_that_agree(seed):
    rng = random.Random(seed)
    pieces = [bytes(rng.choices(b"ab\xff\x00", k=rng.randrange(5))) for _ in range(200)]
    tokens = SpelledTokens(enumerate(pieces))
    for _ in range(50):
        text = bytes(rng.choices(b"ab\x00", k=rng.randrange(1, 7)))
        agreeing = [n for n, piece in enumerate(pieces) if piece and (text.startswith(piece) or piece.startswith(text))]
        assert tokens.fitting(text).tolist() == agreeing


def test_a_character_may_be_spelled_in_parts():
    assert healing("é").fitting().tolist() == [4, 6]
    assert healing("é").fitting([4]).tolist() == [5]
    assert healing("é").fitting([4, 5]) is None


@pytest.mark.parametrize(
    ("path", "left"), [([], [0, 1, 2, 8]), ([0], [3]), ([1], None), ([2], None), ([0, 3], None), ([3], None)]
)
def test_what_is_left_depends_on_the_tokens_before(path, left):
    ahead, gone = healing("ab"), healing("ab")
    gone.commit(path)
    assert fitting(ahead.fitting(path)) == fitting(gone.fitting()) == left
    assert ahead.fitting().tolist() == [0, 1, 2, 8], "looking ahead changes nothing"


def test_end_tokens_and_tokens_without_logits_do_not_fit():
    assert healing("ab", barred={1, 5}, vocab_size=8).fitting().tolist() == [0, 2]


def test_where_no_token_fits_any_may_come():
    assert healing("xyz").fitting() is None
    assert healing("b", barred={3}).fitting() is None
