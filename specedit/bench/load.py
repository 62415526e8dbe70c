"""A running server under mixed load over loopback, and whether it held.

What clients do is in `load_clients`, what they ask for in `load_asks`, the server in `load_server`; here is one load
from its beginning to its end, and what is judged.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import get_args

import httpx2
import msgspec

from specedit.bench.load_asks import FEWEST_CONTEXT_TOKENS, asks, probe_chat, probe_fill, wrong_asks
from specedit.bench.load_clients import Crowd, Visit
from specedit.bench.load_server import Address, Counted, Sample, sampled, steps_before_start
from specedit.engine.api import Priority
from specedit.engine.wire import OWNER
from specedit.errors import EngineError, UsageError

FEWEST_CLIENTS = 16
"""With fewer not every behaviour occurs."""

#: The most steps of lower priorities that an inline request may wait for.
STEPS_BEFORE_INLINE = 2

_PATIENCE_SECONDS = 600.0
_LONGEST_PAUSE_SECONDS = 2.0
_ALONE = 16
_SAMPLES = 120
_SHORTEST_INTERVAL_SECONDS = 0.5
_QUIET_SECONDS = 30.0
_PROGRESS_SECONDS = 30.0

#: Memory and threads are judged where the load lasted so long.
_JUDGED_SECONDS = 300.0
#: What memory may grow by from the second to the last quarter: a share, but not less than so many bytes.
_GROWTH = 0.03
_GROWTH_BYTES = 24 << 20
_SPARE_FDS = 8
_SHOWN_FAULTS = 5


class Check(msgspec.Struct, frozen=True):
    """Something that has to hold.

    Attributes:
        name: what.
        held: whether it did; None where this load could not tell.
        told: figures, and what was wrong.
    """

    name: str
    held: bool | None
    told: str = ""


class Waits(msgspec.Struct, frozen=True, kw_only=True):
    """How long clients of one priority waited; percentiles in seconds, None where there were none.

    Attributes:
        priority: whose.
        answers: how many were read to their end.
        first_text_p50: to the first text of a streamed answer.
        first_text_p99: the same.
        answer_p50: to the end of an answer, streamed or whole.
        answer_p99: the same.
        steps_before_start: the most steps of lower priorities while one waited for its first, as a bucket's bound.
    """

    priority: Priority
    answers: int
    first_text_p50: float | None
    first_text_p99: float | None
    answer_p50: float | None
    answer_p99: float | None
    steps_before_start: float


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """One load.

    Attributes:
        model: what the server served.
        clients: how many there were.
        seconds: from the first client to the last answer.
        seed: what decided who did what.
        visits: by kind, behaviour and outcome, how often that was.
        waits: for each priority.
        output_tokens: what the server generated.
        steps: prefill chunks and decode steps.
        cached_share: of the prompts' tokens, those that were not computed.
        samples: the server's memory, descriptors and threads as time went on.
        checks: what had to hold.
    """

    model: str
    clients: int
    seconds: float
    seed: int
    visits: list[tuple[str, str, str, int]]
    waits: list[Waits]
    output_tokens: int
    steps: int
    cached_share: float
    samples: list[Sample]
    checks: list[Check]

    @property
    def held(self) -> bool:
        """Whether all that could be judged held."""
        return all(check.held is not False for check in self.checks)

    def also(self, *checks: Check) -> Report:
        """The report with more checks."""
        return msgspec.structs.replace(self, checks=[*self.checks, *checks])


def measure(
    address: Address,
    *,
    clients: int,
    seconds: float,
    seed: int = 0,
    progress: Callable[[str], None] = lambda _: None,
) -> Report:
    """Put a server under load.

    Args:
        address: where it is; nobody else should use it meanwhile.
        clients: how many come, at least `FEWEST_CLIENTS`.
        seconds: for how long they begin anything.
        seed: decides what each of them does, one after the other.
        progress: told a line now and then.

    Raises:
        UsageError: it is no `specedit serve` over plain HTTP, or its model's context is too small.
        EngineError: it can't be reached, or refuses a right request before the load begins.
    """
    if not address.url.startswith("http://"):
        raise UsageError(
            f"{address.url} is not http://: give the address on loopback of a server without a certificate"
        )
    try:
        return asyncio.run(_measured(address, clients, seconds, seed, progress))
    except httpx2.HTTPError as error:
        raise EngineError(f"{address.url} does not answer ({error!r}): see whether it runs") from error


async def _measured(
    address: Address, clients: int, seconds: float, seed: int, progress: Callable[[str], None]
) -> Report:
    async with httpx2.AsyncClient(
        base_url=address.url, headers=address.headers, timeout=_PATIENCE_SECONDS, trust_env=False
    ) as http:
        model, context_tokens = await _served(http)
        if context_tokens < FEWEST_CONTEXT_TOKENS:
            raise UsageError(
                f"{model} has a context of {context_tokens} tokens, and the requests need {FEWEST_CONTEXT_TOKENS}: "
                "take another model"
            )
        fills = (await _probed(http, model)) == httpx2.codes.OK
        crowd = Crowd(
            address,
            asks(model, context_tokens, seed, fills=fills),
            wrong_asks(model, context_tokens),
            seed,
            patience_seconds=_PATIENCE_SECONDS,
            pause_seconds=min(_LONGEST_PAUSE_SECONDS, seconds / 30),
        )
        watch = _Watch(address, http, crowd, progress)
        before = await watch.look()
        watching = asyncio.create_task(watch.run(max(_SHORTEST_INTERVAL_SECONDS, seconds / _SAMPLES)))
        await crowd.run(clients, seconds)
        watching.cancel()
        lasted = watch.seconds
        after = await watch.quiet()
        alone = await crowd.ask_alone(_ALONE if watch.hears else 0)
        await watch.quiet()
    return _report(crowd, watch, before, after, model, clients, seconds=lasted, alone=alone)


async def _served(http: httpx2.AsyncClient) -> tuple[str, int]:
    """The model's name and its context in tokens."""
    response = await http.get("/v1/models")
    if response.status_code != httpx2.codes.OK:
        raise EngineError(f"{http.base_url} answers {response.status_code}: {response.text[:300]}")
    [model, *_] = response.json()["data"]
    if model["owned_by"] != OWNER:
        raise UsageError(f"{http.base_url} is no `specedit serve`: only that tells what is judged here")
    return model["id"], model["max_model_len"]


async def _probed(http: httpx2.AsyncClient, model: str) -> int:
    """Have everything loaded that is loaded once; the status of a request to fill in the middle."""
    chat, fill = probe_chat(model), probe_fill(model)
    response = await http.post(chat.path, json=chat.body(stream=False))
    if response.status_code != httpx2.codes.OK:
        raise EngineError(f"{http.base_url} answers {response.status_code}: {response.text[:300]}")
    return (await http.post(fill.path, json=fill.body(stream=False))).status_code


class _Watch:
    """Looks at the server every few seconds."""

    def __init__(
        self, address: Address, http: httpx2.AsyncClient, crowd: Crowd, progress: Callable[[str], None]
    ) -> None:
        self._address = address
        self._http = http
        self._crowd = crowd
        self._progress = progress
        self._started = self._told = time.perf_counter()
        self._last = Counted("")
        self.samples: list[Sample] = []
        self.silent = ""

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._started

    @property
    def hears(self) -> bool:
        """Whether the server answered so far."""
        return not self.silent

    async def look(self) -> Counted:
        """What it counts now. Where it no longer answers the load ends, as every client would fail at once."""
        try:
            response = await self._http.get("/metrics")
        except httpx2.HTTPError as error:
            self.silent = self.silent or f"no answer from the server after {self.seconds:.0f} s: {error!r}"
            self._crowd.stop()
        else:
            self._last = Counted(response.text)
            self.samples.append(sampled(self._address, self._last, self.seconds))
        return self._last

    async def run(self, interval: float) -> None:
        while self.hears:
            await asyncio.sleep(interval)
            await self.look()
            if time.perf_counter() - self._told >= _PROGRESS_SECONDS:
                self._told = time.perf_counter()
                self._progress(self._line())

    async def quiet(self) -> Counted:
        """Wait until there is nothing to do, for a while at most."""
        give_up = time.monotonic() + _QUIET_SECONDS
        while not (counted := await self.look()).queue().is_empty and self.hears and time.monotonic() < give_up:
            await asyncio.sleep(_SHORTEST_INTERVAL_SECONDS)
        return counted

    def _line(self) -> str:
        visits, last = self._crowd.visits, self.samples[-1]
        wrong = sum(bool(visit.wrong) for visit in visits)
        return (
            f"{self.seconds:.0f} s: {len(visits)} visits, {wrong} wrong, {last.queue.waiting} waiting, "
            f"{last.queue.paused} paused, {last.rss_bytes >> 20} MiB"
        )


def _report(
    crowd: Crowd,
    watch: _Watch,
    before: Counted,
    after: Counted,
    model: str,
    clients: int,
    *,
    seconds: float,
    alone: tuple[int, list[str]],
) -> Report:
    def counted(name: str, **labels: str) -> int:
        return int(after.total(name, **labels) - before.total(name, **labels))

    whole = sum(counted("specedit_answers_total", outcome=outcome) for outcome in ("stop", "length", "error"))

    steps = steps_before_start(before, after)
    counts = Counter((visit.kind, visit.behaviour, visit.outcome) for visit in crowd.visits)
    return Report(
        model=model,
        clients=clients,
        seconds=seconds,
        seed=crowd.seed,
        visits=[(*key, count) for key, count in sorted(counts.items())],
        waits=[_waits(priority, crowd.visits, _largest(steps[priority])) for priority in get_args(Priority)],
        output_tokens=counted("specedit_output_tokens_total"),
        steps=counted("specedit_steps_total"),
        cached_share=counted("specedit_cached_tokens_total") / max(1, counted("specedit_prompt_tokens_total")),
        samples=watch.samples,
        checks=[
            exact(crowd.visits, *alone),
            ended(crowd.visits, watch.silent),
            started_in_time(steps["inline"]),
            left_alone(crowd.visits, counted("specedit_wait_seconds_count") - whole),
            emptied(watch.samples[-1]),
            flat(watch.samples, seconds),
            closed(watch.samples),
        ],
    )


def _waits(priority: Priority, visits: Sequence[Visit], steps: float) -> Waits:
    answered = [visit for visit in visits if visit.kind == priority and visit.outcome in ("stop", "length")]
    first = [visit.first_text_seconds for visit in answered if visit.first_text_seconds is not None]
    # Who reads slowly waits for themselves.
    whole = [visit.seconds for visit in answered if visit.behaviour != "reads slowly"]
    return Waits(
        priority=priority,
        answers=len(answered),
        first_text_p50=_percentile(first, 50),
        first_text_p99=_percentile(first, 99),
        answer_p50=_percentile(whole, 50),
        answer_p99=_percentile(whole, 99),
        steps_before_start=steps,
    )


def _percentile(values: Sequence[float], percent: int) -> float | None:
    """The least value that so many percent don't exceed."""
    return sorted(values)[-(-len(values) * percent // 100) - 1] if values else None


def _largest(steps: dict[float, int]) -> float:
    """The bound of the last bucket that has values."""
    return next((bound for bound, count in steps.items() if count == max(steps.values())), 0.0)


# --- what is judged


def exact(visits: Sequence[Visit], num_alone: int, differences: Sequence[str]) -> Check:
    """Equal requests got equal answers, under load and asked alone with plain decoding."""
    different = [visit.wrong for visit in visits if visit.outcome == "different"] + list(differences)
    answers = sum(visit.outcome in ("stop", "length", "different") for visit in visits)
    told = f"{answers} answers, {num_alone} requests asked again alone and plainly, {len(different)} differ"
    return Check("same request, same answer", not different, _with(told, different))


def ended(visits: Sequence[Visit], silent: str) -> Check:
    """Every request ended, and as was to be expected."""
    wrong = [visit.wrong for visit in visits if visit.wrong and visit.outcome != "different"]
    stuck = sum(visit.outcome in ("stuck", "still open") for visit in visits)
    wrong = [silent, *wrong] if silent else wrong
    told = f"{len(visits)} visits, {len(wrong)} ended otherwise than asked for, {stuck} of them stuck"
    return Check("everything ended as it should", not wrong, _with(told, wrong))


def started_in_time(steps: dict[float, int]) -> Check:
    """No inline request waited for more than two steps of lower priorities. `steps`: at most so many -> requests."""
    total = max(steps.values(), default=0)
    late = total - steps.get(float(STEPS_BEFORE_INLINE), 0)
    held = late == 0 if total else None
    told = f"{total} inline requests, {late} of them after more than {STEPS_BEFORE_INLINE} steps of lower priorities"
    return Check("inline starts within two steps", held, told)


def left_alone(visits: Sequence[Visit], cut: int) -> Check:
    """Answers whose client left were cut short: nine of ten, as one may end in the moment in which its client leaves.

    `cut`: answers that the server began and did not bring to an end.
    """
    left = sum(visit.outcome == "left" and "mid-stream" in visit.behaviour for visit in visits)
    told = f"{left} clients left in mid-stream, the server cut {cut} answers short"
    return Check("an answer ends when its client leaves", cut >= 0.9 * left if left else None, told)


def emptied(last: Sample) -> Check:
    """Nothing was left to do at the end."""
    queue = last.queue
    told = f"{queue.waiting} waiting, {queue.running} running, {queue.paused} paused"
    return Check("nothing is left at the end", queue.is_empty, told)


def flat(samples: Sequence[Sample], seconds: float) -> Check:
    """Memory in the last quarter is not above that in the second, by the medians; the first quarter is warm-up."""
    rss = [sample.rss_bytes for sample in samples if sample.seconds <= seconds]
    if seconds < _JUDGED_SECONDS or not any(rss):
        return Check("memory is flat", None, f"judged from {_JUDGED_SECONDS:.0f} s on, of a server on this machine")
    quarter = len(rss) // 4
    second, last = statistics.median(rss[quarter : 2 * quarter]), statistics.median(rss[-quarter:])
    told = f"{second / 2**20:.0f} MiB in the second quarter, {last / 2**20:.0f} MiB in the last"
    held = last - second <= max(_GROWTH_BYTES, _GROWTH * second)
    advice = "a slow machine may still be warming up: see whether a longer load says the same"
    return Check("memory is flat", held, told if held else _with(told, [advice]))


def closed(samples: Sequence[Sample]) -> Check:
    """At the end there are no more file descriptors than at the beginning, but for a few."""
    first, last = samples[0], samples[-1]
    told = f"{first.fds} at first, {max(sample.fds for sample in samples)} at most, {last.fds} in the end"
    return Check("connections are closed", last.fds <= first.fds + _SPARE_FDS if first.fds else None, told)


def drained(exit_code: int | None) -> Check:
    """The server ended by itself at SIGTERM."""
    told = "it had to be killed" if exit_code is None else f"exit code {exit_code}"
    return Check("it ends when told to", exit_code == 0, told)


def unalarmed(alarms: Sequence[str]) -> Check:
    """The server's log tells of no fault of its own."""
    return Check("its log has no errors", not alarms, _with(f"{len(alarms)} lines", alarms))


def _with(told: str, faults: Sequence[str]) -> str:
    return "; ".join([told, *faults[:_SHOWN_FAULTS]])
