"""The decode loop: read the prompt, then propose, forward, verify, commit until the answer ends."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
import torch

from specedit.draft.base import Drafter
from specedit.draft.tree import BoolArray, DraftTree, IntArray
from specedit.engine.api import CancelToken
from specedit.engine.budget import Budget
from specedit.engine.costs import wait_for
from specedit.engine.kv_cache import KVCache
from specedit.engine.sampling import Sampler
from specedit.engine.stats import DecodeStats, Step
from specedit.engine.stops import Emission, StopRule
from specedit.engine.verify import Verdict, sample_and_match

#: So much of a prompt, or less, is read along with the first step. That saves a forward, which for so few rows is a
#: good part of the wait.
_READ_ALONG_TOKENS = 32


class TargetModel(Protocol):
    """What the loop needs of a target; see `target.Target`."""

    @property
    def vocab_size(self) -> int:
        """Columns of the logits."""
        ...

    @property
    def context_tokens(self) -> int:
        """The most tokens that the model can attend to."""
        ...

    @property
    def prefill_chunk_tokens(self) -> int:
        """Tokens of a prompt to read in one forward."""
        ...

    def forward(
        self,
        cache: KVCache,
        token_ids: IntArray,
        positions: IntArray,
        mask: BoolArray,
        *,
        last_rows: int | None = None,
    ) -> torch.Tensor:
        """Append the rows' keys and values to the cache; return logits [rows, vocabulary], of the last ones or all."""
        ...


def decode(
    target: TargetModel,
    cache: KVCache,
    prompt_ids: Sequence[int],
    *,
    drafter: Drafter,
    sampler: Sampler,
    stop_rule: StopRule,
    budget: Budget,
    cancel: CancelToken,
    stats: DecodeStats,
    with_logits: bool = False,
) -> Iterator[Emission]:
    """Decode one answer by drafting and verifying.

    The tokens are those that `reference.decode` gives for the same sampler, whatever the drafter proposes. Between two
    emissions the cache may be cut, down to nothing: what is missing is read again.

    Args:
        target: the model whose output is reproduced.
        cache: its rows begin the prompt; afterwards it holds prompt and answer, the last token excluded.
        prompt_ids: at least one token.
        drafter: already begun on this prompt.
        sampler: draws the tokens.
        stop_rule: says where the answer ends.
        budget: says how many nodes to verify in a step; with none it is one token a step.
        cancel: looked at before each forward.
        stats: counted into.
        with_logits: whether emissions carry the logits that their tokens were drawn from.

    Yields:
        One emission a forward: an empty one for each chunk of the prompt that was read, then one a decode step, the
        first of which may read the end of the prompt; the last one carries the finish reason.
    """
    if stop_rule.remaining <= 0:
        yield Emission(finish_reason="length")
        return
    allowance = budget.begin()
    committed = list(prompt_ids)
    finished = False
    while not finished:
        if cancel.cancelled:
            yield Emission(finish_reason="cancelled")
            return
        if len(committed) - 1 - cache.length > _READ_ALONG_TOKENS:
            _read_chunk(target, cache, committed, stats)
            yield Emission()
            continue
        started = time.perf_counter()
        unread = committed[cache.length :]
        base = len(committed) - 1
        room = allowance.room(max(0, min(stop_rule.remaining - 1, target.context_tokens - base - 1)))
        proposal = drafter.propose(room)
        proposal.check(target.vocab_size, room)
        tree = allowance.trim(proposal)
        drafted = time.perf_counter()
        logits = _forward(target, cache, unread, tree)
        forwarded = time.perf_counter()
        verdict = _verify(logits, tree, sampler)
        emission = stop_rule.push([*tree.token_ids[list(verdict.path)].tolist(), verdict.next_token])
        rows = [0, *(node + 1 for node in verdict.path)][: len(emission.token_ids)]
        cache.keep(base, rows)
        sampler.commit(emission.token_ids)
        drafter.commit(emission.token_ids)
        read_rows = len(unread) - 1
        reading = (forwarded - drafted) * read_rows / (len(unread) + len(tree))
        step = Step(
            drafter=drafter.name,
            tree=tree,
            path=verdict.path,
            token_ids=emission.token_ids,
            proposed=len(proposal),
            draft_seconds=drafted - started,
            forward_seconds=forwarded - drafted - reading,
        )
        allowance.observe(
            step.token_ids,
            forward_seconds=forwarded - drafted,
            draft_seconds=step.draft_seconds,
            read_rows=read_rows,
        )
        stats.count_step(step)
        stats.hidden_tokens += emission.hidden_tokens
        committed.extend(emission.token_ids)
        finished = emission.finish_reason is not None
        stats.prefill_seconds += reading
        stats.decode_seconds += time.perf_counter() - started - reading
        yield replace(emission, logits=logits[rows]) if with_logits else emission


def _read_chunk(target: TargetModel, cache: KVCache, token_ids: Sequence[int], stats: DecodeStats) -> None:
    """Put the next tokens, but never the last of all, into the cache."""
    started = time.perf_counter()
    start = cache.length
    chunk = token_ids[start : min(start + target.prefill_chunk_tokens, len(token_ids) - 1)]
    rows = DraftTree.chain(chunk[1:])
    target.forward(cache, np.array(chunk), rows.positions(start), rows.mask, last_rows=1)
    stats.prefill_forwards += 1
    stats.prefill_seconds += time.perf_counter() - started


def _forward(target: TargetModel, cache: KVCache, unread: Sequence[int], tree: DraftTree) -> torch.Tensor:
    """The logits of the last committed token and of the tree's nodes [1 + N, vocabulary], by the row rule."""
    first, *others = unread
    rows = tree.below(others)
    token_ids = np.concatenate(([first], rows.token_ids))
    logits = target.forward(cache, token_ids, rows.positions(cache.length), rows.mask, last_rows=1 + len(tree))
    wait_for(logits.device)
    return logits


def _verify(logits: torch.Tensor, tree: DraftTree, sampler: Sampler) -> Verdict:
    return sample_and_match(tree, lambda row, path: sampler.draw(logits[row], path))
