"""All drafters, by name, and a drafter among tokens with other numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from specedit.draft.base import Drafter
from specedit.draft.merge import PARTS, EditDrafter
from specedit.draft.prompt_lookup import PromptLookup
from specedit.draft.shipped import table_for
from specedit.draft.tree import DraftTree
from specedit.draft.vocabulary import Vocabulary
from specedit.edit.hints import resume_offsets_of
from specedit.engine.api import Hints


def all_drafters(tokenizer, vocab_size: int) -> Mapping[str, Callable[[], Drafter]]:
    """How to make each drafter for a model: the merged one in three ways, each of its parts alone, prompt lookup."""
    vocabulary = Vocabulary.of(tokenizer, vocab_size, tokenizer.special_ids)
    table = table_for(tokenizer, vocab_size)
    edit = partial(EditDrafter, vocabulary, table=table)
    parts = {part: partial(edit, parts=(part,)) for part in PARTS}
    return {
        "edit": edit,
        "edit, chains": partial(edit, wide=False),
        "edit, no table": partial(edit, table=None),
        **parts,
        "prompt lookup": lambda: PromptLookup(vocab_size, tokenizer.special_ids, min_match=1),
    }


def hints_around(prediction: str, **changes) -> Hints:
    """Hints as a request for an edit carries them."""
    hints = Hints(resume_offsets=resume_offsets_of(prediction), opening="```python\n", closing="```")
    return replace(hints, **changes)


class Renumbered:
    """A drafter whose tokens go by other numbers outside: those of `token_ids` by their place there.

    A drafted token that is not among them gets a number of its own beyond them, so a tree keeps its shape.
    """

    def __init__(self, drafter: Drafter, token_ids: Sequence[int]) -> None:
        self.name = drafter.name
        self._drafter = drafter
        self._ids = list(token_ids)
        self._numbers = {token_id: number for number, token_id in enumerate(token_ids)}

    def begin(self, prompt, prediction, hints) -> None:
        self._drafter.begin(self._known(prompt), self._known(prediction), hints)

    def commit(self, numbers) -> None:
        self._drafter.commit(self._known(numbers))

    def propose(self, budget: int) -> DraftTree:
        tree = self._drafter.propose(budget)
        numbers = dict(self._numbers)
        drafted = [numbers.setdefault(token_id, len(numbers)) for token_id in tree.token_ids.tolist()]
        return replace(tree, token_ids=np.array(drafted, dtype=np.int64))

    def _known(self, numbers) -> list[int]:
        return [self._ids[number] for number in numbers]
