"""DecodeStats: what one answer cost, counted as it happens. Counters are stored, rates are derived."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from specedit.draft.tree import DraftTree
from specedit.engine.api import DrafterUsage, Usage
from specedit.engine.depths import DEPTH_BUCKETS, depth_bucket


@dataclass(frozen=True, slots=True)
class Step:
    """One decode step.

    Attributes:
        drafter: whose nodes those are that name no origin.
        tree: what was verified.
        path: the accepted nodes.
        token_ids: what was emitted: the accepted tokens, then the next one.
        proposed: nodes that the drafter proposed.
        draft_seconds: wall clock of drafting.
        forward_seconds: wall clock of the forward.
    """

    drafter: str
    tree: DraftTree
    path: Sequence[int]
    token_ids: Sequence[int]
    proposed: int = 0
    draft_seconds: float = 0.0
    forward_seconds: float = 0.0

    @property
    def accepted(self) -> Sequence[int]:
        """The accepted nodes that were emitted before a stop."""
        return self.path[: len(self.token_ids)]

    @property
    def origins(self) -> Sequence[str]:
        """[N] the drafter of each node."""
        return self.tree.origins or (self.drafter,) * len(self.tree)


@dataclass(slots=True)
class DecodeStats:
    """Counters of one answer.

    Attributes:
        prompt_tokens: tokens of the prompt.
        cached_tokens: how many of them stood in the cache beforehand.
        output_tokens: tokens emitted, end-of-text counted.
        hidden_tokens: those of them that end before the answer begins; `usage` leaves them out.
        forwards: target forwards of decode steps, plain ones too; prefill excluded.
        prefill_forwards: target forwards that only read the prompt.
        drafted: tokens drafted, by drafter.
        accepted: drafted tokens that were emitted, by drafter; the next token is not counted.
        drafted_at_depth: nodes drafted, by depth in the tree.
        accepted_at_depth: nodes accepted, by depth in the tree.
        largest_draft: the most nodes verified in one step.
        prefill_seconds: wall clock until the prompt stood in the cache.
        decode_seconds: wall clock of the decode steps.
        draft_seconds: the part of it that went into drafting.
        forward_seconds: the part of it that went into forwards.
        last_step: the step that was counted last.
    """

    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    hidden_tokens: int = 0
    forwards: int = 0
    prefill_forwards: int = 0
    drafted: Counter[str] = field(default_factory=Counter)
    accepted: Counter[str] = field(default_factory=Counter)
    drafted_at_depth: Counter[int] = field(default_factory=Counter)
    accepted_at_depth: Counter[int] = field(default_factory=Counter)
    largest_draft: int = 0
    prefill_seconds: float = 0.0
    decode_seconds: float = 0.0
    draft_seconds: float = 0.0
    forward_seconds: float = 0.0
    last_step: Step | None = None

    def count_step(self, step: Step) -> None:
        """Count one step."""
        self.last_step = step
        self.forwards += 1
        self.output_tokens += len(step.token_ids)
        self.draft_seconds += step.draft_seconds
        self.forward_seconds += step.forward_seconds
        self.largest_draft = max(self.largest_draft, len(step.tree))
        self.drafted.update(step.origins)
        self.accepted.update(step.origins[node] for node in step.accepted)
        self.drafted_at_depth.update(step.tree.depths.tolist())
        self.accepted_at_depth.update(range(1, len(step.accepted) + 1))

    @property
    def mean_accepted_length(self) -> float:
        """Emitted tokens a decode forward; the next token included, prefill excluded."""
        return self.output_tokens / self.forwards if self.forwards else 0.0

    def acceptance_rate(self, depth: int) -> float:
        """Accepted over drafted nodes at this depth."""
        drafted = self.drafted_at_depth[depth]
        return self.accepted_at_depth[depth] / drafted if drafted else 0.0

    def usage(self) -> Usage:
        """The counters as the engine protocol reports them."""
        return Usage(
            prompt_tokens=self.prompt_tokens,
            cached_tokens=self.cached_tokens,
            output_tokens=self.output_tokens - self.hidden_tokens,
            forwards=self.forwards,
            prefill_forwards=self.prefill_forwards,
            drafters={name: DrafterUsage(self.drafted[name], self.accepted[name]) for name in self.drafted},
            depths=self._by_depth(),
            largest_draft=self.largest_draft,
            prefill_seconds=self.prefill_seconds,
            decode_seconds=self.decode_seconds,
            draft_seconds=self.draft_seconds,
            forward_seconds=self.forward_seconds,
        )

    def _by_depth(self) -> dict[str, DrafterUsage]:
        sums = [[0, 0] for _ in DEPTH_BUCKETS]
        for depth, count in self.drafted_at_depth.items():
            bucket = sums[depth_bucket(depth)]
            bucket[0] += count
            bucket[1] += self.accepted_at_depth[depth]
        return {name: DrafterUsage(*both) for name, both in zip(DEPTH_BUCKETS, sums, strict=True) if both[0]}
