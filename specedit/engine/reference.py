"""Plain decoding, one token a forward: the oracle that drafting must reproduce, without our cache and our tree."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

import torch

from specedit.engine.api import CancelToken
from specedit.engine.sampling import Sampler
from specedit.engine.stats import DecodeStats
from specedit.engine.stops import Emission, StopRule


class PlainModel(Protocol):
    """What plain decoding needs of a target; see `target.Target`."""

    def plain_feed(self) -> Callable[[Sequence[int]], torch.Tensor]:
        """A fresh sequence: call it with the next tokens, get the last row of logits [vocabulary]."""
        ...


def decode(
    target: PlainModel,
    prompt_ids: Sequence[int],
    *,
    sampler: Sampler,
    stop_rule: StopRule,
    cancel: CancelToken,
    stats: DecodeStats,
    with_logits: bool = False,
) -> Iterator[Emission]:
    """Decode one answer a token at a time, with the model's own cache; arguments and emissions as in `loop.decode`.

    The prompt is read in one forward, as recurrent layers need it, so a cancel takes effect after that.
    """
    if stop_rule.remaining <= 0:
        yield Emission(finish_reason="length")
        return
    feed = target.plain_feed()
    unread: Sequence[int] = prompt_ids
    while not cancel.cancelled:
        started = time.perf_counter()
        row = feed(unread)
        if unread is prompt_ids:
            stats.prefill_seconds = time.perf_counter() - started
            started = time.perf_counter()
        emission = stop_rule.push([sampler.draw(row)])
        sampler.commit(emission.token_ids)
        unread = emission.token_ids
        stats.forwards += 1
        stats.output_tokens += 1
        stats.hidden_tokens += emission.hidden_tokens
        stats.decode_seconds += time.perf_counter() - started
        yield replace(emission, logits=row[None]) if with_logits else emission
        if emission.finish_reason is not None:
            return
    yield Emission(finish_reason="cancelled")
