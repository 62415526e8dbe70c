"""PromptLookup: draft what followed the longest earlier occurrence of the text's end (prompt lookup decoding)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from specedit.draft.base import NO_HINTS
from specedit.draft.suffix_index import BOUNDARY, MAX_MATCH, SuffixIndex, Tokens
from specedit.draft.tree import DraftTree
from specedit.engine.api import Hints

#: Tokens of the answer that find room without the index growing.
_ROOM = 8192


class PromptLookup:
    """Drafts one long chain: what follows the longest suffix match in prompt, prediction and output.

    Of equally long matches the latest wins, so the prediction goes before the prompt and the output before both. A
    draft never runs past the end of the text that it copies from and never contains a special token.
    """

    name = "lookup"

    def __init__(self, vocab_size: int, special_ids: Collection[int], *, min_match: int = 2) -> None:
        """Make a drafter for one answer at a time.

        Args:
            vocab_size: the target's; token ids are below it.
            special_ids: tokens that are never drafted.
            min_match: shorter matches are no reason to draft.
        """
        self._min_match = min_match
        self._barred = np.zeros(vocab_size, dtype=np.bool_)
        self._barred[list(special_ids)] = True
        self._index = SuffixIndex()
        self._tail: list[int] = []

    def begin(self, prompt_ids: Sequence[int], prediction_ids: Sequence[int], hints: Hints = NO_HINTS) -> None:
        """Index the prompt and the prediction; hints are of no use here."""
        self._index = SuffixIndex(len(prompt_ids) + len(prediction_ids) + _ROOM)
        for text in (prompt_ids, prediction_ids):
            self._index.extend(text)
            self._index.extend([BOUNDARY])
        self._tail = list(prompt_ids)

    def commit(self, token_ids: Sequence[int]) -> None:
        """Index the tokens that the target emitted."""
        self._index.extend(token_ids)
        self._tail.extend(token_ids)

    def propose(self, budget: int) -> DraftTree:
        """A chain of at most `budget` tokens."""
        match = self._index.longest_match(self._tail[-MAX_MATCH:], self._barred) if budget > 0 else None
        if match is None or match.length < self._min_match:
            return DraftTree.chain([])
        return DraftTree.chain(self._draftable(self._index.following(match.end, budget)))

    def _draftable(self, run: Tokens) -> Tokens:
        barred = np.flatnonzero(self._barred[run])
        return run[: barred[0]] if len(barred) else run
