"""EditDrafter: cursor, repeated changes, lookup and n-grams merged into one draft tree under one budget."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

import numpy as np

from specedit.draft.answer import Answer
from specedit.draft.base import NO_HINTS
from specedit.draft.beliefs import Beliefs, gather
from specedit.draft.edit_cursor import LENGTH
from specedit.draft.expand import draft
from specedit.draft.ngrams import Table, empty_table
from specedit.draft.priors import Priors, load_priors
from specedit.draft.rehearsal import Rehearsal
from specedit.draft.replay import Replay
from specedit.draft.suffix_index import Tokens
from specedit.draft.tree import DraftTree
from specedit.draft.vocabulary import Vocabulary
from specedit.engine.api import Hints

Part = Literal["cursor", "replay", "lookup", "ngram"]
PARTS: tuple[Part, ...] = ("cursor", "replay", "lookup", "ngram")
PART_BITS = {part: 1 << bit for bit, part in enumerate(PARTS)}


class EditDrafter:
    """Drafts an answer that edits its prediction.

    Attributes:
        name: under which its trees are counted where they do not name their parts.
        memory_bytes: what index and texts of the answer under way take.
        answer: the one under way.
        beliefs: what `gather` found last.
    """

    name = "edit"

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        parts: Collection[str] = PARTS,
        wide: bool = True,
        table: Table | None = None,
        priors: Priors | None = None,
    ) -> None:
        """Make a drafter for one answer at a time.

        Args:
            vocabulary: the target's.
            parts: which drafters take part.
            wide: whether drafts may branch; else each is a chain.
            table: static n-grams; None for none.
            priors: what is believed beforehand; None takes the shipped ones.
        """
        self._vocabulary = vocabulary
        self._parts = sum(PART_BITS[part] for part in PARTS if part in parts)
        self._wide = wide
        self._table = table if table is not None else empty_table()
        self._priors = priors or load_priors("plain" if table is None else "table")
        self.beliefs = Beliefs.empty()
        self.begin([], [])

    def begin(
        self, prompt_ids: Sequence[int] | Tokens, prediction_ids: Sequence[int] | Tokens, hints: Hints = NO_HINTS
    ) -> None:
        """Index prompt and prediction and put the cursor at the prediction's start."""
        prompt = np.asarray(prompt_ids, dtype=np.int32)
        prediction = np.asarray(prediction_ids, dtype=np.int32)
        self.answer = Answer(self._vocabulary, prompt, prediction, hints)
        self._rehearsal: Rehearsal | None = None
        if self._parts & PART_BITS["replay"] and len(prediction):
            replay = Replay(self._vocabulary, prediction, hints)
            self._rehearsal = Rehearsal(self.answer, replay, self._vocabulary)

    @property
    def memory_bytes(self) -> int:
        """Bytes of the texts and indexes of the answer under way."""
        return self.answer.memory_bytes

    def commit(self, token_ids: Sequence[int]) -> None:
        """Follow the tokens that the target emitted."""
        events = self.answer.commit(np.asarray(token_ids, dtype=np.int32))
        if self._rehearsal is not None:
            self._rehearsal.follow(events)

    def propose(self, budget: int) -> DraftTree:
        """The most probable continuations, merged into one tree of at most `budget` nodes."""
        if budget <= 0 or self.answer.state[LENGTH] < 2:
            return DraftTree.chain([])
        token_ids, parents, origins = np.empty((3, budget), dtype=np.int64)
        log_probs = np.empty(budget, dtype=np.float64)
        size, uniform = draft(
            self.answer.texts,
            self.answer.state,
            self.answer.index.arrays,
            self.answer.written.arrays,
            self.answer.resume,
            self._table,
            self._priors.parameters,
            self._priors.survival,
            self._vocabulary.barred,
            self._parts,
            self._wide,
            self.beliefs,
            token_ids,
            parents,
            log_probs,
            origins,
        )
        names = (
            (PARTS[int(origins[0])],) * size
            if uniform and size
            else tuple(map(PARTS.__getitem__, origins[:size].tolist()))
        )
        return DraftTree(token_ids[:size], parents[:size], log_probs[:size], names)

    def gather(self) -> int:
        """Collect the beliefs about the next token in `beliefs`; return how many there are."""
        return gather(
            self.answer.texts,
            self.answer.state,
            self.answer.index.arrays,
            self.answer.written.arrays,
            self.answer.resume,
            self._table,
            self._parts,
            self.beliefs,
        )
