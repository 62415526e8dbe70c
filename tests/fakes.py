"""Stand-ins that behave like the real thing at a public protocol, for our tests and for those of our users."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from specedit.engine.api import DrafterUsage, FinishReason, GenerateRequest, TextChunk, Usage


@dataclass
class ScriptedEngine:
    """An engine that gives the next of `answers` to each request, in chunks.

    Attributes:
        answers: texts, or exceptions to raise; a callable makes the answer from the request. The last one repeats.
        chunk_chars: characters a chunk.
        finish_reason: how the answers end.
        seconds_per_chunk: how long a chunk takes.
        requests: what was asked so far.
    """

    answers: Sequence[str | Exception | Callable[[GenerateRequest], str]]
    chunk_chars: int = 7
    finish_reason: FinishReason = "stop"
    seconds_per_chunk: float = 0.0
    requests: list[GenerateRequest] = field(default_factory=list)
    model_name: str = "scripted"
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
            yield TextChunk(answer[start : start + self.chunk_chars], _usage(count))
        yield TextChunk("", _usage(len(starts)), self.finish_reason)


def _usage(chunks: int) -> Usage:
    return Usage(
        prompt_tokens=20,
        output_tokens=5 * chunks,
        forwards=chunks,
        prefill_forwards=1,
        drafters={"lookup": DrafterUsage(drafted=6 * chunks, accepted=4 * chunks)},
        decode_seconds=0.5,
    )


def fenced(text: str, tag: str = "", fence: str = "```") -> str:
    """`text` as a model answers it: line ends `\\n`, in one code block."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    end = "" if text.endswith("\n") or not text else "\n"
    return f"{fence}{tag}\n{text}{end}{fence}"
