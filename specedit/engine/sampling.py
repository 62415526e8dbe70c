"""How the next token is drawn from the target's logits: processors, then one keyed draw a position."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from specedit.engine.api import Sampling
from specedit.engine.healing import Healing
from specedit.errors import UsageError

_MASK64 = (1 << 64) - 1

#: How many of the most probable tokens are tried as the support of top-p before the whole vocabulary is sorted.
_TOP_P_SHORTLIST = 1024


def keyed_uniform(seed: int, position: int) -> float:
    """A uniform in [0, 1) that depends on seed and output position only: SplitMix64 (Steele et al., 2014), 53 bits."""
    state = _splitmix64(_splitmix64(seed & _MASK64) ^ (position & _MASK64))
    return (state >> 11) / (1 << 53)


def _splitmix64(state: int) -> int:
    state = (state + 0x9E3779B97F4A7C15) & _MASK64
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK64
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK64
    return state ^ (state >> 31)


def check_sampling(sampling: Sampling, vocab_size: int) -> None:
    """Check the values of a request once, at the door.

    Raises:
        UsageError: naming the value and its range.
    """
    limits = [
        ("temperature", sampling.temperature, 0, math.inf),
        ("top_k", sampling.top_k, 0, math.inf),
        ("min_p", sampling.min_p, 0, 1),
        ("presence_penalty", sampling.presence_penalty, -math.inf, math.inf),
        ("frequency_penalty", sampling.frequency_penalty, -math.inf, math.inf),
    ]
    for name, value, low, high in limits:
        if not low <= value <= high or math.isnan(value) or math.isinf(value):
            raise UsageError(f"{name} is {value}: it must lie between {low} and {high}")
    if not 0 < sampling.top_p <= 1:
        raise UsageError(f"top_p is {sampling.top_p}: it must lie above 0 and at most at 1")
    if not 0 < sampling.repetition_penalty < math.inf:
        raise UsageError(f"repetition_penalty is {sampling.repetition_penalty}: it must lie above 0; 1 is off")
    for token_id, bias in sampling.logit_bias.items():
        if not 0 <= token_id < vocab_size:
            raise UsageError(f"logit_bias names token {token_id}: the vocabulary has {vocab_size}")
        if math.isnan(bias):
            raise UsageError(f"logit_bias of token {token_id} is not a number")


class Sampler:
    """Draws tokens for one answer.

    The draw at output position i depends on the row of logits, the tokens before i, the seed and i, and on nothing
    else: so for one seed the answer is the same tokens whatever was drafted. History is built from committed tokens;
    the tokens of the path above a node are passed with each draw.

    Order of the processors: repetition, presence and frequency penalties, logit bias, healing, temperature, top-k,
    top-p, min-p.
    Tokens tied with the last one that top-k or top-p keeps are kept too, so a support never depends on a sort's order.
    """

    def __init__(
        self, sampling: Sampling, seed: int, prompt_ids: Sequence[int], healing: Healing | None = None
    ) -> None:
        self._sampling = sampling
        self._healing = healing
        self._seed = seed
        self._prompt = frozenset(prompt_ids)
        self._output: list[int] = []
        self._penalized = (
            sampling.repetition_penalty != 1.0 or sampling.presence_penalty != 0.0 or sampling.frequency_penalty != 0.0
        )

    def commit(self, token_ids: Sequence[int]) -> None:
        """Take note of tokens that are now part of the answer."""
        self._output.extend(token_ids)
        if self._healing is not None:
            self._healing.commit(token_ids)

    def draw(self, row: torch.Tensor, path: Sequence[int] = ()) -> int:
        """Draw the token that follows the committed ones and `path`.

        Args:
            row: [vocabulary] the target's logits; not changed.
            path: the drafted tokens above this node.
        """
        if self._sampling.temperature == 0:
            # The first of several maxima: ties go to the lowest token id.
            logits = self._adjusted(row, path)
            fitting = self._fitting(logits, path)
            return int(logits.argmax() if fitting is None else fitting[logits[fitting].argmax()])
        token_ids, probs = self.processed(row, path)
        cumulative = probs.cumsum(0)
        uniform = keyed_uniform(self._seed, len(self._output) + len(path))
        index = int(torch.searchsorted(cumulative, uniform * cumulative[-1], right=True))
        return int(token_ids[min(index, len(token_ids) - 1)])

    def processed(self, row: torch.Tensor, path: Sequence[int] = ()) -> tuple[torch.Tensor, torch.Tensor]:
        """The target's processed distribution at a node.

        Args:
            row: [vocabulary] the target's logits; not changed.
            path: the drafted tokens above this node.

        Returns:
            The kept token ids [kept], ascending, and their probabilities [kept], float64.
        """
        logits = self._adjusted(row, path).double()
        token_ids = torch.arange(len(logits), device=logits.device)
        fitting = self._fitting(logits, path)
        if fitting is not None:
            token_ids, logits = fitting, logits[fitting]
        sampling = self._sampling
        if sampling.temperature == 0:
            best = token_ids[logits.argmax()][None]
            return best, torch.ones_like(best, dtype=torch.float64)
        logits = logits / sampling.temperature
        if 0 < sampling.top_k < len(logits):
            kept = logits >= logits.topk(sampling.top_k).values[-1]
            token_ids, logits = token_ids[kept], logits[kept]
        if sampling.top_p < 1:
            kept = logits >= _nucleus_floor(logits, sampling.top_p)
            token_ids, logits = token_ids[kept], logits[kept]
        if sampling.min_p > 0:
            kept = logits >= logits.max() + math.log(sampling.min_p)
            token_ids, logits = token_ids[kept], logits[kept]
        return token_ids, logits.softmax(0)

    def _fitting(self, logits: torch.Tensor, path: Sequence[int]) -> torch.Tensor | None:
        """[tokens] those that healing lets through, ascending; None lets all."""
        found = self._healing.fitting(path) if self._healing is not None else None
        if found is None:
            return None
        fitting = torch.from_numpy(found).to(logits.device)
        # Where the logit bias forbids them all, there is nothing to heal.
        return fitting if logits[fitting].max() > -math.inf else None

    def _adjusted(self, row: torch.Tensor, path: Sequence[int]) -> torch.Tensor:
        """Penalties and logit bias, on a copy where there are any."""
        sampling = self._sampling
        if not self._penalized and not sampling.logit_bias:
            return row
        row = row.float() if row.dtype != torch.float64 else row
        row = row.clone()
        if self._penalized:
            written = [*self._output, *path]
            seen = torch.tensor(sorted(self._prompt.union(written)), dtype=torch.long, device=row.device)
            values = row[seen]
            row[seen] = torch.where(
                values > 0, values / sampling.repetition_penalty, values * sampling.repetition_penalty
            )
            if written:
                tokens, counts = torch.unique(torch.tensor(written, device=row.device), return_counts=True)
                row[tokens] -= sampling.presence_penalty + sampling.frequency_penalty * counts.to(row.dtype)
        for token_id, bias in sampling.logit_bias.items():
            row[token_id] += bias
        return row


def _nucleus_floor(logits: torch.Tensor, top_p: float) -> torch.Tensor:
    """The lowest logit of the smallest set of most probable tokens that holds at least `top_p`."""
    total = logits.logsumexp(0)
    for size in (min(_TOP_P_SHORTLIST, len(logits)), len(logits)):
        ranked = logits.topk(size).values
        mass = (ranked - total).exp().cumsum(0)
        index = int(torch.searchsorted(mass, top_p))
        if index < size:
            return ranked[index]
    return ranked[-1]
