"""Texts encoded in pieces come out as they do whole, whatever the tokenizer; what was seen is not encoded again."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tokenizers import Regex, models, pre_tokenizers
from tokenizers import Tokenizer as BackendTokenizer

import specedit
from specedit.engine.token_cache import TokenCache
from specedit.engine.tokens import Tokenizer
from tests.tiny_model import byte_level

SOURCE = "\n".join(path.read_text() for path in sorted(Path(specedit.__file__).parent.glob("engine/*.py")))
#: Where pieces meet is what matters, so these texts are mostly ends and gaps.
ALPHABET = [
    *"\n\n\n\n \t",
    "  ",
    "    ",
    "\r\n",
    "word",
    "Word",
    "x_1",
    "42",
    "'s",
    "'",
    '"',
    "()",
    ");",
    "{",
    "#",
    "//",
]
ALPHABET += [
    "\u00e9",
    "e\u0301",
    "\u4e16",
    "\U0001f600",
    "\u200d",
    "\u2028",
    "\u00a0",
    "\0",
    "\x85",
    "\x1c",
    "\u2581",
    "\ufeff",
]


class Counting:
    """An `encode_all` that keeps what it was asked for."""

    def __init__(self, backend):
        self.asked = []
        self._backend = backend

    def __call__(self, texts):
        self.asked += texts
        return [self._backend.encode(text, add_special_tokens=False).ids for text in texts]


def cached(backend, **options):
    counting = Counting(backend)
    vocabulary = [token.encode() for token in backend.get_vocab()]
    cache = TokenCache(counting, vocabulary, **options)
    counting.asked.clear()
    return cache, counting


def words(*merged):
    """A tokenizer of characters in which these pairs are merged, with nothing but merges to keep lines apart."""
    letters = sorted(set("".join(ALPHABET) + SOURCE + "".join(merged)))
    vocabulary = {piece: number for number, piece in enumerate([*letters, *merged])}
    return BackendTokenizer(models.BPE(vocab=vocabulary, merges=[(pair[0], pair[1]) for pair in merged]))


def random_texts(count):
    rng = random.Random(0)
    for _ in range(count):
        yield "".join(rng.choices(ALPHABET, k=rng.randrange(900, 1500)))


def assert_same(tokenizer, texts):
    for text in texts:
        whole = tokenizer._plain.encode(text.replace("\u2581", ""), add_special_tokens=False).ids
        assert tokenizer.encode(text.replace("\u2581", "")) == whole
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_pieces_make_the_same_tokens_as_the_whole():
    tokenizer = Tokenizer(byte_level())
    assert tokenizer._cache.cuts
    assert_same(tokenizer, [SOURCE, SOURCE[1:70_000], *random_texts(30)])


@pytest.mark.smollm2
def test_pieces_make_the_same_tokens_as_the_whole_with_smollm2(smollm2):
    _, tokenizer = smollm2
    assert tokenizer._cache.cuts
    assert_same(tokenizer, [SOURCE, SOURCE.replace("    ", "\t"), SOURCE.replace("\n", "\r\n"), *random_texts(60)])


@pytest.mark.real
def test_pieces_make_the_same_tokens_as_the_whole_with_qwen(qwen):
    _, tokenizer = qwen
    assert tokenizer._cache.cuts
    assert_same(tokenizer, [SOURCE, SOURCE.replace("    ", "\t"), SOURCE.replace("\n", "\r\n"), *random_texts(60)])


def edited(text, rng):
    """The text with a run of it replaced, at its ends too, by signs or by other lines."""
    start = rng.choice([0, len(text), *(rng.randrange(len(text)) for _ in range(6))])
    stop = start + rng.choice([0, 1, 2, 5, 60, 900])
    place = rng.randrange(len(SOURCE) - 800)
    new = rng.choice(["".join(rng.choices(ALPHABET, k=rng.randrange(6))), SOURCE[place : place + rng.randrange(800)]])
    return (text[:start] + new + text[stop:]).replace("\u2581", "") or SOURCE[:9_000]


@pytest.mark.parametrize("merged", [(), ("\n ",), (")\n",), ("\n ", ":\n")])
def test_a_text_that_is_edited_again_and_again_makes_the_same_tokens_as_the_whole(merged):
    backend = words(*merged)
    cache, _ = cached(backend)
    assert cache.cuts
    rng = random.Random(0)
    text = SOURCE[:9_000]
    for _ in range(150):
        text = edited(text, rng)[:12_000]
        assert cache.encode(text).tolist() == backend.encode(text).ids


@pytest.mark.smollm2
def test_a_text_that_is_edited_again_and_again_makes_the_same_tokens_as_the_whole_with_smollm2(smollm2):
    _, tokenizer = smollm2
    rng = random.Random(0)
    text = SOURCE[:9_000]
    for _ in range(300):
        text = edited(text, rng)[:12_000]
        assert_same(tokenizer, [text])


@pytest.mark.parametrize("merged", [(), ("ab",), ("\n ",), (")\n",), ("\n ", ":\n"), ("\nw",), ("\n ", ":\n", "\nd")])
def test_where_tokens_reach_over_line_ends_the_tokens_are_still_the_same(merged):
    backend = words(*merged)
    cache, _ = cached(backend)
    for text in (SOURCE, *random_texts(10)):
        assert cache.encode(text).tolist() == backend.encode(text).ids
    if {"\n ", ":\n", "\nd"} <= set(merged):
        assert not cache.cuts


def test_a_tokenizer_that_looks_far_ahead_is_not_cut():
    backend = words()
    # A line end counts as one with the word after it, so no place around it is safe.
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(r"\S?\n\s*\S?"), "isolated")
    backend.model = models.WordLevel({"a": 0, "?": 1}, unk_token="?")
    cache, counting = cached(backend)
    assert not cache.cuts
    assert cache.encode(SOURCE).tolist() == backend.encode(SOURCE).ids
    assert counting.asked == [SOURCE]


def test_only_what_changed_is_encoded_again():
    cache, counting = cached(byte_level().backend_tokenizer)
    cache.encode(SOURCE)
    counting.asked.clear()
    cache.encode(SOURCE)
    assert counting.asked == []
    changed = SOURCE.replace("class KVCache:", "class KVCache2:", 1)
    assert changed != SOURCE
    cache.encode(changed)
    assert len(counting.asked) == 1
    assert len(counting.asked[0]) < 500
    assert "KVCache2" in counting.asked[0]


def test_no_more_text_is_kept_than_allowed_and_what_is_used_stays():
    cache, counting = cached(byte_level().backend_tokenizer, max_chars=20_000)
    often = SOURCE[:4_000]
    for start in range(0, 60_000, 3_000):
        cache.encode(often)
        cache.encode(SOURCE[start : start + 3_000])
        assert cache.chars <= 20_000
    counting.asked.clear()
    cache.encode(often)
    assert counting.asked == []
    cache.encode(SOURCE)
    assert cache.chars <= 20_000, "nor where one text is longer"
