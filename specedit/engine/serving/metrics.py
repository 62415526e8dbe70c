"""Metrics: what the server counts, in the form that Prometheus reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.metrics_core import CounterMetricFamily
from prometheus_client.registry import Collector

from specedit.engine.api import FinishReason, Priority, Usage
from specedit.engine.scheduler import QueueState

#: Seconds; an inline completion takes tenths of one, a large edit on a CPU minutes.
_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 180.0, 600.0)

#: Steps; two are what an inline request may have to wait for.
_STEPS = (0, 1, 2, 3, 5, 10, 30, 100, 300, 1000)


class Metrics:
    """Counts in a registry of its own. Is an `Observer` of the scheduler; thread-safe."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._requests = Counter(
            "specedit_requests",
            "Requests by endpoint, priority and outcome: stop, length, cancelled, refused, error.",
            ("endpoint", "priority", "outcome"),
            registry=registry,
        )
        self._answers = Counter(
            "specedit_answers", "Answers that the scheduler ended.", ("priority", "outcome"), registry=registry
        )
        self._prompt = Counter("specedit_prompt_tokens", "Tokens of prompts.", registry=registry)
        self._cached = Counter("specedit_cached_tokens", "Tokens of prompts that were not computed.", registry=registry)
        self._hits = Counter(
            "specedit_prefix_hits", "Answers that found the start of their prompt computed.", registry=registry
        )
        self._output = Counter("specedit_output_tokens", "Tokens generated.", registry=registry)
        self._forwards = Counter("specedit_forwards", "Target forwards of decode steps.", registry=registry)
        self._prefills = Counter("specedit_prefill_forwards", "Target forwards that read prompts.", registry=registry)
        self._drafted = Counter("specedit_drafted_tokens", "Tokens drafted.", ("drafter",), registry=registry)
        self._accepted = Counter(
            "specedit_accepted_tokens", "Drafted tokens that the target accepted.", ("drafter",), registry=registry
        )
        self._waited = Histogram(
            "specedit_wait_seconds",
            "From a request's arrival to its first step.",
            ("priority",),
            buckets=_SECONDS,
            registry=registry,
        )
        self._lower_steps = Histogram(
            "specedit_lower_steps",
            "Steps of lower priorities just before a request's first step, while it waited.",
            ("priority",),
            buckets=_STEPS,
            registry=registry,
        )
        self._seconds = Histogram(
            "specedit_answer_seconds",
            "From a request's arrival to the end of its answer.",
            ("priority", "outcome"),
            buckets=_SECONDS,
            registry=registry,
        )

    def started(self, priority: Priority, *, waited_seconds: float, lower_steps: int) -> None:
        """A request had its first step; see `Observer`."""
        self._waited.labels(priority).observe(waited_seconds)
        self._lower_steps.labels(priority).observe(lower_steps)

    def ended(
        self, priority: Priority, outcome: FinishReason | Literal["error"], usage: Usage, *, seconds: float
    ) -> None:
        """A request is over; see `Observer`."""
        self._answers.labels(priority, outcome).inc()
        self._seconds.labels(priority, outcome).observe(seconds)
        self._prompt.inc(usage.prompt_tokens)
        self._cached.inc(usage.cached_tokens)
        self._hits.inc(usage.cached_tokens > 0)
        self._output.inc(usage.output_tokens)
        self._forwards.inc(usage.forwards)
        self._prefills.inc(usage.prefill_forwards)
        for name, drafter in usage.drafters.items():
            self._drafted.labels(name).inc(drafter.drafted)
            self._accepted.labels(name).inc(drafter.accepted)

    def requested(
        self, endpoint: str, priority: Priority | None, outcome: FinishReason | Literal["refused", "error"]
    ) -> None:
        """The server is done with a request; one that could not be read has no priority."""
        self._requests.labels(endpoint, priority or "none", outcome).inc()

    def watch(self, state: Callable[[], QueueState]) -> None:
        """From now on tell what there is to do, asked for whenever the metrics are read."""
        self._registry.register(_Queue(state))

    def text(self) -> bytes:
        """All of it, in Prometheus' text format, version 0.0.4."""
        return generate_latest(self._registry)


class _Queue(Collector):
    def __init__(self, state: Callable[[], QueueState]) -> None:
        self._state = state

    def describe(self) -> list[Metric]:
        """Nothing, so that registering doesn't ask for the state."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The state now."""
        state = self._state()
        waiting = GaugeMetricFamily("specedit_waiting", "Requests that had no step yet.", labels=("priority",))
        for priority, count in state.waiting.items():
            waiting.add_metric((priority,), count)
        yield waiting
        yield GaugeMetricFamily("specedit_paused", "Requests that were begun and are not worked on.", state.paused)
        yield GaugeMetricFamily("specedit_running", "Requests that are worked on.", state.running)
        yield GaugeMetricFamily("specedit_kv_bytes", "Bytes of keys and values that are kept.", state.kv_bytes)
        yield CounterMetricFamily("specedit_steps", "Prefill chunks and decode steps.", state.steps)
