"""A batch of scripted requests, kept as vLLM keeps its own: tokens in a table, requests in rows that may change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

NOISE = 7


@dataclass(eq=False)
class Scripted:
    """A request whose answer is known.

    Attributes:
        prompt, answer: its tokens.
        done: how many of the answer were emitted.
        draft: what the next step verifies.
        drafts: all drafts so far.
    """

    prompt: Sequence[int]
    answer: Sequence[int]
    done: int = 0
    draft: list[int] = field(default_factory=list)
    drafts: list[list[int]] = field(default_factory=list)

    @property
    def text(self) -> list[int]:
        return [*self.prompt, *self.answer[: self.done]]

    @property
    def ended(self) -> bool:
        return self.done == len(self.answer)

    def emit(self) -> list[int]:
        """The accepted tokens of the draft and the next token."""
        ahead = self.answer[self.done :]
        accepted = 0
        while accepted < min(len(self.draft), len(ahead) - 1) and self.draft[accepted] == ahead[accepted]:
            accepted += 1
        self.done += accepted + 1
        return list(ahead[: accepted + 1])


class Batch:
    """Requests in rows, the first ones in use."""

    def __init__(self, propose: Callable[..., list[list[int]]], *requests: Scripted, context: int = 2000) -> None:
        self.propose = propose
        self.requests = list(requests)
        self.table = np.full((8, context), NOISE, dtype=np.int32)

    def step(self, reading: Sequence[Scripted] = ()) -> None:
        """One step of all rows; those of `reading` still read their prompts and emit nothing."""
        emitted = [[] if request in reading else request.emit() for request in self.requests]
        lengths = np.zeros(len(self.table), dtype=np.int32)
        for row, request in enumerate(self.requests):
            text = request.text
            lengths[row] = len(text)
            # Behind the text stand rejected drafts and what other requests left.
            self.table[row, : len(text) + 3] = [*text, NOISE, NOISE, NOISE]
        for request, new, draft in zip(self.requests, emitted, self.propose(emitted, lengths, self.table), strict=True):
            request.draft = draft
            if new:
                request.drafts.append(draft)

    def run(self) -> None:
        """Step until all have ended; the last row then takes the place of one that ends."""
        while self.requests:
            self.step()
            self.condense()

    def condense(self) -> None:
        """Fill the rows of requests that have ended with the last ones."""
        for row in reversed(range(len(self.requests))):
            if self.requests[row].ended:
                last = self.requests.pop()
                if row < len(self.requests):
                    self.requests[row] = last

    def preempt(self, request: Scripted) -> None:
        """Take a request out; it loses its draft."""
        self.requests.remove(request)
        request.draft = []
