from __future__ import annotations

import itertools

import pytest

from specedit.engine.stops import StopRule


class Spelling:
    """Token n stands for the n-th of these texts."""

    def __init__(self, *texts):
        self.texts = texts

    def push(self, token_id):
        return self.texts[token_id]

    def flush(self):
        return ""


def cuts(tokens):
    """Every way of cutting the tokens into steps."""
    for marks in itertools.product((False, True), repeat=len(tokens) - 1):
        steps, step = [], [tokens[0]]
        for token, cut in zip(tokens[1:], marks, strict=True):
            if cut:
                steps.append(step)
                step = []
            step.append(token)
        yield [*steps, step]


def result(steps, texts, **rule):
    stop_rule = StopRule(Spelling(*texts), **rule)
    tokens, text, reason = [], "", None
    for step in steps:
        emission = stop_rule.push(step)
        tokens += emission.token_ids
        text += emission.text
        reason = emission.finish_reason
        if reason:
            break
    return tokens, text, reason


@pytest.mark.parametrize(
    ("texts", "stop", "text"),
    [
        (["ab", "cE", "N", "Dx", "y"], ["END"], "abc"),
        (["EN", "EN", "D", "z"], ["END"], "EN"),
        (["a", "aab", "ab", "c"], ["aab"], "a"),
        (["x", "yz", "zy", "w"], ["zzy", "yz"], "x"),
        (["one", "STOP two"], ["STOP", "NEVER"], "one"),
    ],
)
def test_a_stop_string_that_straddles_steps_ends_the_answer_as_one_token_a_step_does(texts, stop, text):
    tokens = list(range(len(texts)))
    results = [result(steps, texts, eos_ids=(), stop_strings=stop, max_new_tokens=99) for steps in cuts(tokens)]
    assert all(each == results[-1] for each in results)
    assert results[0][1:] == (text, "stop")


def test_what_may_become_a_stop_string_is_shown_once_it_can_not():
    texts = ["a EN", "DING b"]
    stop_rule = StopRule(Spelling(*texts), eos_ids=(), stop_strings=["ENDED"], max_new_tokens=9)
    assert stop_rule.push([0]).text == "a "
    assert stop_rule.push([1]).text == "ENDING b"


@pytest.mark.parametrize("ending", ["eos", "length"])
def test_held_back_text_is_shown_when_the_answer_ends_otherwise(ending):
    texts = ["a ST", "O", ""]
    rule = {"eos_ids": (2,), "stop_strings": ["STOP"], "max_new_tokens": 2 if ending == "length" else 9}
    tokens, text, reason = result([[0, 1, 2]], texts, **rule)
    assert text == "a STO"
    assert (tokens, reason) == (([0, 1], "length") if ending == "length" else ([0, 1, 2], "stop"))


def test_no_stop_string_is_found_in_what_was_typed():
    texts = ["en", "d = ", "x", "\nend", " of it"]
    told = {"eos_ids": (), "stop_strings": ["end", "\n"], "typed_chars": 3, "max_new_tokens": 9}
    for steps in cuts(list(range(5))):
        assert result(steps, texts, **told)[1:] == ("end = x", "stop")


def test_what_is_hidden_is_neither_shown_nor_counted():
    texts = [" ", " f", "oo", "bar\n", "z"]
    told = {"eos_ids": (), "stop_strings": [" "], "hidden_chars": 2, "typed_chars": 2, "max_new_tokens": 3}
    for steps in cuts(list(range(5))):
        assert result(steps, texts, **told) == ([0, 1, 2, 3], "foobar\n", "length")
    assert StopRule(Spelling(*texts), **told).push([0, 1, 2]).hidden_tokens == 1


def test_the_end_token_is_counted_but_not_shown():
    assert result([[0, 1, 0]], ["x", "<eos>"], eos_ids=(1,), max_new_tokens=9) == ([0, 1], "x", "stop")
