"""DraftTree: the proposal that the target model verifies in one forward.

The row rule, stated once and relied on everywhere:

* A step's forward has `N + 1` rows. Row 0 is the last committed token, row `i + 1` is node `i`.
* Logits row `r` predicts the children of `r`; the children of row 0 are the nodes whose parent is -1.
* `parents[i] < i`, and siblings carry distinct tokens.
* With `L` rows in the KV cache (all committed tokens but the last), row 0 has position `L` and a node of depth `d` has
  position `L + d`; nodes below the root have depth 1.
* A row sees the rows in the cache, itself and its ancestors, nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class DraftTree:
    """A tree of drafted tokens as flat arrays; a chain is a tree of width 1.

    Attributes:
        token_ids: [N] the drafted tokens.
        parents: [N] each node's parent node, -1 for a child of the last committed token.
        log_probs: [N] natural log of the drafter's belief in the node given its parent.
        origins: [N] names of the drafters that the nodes are counted for; empty where all are the proposer's own.

    Example: `DraftTree.of([7, 8, 9], parents=[-1, 0, 0])` drafts 7, then either 8 or 9.
    """

    token_ids: IntArray  # [N]
    parents: IntArray  # [N]
    log_probs: FloatArray  # [N]
    origins: tuple[str, ...] = ()  # [N] or empty

    @classmethod
    def of(
        cls,
        token_ids: Sequence[int],
        parents: Sequence[int],
        log_probs: Sequence[float] | None = None,
        origins: Sequence[str] = (),
    ) -> DraftTree:
        """A tree from plain sequences; without `log_probs` every node is taken as certain."""
        return cls(
            np.asarray(token_ids, dtype=np.int64),
            np.asarray(parents, dtype=np.int64),
            np.zeros(len(token_ids)) if log_probs is None else np.asarray(log_probs, dtype=np.float64),
            tuple(origins),
        )

    @classmethod
    def chain(cls, token_ids: Sequence[int] | npt.NDArray[np.integer[Any]]) -> DraftTree:
        """A tree of width 1 over `token_ids`; no tokens give the empty tree, a plain one-token step."""
        size = len(token_ids)
        return cls(np.asarray(token_ids, dtype=np.int64), np.arange(-1, size - 1), np.zeros(size))

    def __len__(self) -> int:
        return len(self.token_ids)

    @cached_property
    def depths(self) -> IntArray:
        """[N] how many tokens after the last committed one a node stands; children of the root have depth 1."""
        depths = np.ones(len(self), dtype=np.int64)
        for node, parent in enumerate(self.parents.tolist()):
            if parent >= 0:
                depths[node] = depths[parent] + 1
        return depths

    @cached_property
    def path_probs(self) -> FloatArray:
        """[N] the drafter's belief that a node and all its ancestors are right."""
        path = self.log_probs.copy()
        for node, parent in enumerate(self.parents.tolist()):
            if parent >= 0:
                path[node] += path[parent]
        return np.exp(path)

    @cached_property
    def mask(self) -> BoolArray:
        """[N + 1, N + 1] the tree attention mask: row r may see column c when c is r or an ancestor of r."""
        mask = np.eye(len(self) + 1, dtype=np.bool_)
        for node, parent in enumerate(self.parents.tolist()):
            mask[node + 1] |= mask[parent + 1]
        return mask

    @cached_property
    def _children(self) -> dict[tuple[int, int], int]:
        pairs = zip(self.parents.tolist(), self.token_ids.tolist(), strict=True)
        return {pair: node for node, pair in enumerate(pairs)}

    def child(self, parent: int, token_id: int) -> int | None:
        """The node under `parent` (-1 for the root) that carries `token_id`, or None."""
        return self._children.get((parent, token_id))

    def children(self, parent: int) -> list[int]:
        """The nodes under `parent` (-1 for the root), in order."""
        return np.flatnonzero(self.parents == parent).tolist()

    def positions(self, cached_rows: int) -> IntArray:
        """[N + 1] position ids of the rows, when `cached_rows` committed tokens stand in the KV cache."""
        return cached_rows + np.concatenate(([0], self.depths))

    def below(self, token_ids: Sequence[int]) -> DraftTree:
        """This tree behind a chain of `token_ids`, so that what is committed can be read in the same forward."""
        shift = len(token_ids)
        if not shift:
            return self
        return DraftTree(
            np.concatenate((np.asarray(token_ids, dtype=np.int64), self.token_ids)),
            np.concatenate((np.arange(-1, shift - 1), self.parents + shift)),
            np.concatenate((np.zeros(shift), self.log_probs)),
        )

    def prefix(self, budget: int) -> DraftTree:
        """The first `budget` nodes; parents come first, so that is a tree too."""
        return DraftTree(self.token_ids[:budget], self.parents[:budget], self.log_probs[:budget], self.origins[:budget])

    def check(self, vocab_size: int, budget: int) -> None:
        """Assert the row rule and the budget.

        Raises:
            ValueError: naming the first thing that is wrong.
        """
        size = len(self)
        if self.parents.shape != (size,) or self.log_probs.shape != (size,):
            raise ValueError(
                f"token_ids, parents and log_probs differ in length: {size}, {len(self.parents)}, {len(self.log_probs)}"
            )
        if len(self.origins) not in (0, size):
            raise ValueError(f"{len(self.origins)} origins for {size} nodes")
        if size > budget:
            raise ValueError(f"{size} nodes exceed the draft budget of {budget}")
        if size and not (self.token_ids.min() >= 0 and self.token_ids.max() < vocab_size):
            raise ValueError(f"a drafted token lies outside the vocabulary of {vocab_size}")
        if size and not ((self.parents >= -1) & (self.parents < np.arange(size))).all():
            raise ValueError("a node stands before its parent")
        if len(self._children) != size:
            raise ValueError("two siblings carry the same token")
