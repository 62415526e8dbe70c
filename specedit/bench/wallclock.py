"""Seconds and tokens per forward, side by side in one run: plain decoding, transformers' prompt lookup, specedit.

All three answer the same prompt, greedily, with the same model in memory, and one after another for each edit. Each
starts with a cold cache. Seconds are the wall clock from the request to the judged text, prompt encoding and prefill
included.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal

import msgspec
import torch

from specedit.bench.case import Case
from specedit.config import DRAFTERS
from specedit.edit.session import generate_request, run_edit
from specedit.engine import costs
from specedit.engine.api import Engine, GenerateRequest, TextChunk, Usage
from specedit.engine.local import LocalEngine, warm_up
from specedit.engine.target import Target, convert_gguf
from specedit.engine.tokens import Tokenizer
from specedit.models.fetch import resolve_or_convert

Way = Literal["plain", "prompt lookup", "specedit"]

#: As transformers' documentation recommends it.
_LOOKUP_TOKENS = 10


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One edit by one model in one way.

    Attributes:
        model: the model's name.
        edit: the edit's name.
        lines: lines of the file.
        way: how it was decoded.
        output_tokens: tokens of the answer, the end-of-text token counted.
        forwards: target forwards that gave them. A prefill counts where it gives a token, as transformers' does.
        seconds: median wall clock over the repeats.
        spread_seconds: the slowest repeat minus the fastest.
        made: whether the edit was made: the answer was taken by the guards and passes the edit's check.
        reason: why not.
        same_as_plain: whether the answer is that of plain decoding.
        speedup: seconds of plain decoding over these seconds.
    """

    model: str
    edit: str
    lines: int
    way: Way
    output_tokens: int
    forwards: int
    seconds: float
    spread_seconds: float
    made: bool
    reason: str
    same_as_plain: bool
    speedup: float

    @property
    def tokens_per_forward(self) -> float:
        """Mean accepted length, the next token counted."""
        return self.output_tokens / self.forwards if self.forwards else 0.0


def measure(
    model: str, cases: Sequence[Case], *, repeat: int = 1, progress: Callable[[str], None] = lambda _: None
) -> Iterator[Run]:
    """Load a model and yield three runs for each case; answers are run as programs, see `check`.

    Args:
        model: name, hub id or path.
        cases: the edits.
        repeat: how often each is run.
        progress: told of each run.

    Raises:
        ModelError: the model is not there or can't be loaded.
    """
    found = resolve_or_convert(model, convert_gguf)
    tokenizer = Tokenizer.load(found.path, found.entry.fim)
    target = Target.load(found.path)
    stop_tokens = found.entry.stop_tokens
    table = None if target.plain_only else costs.measure(target)
    warm_up(tokenizer, DRAFTERS)  # as when an engine is loaded

    def local() -> LocalEngine:
        return LocalEngine(target, tokenizer, model_name=found.name, costs=table, stop_tokens=stop_tokens)

    makers: dict[Way, Callable[[], Engine]] = {
        "plain": lambda: _Plain(local()),
        "prompt lookup": lambda: _PromptLookup(target, tokenizer, stop_tokens),
        "specedit": local,
    }
    for case in cases:
        limit = len(tokenizer.encode(generate_request(case.request()).prediction)) * 3 // 2 + 256
        seconds: dict[Way, list[float]] = {way: [] for way in makers}
        results = {}
        for _ in range(repeat):
            for way, make in makers.items():
                # A new engine each time, so that no cache is warm; what the last one held is freed beforehand.
                engine = make()
                gc.collect()
                started = time.perf_counter()
                results[way] = run_edit(case.request(limit), engine)
                seconds[way].append(time.perf_counter() - started)
                progress(f"{found.name} {case.name}, {way}: {seconds[way][-1]:.1f} s")
        plain_seconds = statistics.median(seconds["plain"])
        for way, result in results.items():
            verdict = case.judge(result.document.text)
            median = statistics.median(seconds[way])
            yield Run(
                model=found.name,
                edit=case.name,
                lines=case.lines,
                way=way,
                output_tokens=result.usage.output_tokens,
                forwards=result.usage.forwards,
                seconds=median,
                spread_seconds=max(seconds[way]) - min(seconds[way]),
                made=verdict.passed,
                reason=result.reason or verdict.reason,
                same_as_plain=result.answer == results["plain"].answer,
                speedup=plain_seconds / median,
            )


def markdown(runs: Iterable[Run]) -> str:
    """A table for each model, a row for each edit."""
    by_model: dict[str, dict[str, dict[Way, Run]]] = {}
    for run in runs:
        by_model.setdefault(run.model, {}).setdefault(run.edit, {})[run.way] = run
    return "\n\n".join(
        f"{model}:\n\n{_HEAD}\n" + "\n".join(_line(by_way) for by_way in by_edit.values())
        for model, by_edit in by_model.items()
    )


def to_json(runs: Iterable[Run]) -> str:
    """The runs as one JSON array."""
    return msgspec.json.format(msgspec.json.encode(list(runs))).decode()


_HEAD = """\
| edit | lines | tokens | plain: s | prompt lookup: tokens per forward | s | speedup \
| specedit: tokens per forward | s | speedup | edit made | same text as plain |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|---|"""


def _line(by_way: dict[Way, Run]) -> str:
    plain = by_way["plain"]
    cells = [plain.edit, str(plain.lines), str(plain.output_tokens), f"{plain.seconds:.1f}"]
    for way in ("prompt lookup", "specedit"):
        run = by_way[way]
        cells += [f"{run.tokens_per_forward:.1f}", f"{run.seconds:.1f}", f"{run.speedup:.2f}x"]
    cells.append(_agreed({way: run.made for way, run in by_way.items()}))
    cells.append(_agreed({way: run.same_as_plain for way, run in by_way.items() if way != "plain"}))
    return f"| {' | '.join(cells)} |"


def _agreed(answers: dict[Way, bool]) -> str:
    """Yes or no where all ways agree, else who says what."""
    words = {way: "yes" if answer else "no" for way, answer in answers.items()}
    if len(set(words.values())) == 1:
        return next(iter(words.values()))
    return ", ".join(f"{way} {word}" for way, word in words.items())


class _Plain:
    """One token a forward, by the engine's own reference."""

    def __init__(self, engine: LocalEngine) -> None:
        self._engine = engine

    def generate(self, request: GenerateRequest) -> Iterator[TextChunk]:
        return self._engine.generate_plain(request)


class _PromptLookup:
    """Transformers' `generate` with its own prompt lookup."""

    def __init__(self, target: Target, tokenizer: Tokenizer, stop_tokens: Iterable[str]) -> None:
        self._target = target
        self._tokenizer = tokenizer
        named = {tokenizer.token_id(token) for token in stop_tokens} - {None}
        self._eos_ids = target.eos_ids | tokenizer.eos_ids | {token for token in named if token is not None}

    def generate(self, request: GenerateRequest) -> Iterator[TextChunk]:
        prompt = torch.tensor([self._tokenizer.encode_chat(request.messages)], device=self._target.device)
        forwards = 0

        def count(*_: Any) -> None:
            nonlocal forwards
            forwards += 1

        hook = self._target.model.register_forward_hook(count)
        started = time.perf_counter()
        try:
            ids = self._target.model.generate(
                prompt,
                attention_mask=torch.ones_like(prompt),
                prompt_lookup_num_tokens=_LOOKUP_TOKENS,
                do_sample=False,
                repetition_penalty=1.0,
                max_new_tokens=request.max_new_tokens,
                eos_token_id=sorted(self._eos_ids),
                pad_token_id=min(self._eos_ids),
            )
        finally:
            hook.remove()
        new: list[int] = ids[0, prompt.shape[1] :].tolist()
        ended = bool(new) and new[-1] in self._eos_ids
        usage = Usage(
            prompt_tokens=prompt.shape[1],
            output_tokens=len(new),
            forwards=forwards,
            decode_seconds=time.perf_counter() - started,
        )
        text = self._tokenizer.decode(new[:-1] if ended else new)
        yield TextChunk(text, usage, "stop" if ended else "length")
