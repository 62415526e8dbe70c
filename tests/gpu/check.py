"""Check a device: exactness, near ties, what a forward over many rows costs, memory. Random weights, no download.

    python tests/gpu/check.py [--small] [--seconds 200] [--json FILE]

Exits with 1 when a promise is broken:

* in float32 drafting changes no token, but where both tokens lie within the measured rounding of the logits;
* in bfloat16 (on a CPU too) greedy decoding parts ways only at near ties, within the measured rounding;
* the cache takes no more than twice the rows it holds, and forwards that are cut back leave no memory behind.
"""

from __future__ import annotations

import itertools
import json
import math
import random
import re
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # run as a file, Python finds its folder only
    sys.path.insert(0, str(Path(__file__).parents[2]))

import click
import numpy as np
import torch
import transformers
from transformers import Qwen2Config

from specedit.draft.merge import EditDrafter
from specedit.draft.tree import DraftTree
from specedit.draft.vocabulary import Vocabulary
from specedit.engine.api import Hints, Sampling
from specedit.engine.budget import DraftBudget
from specedit.engine.costs import ForwardCosts, measure
from specedit.engine.sampling import Sampler
from specedit.engine.target import Target
from specedit.engine.verify import sample_and_match
from tests.fake_models import RandomTreeDrafter, run_loop, run_reference
from tests.tiny_model import random_model

GREEDY = Sampling()
SEEDED = Sampling(temperature=0.8, top_p=0.9, repetition_penalty=1.1)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128)
#: Logits of about 5 times a normal distribution: as peaked as those of a trained model.
_GAIN = 0.7
_SHARPNESS = 8.0
_LARGE_MODEL_MEMORY_BYTES = 40 << 30
_FIRST_CACHE_ROWS = 512
_MEASURING_SECONDS = 1.0
#: When a part must be done, as a share of all seconds.
_DONE = {"exactness": 0.35, "near ties": 0.65, "cost": 0.95}


@dataclass(frozen=True)
class Setting:
    """How much is checked.

    Attributes:
        device: where.
        exact_config: the model whose tokens are compared.
        cost_config: the model that is timed.
        cost_dtype: its dtype.
        prompts: prompts compared in float32.
        near_tie_prompts: prompts compared in bfloat16.
        new_tokens: tokens of each answer.
        budgets: draft budgets that are compared, besides one that follows measured costs.
        cached_tokens: how many stand in the cache when a forward is timed.
        repeats: how often it is timed.
    """

    device: torch.device
    exact_config: Qwen2Config
    cost_config: Qwen2Config
    cost_dtype: torch.dtype
    prompts: int
    near_tie_prompts: int
    new_tokens: int
    budgets: tuple[int, ...]
    cached_tokens: int
    repeats: int


@dataclass
class Section:
    """What one part found: a table for people, figures for programs, and each broken promise in a sentence."""

    title: str
    lines: list[str] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Parting:
    """Where drafted decoding left plain decoding.

    Attributes:
        prompt: its number.
        place: the number of the token.
        gap: how far the logits of the two tokens lie apart.
        best_two_gap: how far the two best logits lie apart.
        explained: whether rounding leads from one token to the other.
    """

    prompt: int
    place: int
    gap: float
    best_two_gap: float
    explained: bool


def small_setting(device: torch.device) -> Setting:
    """What a CPU does in under a minute."""
    config = _qwen2(hidden=64, intermediate=160, layers=3, heads=4, kv_heads=2, vocab=997)
    return Setting(
        device,
        exact_config=config,
        cost_config=config,
        cost_dtype=torch.float32,
        prompts=3,
        near_tie_prompts=10,
        new_tokens=32,
        budgets=(1, 8, 32),
        cached_tokens=128,
        repeats=5,
    )


def full_setting(device: torch.device, memory_bytes: int) -> Setting:
    """What a GPU does in under 200 seconds; the model that is timed has 7B or 1.5B parameters, as memory allows."""
    large = _qwen2(hidden=3584, intermediate=18944, layers=28, heads=28, kv_heads=4, vocab=152064)
    medium = _qwen2(hidden=1536, intermediate=8960, layers=28, heads=12, kv_heads=2, vocab=151936)
    return Setting(
        device,
        exact_config=_qwen2(hidden=1024, intermediate=2816, layers=8, heads=16, kv_heads=4, vocab=4096),
        cost_config=large if memory_bytes >= _LARGE_MODEL_MEMORY_BYTES else medium,
        cost_dtype=torch.bfloat16,
        prompts=8,
        near_tie_prompts=64,
        new_tokens=64,
        budgets=(1, 8, 64),
        cached_tokens=1024,
        repeats=15,
    )


def _qwen2(*, hidden: int, intermediate: int, layers: int, heads: int, kv_heads: int, vocab: int) -> Qwen2Config:
    return Qwen2Config(
        vocab_size=vocab,
        hidden_size=hidden,
        intermediate_size=intermediate,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        max_position_embeddings=8192,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=None,
    )


def peaked_target(config: Qwen2Config, dtype: torch.dtype, device: torch.device) -> Target:
    """A random model whose tokens are not nearly tied."""
    scale = _GAIN / (config.initializer_range * math.sqrt(config.hidden_size))
    model = random_model(config, dtype=dtype, device=device, scale=scale)
    with torch.no_grad():
        model.lm_head.weight.mul_(_SHARPNESS)
    return Target(model)


class Recorder:
    """Decodes plainly like its target and keeps the rows of logits."""

    def __init__(self, target: Target) -> None:
        self.rows: list[torch.Tensor] = []
        self._target = target

    def plain_feed(self) -> Callable[[Sequence[int]], torch.Tensor]:
        """A fresh sequence, as `Target.plain_feed`."""
        feed = self._target.plain_feed()

        def recorded(token_ids: Sequence[int]) -> torch.Tensor:
            self.rows.append(feed(token_ids))
            return self.rows[-1]

        return recorded


@dataclass(frozen=True)
class PlainRun:
    """A prompt decoded plainly: `rows[i]` are the logits that token i was drawn from."""

    target: Target
    number: int
    prompt: list[int]
    sampling: Sampling
    tokens: list[int]
    rows: list[torch.Tensor]

    @classmethod
    def of(cls, target: Target, number: int, sampling: Sampling, new_tokens: int) -> PlainRun:
        """Decode prompt `number`; the prompts differ in length too."""
        source = random.Random(number)
        prompt = [source.randrange(target.vocab_size) for _ in range(20 + 17 * number % 90)]
        recorder = Recorder(target)
        tokens, _ = run_reference(recorder, prompt, max_new_tokens=new_tokens, sampling=sampling, seed=number)
        return cls(target, number, prompt, sampling, tokens, recorder.rows)

    def drafters(self) -> list[Any]:
        """Random trees, and all that drafts edits, with a prediction that is wrong in every seventh token."""
        size = self.target.vocab_size
        prediction = [(token + (place % 7 == 6)) % size for place, token in enumerate(self.tokens)]
        vocabulary = _vocabulary(size)
        ends = itertools.accumulate(vocabulary.chars[prediction].tolist())
        old, new = (vocabulary.text([token]) for token in (prediction[6 % len(prediction)], self.tokens[0]))
        edit = EditDrafter(vocabulary)
        edit.begin(self.prompt, prediction, Hints(substitutions=((old, new),), resume_offsets=tuple(ends)))
        return [edit, RandomTreeDrafter(size, self.tokens, self.number)]

    def drafted(self, drafter: Any, budget: int | DraftBudget) -> tuple[list[int], int]:
        """The tokens of drafted decoding, and how many drafts were accepted."""
        tokens, _, _, stats = run_loop(
            self.target,
            self.prompt,
            drafter,
            budget=budget,
            max_new_tokens=len(self.tokens),
            sampling=self.sampling,
            seed=self.number,
        )
        return tokens, sum(stats.accepted.values())

    def rounding(self, num_rows: int) -> float:
        """The most by which any logit of a pass over `num_rows` rows differs from that of plain decoding."""
        cache = self.target.new_cache()
        append(self.target, cache, self.prompt[:-1])
        fed = [self.prompt[-1], *self.tokens[:-1]]
        worst = 0.0
        for start in range(0, len(fed), num_rows):
            logits = append(self.target, cache, fed[start : start + num_rows])
            plain = torch.stack(self.rows[start : start + num_rows])
            worst = max(worst, float((logits.double() - plain.double()).abs().max()))
        return worst

    def parting(self, tokens: list[int], rounding: float) -> Parting:
        """Where `tokens` leave those of plain decoding, and whether rounding explains it."""
        at = next(i for i, (one, other) in enumerate(zip(tokens, self.tokens, strict=True)) if one != other)
        row = self.rows[at].double()
        best, second = row.topk(2).values.tolist()
        gap = float((row[self.tokens[at]] - row[tokens[at]]).abs())
        return Parting(self.number, at, gap, best - second, self._reachable(at, tokens[at], rounding))

    def _reachable(self, at: int, token: int, rounding: float) -> bool:
        """Whether the token is drawn from a row that differs by no more than `rounding`: a tie, a cut or an edge."""
        sampler = Sampler(self.sampling, self.number, self.prompt)
        sampler.commit(self.tokens[:at])
        row = self.rows[at].double()
        generator = torch.Generator().manual_seed(at)
        ids = torch.arange(len(row))
        directions = [torch.where(ids == token, 1.0, -1.0)]
        lower, upper = sorted((token, self.tokens[at]))
        for edge in (lower, lower + 1, upper, upper + 1):
            sides = torch.where(ids < edge, 1.0, -1.0)
            directions += [sides, -sides]
        noise = [2 * torch.rand(len(row), generator=generator) - 1 for _ in range(256)]
        changes = (direction.to(row) * rounding for direction in (*directions, *noise))
        return any(sampler.draw(row + change) == token for change in changes)


class Words:
    """A tokenizer whose tokens are numbered words; every sixteenth ends a line."""

    def encode(self, text: str) -> list[int]:
        """The numbers that stand in the text."""
        return [int(number) for number in re.findall(r"\d+", text)]

    def token_bytes(self, token_id: int) -> bytes:
        """A word, or a word that ends a line."""
        return f" w{token_id}".encode() + b"\n" * (token_id % 16 == 0)


@cache
def _vocabulary(size: int) -> Vocabulary:
    return Vocabulary.of(Words(), size, ())


def learned_budget(target: Target, nodes: int) -> DraftBudget:
    """A budget from what forwards of the target cost here; it learns from all runs that it is used in."""
    return DraftBudget(ForwardCosts(measure(target, limit_seconds=_MEASURING_SECONDS)), nodes)


def append(target: Target, cache: Any, token_ids: Sequence[int]) -> torch.Tensor:
    """Logits [rows, vocabulary] of tokens behind those that stand in the cache."""
    chain = DraftTree.chain(token_ids[1:])
    return target.forward(cache, np.asarray(token_ids), chain.positions(cache.length), chain.mask)


def check_exactness(target: Target, setting: Setting, until: float) -> Section:
    """Tokens of drafted and plain decoding, greedy and seeded."""
    section = Section(f"exactness, {target.dtype}")
    runs = 0
    accepted = {"edit": 0, "random": 0}
    partings: list[Parting] = []
    most = max(setting.budgets)
    budgets = [*((nodes, nodes) for nodes in setting.budgets), (learned_budget(target, most), most)]
    prompts = [(number, sampling) for number in range(setting.prompts) for sampling in (GREEDY, SEEDED)]
    for number, sampling in prompts:
        if runs and time.perf_counter() > until:
            break
        plain = PlainRun.of(target, number, sampling, setting.new_tokens)
        for budget, nodes in budgets:
            for drafter in plain.drafters():
                tokens, count = plain.drafted(drafter, budget)
                runs += 1
                accepted[drafter.name] += count
                if tokens != plain.tokens:
                    rounding = max(plain.rounding(rows) for rows in (2, nodes + 1))
                    partings.append(plain.parting(tokens, rounding))
    section.figures = {
        "runs": runs,
        "runs_planned": len(prompts) * len(budgets) * 2,
        "accepted": accepted,
        "partings": [vars(parting) for parting in partings],
    }
    section.lines = [
        f"runs with the tokens of plain decoding   {runs - len(partings)} of {runs}",
        *(f"drafts accepted, {name:<21}   {count}" for name, count in accepted.items()),
        *map(_parting_line, partings),
    ]
    section.broken = [
        f"{target.dtype}: prompt {parting.prompt}, token {parting.place} differs and rounding does not explain it"
        for parting in partings
        if not parting.explained
    ]
    section.broken += [f"no draft of {name} was ever accepted" for name, count in accepted.items() if not count]
    if target.plain_only:
        section.broken.append(target.plain_only)
    return section


def check_near_ties(target: Target, setting: Setting, until: float) -> Section:
    """Where greedy decoding parts ways in low precision, against the measured rounding."""
    section = Section(f"near ties, {target.dtype}")
    differing: list[tuple[PlainRun, list[int]]] = []
    rounding = 0.0
    runs = 0
    budget = max(setting.budgets)
    learned = learned_budget(target, budget)
    for number in range(setting.near_tie_prompts):
        if runs and time.perf_counter() > until:
            break
        plain = PlainRun.of(target, number, GREEDY, setting.new_tokens)
        rounding = max(rounding, *(plain.rounding(rows) for rows in (2, 8, budget + 1)))
        tokens, _ = plain.drafted(plain.drafters()[number % 2], learned if number % 4 < 2 else budget)
        runs += 1
        if tokens != plain.tokens:
            differing.append((plain, tokens))
    partings = [plain.parting(tokens, rounding) for plain, tokens in differing]
    section.figures = {
        "prompts": runs,
        "prompts_planned": setting.near_tie_prompts,
        "rounding": rounding,
        "partings": [vars(parting) for parting in partings],
    }
    section.lines = [
        f"prompts with other tokens                {len(partings)} of {runs}, {setting.new_tokens} tokens each",
        f"rounding of a logit, many rows to one    {rounding:.4f} at most",
        *map(_parting_line, partings),
    ]
    section.broken = [
        f"{target.dtype}: prompt {parting.prompt}, token {parting.place} differs at a gap of {parting.gap:.4f}, "
        f"more than rounding ({rounding:.4f} a logit) explains"
        for parting in partings
        if not parting.explained
    ]
    return section


def _parting_line(parting: Parting) -> str:
    return (
        f"  prompt {parting.prompt:>3}, token {parting.place:>3}: two best logits {parting.best_two_gap:.5f} apart, "
        f"the two tokens {parting.gap:.5f}"
    )


def check_cost(target: Target, setting: Setting, until: float) -> Section:
    """t(m): milliseconds of a forward over m rows; and of drawing and matching the tokens of a step."""
    section = Section(f"a forward over m rows, {setting.cached_tokens} tokens cached, {target.dtype}")
    cache = target.new_cache()
    prompt = [token % target.vocab_size for token in range(setting.cached_tokens)]
    for start in range(0, len(prompt), 512):
        append(target, cache, prompt[start : start + 512])
    taken: dict[int, list[float]] = {rows: [] for rows in ROWS}
    for round_number in range(setting.repeats + 1):
        if round_number > 1 and time.perf_counter() > until:
            break
        for rows in ROWS:
            milliseconds = _milliseconds(target.device, partial(append, target, cache, prompt[:rows]))
            cache.truncate(len(prompt))
            if round_number:  # the first one warms up
                taken[rows].append(milliseconds)
    medians = {rows: statistics.median(times) for rows, times in taken.items()}
    section.lines = ["   m        ms   ratio    min    max"]
    section.lines += [
        f"{rows:>4} {medians[rows]:>9.3f} {medians[rows] / medians[1]:>7.2f} {min(times):>6.2f} {max(times):>6.2f}"
        for rows, times in taken.items()
    ]
    drawing = _drawing_milliseconds(target, setting)
    section.lines += [f"drawing and matching, {name:<28} {value:>8.3f} ms a step" for name, value in drawing.items()]
    section.figures = {
        "milliseconds": medians,
        "ratios": {rows: median / medians[1] for rows, median in medians.items()},
        "repeats": len(taken[1]),
        "drawing_milliseconds": drawing,
    }
    return section


def _drawing_milliseconds(target: Target, setting: Setting) -> dict[str, float]:
    """Median times of `sample_and_match` over rows that are all accepted: the longest walk there is."""
    generator = torch.Generator(target.device).manual_seed(0)
    logits = 4 * torch.randn(65, target.vocab_size, generator=generator, device=target.device)
    logits = logits.to(target.dtype)
    times = {}
    for name, sampling in (("greedy", GREEDY), ("penalties and top-p", SEEDED)):
        sampler = Sampler(sampling, 0, [1, 2, 3])
        path: list[int] = []
        for row in logits:
            path.append(sampler.draw(row, path))
        for size in (0, 64):
            walk = partial(_walk, DraftTree.chain(path[:size]), logits, sampler)
            samples = [_milliseconds(target.device, walk) for _ in range(setting.repeats + 1)][1:]
            times[f"{name}, {size + 1} rows"] = statistics.median(samples)
    return times


def _walk(tree: DraftTree, logits: torch.Tensor, sampler: Sampler) -> object:
    return sample_and_match(tree, lambda row, path: sampler.draw(logits[row], path))


def _milliseconds(device: torch.device, action: Callable[[], object]) -> float:
    _synchronize(device)
    started = time.perf_counter()
    action()
    _synchronize(device)
    return 1e3 * (time.perf_counter() - started)


def _synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def check_memory(target: Target, setting: Setting) -> Section:
    """Bytes of the cache against the rows it holds, and whether forwards that are cut back leave any behind."""
    section = Section(f"memory, {target.dtype}")
    config = target.model.config
    head_dim = config.hidden_size // config.num_attention_heads
    row_bytes = 2 * config.num_hidden_layers * config.num_key_value_heads * head_dim * target.dtype.itemsize
    cache = target.new_cache()
    prompt = [token % target.vocab_size for token in range(setting.cached_tokens)]
    for start in range(0, len(prompt), 512):
        append(target, cache, prompt[start : start + 512])
    draft = [token % target.vocab_size for token in range(max(ROWS))]
    held: list[int] = []
    for _ in range(4):
        append(target, cache, draft)
        cache.truncate(len(prompt))
        held.append(_allocated_bytes(target.device) or cache.num_bytes)
    rows = len(prompt) + len(draft)
    peak = torch.cuda.max_memory_allocated(target.device) if target.device.type == "cuda" else None
    weights = sum(parameter.numel() * parameter.element_size() for parameter in target.model.parameters())
    section.figures = {
        "weight_bytes": weights,
        "cache_bytes": cache.num_bytes,
        "bytes_a_row": row_bytes,
        "rows": rows,
        "peak_bytes": peak,
    }
    section.lines = [
        f"weights   {weights / 1e6:>10.1f} MB",
        f"cache     {cache.num_bytes / 1e6:>10.1f} MB for {rows} rows of {row_bytes} bytes",
        f"peak      {peak / 1e6:>10.1f} MB" if peak else "peak      not measured on this device",
    ]
    if cache.num_bytes > 2 * max(rows, _FIRST_CACHE_ROWS) * row_bytes:
        section.broken.append(f"the cache takes {cache.num_bytes} bytes for {rows} rows of {row_bytes}")
    if held[-1] > held[0]:
        section.broken.append(f"forwards that were cut back left {held[-1] - held[0]} bytes behind")
    return section


def _allocated_bytes(device: torch.device) -> int | None:
    return torch.cuda.memory_allocated(device) if device.type == "cuda" else None


def run(setting: Setting, seconds: float, say: Callable[[str], object]) -> list[Section]:
    """Check everything, and say what was found part by part."""
    torch.set_float32_matmul_precision("highest")  # no TF32
    started = time.perf_counter()

    def until(part: str) -> float:
        return started + _DONE[part] * seconds

    def exactness() -> list[Section]:
        target = peaked_target(setting.exact_config, torch.float32, setting.device)
        return [check_exactness(target, setting, until("exactness"))]

    def near_ties() -> list[Section]:
        target = peaked_target(setting.exact_config, torch.bfloat16, setting.device)
        return [check_near_ties(target, setting, until("near ties"))]

    def cost() -> list[Section]:
        target = Target(random_model(setting.cost_config, dtype=setting.cost_dtype, device=setting.device, scale=1.0))
        return [check_cost(target, setting, until("cost")), check_memory(target, setting)]

    sections: list[Section] = []
    for part in (exactness, near_ties, cost):
        part_started = time.perf_counter()
        for section in part():
            say("\n".join(["", section.title, *(f"  {line}" for line in section.lines)]))
            sections.append(section)
        say(f"  ({time.perf_counter() - part_started:.1f} s)")
    return sections


@click.command()
@click.option("--small", is_flag=True, help="A small model: under a minute on a CPU.")
@click.option("--seconds", default=200.0, show_default=True, help="Stop adding runs when these are used up.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures to this file too.")
def main(small: bool, seconds: float, json_path: Path | None) -> None:
    """Check exactness, near ties, costs and memory on the GPU, or on the CPU where there is none."""
    cuda = torch.cuda.is_available()
    device = torch.device("cuda" if cuda else "cpu")
    name = torch.cuda.get_device_name(device) if cuda else "CPU"
    click.echo(f"{name}, torch {torch.__version__}, transformers {transformers.__version__}")
    if small or not cuda:
        setting = small_setting(device)
    else:
        setting = full_setting(device, torch.cuda.get_device_properties(device).total_memory)
    sections = run(setting, seconds, click.echo)
    broken = [sentence for section in sections for sentence in section.broken]
    if json_path:
        figures = {section.title: section.figures for section in sections}
        report = {"device": name, "torch": torch.__version__, "figures": figures, "broken": broken}
        json_path.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    click.echo("\n" + ("\n".join(f"BROKEN: {sentence}" for sentence in broken) or "every promise holds"))
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
