"""What is logged of an answer: how it went, and no text unless that is wanted."""

from __future__ import annotations

import logging

import pytest

from specedit.engine.api import GenerateRequest, Message, TextChunk, Usage
from specedit.engine.scheduler import Deliver, QueueState
from specedit.engine.serving.request_log import RequestLog
from specedit.errors import EngineError, OverloadedError, SpecEditError

REQUEST = GenerateRequest(messages=(Message("user", "a secret\nINFO forged \x1b[2J ü"),), priority="inline")
USAGE = Usage(prompt_tokens=12, cached_tokens=4, output_tokens=7, forwards=3)


class Answers:
    """Gives what it was made with."""

    def __init__(self, *outcome: TextChunk | SpecEditError, refusal: SpecEditError | None = None) -> None:
        self.outcome, self.refusal = outcome, refusal

    def submit(self, request: GenerateRequest, deliver: Deliver, *, plain: bool = False) -> None:
        if self.refusal:
            raise self.refusal
        for chunk in self.outcome:
            deliver(chunk)

    def state(self) -> QueueState:
        return QueueState({}, 0, 0, 0, 42)


def logged(caplog: pytest.LogCaptureFixture, answers: Answers, **options: bool) -> tuple[list[object], str]:
    """What was delivered, and the log."""
    delivered: list[object] = []
    with caplog.at_level(logging.DEBUG):
        RequestLog(answers, **options).submit(REQUEST, delivered.append)
    return delivered, caplog.text


def test_an_answer_is_a_line_without_its_text(caplog: pytest.LogCaptureFixture) -> None:
    chunks = (TextChunk("the code", USAGE), TextChunk(" and more", USAGE, "stop"))
    delivered, text = logged(caplog, Answers(*chunks))
    assert delivered == list(chunks)
    assert "request 1 (inline): stop, 12 prompt tokens (4 cached), 7 output tokens in 3 forwards" in text
    assert "secret" not in text
    assert "code" not in text


def test_an_error_is_told_by_its_kind_alone(caplog: pytest.LogCaptureFixture) -> None:
    _, text = logged(caplog, Answers(EngineError("quotes a secret")))
    assert "EngineError" in text
    assert "secret" not in text


def test_a_refusal_reaches_the_caller(caplog: pytest.LogCaptureFixture) -> None:
    answers = RequestLog(Answers(refusal=OverloadedError("too many")))
    with pytest.raises(OverloadedError):
        answers.submit(REQUEST, lambda _: None)
    assert "refused, OverloadedError" in caplog.text
    assert answers.state().steps == 42


def test_texts_are_logged_where_wanted_but_never_as_lines_of_their_own(caplog: pytest.LogCaptureFixture) -> None:
    chunks = (TextChunk("the ", USAGE), TextChunk("code\n\u2028", USAGE, "stop"))
    _, text = logged(caplog, Answers(*chunks), with_texts=True)
    assert r"a secret\nINFO forged" in text
    assert r'"the code\n\u2028"' in text
    assert len(text.splitlines()) == 3
    assert "\x1b" not in text
