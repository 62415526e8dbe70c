"""Tracer: decode steps as text, for whoever wants to see why an answer was fast or slow."""

from __future__ import annotations

from collections.abc import Sequence

from specedit.engine.api import DraftedToken, TraceStep
from specedit.engine.stats import Step
from specedit.engine.tokens import Tokenizer


class Tracer:
    """Puts the steps of one answer into text."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._answer = tokenizer.stream()

    def step(self, step: Step | None, token_ids: Sequence[int]) -> TraceStep:
        """The step that emitted `token_ids`; None stands for one that drafted nothing.

        A character that takes several tokens belongs to the last of them.
        """
        emitted = tuple(self._answer.push(token_id) for token_id in token_ids)
        if step is None or not token_ids:
            return TraceStep(emitted=emitted)
        tree = step.tree
        ids, parents, probs = tree.token_ids.tolist(), tree.parents.tolist(), tree.path_probs.tolist()
        return TraceStep(
            drafted=tuple(
                DraftedToken(self._tokenizer.decode([token_id]), parent, origin, probability)
                for token_id, parent, origin, probability in zip(ids, parents, step.origins, probs, strict=True)
            ),
            accepted=tuple(step.accepted),
            emitted=emitted,
            proposed=step.proposed,
            draft_seconds=step.draft_seconds,
            forward_seconds=step.forward_seconds,
        )
