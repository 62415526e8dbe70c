"""What drafting costs where it can't help, beside what it gains where it can: plain and drafted decoding in one run.

One engine answers each prompt both ways, one after the other, in turns which goes first. Prompts that have nothing to
copy and edits that are mostly copied are mixed, so that the engine begins the one with what it learned from the other.
Seconds are those of the decode steps; reading the prompt is the same work for both.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import msgspec

from specedit.bench.case import Case
from specedit.edit.session import generate_request
from specedit.engine.api import GenerateRequest, Message, TextChunk, Usage
from specedit.engine.local import LocalEngine
from specedit.errors import UsageError

Kind = Literal["prompt", "edit"]


class Task(msgspec.Struct, frozen=True):
    """Something to answer: a prompt with nothing to copy, or an edit."""

    name: str
    kind: Kind
    request: GenerateRequest


class Pair(msgspec.Struct, frozen=True):
    """One task, answered both ways.

    Attributes:
        name: of the task.
        kind: of the task.
        output_tokens: tokens of the drafted answer.
        forwards: target forwards that gave them.
        plain_ms: milliseconds a token by plain decoding.
        drafted_ms: milliseconds a token with drafts.
        same: whether both gave the same text.
    """

    name: str
    kind: Kind
    output_tokens: int
    forwards: int
    plain_ms: float
    drafted_ms: float
    same: bool

    @property
    def ratio(self) -> float:
        """How many times as fast the drafted answer was; below 1 drafting did harm."""
        return self.plain_ms / self.drafted_ms


class Summary(msgspec.Struct, frozen=True):
    """All pairs of one kind: the median of their ratios, and between which values their middle half lies."""

    kind: Kind
    pairs: int
    median: float
    low: float
    high: float
    tokens_per_forward: float


class _Row(msgspec.Struct, frozen=True):
    turns: tuple[str, ...]
    id: str = ""
    category: str = ""


def prompts(file: Path, count: int, max_new_tokens: int) -> list[Task]:
    """`count` prompts, evenly spread over a file of JSON lines with `turns`; only the first turn is asked.

    Raises:
        UsageError: a line is no such prompt, or there is none.
    """
    try:
        rows = [msgspec.json.decode(line, type=_Row) for line in file.read_bytes().splitlines() if line.strip()]
    except msgspec.DecodeError as error:
        raise UsageError(f"{file} is no file of prompts ({error}): each line needs turns, a list of texts") from error
    rows = [row for row in rows if row.turns]
    if not rows:
        raise UsageError(f"{file} has no prompts: each line needs turns, a list of texts")
    count = min(count, len(rows))
    chosen = [rows[place * len(rows) // count] for place in range(count)]
    return [
        Task(
            row.id or f"prompt {number}",
            "prompt",
            GenerateRequest(messages=(Message("user", row.turns[0]),), max_new_tokens=max_new_tokens),
        )
        for number, row in enumerate(chosen, start=1)
    ]


def edits(cases: Iterable[Case], max_new_tokens: int) -> list[Task]:
    """The cases as tasks; an answer is cut after `max_new_tokens`, as only its speed matters."""
    return [Task(case.name, "edit", generate_request(case.request(max_new_tokens))) for case in cases]


def mixed(one: Sequence[Task], other: Sequence[Task]) -> list[Task]:
    """Both lists in their order, evenly mixed."""
    places = [((place + 0.5) / len(tasks), task) for tasks in (one, other) for place, task in enumerate(tasks)]
    return [task for _, task in sorted(places, key=lambda item: item[0])]


def measure(engine: LocalEngine, tasks: Sequence[Task]) -> Iterator[Pair]:
    """Answer each task both ways. A task that gives less than two tokens is left out, as it has no time a token.

    A few tokens are written both ways beforehand, so that no task pays for what is done once.
    """
    ways = {"plain": engine.generate_plain, "drafted": engine.generate}
    for task, generate in itertools.product(tasks[:1], ways.values()):
        _answer(generate(replace(task.request, max_new_tokens=4)))
    for number, task in enumerate(tasks):
        answers = {way: _answer(ways[way](task.request)) for way in sorted(ways, reverse=number % 2 == 1)}
        (plain_text, plain), (text, drafted) = answers["plain"], answers["drafted"]
        if min(plain.output_tokens, drafted.output_tokens) < 2:
            continue
        yield Pair(
            name=task.name,
            kind=task.kind,
            output_tokens=drafted.output_tokens,
            forwards=drafted.forwards,
            # Plain decoding reads the prompt and gives the first token in one forward, which counts as the prompt's.
            plain_ms=1e3 * plain.decode_seconds / (plain.output_tokens - 1),
            drafted_ms=1e3 * drafted.decode_seconds / drafted.output_tokens,
            same=text == plain_text,
        )


def summaries(pairs: Sequence[Pair]) -> list[Summary]:
    """One for each kind that there is."""
    found = []
    for kind in dict.fromkeys(pair.kind for pair in pairs):
        some = [pair for pair in pairs if pair.kind == kind]
        ratios = sorted(pair.ratio for pair in some)
        low, _, high = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
        tokens = sum(pair.output_tokens for pair in some) / sum(pair.forwards for pair in some)
        found.append(Summary(kind, len(some), statistics.median(ratios), low, high, tokens))
    return found


def markdown(pairs: Sequence[Pair]) -> str:
    """A table of the summaries."""
    rows = "\n".join(
        f"| {one.kind}s | {one.pairs} | {one.median:.2f}x | {one.low:.2f}x to {one.high:.2f}x "
        f"| {one.tokens_per_forward:.2f} |"
        for one in summaries(pairs)
    )
    return (
        "| | pairs | plain over drafted seconds a token, median | middle half | tokens per forward |\n"
        f"|---|---:|---:|---:|---:|\n{rows}"
    )


def to_json(pairs: Sequence[Pair]) -> str:
    """`{"summaries": [], "pairs": []}`."""
    listed = [msgspec.to_builtins(pair) | {"ratio": pair.ratio} for pair in pairs]
    data = msgspec.json.encode({"summaries": summaries(pairs), "pairs": listed})
    return msgspec.json.format(data).decode()


def _answer(chunks: Iterator[TextChunk]) -> tuple[str, Usage]:
    text, usage = "", Usage()
    for chunk in chunks:
        text += chunk.text
        usage = chunk.usage
    return text, usage
