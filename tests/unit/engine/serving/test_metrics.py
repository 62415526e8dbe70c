"""What is counted, as Prometheus reads it."""

from __future__ import annotations

import threading

from prometheus_client.parser import text_string_to_metric_families

from specedit.engine.api import DrafterUsage, Usage
from specedit.engine.scheduler import QueueState
from specedit.engine.serving.metrics import Metrics


def samples(metrics):
    families = text_string_to_metric_families(metrics.text().decode())
    return {(s.name, *sorted(s.labels.items())): s.value for family in families for s in family.samples}


def test_what_an_answer_cost():
    metrics = Metrics()
    drafters = {"cursor": DrafterUsage(30, 20), "ngram": DrafterUsage(4, 1)}
    usage = Usage(
        prompt_tokens=100, cached_tokens=60, output_tokens=25, forwards=4, prefill_forwards=2, drafters=drafters
    )
    metrics.ended("rewrite", "stop", usage, seconds=1.5)
    metrics.ended("rewrite", "cancelled", Usage(), seconds=0.5)
    told = samples(metrics)
    assert told["specedit_prompt_tokens_total",] == 100
    assert told["specedit_cached_tokens_total",] == 60
    assert told["specedit_prefix_hits_total",] == 1
    assert told["specedit_output_tokens_total",] == 25
    assert told["specedit_forwards_total",] == 4
    assert told["specedit_prefill_forwards_total",] == 2
    assert told["specedit_drafted_tokens_total", ("drafter", "cursor")] == 30
    assert told["specedit_accepted_tokens_total", ("drafter", "ngram")] == 1
    assert told["specedit_answers_total", ("outcome", "cancelled"), ("priority", "rewrite")] == 1
    assert told["specedit_answer_seconds_sum", ("outcome", "stop"), ("priority", "rewrite")] == 1.5


def test_how_long_requests_wait():
    metrics = Metrics()
    metrics.started("inline", waited_seconds=0.2, lower_steps=2)
    metrics.started("inline", waited_seconds=0.1, lower_steps=0)
    told = samples(metrics)
    assert told["specedit_lower_steps_bucket", ("le", "2.0"), ("priority", "inline")] == 2
    assert told["specedit_lower_steps_bucket", ("le", "1.0"), ("priority", "inline")] == 1
    assert round(told["specedit_wait_seconds_sum", ("priority", "inline")], 3) == 0.3


def test_the_state_is_asked_for_when_it_is_read():
    metrics = Metrics()
    states = iter(
        [QueueState({"inline": 1, "rewrite": 2, "batch": 3}, 4, 1, 5, 6), QueueState({"batch": 9}, 0, 0, 0, 7)]
    )
    metrics.watch(lambda: next(states))
    told = samples(metrics)
    assert told["specedit_waiting", ("priority", "batch")] == 3
    assert (told["specedit_paused",], told["specedit_running",], told["specedit_kv_bytes",]) == (4, 1, 5)
    assert samples(metrics)["specedit_steps_total",] == 7


def test_two_servers_in_a_process_count_for_themselves():
    one, other = Metrics(), Metrics()
    one.requested("/v1/completions", None, "refused")
    assert not any(name == "specedit_requests_total" for name, *_ in samples(other))


def test_nothing_is_lost_when_threads_count_together():
    metrics = Metrics()
    usage = Usage(output_tokens=1)
    threads = [
        threading.Thread(target=lambda: [metrics.ended("batch", "stop", usage, seconds=1) for _ in range(500)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert samples(metrics)["specedit_output_tokens_total",] == 2000
