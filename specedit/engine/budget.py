"""DraftBudget: how many drafted nodes are worth verifying, from what forwards cost and what drafts have been worth.

A step that verifies `m` nodes gives `1 + (sum of their path probabilities)` tokens and takes the seconds of a forward
over `1 + m` rows, plus those of drafting. The best `m` is the one with the most tokens a second; where drafting does
not pay it is 0. What costs time for each token, however it was found, changes nothing about that choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Protocol

import numpy as np

from specedit.draft.tree import DraftTree, FloatArray
from specedit.engine.costs import ForwardCosts
from specedit.engine.depths import DEPTH_BUCKETS, depth_bucket

#: What a drafter's beliefs are multiplied with before it has shown anything, and how many tokens outweigh that. So the
#: first draft of all is short, and a part of which nothing ever comes true keeps little.
_PRIOR_RATIO = 0.8
_PRIOR_TOKENS = 1.0
#: Expected tokens that are remembered about depth 1; deeper buckets are wider and remember as many times more.
_MEMORY_TOKENS = 16.0
#: Always asked for: nodes that are not verified still show, once the target has spoken, whether they were right.
_LEAST_ROOM = 8
_DRAFT_SECONDS_RATE = 0.2


class Allowance(Protocol):
    """What the loop asks how much to draft in one answer."""

    def room(self, limit: int) -> int:
        """The most nodes to ask a drafter for, at most `limit`."""
        ...

    def trim(self, tree: DraftTree) -> DraftTree:
        """The part of a proposal that is worth verifying."""
        ...

    def observe(
        self, token_ids: Sequence[int], *, forward_seconds: float, draft_seconds: float, read_rows: int = 0
    ) -> None:
        """Take note of the tokens that the step emitted and of what it took; called once after each `trim`.

        `read_rows` of the prompt were read in the same forward.
        """
        ...


class Budget(Protocol):
    """Gives each answer its allowance; answers may be interleaved."""

    def begin(self) -> Allowance:
        """Start an answer."""
        ...


@dataclass(frozen=True, slots=True)
class FixedBudget:
    """Always verifies all of a proposal of at most `nodes` nodes; 0 decodes plainly."""

    nodes: int

    def begin(self) -> FixedBudget:
        """The same for every answer."""
        return self

    def room(self, limit: int) -> int:
        """`nodes`, or `limit` where that is less."""
        return min(self.nodes, limit)

    def trim(self, tree: DraftTree) -> DraftTree:
        """The whole tree."""
        return tree

    def observe(
        self, token_ids: Sequence[int], *, forward_seconds: float, draft_seconds: float, read_rows: int = 0
    ) -> None:
        """Nothing to learn."""


class DraftBudget:
    """Verifies as many nodes as give the most tokens a second.

    It learns while it runs, over all answers of an engine: what forwards take, and how often the drafters' parts are
    right where they say so, by depth. Both are learned from unverified nodes too, so nothing has to be tried at a cost,
    and a part that was not trusted is trusted again as soon as it would have been right.

    Attributes:
        nodes: the most nodes verified in one step.
        trust: what drafters' parts have been worth.
        seconds: [nodes + 1] of a step that verifies 0, 1, ... nodes.
    """

    def __init__(self, costs: ForwardCosts, nodes: int) -> None:
        """Make a budget.

        Args:
            costs: seconds of a forward by its rows.
            nodes: the most nodes verified in one step.
        """
        self.nodes = nodes
        self.trust = Trust()
        self._costs = costs
        self._draft_seconds = 0.0
        self.seconds = self._step_seconds()

    def begin(self) -> LearnedAllowance:
        """Start an answer, with all that was learned so far."""
        return LearnedAllowance(self)

    def observe(self, rows: int, *, forward_seconds: float, draft_seconds: float) -> None:
        """Learn what a step with a forward over so many rows took."""
        self._costs.observe(rows, forward_seconds)
        self._draft_seconds += _DRAFT_SECONDS_RATE * (draft_seconds - self._draft_seconds)
        self.seconds = self._step_seconds()

    def _step_seconds(self) -> FloatArray:
        return self._costs.seconds(self.nodes + 1) + self._draft_seconds


class LearnedAllowance:
    """The nodes of one answer that pay by what `DraftBudget` has learned, from this answer too."""

    def __init__(self, budget: DraftBudget) -> None:
        self._budget = budget
        self._proposal = DraftTree.chain([])
        self._verified = 0
        self._shadow: _Shadow | None = None

    def room(self, limit: int) -> int:
        """The most nodes that could pay if the best trusted part were certain; never less than a few, to learn from."""
        most = min(self._budget.nodes, limit)
        if most <= 0:
            return 0
        worth = best_size(self._budget.trust.most_hopeful(most), self._budget.seconds[: most + 1])
        return min(most, max(worth, _LEAST_ROOM))

    def trim(self, tree: DraftTree) -> DraftTree:
        """The nodes that pay, the most probable first, as far as each part can be trusted."""
        probs = np.array(self._budget.trust.path_probs(tree))
        order = np.argsort(-probs, kind="stable")
        self._verified = best_size(probs[order], self._budget.seconds[: len(tree) + 1])
        self._proposal = tree
        return _subtree(tree, order[: self._verified])

    def observe(
        self, token_ids: Sequence[int], *, forward_seconds: float, draft_seconds: float, read_rows: int = 0
    ) -> None:
        """Learn from the step: which nodes, verified or not, the emitted tokens prove right or wrong."""
        rows = read_rows + 1 + self._verified
        self._budget.observe(rows, forward_seconds=forward_seconds, draft_seconds=draft_seconds)
        trust = self._budget.trust
        newest = trust.follow(_Shadow.of(self._proposal), token_ids)
        older = trust.follow(self._shadow, token_ids) if self._shadow else None
        self._shadow = older or newest


def best_size(path_probs: FloatArray, seconds: FloatArray) -> int:
    """How many of the first nodes to verify for the most tokens a second; the fewest of equally good numbers.

    Args:
        path_probs: [N] how probable it is that a node is accepted, falling.
        seconds: [N + 1] of a step that verifies 0, 1, ... N nodes.

    Example: two nodes of 0.9 and 0.2 at 10, 12 and 15 ms give 1, 1.9 and 2.1 tokens: 100, 158 and 140 a second, so 1.
    """
    tokens = 1 + np.concatenate(([0.0], np.cumsum(path_probs)))
    return int(np.argmax(tokens / seconds))


class Trust:
    """How often the nodes of each drafter's part were right, against how often it said they would be.

    A node is looked at where its parent was right, so its own belief given the parent is what is judged. Where a depth
    has shown little, the depth before it speaks for it.
    """

    def __init__(self) -> None:
        self._records: dict[str, list[_Record]] = {}

    def ratios(self, origin: str) -> list[float]:
        """For each depth bucket: what the beliefs of `origin` are to be multiplied with."""
        records = self._records.get(origin)
        if records is None:
            return [_PRIOR_RATIO] * len(DEPTH_BUCKETS)
        return list(accumulate(records, lambda ratio, record: record.ratio(ratio), initial=_PRIOR_RATIO))[1:]

    def path_probs(self, tree: DraftTree) -> list[float]:
        """[N] the calibrated belief that a node and its ancestors are right; never above the parent's."""
        origins = _origins(tree)
        ratios = {origin: self.ratios(origin) for origin in set(origins)}
        probs: list[float] = []
        depths: list[int] = []
        beliefs = np.exp(tree.log_probs).tolist()
        for parent, belief, origin in zip(tree.parents.tolist(), beliefs, origins, strict=True):
            depth = depths[parent] + 1 if parent >= 0 else 1
            above = probs[parent] if parent >= 0 else 1.0
            probs.append(above * min(1.0, belief * ratios[origin][depth_bucket(depth)]))
            depths.append(depth)
        return probs

    def most_hopeful(self, nodes: int) -> FloatArray:
        """[nodes] the path probabilities of a chain that is certain of itself, by the most trusted part."""
        known = [self.ratios(origin) for origin in self._records] or [self.ratios("")]
        best = [min(1.0, max(ratios)) for ratios in zip(*known, strict=True)]
        return np.cumprod([best[depth_bucket(depth)] for depth in range(1, nodes + 1)])

    def follow(self, shadow: _Shadow, token_ids: Sequence[int]) -> _Shadow | None:
        """Judge the nodes of a proposal by the tokens that came; what of it may still come true, or None."""
        node, depth = shadow.node, shadow.depth
        for token_id in token_ids:
            children = shadow.children.get(node)
            if children is None:
                return None
            depth += 1
            right = next((child for child in children if shadow.tokens[child] == token_id), None)
            self._judge(shadow, children, right, depth_bucket(depth))
            if right is None:
                return None
            node = right
        return replace(shadow, node=node, depth=depth) if node in shadow.children else None

    def _judge(self, shadow: _Shadow, children: list[int], right: int | None, bucket: int) -> None:
        """Record what each part expected of one position, and which of them was right."""
        expected: dict[str, float] = {}
        for child in children:
            origin = shadow.origins[child]
            expected[origin] = expected.get(origin, 0.0) + shadow.beliefs[child]
        for origin, mass in expected.items():
            if origin not in self._records:
                self._records[origin] = [_Record() for _ in DEPTH_BUCKETS]
            hit = right is not None and shadow.origins[right] == origin
            self._records[origin][bucket].add(min(mass, 1.0), hit, memory=_MEMORY_TOKENS * (1 << bucket))


@dataclass(slots=True)
class _Record:
    accepted: float = 0.0
    expected: float = 0.0

    def ratio(self, prior: float) -> float:
        return (self.accepted + _PRIOR_TOKENS * prior) / (self.expected + _PRIOR_TOKENS)

    def add(self, mass: float, hit: bool, *, memory: float) -> None:
        """Count a position of which a part expected to be right with probability `mass`; the oldest fades."""
        kept = 1 - mass / memory
        self.accepted = kept * self.accepted + hit
        self.expected = kept * self.expected + mass


@dataclass(frozen=True, slots=True)
class _Shadow:
    """A proposal, verified or not, and how far the emitted tokens have followed it."""

    tokens: list[int]
    beliefs: list[float]
    origins: Sequence[str]
    children: dict[int, list[int]]
    node: int = -1
    depth: int = 0

    @classmethod
    def of(cls, tree: DraftTree) -> _Shadow:
        children: dict[int, list[int]] = {}
        for node, parent in enumerate(tree.parents.tolist()):
            children.setdefault(parent, []).append(node)
        return cls(tree.token_ids.tolist(), np.exp(tree.log_probs).tolist(), _origins(tree), children)


def _origins(tree: DraftTree) -> Sequence[str]:
    return tree.origins or ("",) * len(tree)


def _subtree(tree: DraftTree, nodes: np.ndarray[tuple[int], np.dtype[np.intp]]) -> DraftTree:
    """The tree of `nodes`, in that order; each one's parent comes before it."""
    place = np.full(len(tree) + 1, -1, dtype=np.int64)
    place[nodes] = np.arange(len(nodes))
    origins = tuple(tree.origins[node] for node in nodes.tolist()) if tree.origins else ()
    return DraftTree(tree.token_ids[nodes], place[tree.parents[nodes]], tree.log_probs[nodes], origins)
