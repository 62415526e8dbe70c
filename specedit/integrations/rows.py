"""Rows: a drafter for each request of a batch whose rows move, pause, end and begin between calls.

Whoever calls tells of each row only its tokens, not which request it is. So a row is known by its tokens: it goes on
where a request was left whose tokens it begins with. Equal tokens make equal drafters, so one row may be taken for
another that has the same.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

import numpy as np

from specedit.draft.suffix_index import Tokens
from specedit.draft.tree import DraftTree

_LOG = logging.getLogger(__name__)
_LEAST_ROOM = 256
#: A chain drafted from a tree is likelier than the longest copy: where places differ, those that agree count together.
_BRANCH_NODES = 16
#: A draft ends before the token up to which it is less probable than that: verifying more costs others in the batch.
_LEAST_BELIEF = 0.1
#: What the drafters of requests that are in no row may take: they may have been preempted, to be resumed later.
_AWAY_BYTES = 256 << 20


class AnswerDrafter(Protocol):
    """What a row needs of `EditDrafter`: one answer under way, already begun on its prompt."""

    @property
    def memory_bytes(self) -> int:
        """Bytes that it holds."""
        ...

    def commit(self, token_ids: Sequence[int]) -> None:
        """Follow the tokens that the target emitted."""
        ...

    def propose(self, budget: int) -> DraftTree:
        """At most `budget` nodes, the most probable of siblings first."""
        ...


class Request:
    """One request as far as it was seen.

    Attributes:
        drafter: None after it has failed.
        length: how many tokens were seen.
    """

    def __init__(self) -> None:
        self.drafter: AnswerDrafter | None = None
        self.length = 0
        self._tokens: Tokens = np.empty(0, dtype=np.int32)

    @property
    def memory_bytes(self) -> int:
        """Bytes that it holds."""
        return self._tokens.nbytes + (self.drafter.memory_bytes if self.drafter is not None else 0)

    @property
    def last(self) -> int:
        """The last token that was seen."""
        return int(self._tokens[self.length - 1])

    def begins(self, text: Tokens) -> bool:
        """Whether `text` begins with all tokens seen."""
        seen = self.length
        # Most others differ in that one token already.
        return seen <= len(text) and text[seen - 1] == self.last and np.array_equal(text[:seen], self._tokens[:seen])

    def see(self, text: Tokens) -> None:
        """Keep `text`, which begins with all tokens seen."""
        if len(text) > len(self._tokens):
            grown = np.empty(max(_LEAST_ROOM, len(text) * 5 // 4), dtype=np.int32)
            grown[: self.length] = self._tokens[: self.length]
            self._tokens = grown
        self._tokens[self.length : len(text)] = text[self.length :]
        self.length = len(text)


def likeliest_chain(tree: DraftTree, tokens: int, least_belief: float) -> list[int]:
    """At most `tokens` tokens from the root on, the likeliest child each time, while the path is so probable."""
    chain: list[int] = []
    node, belief = -1, 1.0
    drafted = zip(tree.token_ids.tolist(), tree.parents.tolist(), np.exp(tree.log_probs).tolist(), strict=True)
    for child, (token, parent, prob) in enumerate(drafted):
        # The first child is the likeliest one.
        if parent != node:
            continue
        belief *= prob
        if belief < least_belief or len(chain) == tokens:
            break
        chain.append(token)
        node = child
    return chain


class Rows:
    """The requests of a batch, and those that left it a while ago."""

    def __init__(
        self,
        begin: Callable[[Tokens], AnswerDrafter],
        *,
        vocab_size: int,
        special_ids: Collection[int],
        draft_tokens: int,
        context_tokens: int,
        least_belief: float = _LEAST_BELIEF,
        away_bytes: int = _AWAY_BYTES,
    ) -> None:
        """Start without any request.

        Args:
            begin: makes the drafter of a new request from its prompt.
            vocab_size: all token ids are below it.
            special_ids: tokens that end an answer or a turn, among others; none is drafted.
            draft_tokens: the longest draft.
            context_tokens: the most tokens that a request can have.
            least_belief: a draft ends before the token up to which it is less probable.
            away_bytes: what the drafters of requests in no row may take.
        """
        self._begin = begin
        self._vocab_size = vocab_size
        self._special_ids = frozenset(special_ids)
        self._draft_tokens = draft_tokens
        self._context_tokens = context_tokens
        self._least_belief = least_belief
        self._away_bytes = away_bytes
        self._rows: dict[int, Request] = {}
        #: In no row; those that left first in front.
        self._away: list[Request] = []
        self._failed = False

    @property
    def memory_bytes(self) -> int:
        """What all requests take."""
        return sum(request.memory_bytes for request in (*self._rows.values(), *self._away))

    def propose(
        self, emitted: Sequence[Sequence[int]], lengths: Sequence[int] | Tokens, token_ids: Tokens
    ) -> list[list[int]]:
        """A chain for each row; an empty one where the row emitted nothing or there is no idea.

        Args:
            emitted: [rows] tokens that the last step gave each row; none while its prompt is being read.
            lengths: [rows or more] tokens of each row, those counted.
            token_ids: [rows or more, any] the tokens of each row; what stands behind its length is not read.
        """
        texts = {row: token_ids[row, : int(lengths[row])] for row, tokens in enumerate(emitted) if len(tokens)}
        self._rows = self._claimed(texts)
        drafts: list[list[int]] = [[] for _ in emitted]
        for row, text in texts.items():
            if row not in self._rows:
                self._rows[row] = self._begun(text[: len(text) - len(emitted[row])])
            drafts[row] = self._draft(self._rows[row], text)
        return drafts

    def _claimed(self, texts: Mapping[int, Tokens]) -> dict[int, Request]:
        """The request of each row that goes on with one; the others are away from now on."""
        stayed = [row for row, text in texts.items() if row in self._rows and self._goes_on(self._rows[row], text)]
        claimed = {row: self._rows.pop(row) for row in stayed}
        others = [*self._away, *self._rows.values()]
        for row, text in texts.items():
            if row not in claimed:
                earlier = [request for request in others if self._goes_on(request, text)]
                if earlier:
                    claimed[row] = max(earlier, key=lambda request: request.length)
                    others.remove(claimed[row])
        self._away = self._that_may_return(others)
        return claimed

    def _goes_on(self, request: Request, text: Tokens) -> bool:
        # The next turn of a chat begins with all of the last one too, but special tokens stand between them.
        return request.begins(text) and self._special_ids.isdisjoint(text[request.length : -1].tolist())

    def _that_may_return(self, requests: list[Request]) -> list[Request]:
        kept: list[Request] = []
        room = self._away_bytes
        for request in reversed(requests):
            room -= request.memory_bytes
            if room >= 0 and request.last not in self._special_ids:
                kept.append(request)
        return kept[::-1]

    def _begun(self, prompt: Tokens) -> Request:
        request = Request()
        try:
            self._check(prompt)
            request.drafter = self._begin(np.array(prompt, dtype=np.int32))
        except Exception:  # noqa: BLE001 - whatever it is, the target goes on without a draft
            self._give_up(request)
        request.see(prompt)
        return request

    def _draft(self, request: Request, text: Tokens) -> list[int]:
        new = text[request.length :]
        request.see(text)
        if request.drafter is None:
            return []
        try:
            self._check(new)
            request.drafter.commit(new.tolist())
            room = min(self._draft_tokens, self._context_tokens - len(text) - 1)
            if room <= 0 or request.last in self._special_ids:
                return []
            return likeliest_chain(request.drafter.propose(room + _BRANCH_NODES), room, self._least_belief)
        except Exception:  # noqa: BLE001 - as above
            self._give_up(request)
            return []

    def _check(self, tokens: Tokens) -> None:
        """Assert what drafting kernels do not look at."""
        if len(tokens) and not 0 <= int(tokens.min()) <= int(tokens.max()) < self._vocab_size:
            raise ValueError(f"a token lies outside the vocabulary of {self._vocab_size}")

    def _give_up(self, request: Request) -> None:
        request.drafter = None
        if not self._failed:
            self._failed = True
            _LOG.warning("a drafter failed, so its request gets no drafts; told once only", exc_info=True)
