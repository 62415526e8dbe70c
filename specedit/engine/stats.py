"""DecodeStats: what one answer cost, counted as it happens. Counters are stored, rates are derived."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from specedit.draft.tree import DraftTree
from specedit.engine.api import DrafterUsage, Usage


@dataclass(slots=True)
class DecodeStats:
    """Counters of one answer.

    Attributes:
        prompt_tokens: tokens of the prompt.
        cached_tokens: how many of them stood in the cache beforehand.
        output_tokens: tokens emitted, end-of-text counted.
        forwards: target forwards of decode steps, plain ones too; prefill excluded.
        prefill_forwards: target forwards that only read the prompt.
        drafted: tokens drafted, by drafter.
        accepted: drafted tokens that were emitted, by drafter; the next token is not counted.
        drafted_at_depth: nodes drafted, by depth in the tree.
        accepted_at_depth: nodes accepted, by depth in the tree.
        prefill_seconds: wall clock until the prompt stood in the cache.
        decode_seconds: wall clock of the decode steps.
    """

    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    forwards: int = 0
    prefill_forwards: int = 0
    drafted: Counter[str] = field(default_factory=Counter)
    accepted: Counter[str] = field(default_factory=Counter)
    drafted_at_depth: Counter[int] = field(default_factory=Counter)
    accepted_at_depth: Counter[int] = field(default_factory=Counter)
    prefill_seconds: float = 0.0
    decode_seconds: float = 0.0

    def count_step(self, tree: DraftTree, path: Sequence[int], emitted: int, drafter: str) -> None:
        """Count one step: its tree, the accepted path, and how many tokens were emitted before a stop."""
        accepted = path[:emitted]
        self.forwards += 1
        self.output_tokens += emitted
        origins = tree.origins or (drafter,) * len(tree)
        self.drafted.update(origins)
        self.accepted.update(origins[node] for node in accepted)
        self.drafted_at_depth.update(tree.depths.tolist())
        self.accepted_at_depth.update(range(1, len(accepted) + 1))

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
            output_tokens=self.output_tokens,
            forwards=self.forwards,
            prefill_forwards=self.prefill_forwards,
            drafters={name: DrafterUsage(self.drafted[name], self.accepted[name]) for name in self.drafted},
            prefill_seconds=self.prefill_seconds,
            decode_seconds=self.decode_seconds,
        )
