"""The Drafter protocol: whatever proposes tokens for the target to verify."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from specedit.draft.tree import DraftTree


class Drafter(Protocol):
    """Proposes draft trees for one answer. It sees committed tokens only, never a rejected draft.

    Attributes:
        name: under which its drafted and accepted tokens are counted.
    """

    name: str

    def begin(self, prompt_ids: Sequence[int], prediction_ids: Sequence[int]) -> None:
        """Start an answer: the prompt's tokens and those that the answer is expected to follow (may be empty)."""
        ...

    def commit(self, token_ids: Sequence[int]) -> None:
        """Take note of tokens that the target has emitted, in order."""
        ...

    def propose(self, budget: int) -> DraftTree:
        """At most `budget` nodes that may follow the committed tokens; an empty tree when there is no idea."""
        ...
