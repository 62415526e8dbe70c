"""The scheduler: whose step is next, measured in steps; and a tiny model whose answers are interleaved."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import torch

from specedit.engine.api import CancelToken, GenerateRequest, Message, Sampling, TextChunk, Usage
from specedit.engine.local import LocalEngine
from specedit.engine.scheduler import PRIORITIES, Scheduler
from specedit.engine.target import Target
from specedit.engine.tokens import Tokenizer
from specedit.errors import (
    EngineError,
    OutOfMemoryError,
    OverloadedError,
    ShuttingDownError,
    SpecEditError,
    UsageError,
)
from tests.tiny_model import EOS_ID, save_tiny_model

WAIT_SECONDS = 30


class SteppedFake:
    """An engine whose requests take `max_new_tokens` steps and are called by their prompts.

    Attributes:
        log: whose steps were made.
        gate: each step waits for it.
    """

    def __init__(self) -> None:
        self.pool = SimpleNamespace(num_bytes=0)
        self.log: list[str] = []
        self.gate = threading.Event()
        self.at_gate = threading.Event()

    def prepare(self, request: GenerateRequest, *, plain: bool = False) -> Iterator[TextChunk]:
        if request.prompt == "wrong":
            raise UsageError("the request is wrong")
        return self._chunks(request)

    def _chunks(self, request: GenerateRequest) -> Iterator[TextChunk]:
        for left in range(request.max_new_tokens - 1, -1, -1):
            if request.cancel.cancelled:
                yield TextChunk("", Usage(), "cancelled")
                return
            self.at_gate.set()
            self.gate.wait(WAIT_SECONDS)
            self.log.append(request.prompt)
            if request.prompt == "broken":
                raise ValueError(f"in {request.prediction}")
            yield TextChunk("x", Usage(output_tokens=1), None if left else "stop")


class Answer:
    """Collects what is delivered."""

    def __init__(self) -> None:
        self.chunks: list[TextChunk] = []
        self.error: SpecEditError | None = None
        self.is_over = threading.Event()

    def __call__(self, chunk: TextChunk | SpecEditError) -> None:
        assert not self.is_over.is_set(), "something came after the end"
        if isinstance(chunk, SpecEditError):
            self.error = chunk
            self.is_over.set()
            return
        self.chunks.append(chunk)
        if chunk.finish_reason:
            self.is_over.set()

    def wait(self) -> Answer:
        assert self.is_over.wait(WAIT_SECONDS), "the answer never came to its end"
        return self

    @property
    def text(self) -> str:
        return "".join(chunk.text for chunk in self.wait().chunks)

    @property
    def finish_reason(self) -> str | None:
        return self.wait().chunks[-1].finish_reason

    @property
    def usage(self) -> Usage:
        return self.wait().chunks[-1].usage


class Recorded:
    """An observer that remembers."""

    def __init__(self) -> None:
        self.lower_steps: dict[str, list[int]] = {priority: [] for priority in PRIORITIES}
        self.outcomes: list[str] = []

    def started(self, priority, *, waited_seconds, lower_steps):
        assert waited_seconds >= 0
        self.lower_steps[priority].append(lower_steps)

    def ended(self, priority, outcome, usage, *, seconds):
        assert seconds >= 0
        self.outcomes.append(outcome)


@pytest.fixture
def engine():
    return SteppedFake()


@pytest.fixture
def observer():
    return Recorded()


@pytest.fixture
def scheduler(engine, observer):
    scheduler = Scheduler(engine, observer=observer, max_waiting=1000)
    yield scheduler
    engine.gate.set()
    scheduler.close()


def put(scheduler, name, steps, priority="rewrite", cancel=None):
    answer = Answer()
    request = GenerateRequest(
        prompt=name,
        prediction="my secret code",
        max_new_tokens=steps,
        priority=priority,
        cancel=cancel or CancelToken(),
    )
    scheduler.submit(request, answer)
    return answer


def run(engine, *answers):
    engine.gate.set()
    for answer in answers:
        answer.wait()


def test_higher_priorities_go_first_and_what_they_interrupt_goes_on(engine, scheduler):
    batch = put(scheduler, "batch", 4, "batch")
    engine.at_gate.wait(WAIT_SECONDS)
    rewrite = put(scheduler, "rewrite", 2, "rewrite")
    inline = put(scheduler, "inline", 3, "inline")
    run(engine, batch, rewrite, inline)
    assert engine.log == ["batch", *["inline"] * 3, *["rewrite"] * 2, *["batch"] * 3]
    assert (batch.text, rewrite.text, inline.text) == ("xxxx", "xx", "xxx")


def test_within_a_priority_who_came_first_is_served_first(engine, scheduler):
    answers = [put(scheduler, name, 3) for name in "abc"]
    run(engine, *answers)
    assert "".join(engine.log) == "aaabbbccc"


def test_a_batch_gets_a_step_in_between_however_much_there_is_to_do(engine, scheduler):
    batch = put(scheduler, "B", 3, "batch")
    engine.at_gate.wait(WAIT_SECONDS)
    others = [put(scheduler, "r", 25) for _ in range(4)] + [put(scheduler, "i", 20, "inline")]
    run(engine, batch, *others)
    steps = "".join(engine.log)
    assert steps.count("B") == 3
    assert steps.index("B", 1) < 40
    assert len(steps) - steps.rindex("B") > 40, "long before the others were done"


def test_an_inline_request_starts_within_two_steps_of_lower_work_whatever_else_there_is(engine, scheduler, observer):
    rng = random.Random(0)
    engine.gate.set()
    answers = []
    for number in range(400):
        priority = rng.choices(PRIORITIES, [1, 2, 2])[0]
        answers.append(put(scheduler, str(number), rng.randint(1, 6), priority))
        if rng.random() < 0.1:
            rng.choice(answers).wait()
    for answer in answers:
        answer.wait()
    scheduler.close(WAIT_SECONDS)
    starts = observer.lower_steps["inline"]
    assert len(starts) > 50
    assert max(starts) <= 1, "the step that was under way, and no other"
    assert max(observer.lower_steps["rewrite"]) > 0, "or this test shows little"


def test_a_cancelled_answer_is_out_within_a_step(engine, scheduler, observer):
    cancel = CancelToken()
    first = put(scheduler, "first", 100, cancel=cancel)
    engine.at_gate.wait(WAIT_SECONDS)
    second = put(scheduler, "second", 2)
    cancel.cancel()
    run(engine, first, second)
    assert engine.log == ["first", "second", "second"]
    assert first.finish_reason == "cancelled"
    scheduler.close()
    assert sorted(observer.outcomes) == ["cancelled", "stop"]


def test_a_request_that_is_cancelled_before_its_turn_does_not_wait_for_it(engine, scheduler):
    busy, cancel = CancelToken(), CancelToken()
    first = put(scheduler, "first", 10**9, cancel=busy)
    second = put(scheduler, "second", 2, cancel=cancel)
    cancel.cancel()
    run(engine, second)
    assert not first.is_over.is_set()
    assert second.finish_reason == "cancelled"
    busy.cancel()
    run(engine, first)
    assert "second" not in engine.log


def test_a_failing_request_fails_alone_and_its_code_is_in_no_message_and_no_log(engine, scheduler, observer, caplog):
    answers = [put(scheduler, name, 2) for name in ("a", "broken", "c")]
    with caplog.at_level(logging.DEBUG):
        run(engine, *answers)
    assert isinstance(answers[1].error, EngineError)
    assert (answers[0].text, answers[2].text) == ("xx", "xx")
    assert "ValueError" in caplog.text
    assert "secret" not in caplog.text + str(answers[1].error)
    scheduler.close()
    assert sorted(observer.outcomes) == ["error", "stop", "stop"]


def test_what_is_wrong_is_said_at_once_and_waits_in_no_queue(scheduler):
    with pytest.raises(UsageError, match="the request is wrong"):
        put(scheduler, "wrong", 1)
    assert sum(scheduler.state().waiting.values()) == 0


def test_a_reader_that_fails_loses_its_answer_and_nobody_elses(engine, scheduler):
    def gone(chunk):
        raise ConnectionError("nobody is there")

    scheduler.submit(GenerateRequest(prompt="a", max_new_tokens=50), gone)
    other = put(scheduler, "b", 2)
    run(engine, other)
    assert engine.log == ["a", "b", "b"]


def test_a_full_queue_refuses(engine):
    scheduler = Scheduler(engine, max_waiting=2)
    answers = [put(scheduler, "running", 1)]
    engine.at_gate.wait(WAIT_SECONDS)
    answers += [put(scheduler, str(number), 1) for number in range(2)]
    with pytest.raises(OverloadedError, match="try again later"):
        put(scheduler, "one more", 1)
    run(engine, *answers)
    run(engine, put(scheduler, "now", 1))
    scheduler.close()


def test_an_answer_that_fails_after_its_end_stops_nobody_elses(engine, scheduler, caplog):
    def failing_at_last(request):
        try:
            yield TextChunk("x", Usage(), "stop")
        finally:
            raise RuntimeError("my secret code")

    engine.gate.set()
    whole = engine.prepare
    engine.prepare = lambda request, plain=False: failing_at_last(request)
    broken = put(scheduler, "broken", 1)
    engine.prepare = whole
    assert broken.text == "x"
    assert put(scheduler, "next", 2).text == "xx"
    assert "secret" not in caplog.text.replace('raise RuntimeError("my secret code")', "")


def test_the_state_tells_who_waits_and_who_is_paused(engine, scheduler):
    batch = put(scheduler, "batch", 2, "batch")
    engine.at_gate.wait(WAIT_SECONDS)
    rewrite = put(scheduler, "rewrite", 1)
    state = scheduler.state()
    assert (state.running, state.paused) == (1, 0)
    assert state.waiting == {"inline": 0, "rewrite": 1, "batch": 0}
    run(engine, batch, rewrite)
    scheduler.close()
    state = scheduler.state()
    assert (state.running, state.paused, sum(state.waiting.values()), state.steps) == (0, 0, 0, 3)


def test_closing_lets_answers_come_to_their_end_and_takes_no_more(engine, scheduler):
    answers = [put(scheduler, name, 3) for name in "ab"]
    closing = threading.Thread(target=scheduler.close, args=(WAIT_SECONDS,))
    closing.start()
    while scheduler.is_open:
        time.sleep(0.001)
    with pytest.raises(ShuttingDownError):
        put(scheduler, "late", 1)
    engine.gate.set()
    closing.join(WAIT_SECONDS)
    assert [answer.text for answer in answers] == ["xxx", "xxx"]


def test_closing_ends_what_does_not_come_to_its_end_in_time(engine, scheduler):
    answers = [put(scheduler, name, 10**9) for name in "ab"]
    engine.gate.set()
    scheduler.close(0.05)
    assert all(isinstance(answer.wait().error, ShuttingDownError) for answer in answers)


# --- a tiny model

FILE = "def area(width, height):\n    return width * height\n\n\ndef half(value):\n    return value / 2\n"
SEEDED = Sampling(temperature=0.8, top_p=0.9, repetition_penalty=1.1, logit_bias={EOS_ID: -1e4})


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    path = save_tiny_model(tmp_path_factory.mktemp("llama"))
    return Target.load(path, device="cpu"), Tokenizer.load(path)


def ask(number, priority, **changes):
    content = FILE * 3 + f"{number} {'x' * number}"
    given = {"messages": (Message("user", content),), "prediction": FILE, "sampling": SEEDED, "seed": number}
    return GenerateRequest(**given | {"max_new_tokens": 40, "priority": priority} | changes)


def alone(parts, request):
    chunks = list(LocalEngine(*parts, draft_budget=8, kv_bytes=0).generate(request))
    return "".join(chunk.text for chunk in chunks), chunks[-1].usage


def interleaved(parts, requests, kv_bytes, observer=None):
    """Submits each request in the middle of the one before, so that each interrupts it."""
    engine = LocalEngine(*parts, draft_budget=8, kv_bytes=kv_bytes)
    scheduler = Scheduler(engine, observer=observer)
    answers = [Answer() for _ in requests]

    def deliver_and_interrupt(number):
        def deliver(chunk):
            answers[number](chunk)
            if len(answers[number].chunks) == 5 and number + 1 < len(requests):
                scheduler.submit(requests[number + 1], deliver_and_interrupt(number + 1))

        return deliver

    scheduler.submit(requests[0], deliver_and_interrupt(0))
    for answer in answers:
        answer.wait()
    scheduler.close(WAIT_SECONDS)
    return answers, scheduler, engine


@pytest.mark.parametrize("kv_bytes", [0, 1 << 30])
def test_interrupted_answers_are_those_of_requests_alone(parts, kv_bytes):
    requests = [ask(number, priority) for number, priority in enumerate(("batch", "rewrite", "inline"))]
    answers, scheduler, engine = interleaved(parts, requests, kv_bytes)
    for request, answer in zip(requests, answers, strict=True):
        text, usage = alone(parts, request)
        assert (answer.text, answer.usage.output_tokens) == (text, usage.output_tokens)
        if kv_bytes:
            assert answer.usage.prefill_forwards <= usage.prefill_forwards, "nothing is read twice"
    if not kv_bytes:
        assert answers[0].usage.prefill_forwards > alone(parts, requests[0])[1].prefill_forwards
    assert scheduler.state().kv_bytes == engine.pool.num_bytes


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("no room"), RuntimeError("... can't allocate memory: ...")])
def test_out_of_memory_costs_others_their_caches_first_and_then_fails_one_request(parts, error):
    target = parts[0]
    engine = LocalEngine(*parts, draft_budget=8)
    scheduler = Scheduler(engine)
    failures = 0

    def fail(module, args):
        nonlocal failures
        if failures:
            failures -= 1
            raise error

    def answer_to(request):
        answer = Answer()
        scheduler.submit(request, answer)
        return answer.wait()

    handle = target.model.model.layers[1].register_forward_pre_hook(fail)
    try:
        first = answer_to(ask(0, "rewrite"))
        failures = 1
        other = ask(1, "rewrite", messages=(Message("user", "another text, that has little in common with it"),))
        assert answer_to(other).text == alone(parts, other)[0], "with the first one's cache gone there is room"
        failures = 2
        assert isinstance(answer_to(ask(2, "rewrite")).error, OutOfMemoryError)
        assert answer_to(ask(0, "rewrite")).text == first.text
    finally:
        handle.remove()
        scheduler.close()


def test_a_cancelled_answer_gives_its_memory_back(parts):
    engine = LocalEngine(*parts, draft_budget=8, kv_bytes=0)
    scheduler = Scheduler(engine)
    cancel = CancelToken()
    endless, waiting = Answer(), Answer()

    def deliver(chunk):
        endless(chunk)
        if len(endless.chunks) == 5:
            cancel.cancel()

    scheduler.submit(ask(0, "rewrite", max_new_tokens="context", cancel=cancel), deliver)
    scheduler.submit(ask(1, "rewrite"), waiting)
    assert endless.finish_reason == "cancelled"
    assert len(endless.chunks) == 6
    assert waiting.text
    scheduler.close()
    assert len(engine.pool) == 1, "only what was used last is kept"
