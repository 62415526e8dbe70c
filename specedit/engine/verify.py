"""Verify: which drafted tokens the target keeps, and the next token it adds. Exact for any draft."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from specedit.draft.tree import DraftTree


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one step emits: the accepted path of the tree, then exactly one next token.

    Attributes:
        path: nodes from the root down, possibly none; ascending, as parents stand before their children.
        next_token: the recovered token after a rejection, the bonus token after a fully accepted path.
    """

    path: tuple[int, ...]
    next_token: int


def sample_and_match(tree: DraftTree, draw: Callable[[int, Sequence[int]], int]) -> Verdict:
    """Draw each next token from the target itself; where a child carries it, descend.

    That is rejection sampling with one-hot drafts: a child is accepted with the target's probability of its token, else
    the token comes from the target's distribution without those of the children, renormalized (Leviathan et al., 2023,
    section 2.3, with a one-hot draft distribution; SpecInfer, Miao et al., 2024, section 4.3, for trees). It holds for
    any tree, however it was made, and the tokens are those that drawing without a tree would give.

    Args:
        tree: the draft.
        draw: (row, tokens of the path above it) -> token from the target's processed distribution at that row.
    """
    path: list[int] = []
    tokens: list[int] = []
    node = -1
    while True:
        token = draw(node + 1, tokens)
        child = tree.child(node, token)
        if child is None:
            return Verdict(tuple(path), token)
        path.append(child)
        tokens.append(token)
        node = child


class Chooser(Protocol):
    """The randomness of residual rejection sampling: seeded in the engine, enumerated in tests."""

    def accept(self, probability: float) -> bool:
        """True with this probability."""
        ...

    def pick(self, probs: torch.Tensor) -> int:
        """An index of `probs` [vocabulary], drawn in proportion to it."""
        ...


def residual_rejection(
    tree: DraftTree,
    target_probs: torch.Tensor,  # [N + 1, vocabulary]
    draft_probs: torch.Tensor,  # [N + 1, vocabulary]
    chooser: Chooser,
) -> Verdict:
    """Classical rejection sampling for stochastic drafters, over a chain or a tree.

    Row r of `draft_probs` is the distribution that the children of row r were drawn from, one after the other without
    replacement. A child is accepted with min(1, target / draft); after a rejection the target becomes the residual
    distribution, normalize(max(target - draft, 0)), and the draft distribution loses the rejected token (Leviathan et
    al., 2023, algorithm 1, for a chain; recursive rejection sampling without replacement, Jeon et al., 2024, section
    3.2, for siblings). The emitted tokens are distributed as the target's; for one seed they depend on the draft.
    """
    assert target_probs.shape == draft_probs.shape == (len(tree) + 1, target_probs.shape[1])
    path: list[int] = []
    node = -1
    while True:
        target, draft = target_probs[node + 1], draft_probs[node + 1]
        accepted = None
        for child in tree.children(node):
            token = int(tree.token_ids[child])
            if chooser.accept(min(1.0, float(target[token] / draft[token]))):
                accepted = child
                break
            target = _normalized((target - draft).clamp(min=0))
            draft = _without(draft, token)
        if accepted is None:
            return Verdict(tuple(path), chooser.pick(target))
        path.append(accepted)
        node = accepted


def _without(probs: torch.Tensor, token: int) -> torch.Tensor:
    rest = probs.clone()
    rest[token] = 0
    return _normalized(rest)


def _normalized(weights: torch.Tensor) -> torch.Tensor:
    total = weights.sum()
    # Nothing is left where a draft distribution was one-hot: then no further sibling can have been drawn from it.
    return weights / total if total > 0 else weights
