"""Scheduler: one target, one queue, three priorities; work is interleaved a step at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from specedit.engine.api import FinishReason, GenerateRequest, Priority, TextChunk, Usage
from specedit.errors import SpecEditError

Deliver = Callable[[TextChunk | SpecEditError], None]
"""Takes the chunks of one answer, from the scheduler's thread; the last has a finish reason or is an error."""


class Observer(Protocol):
    """Is told what happens, from the scheduler's thread; see `metrics.Metrics`."""

    def started(self, priority: Priority, *, waited_seconds: float, lower_steps: int) -> None:
        """A request had its first step; `lower_steps` of lower priorities ran since it arrived."""
        ...

    def ended(
        self, priority: Priority, outcome: FinishReason | Literal["error"], usage: Usage, *, seconds: float
    ) -> None:
        """A request is over; `seconds` since it arrived."""
        ...


@dataclass(frozen=True, slots=True)
class QueueState:
    """What there is to do.

    Attributes:
        waiting: requests that had no step yet, by priority.
        paused: requests that were begun and are not being worked on.
        running: 1 while a request is being worked on, else 0.
        kv_bytes: held by keys and values of requests and of the prefix cache.
        steps: prefill chunks and decode steps so far.
    """

    waiting: Mapping[Priority, int]
    paused: int
    running: int
    kv_bytes: int
    steps: int


class Answers(Protocol):
    """What a server needs of a scheduler."""

    def submit(self, request: GenerateRequest, deliver: Deliver, *, plain: bool = False) -> None:
        """Check and encode the request, and put it into its queue. `request.cancel` takes it out again at any time.

        Blocks for as long as encoding takes; may be called from any thread.

        Raises:
            ContextOverflowError: prompt and answer do not fit.
            UsageError: the request is wrong.
            UnsupportedModelError: the model has no chat template or no FIM markers, and the request needs them.
            OverloadedError: too many requests wait.
            ShuttingDownError: no more requests are taken.
        """
        ...

    def state(self) -> QueueState:
        """What there is to do now."""
        ...
