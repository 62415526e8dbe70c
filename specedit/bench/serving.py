"""vLLM's drafters and ours inside vLLM, on our own edits: accepted tokens a step and tokens a second.

One server after another answers the same prompts, greedily. It starts for each way of drafting; the first way runs once
more at the end, so that the difference between its two runs says how much seconds mean here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

from specedit.bench.case import Case
from specedit.bench.vllm_server import running
from specedit.edit.session import generate_request
from specedit.engine.tokens import Tokenizer

PROPOSER = "specedit.integrations.vllm.EditProposer"
FIRST = "none"


def ways(draft_tokens: int) -> dict[str, dict[str, Any] | None]:
    """By name, the speculative configuration of each way of drafting; each may draft so many tokens a step."""
    return {
        FIRST: None,
        "ngram": {
            "method": "ngram",
            "num_speculative_tokens": draft_tokens,
            "prompt_lookup_min": 2,
            "prompt_lookup_max": 5,
        },
        "suffix": {"method": "suffix", "num_speculative_tokens": draft_tokens},
        "specedit": {"method": "custom_class", "model": PROPOSER, "num_speculative_tokens": draft_tokens},
    }


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """All edits by one server.

    Attributes:
        way: how it drafted.
        edits: how many answers it gave.
        output_tokens: their tokens.
        tokens_per_step: output tokens a forward, where requests come one at a time.
        mean_accepted_length: tokens of a step that had a draft, the next token counted.
        acceptance_rate: accepted tokens over drafted ones.
        seconds: wall clock from the first request to the last answer.
        tokens_per_second: output tokens over seconds.
        same_as_first: answers that equal those of the first way.
    """

    way: str
    edits: int
    output_tokens: int
    tokens_per_step: float
    mean_accepted_length: float
    acceptance_rate: float
    seconds: float
    tokens_per_second: float
    same_as_first: int


def measure(
    vllm: Path,
    model: Path,
    cases: Sequence[Case],
    *,
    speculative: Mapping[str, Mapping[str, Any] | None],
    clients: int = 1,
    arguments: Sequence[str] = (),
    progress: Callable[[str], None] = lambda _: None,
) -> Iterator[Served]:
    """Start a server for each way of drafting, and the first once more; yield what it did.

    Args:
        vllm: the command of vLLM; in its environment specedit must be importable.
        model: a directory of safetensors.
        cases: the edits.
        speculative: by name, the ways of drafting.
        clients: how many requests are under way at once.
        arguments: more arguments of `vllm serve`.
        progress: told of each answer.

    Raises:
        EngineError: a server does not start, or refuses a request.
        ModelError: the tokenizer can't be loaded.
    """
    tokenizer = Tokenizer.load(model)
    requests = [generate_request(case.request()) for case in cases]
    limits = [len(tokenizer.encode(request.prediction)) * 3 // 2 + 256 for request in requests]
    first: list[str] | None = None
    for way in (*speculative, next(iter(speculative))):
        with running(vllm, model, speculative=speculative[way], arguments=arguments) as server:
            # What the first request loads or compiles is no part of the figures.
            server.answer(requests[0], 4)
            before, started = server.counters(), time.perf_counter()
            answers = []
            with ThreadPoolExecutor(clients) as pool:
                for case, answer in zip(cases, pool.map(server.answer, requests, limits), strict=True):
                    answers.append(answer)
                    progress(f"{way}: {case.name}, {time.perf_counter() - started:.0f} s")
            seconds = time.perf_counter() - started
            counted = server.counters().since(before)
        first = first or answers
        yield Served(
            way=way,
            edits=len(cases),
            output_tokens=counted.output_tokens,
            tokens_per_step=counted.tokens_per_step,
            mean_accepted_length=counted.mean_accepted_length,
            acceptance_rate=counted.accepted / counted.drafted if counted.drafted else 0.0,
            seconds=seconds,
            tokens_per_second=counted.output_tokens / seconds,
            same_as_first=sum(map(str.__eq__, answers, first)),
        )


def markdown(served: Iterable[Served]) -> str:
    """A table, a row for each server."""
    return "\n".join([_HEAD, *map(_line, served)])


def to_json(served: Iterable[Served]) -> str:
    """The servers as one JSON array."""
    return msgspec.json.format(msgspec.json.encode(list(served))).decode()


_HEAD = """\
| drafts | tokens | tokens a step | mean accepted length | accepted of drafted | s | tokens a second | same text |
|---|---:|---:|---:|---:|---:|---:|---:|"""


def _line(one: Served) -> str:
    cells = [
        one.way,
        str(one.output_tokens),
        f"{one.tokens_per_step:.2f}",
        f"{one.mean_accepted_length:.2f}",
        f"{one.acceptance_rate:.0%}",
        f"{one.seconds:.0f}",
        f"{one.tokens_per_second:.1f}",
        f"{one.same_as_first} of {one.edits}",
    ]
    return f"| {' | '.join(cells)} |"
