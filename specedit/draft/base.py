"""The Drafter protocol: whatever proposes tokens for the target to verify."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from specedit.draft.tree import DraftTree
from specedit.engine.api import Hints

NO_HINTS = Hints()


class Drafter(Protocol):
    """Proposes draft trees for one answer. It sees committed tokens only, never a rejected draft.

    Attributes:
        name: under which its drafted and accepted tokens are counted.
    """

    name: str

    def begin(self, prompt_ids: Sequence[int], prediction_ids: Sequence[int], hints: Hints = NO_HINTS) -> None:
        """Start an answer.

        Args:
            prompt_ids: all tokens before the answer.
            prediction_ids: those that the answer is expected to follow; may be empty.
            hints: what else the caller guesses about the answer.
        """
        ...

    def commit(self, token_ids: Sequence[int]) -> None:
        """Take note of tokens that the target has emitted, in order."""
        ...

    def propose(self, budget: int) -> DraftTree:
        """At most `budget` nodes that may follow the committed tokens; an empty tree when there is no idea.

        Nodes stand in the order of falling belief, so that a prefix of the tree is the best smaller tree.
        """
        ...
