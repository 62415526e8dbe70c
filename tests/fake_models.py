"""Fakes of the token half: targets that are plain functions, and drafters that are wrong on purpose."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import numpy as np
import torch

from specedit.draft.tree import DraftTree
from specedit.engine import loop, reference
from specedit.engine.api import CancelToken, Sampling
from specedit.engine.budget import FixedBudget
from specedit.engine.kv_cache import KVCache
from specedit.engine.sampling import Sampler
from specedit.engine.stats import DecodeStats
from specedit.engine.stops import StopRule

LogitsOf = Callable[[tuple[int, ...]], torch.Tensor]


class FunctionTarget:
    """A target whose logits are a function of all the tokens before them.

    Its cache holds the token ids themselves, so a row that was kept, moved or cut wrongly changes what it says.
    """

    plain_only = None
    prefill_chunk_tokens = 512

    def __init__(self, vocab_size: int, logits_of: LogitsOf, context_tokens: int = 10_000) -> None:
        self.vocab_size = vocab_size
        self.context_tokens = context_tokens
        self.rows_per_forward: list[int] = []
        self._logits_of = logits_of

    def new_cache(self) -> KVCache:
        return KVCache(1)

    def forward(self, cache, token_ids, positions, mask, *, last_rows=None):
        base = cache.length
        rows = torch.from_numpy(np.stack((token_ids, positions), axis=1)).double()[None, None]
        keys, _ = cache.append(0, rows, rows)
        committed = keys[0, 0, :base]
        assert committed[:, 1].tolist() == list(range(base)), "the cache holds rows at positions that are not theirs"
        self.rows_per_forward.append(len(token_ids))
        before = committed[:, 0].long().tolist()
        logits = []
        for row in range(len(token_ids))[-(last_rows or 0) :]:
            seen = np.flatnonzero(mask[row])
            assert positions[seen].tolist() == list(range(base, base + len(seen))), "positions do not follow the path"
            logits.append(self._logits_of((*before, *token_ids[seen].tolist())))
        return torch.stack(logits)

    def plain_feed(self):
        history: list[int] = []

        def feed(token_ids: Sequence[int]) -> torch.Tensor:
            history.extend(token_ids)
            self.rows_per_forward.append(1)
            return self._logits_of(tuple(history))

        return feed


def scripted(vocab_size: int, prompt: Sequence[int], script: Sequence[int], **kwargs) -> FunctionTarget:
    """A target that greedily says `script` after `prompt`, and its last token again and again after that."""

    def logits_of(history: tuple[int, ...]) -> torch.Tensor:
        row = torch.zeros(vocab_size)
        row[script[min(max(len(history) - len(prompt), 0), len(script) - 1)]] = 1.0
        return row

    return FunctionTarget(vocab_size, logits_of, **kwargs)


def hashed(vocab_size: int, order: int = 3, sharpness: float = 3.0) -> FunctionTarget:
    """A target with random but fixed logits for each of the last `order` tokens."""

    def logits_of(history: tuple[int, ...]) -> torch.Tensor:
        generator = torch.Generator().manual_seed(hash(history[-order:]) % (1 << 62))
        return torch.randn(vocab_size, generator=generator) * sharpness

    return FunctionTarget(vocab_size, logits_of)


class ListedDrafter:
    """Proposes a fixed chain of tokens once, at the first step."""

    name = "listed"

    def __init__(self, token_ids: Sequence[int]) -> None:
        self._token_ids = list(token_ids)

    def begin(self, prompt_ids, prediction_ids, hints=None) -> None:
        pass

    def commit(self, token_ids) -> None:
        self._token_ids = []

    def propose(self, budget: int) -> DraftTree:
        return DraftTree.chain(self._token_ids[:budget])


class RandomTreeDrafter:
    """Proposes random trees in which one path follows `truth` for a while: right, wrong, bushy, through the end."""

    name = "random"

    def __init__(self, vocab_size: int, truth: Sequence[int], seed: int) -> None:
        self._vocab_size = vocab_size
        self._truth = list(truth)
        self._random = random.Random(seed)
        self._committed = 0

    def begin(self, prompt_ids, prediction_ids, hints=None) -> None:
        pass

    def commit(self, token_ids) -> None:
        self._committed += len(token_ids)

    def propose(self, budget: int) -> DraftTree:
        size = self._random.randint(0, budget)
        tokens: list[int] = []
        parents: list[int] = []
        depths: list[int] = []
        on_path = {-1}
        taken: set[tuple[int, int]] = set()
        for _ in range(size):
            tip = max(on_path)
            parent = tip if self._random.random() < 0.6 else self._random.randint(-1, len(tokens) - 1)
            depth = depths[parent] + 1 if parent >= 0 else 0
            at = self._committed + depth
            right = self._truth[at] if parent in on_path and at < len(self._truth) else None
            wanted = right is not None and self._random.random() < 0.8
            token = right if wanted else self._random.randrange(self._vocab_size)
            if (parent, token) in taken:
                continue
            taken.add((parent, token))
            if token == right:
                on_path.add(len(tokens))
            tokens.append(token)
            parents.append(parent)
            depths.append(depth)
        return DraftTree.of(tokens, parents)


class IdsAsText:
    """Shows each token as its number and a blank; enough of a decoder for tests about tokens."""

    def push(self, token_id: int) -> str:
        return f"{token_id} "

    def flush(self) -> str:
        return ""


def run_loop(
    target,
    prompt,
    drafter,
    *,
    budget,
    max_new_tokens,
    eos_ids=(),
    sampling=None,
    seed=0,
    cache=None,
    cancel=None,
    healing=None,
):
    """Tokens, finish reason, cache and counters of one drafted answer; `budget` in nodes, or one of its own kind."""
    cache = cache if cache is not None else target.new_cache()
    stats = DecodeStats()
    emissions = loop.decode(
        target,
        cache,
        prompt,
        drafter=drafter,
        sampler=Sampler(sampling or Sampling(), seed, prompt, healing),
        stop_rule=StopRule(IdsAsText(), eos_ids=eos_ids, max_new_tokens=max_new_tokens),
        budget=FixedBudget(budget) if isinstance(budget, int) else budget,
        cancel=cancel or CancelToken(),
        stats=stats,
    )
    tokens, reason = _drain(emissions)
    return tokens, reason, cache, stats


def run_reference(target, prompt, *, max_new_tokens, eos_ids=(), sampling=None, seed=0, healing=None):
    """Tokens and finish reason of one plainly decoded answer."""
    emissions = reference.decode(
        target,
        prompt,
        sampler=Sampler(sampling or Sampling(), seed, prompt, healing),
        stop_rule=StopRule(IdsAsText(), eos_ids=eos_ids, max_new_tokens=max_new_tokens),
        cancel=CancelToken(),
        stats=DecodeStats(),
    )
    return _drain(emissions)


def _drain(emissions):
    tokens: list[int] = []
    reason = None
    for emission in emissions:
        assert reason is None, "something was emitted after the end"
        tokens.extend(emission.token_ids)
        reason = emission.finish_reason
    return tokens, reason
