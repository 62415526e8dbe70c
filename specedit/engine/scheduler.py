"""Scheduler: one target, one queue, three priorities; answers are interleaved a forward at a time."""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, get_args

from specedit.engine.api import FinishReason, GenerateRequest, Priority, TextChunk, Usage
from specedit.engine.cache_pool import CachePool
from specedit.errors import EngineError, OverloadedError, ShuttingDownError, SpecEditError

#: The highest first.
PRIORITIES: tuple[Priority, ...] = get_args(Priority)

#: So many steps of higher priorities in a row, then one step for whoever waited: nothing starves.
_PATIENCE_STEPS = 32

_log = logging.getLogger(__name__)

Outcome = FinishReason | Literal["error"]

Deliver = Callable[[TextChunk | SpecEditError], None]
"""Takes the chunks of one answer, from the scheduler's thread; the last has a finish reason or is an error."""


class Observer(Protocol):
    """Is told what happens, from the scheduler's thread; see `metrics.Metrics`."""

    def started(self, priority: Priority, *, waited_seconds: float, lower_steps: int) -> None:
        """A request has its first step; just before, `lower_steps` of lower priorities ran while it waited."""
        ...

    def ended(self, priority: Priority, outcome: Outcome, usage: Usage, *, seconds: float) -> None:
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


class SteppedEngine(Protocol):
    """What a scheduler needs of an engine; see `local.LocalEngine`."""

    pool: CachePool

    def prepare(self, request: GenerateRequest, *, plain: bool = False) -> Iterator[TextChunk]:
        """The chunks of an answer, one a step; the first step is made when the first chunk is asked for."""
        ...


@dataclass(eq=False, slots=True)
class _Task:
    """A request in the queue.

    Attributes:
        level: its place in `PRIORITIES`.
        lower_steps: steps of lower priorities while it waited, since the last one of its own or a higher one.
    """

    request: GenerateRequest
    chunks: Iterator[TextChunk]
    deliver: Deliver
    level: int
    arrived: float = field(default_factory=time.perf_counter)
    is_begun: bool = False
    lower_steps: int = 0
    usage: Usage = field(default_factory=Usage)

    @property
    def priority(self) -> Priority:
        return PRIORITIES[self.level]


class Scheduler:
    """Runs the steps of all requests in one thread of its own.

    After each step the next one goes to the highest priority, and there to whoever came first: what is interrupted
    waits with its KV cache and goes on from there. A priority that waited while `_PATIENCE_STEPS` steps of higher ones
    ran gets one step in between, but never before an inline request that is next and has not begun.

    Attributes:
        is_open: whether requests are taken.
    """

    def __init__(self, engine: SteppedEngine, *, observer: Observer | None = None, max_waiting: int = 256) -> None:
        """Start the thread.

        Args:
            engine: used by nobody else from now on.
            observer: told when requests start and end.
            max_waiting: the most requests that may wait for their first step; more are refused.
        """
        self._engine = engine
        self._observer = observer
        self._max_waiting = max_waiting
        self._tasks: list[_Task] = []
        self._running: _Task | None = None
        self._steps = 0
        #: Steps of higher priorities since one of this.
        self._passed_over = [0] * len(PRIORITIES)
        self._kv_bytes = 0
        self.is_open = True
        self._is_stopped = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="specedit-scheduler", daemon=True)
        self._thread.start()

    def submit(self, request: GenerateRequest, deliver: Deliver, *, plain: bool = False) -> None:
        """See `Answers.submit`."""
        self._check_open()
        chunks = self._engine.prepare(request, plain=plain)
        with self._changed:
            self._check_open()
            task = _Task(request, chunks, deliver, PRIORITIES.index(request.priority))
            if all(other.level != task.level for other in self._tasks):
                self._passed_over[task.level] = 0
            self._tasks.append(task)
            self._changed.notify_all()

    def state(self) -> QueueState:
        """See `Answers.state`."""
        with self._changed:
            waiting = [task for task in self._tasks if not task.is_begun]
            return QueueState(
                waiting={priority: sum(task.priority == priority for task in waiting) for priority in PRIORITIES},
                paused=sum(task.is_begun and task is not self._running for task in self._tasks),
                running=int(self._running is not None),
                kv_bytes=self._kv_bytes,
                steps=self._steps,
            )

    def close(self, drain_seconds: float = 0.0) -> None:
        """Take no more requests, finish those there are within `drain_seconds`, end the rest with an error.

        Idempotent; returns when the thread is done.
        """
        with self._changed:
            self.is_open = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._tasks, timeout=drain_seconds)
            self._is_stopped = True
            self._changed.notify_all()
        self._thread.join()

    def _check_open(self) -> None:
        if not self.is_open:
            raise ShuttingDownError("the server is shutting down: try again when it is back")
        if sum(not task.is_begun for task in self._tasks) >= self._max_waiting:
            raise OverloadedError(f"as many requests wait as may ({self._max_waiting}): try again later")

    # --- the scheduler's thread

    def _work(self) -> None:
        try:
            while (task := self._next()) is not None:
                self._step(task)
                with self._changed:
                    self._running = None
        finally:
            # Also where an observer's fault ends the thread: nobody shall wait for it.
            self.is_open = False
            for task in list(self._tasks):
                self._end(task, "error", ShuttingDownError("the server was shut down before the answer was complete"))

    def _next(self) -> _Task | None:
        """Wait for work and choose; None when there shall be no more."""
        with self._changed:
            self._changed.wait_for(lambda: self._tasks or self._is_stopped)
            if self._is_stopped:
                return None
            self._running = self._chosen()
            return self._running

    def _chosen(self) -> _Task:
        for task in self._tasks:
            if task.request.cancel.cancelled:
                return task
        first = {task.level: task for task in reversed(self._tasks)}
        highest = first[min(first)]
        if highest.level == 0 and not highest.is_begun:
            return highest
        patient = [level for level in first if self._passed_over[level] >= _PATIENCE_STEPS]
        return first[max(patient)] if patient else highest

    def _step(self, task: _Task) -> None:
        """One step, and its chunk delivered."""
        if not task.is_begun:
            if task.request.cancel.cancelled:
                self._deliver(task, TextChunk("", task.usage, "cancelled"))
                self._end(task, "cancelled")
                return
            self._begin(task)
        try:
            chunk = next(task.chunks)
        except SpecEditError as error:
            self._end(task, "error", error)
            return
        except Exception as error:  # noqa: BLE001
            # One request's failure is never another's: whatever it is, the thread goes on.
            _log.error("a step failed: %s", _described(error))
            self._end(task, "error", EngineError("the engine failed: see the server's log"))
            return
        if chunk.finish_reason != "cancelled":
            self._count_step(task)
        task.usage = chunk.usage
        self._deliver(task, chunk)
        if chunk.finish_reason is not None:
            self._end(task, chunk.finish_reason)

    def _begin(self, task: _Task) -> None:
        with self._changed:
            task.is_begun = True
        if self._observer:
            waited = time.perf_counter() - task.arrived
            self._observer.started(task.priority, waited_seconds=waited, lower_steps=task.lower_steps)

    def _count_step(self, task: _Task) -> None:
        with self._changed:
            self._steps += 1
            self._kv_bytes = self._engine.pool.num_bytes
            self._passed_over[task.level] = 0
            for other in self._tasks:
                if not other.is_begun:
                    other.lower_steps = other.lower_steps + 1 if other.level < task.level else 0
            for level in {other.level for other in self._tasks if other.level > task.level}:
                self._passed_over[level] += 1

    def _deliver(self, task: _Task, chunk: TextChunk | SpecEditError) -> None:
        try:
            task.deliver(chunk)
        except Exception as error:  # noqa: BLE001
            _log.error("an answer can't be delivered: %s", _described(error))
            task.request.cancel.cancel()

    def _end(self, task: _Task, outcome: Outcome, error: SpecEditError | None = None) -> None:
        """Take a task out of the queue and tell whoever has to know."""
        if error is not None:
            self._deliver(task, error)
        try:
            if close := getattr(task.chunks, "close", None):
                close()
        except Exception as failure:  # noqa: BLE001
            _log.error("an answer can't be closed: %s", _described(failure))
        with self._changed:
            self._tasks.remove(task)
            self._kv_bytes = self._engine.pool.num_bytes
            self._changed.notify_all()
        if self._observer:
            seconds = time.perf_counter() - task.arrived
            self._observer.ended(task.priority, outcome, task.usage, seconds=seconds)


def _described(error: Exception) -> str:
    """Type and place of an error, without its message: that may hold text of a prompt."""
    return f"{type(error).__name__}\n{''.join(traceback.format_tb(error.__traceback__))}"
