"""Log probabilities are those of the target's own logits, whatever was drafted."""

from __future__ import annotations

import math

import pytest

from specedit.engine.api import GenerateRequest, Sampling
from specedit.engine.local import LocalEngine
from specedit.engine.target import Target
from specedit.engine.tokens import Tokenizer
from tests.tiny_model import EOS_ID, save_tiny_model

PROMPT = "def area(width, height):\n    return width * height\n" * 3


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    path = save_tiny_model(tmp_path_factory.mktemp("llama"))
    return LocalEngine(Target.load(path, device="cpu"), Tokenizer.load(path), draft_budget=16)


def asked(engine, logprobs, *, plain=False, **sampling):
    request = GenerateRequest(
        prompt=PROMPT,
        prediction=PROMPT,
        sampling=Sampling(logit_bias={EOS_ID: -1e4}, **sampling),
        max_new_tokens=30,
        logprobs=logprobs,
    )
    return list((engine.generate_plain if plain else engine.generate)(request))


def tokens_of(chunks):
    return [token for chunk in chunks for token in chunk.tokens]


@pytest.mark.parametrize("sampling", [{}, {"temperature": 0.9, "top_p": 0.8, "presence_penalty": 1.0}])
def test_drafted_and_plain_answers_have_the_same_log_probabilities(engine, sampling):
    drafted, plain = (tokens_of(asked(engine, 3, plain=plain, **sampling)) for plain in (False, True))
    assert [token.token_bytes for token in drafted] == [token.token_bytes for token in plain]
    assert len(drafted) == 30
    for left, right in zip(drafted, plain, strict=True):
        assert math.isclose(left.logprob, right.logprob, abs_tol=1e-3)
        assert [top.token_bytes for top in left.top] == [top.token_bytes for top in right.top]


def test_the_most_probable_come_first_and_greedy_takes_the_first(engine):
    for token in tokens_of(asked(engine, 5)):
        values = [top.logprob for top in token.top]
        assert len(values) == 5
        assert values == sorted(values, reverse=True)
        assert (token.token_bytes, token.logprob) == (token.top[0].token_bytes, values[0])
        assert sum(math.exp(value) for value in values) <= 1 + 1e-6


def test_the_tokens_make_up_the_text(engine):
    chunks = asked(engine, 0)
    text = b"".join(token.token_bytes for token in tokens_of(chunks)).decode("utf-8", errors="replace")
    assert text == "".join(chunk.text for chunk in chunks)
    assert all(token.top == () for token in tokens_of(chunks))


def test_nobody_who_does_not_ask_gets_them(engine):
    assert tokens_of(asked(engine, None)) == []
