"""RequestLog: a line for each answer, without a word of what was asked or answered unless that is wanted."""

from __future__ import annotations

import itertools
import logging
import time

import msgspec

from specedit.engine.api import GenerateRequest, TextChunk
from specedit.engine.scheduler import Answers, Deliver, QueueState
from specedit.errors import SpecEditError

_log = logging.getLogger(__name__)


class RequestLog:
    """`Answers` that are logged as they end: number, priority, outcome, tokens, seconds."""

    def __init__(self, answers: Answers, *, with_texts: bool = False) -> None:
        """Log the answers of `answers`; `with_texts` logs prompts and answers too."""
        self._answers = answers
        self._with_texts = with_texts
        self._numbers = itertools.count(1)

    def submit(self, request: GenerateRequest, deliver: Deliver, *, plain: bool = False) -> None:
        """See `Answers.submit`."""
        name = f"request {next(self._numbers)} ({request.priority})"
        started = time.perf_counter()
        text = ""

        def delivered(chunk: TextChunk | SpecEditError) -> None:
            nonlocal text
            if isinstance(chunk, SpecEditError):
                # The message may quote the request.
                _log.warning("%s: %s after %.2f s", name, type(chunk).__name__, time.perf_counter() - started)
            else:
                if self._with_texts:
                    text += chunk.text
                if chunk.finish_reason is not None:
                    self._log_end(name, chunk, time.perf_counter() - started, text)
            deliver(chunk)

        if self._with_texts:
            _log.info("%s: %s", name, _one_line(request.messages or request.fim or request.prompt))
        try:
            self._answers.submit(request, delivered, plain=plain)
        except SpecEditError as error:
            _log.warning("%s: refused, %s", name, type(error).__name__)
            raise

    def state(self) -> QueueState:
        """See `Answers.state`."""
        return self._answers.state()

    def _log_end(self, name: str, last: TextChunk, seconds: float, text: str) -> None:
        usage = last.usage
        _log.info(
            "%s: %s, %d prompt tokens (%d cached), %d output tokens in %d forwards, %.2f s",
            name,
            last.finish_reason,
            usage.prompt_tokens,
            usage.cached_tokens,
            usage.output_tokens,
            usage.forwards,
            seconds,
        )
        if self._with_texts:
            _log.info("%s answered: %s", name, _one_line(text))


def _one_line(value: object) -> str:
    """As JSON, in which no text can forge a line of the log or drive a terminal."""
    text = msgspec.json.encode(value).decode("utf-8")
    return text.encode("ascii", "backslashreplace").decode("ascii").replace("\x7f", "\\x7f")
