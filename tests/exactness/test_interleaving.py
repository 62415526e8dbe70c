"""Exactness by equality where answers interrupt each other, on a real model in float32."""

from __future__ import annotations

import threading

import pytest

from specedit.engine.api import GenerateRequest, Sampling
from specedit.engine.local import LocalEngine
from specedit.engine.scheduler import Scheduler
from tests.exactness.prompts import COPYING, FREE

WAIT_SECONDS = 300
ROOMY = 1 << 30
REQUESTS = [
    GenerateRequest(prompt=COPYING[0], prediction=COPYING[0], max_new_tokens=32, priority="batch"),
    GenerateRequest(prompt=FREE[1], sampling=Sampling(temperature=0.8, top_p=0.9), seed=1, max_new_tokens=16),
    GenerateRequest(prompt=COPYING[2], prediction=COPYING[2], max_new_tokens=16, priority="inline"),
    GenerateRequest(prompt=COPYING[0] + "#", sampling=Sampling(temperature=0.7), seed=5, max_new_tokens=16),
]


def written(chunks):
    return "".join(chunk.text for chunk in chunks)


@pytest.fixture(scope="module")
def plain_texts(smollm2):
    engine = LocalEngine(*smollm2)
    return [written(engine.generate_plain(request)) for request in REQUESTS]


@pytest.mark.parametrize(
    ("kv_bytes", "rounds"),
    [
        pytest.param(0, 1, id="evicted", marks=pytest.mark.smollm2),
        pytest.param(ROOMY, 2, id="kept", marks=pytest.mark.real),
    ],
)
def test_answers_that_interrupt_each_other_are_those_of_plain_decoding(smollm2, plain_texts, kv_bytes, rounds):
    scheduler = Scheduler(LocalEngine(*smollm2, draft_budget=16, kv_bytes=kv_bytes))
    for _ in range(rounds):  # the second one with what the first left in the pool
        assert run_interleaved(scheduler, REQUESTS) == plain_texts
    scheduler.close()


def run_interleaved(scheduler, requests):
    """Each request comes when the one before it has had two steps that gave text, whatever its priority."""
    chunks = [[] for _ in requests]
    ended = threading.Semaphore(0)

    def deliver_to(number):
        def deliver(chunk):
            chunks[number].append(chunk)
            if sum(bool(one.text) for one in chunks[number]) == 2 or chunk.finish_reason:
                submit(number + 1)
            if chunk.finish_reason:
                ended.release()

        return deliver

    submitted = set()

    def submit(number):
        if number < len(requests) and number not in submitted:
            submitted.add(number)
            scheduler.submit(requests[number], deliver_to(number))

    submit(0)
    for _ in requests:
        assert ended.acquire(timeout=WAIT_SECONDS), "an answer never came to its end"
    return [written(one) for one in chunks]
