"""Edits in tiny tokens, and what is drafted in the middle of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from specedit.draft.base import NO_HINTS
from specedit.draft.merge import PARTS, EditDrafter
from specedit.draft.tree import DraftTree
from specedit.engine.api import Hints
from tests.tiny_codec import TinyCodec

FENCED = Hints(opening="```python\n", closing="```")


class Edit:
    """An edit under way: a prompt that shows `before`, and `after` as far as it is written.

    Attributes:
        codec: the tokens.
        prompt, prediction, answer: in tokens.
        hints: those of the request.
    """

    def __init__(self, before: str, after: str, hints: Hints = NO_HINTS) -> None:
        self.hints = hints
        shown = f"Change it.\n```python\n{before}```\n"
        self.codec = TinyCodec([shown, after, *[new for _, new in hints.substitutions]])
        self.vocabulary = self.codec.vocabulary()
        self.prompt = [self.codec.special_id, *self.codec.encode(shown), self.codec.special_id]
        self.prediction = self.codec.encode(before)
        self.answer = self.codec.encode(f"{hints.opening}{after}{hints.closing}")

    def drafter(self, parts: Sequence[str] = PARTS, *, wide: bool = True) -> EditDrafter:
        """A drafter that has begun this answer."""
        drafter = EditDrafter(self.vocabulary, parts=parts, wide=wide)
        drafter.begin(self.prompt, self.prediction, self.hints)
        return drafter

    def accepted(self, tree: DraftTree, done: int) -> int:
        """How many tokens of the answer a tree has, from token `done` on."""
        node, size = -1, 0
        while done + size < len(self.answer):
            child = tree.child(node, self.answer[done + size])
            if child is None:
                break
            node, size = child, size + 1
        return size

    def steps(self, budget: int = 64, parts: Sequence[str] = PARTS, *, wide: bool = True) -> list[DraftTree]:
        """The trees of all forwards that the answer takes; each is checked."""
        drafter = self.drafter(parts, wide=wide)
        trees, done = [], 0
        while done < len(self.answer):
            room = min(budget, len(self.answer) - done - 1)
            trees.append(drafter.propose(room))
            trees[-1].check(self.codec.size, room)
            size = self.accepted(trees[-1], done) + 1
            drafter.commit(self.answer[done : done + size])
            done += size
        return trees


def drafted(before: str, written: str, coming: str, hints: Hints = NO_HINTS, budget: int = 64, **options: Any) -> str:
    """How much of `coming` is drafted once `written` has been: from its start, as text."""
    edit = Edit(before, written + coming, hints)
    drafter = edit.drafter(**options)
    done = len(edit.codec.encode(hints.opening + written)) if written else 0
    for token in edit.answer[:done]:
        drafter.commit([token])
    tree = drafter.propose(budget)
    tree.check(edit.codec.size, budget)
    return edit.codec.decode(edit.answer[done : done + edit.accepted(tree, done)])
