"""Stand-ins that behave like the real thing at a public protocol, for our tests and for those of our users."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from specedit.engine.api import (
    DraftedToken,
    DrafterUsage,
    FinishReason,
    GenerateRequest,
    TextChunk,
    TraceStep,
    Usage,
)


@dataclass
class ScriptedEngine:
    """An engine that gives the next of `answers` to each request, in chunks.

    Attributes:
        answers: texts, or exceptions to raise; a callable makes the answer from the request. The last one repeats.
        chunk_chars: characters a chunk.
        finish_reason: how the answers end.
        seconds_per_chunk: how long a chunk takes.
        requests: what was asked so far.
        device: what it says that it runs on.
    """

    answers: Sequence[str | Exception | Callable[[GenerateRequest], str]]
    chunk_chars: int = 7
    finish_reason: FinishReason = "stop"
    seconds_per_chunk: float = 0.0
    requests: list[GenerateRequest] = field(default_factory=list)
    model_name: str = "scripted"
    device: str | None = None
    warnings: list[str] = field(default_factory=list)

    def generate(self, request: GenerateRequest) -> Iterator[TextChunk]:
        self.requests.append(request)
        answer = self.answers[min(len(self.requests), len(self.answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        yield from self._chunks(answer if isinstance(answer, str) else answer(request), request)

    def generate_plain(self, request: GenerateRequest) -> Iterator[TextChunk]:
        return self.generate(request)

    def _chunks(self, answer: str, request: GenerateRequest) -> Iterator[TextChunk]:
        starts = range(0, len(answer), self.chunk_chars)
        for count, start in enumerate(starts, start=1):
            time.sleep(self.seconds_per_chunk)
            if request.cancel.cancelled:
                yield TextChunk("", _usage(count), "cancelled")
                return
            text = answer[start : start + self.chunk_chars]
            yield TextChunk(text, _usage(count), step=_step(text) if request.trace else None)
        yield TextChunk("", _usage(len(starts)), self.finish_reason)


def _step(text: str) -> TraceStep:
    """All but the last character were drafted, one a token, and another branch in vain."""
    *drafted, last = text
    right = [DraftedToken(one, place - 1, "lookup", 0.9) for place, one in enumerate(drafted)]
    wrong = DraftedToken("no", -1, "cursor", 0.1)
    return TraceStep((*right, wrong), tuple(range(len(right))), (*drafted, last), len(right) + 1, 0.001, 0.1)


def _usage(chunks: int) -> Usage:
    return Usage(
        prompt_tokens=20,
        output_tokens=5 * chunks,
        forwards=chunks,
        prefill_forwards=1,
        drafters={"lookup": DrafterUsage(drafted=6 * chunks, accepted=4 * chunks)},
        depths={"1": DrafterUsage(drafted=2 * chunks, accepted=chunks)},
        largest_draft=6,
        decode_seconds=0.5,
        draft_seconds=0.1,
        forward_seconds=0.3,
    )


def fenced(text: str, tag: str = "", fence: str = "```") -> str:
    """`text` as a model answers it: line ends `\\n`, in one code block."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    end = "" if text.endswith("\n") or not text else "\n"
    return f"{fence}{tag}\n{text}{end}{fence}"
