"""What others draft from, by their published rules: n-gram lookups and a suffix tree. For comparison only.

They know prompt and output; a prediction or hints mean nothing to them.
"""

from __future__ import annotations

from collections.abc import Sequence

from specedit.draft.base import NO_HINTS
from specedit.draft.tree import DraftTree
from specedit.engine.api import Hints


class EarliestNgram:
    """Drafts what followed the earliest occurrence of the last n tokens, for the largest n that has one.

    With n of 2, then 1, and 10 tokens this is prompt lookup decoding as transformers has it (Saxena, 2023;
    `prompt_lookup_num_tokens=10`, `max_matching_ngram_size=2`). With n from 5 down to 2 it is vLLM's n-gram proposer.

    Example: after [1, 2, 3, 4, 2, 3] with n = 2 it drafts [4, 2, 3].
    """

    def __init__(self, name: str, sizes: Sequence[int], draft_tokens: int) -> None:
        """Match the last n tokens for each n of `sizes` in that order; draft at most `draft_tokens`."""
        self.name = name
        self._sizes = tuple(sizes)
        self._draft_tokens = draft_tokens
        self._text: list[int] = []
        self._first_end: dict[tuple[int, ...], int] = {}

    def begin(self, prompt_ids: Sequence[int], prediction_ids: Sequence[int], hints: Hints = NO_HINTS) -> None:
        """Index the prompt."""
        self._text, self._first_end = [], {}
        self.commit(prompt_ids)

    def commit(self, token_ids: Sequence[int]) -> None:
        """Index the tokens that the target emitted."""
        for token_id in token_ids:
            # An n-gram counts once something follows it.
            end = len(self._text)
            for size in self._sizes:
                if end >= size:
                    self._first_end.setdefault(tuple(self._text[end - size :]), end)
            self._text.append(token_id)

    def propose(self, budget: int) -> DraftTree:
        """A chain of at most `budget` tokens."""
        for size in self._sizes:
            end = self._first_end.get(tuple(self._text[-size:]))
            if end is not None:
                return DraftTree.chain(self._text[end : end + min(budget, self._draft_tokens)])
        return DraftTree.chain([])


class LatestNgram:
    """Drafts what followed the latest occurrence of the last n tokens, as llama.cpp's `ngram-simple` does.

    The newest token takes part in the n-gram, but is neither matched nor copied. A draft shorter than the n-gram is
    dropped, and so is every draft while the text is shorter than n-gram and draft together.

    Example: after [9, 1, 2, 7, 8, 1, 2, 5, 6, 1, 2] with an n-gram of 2 and a draft of 3 it drafts [5, 6, 1].
    """

    def __init__(self, name: str, size: int, draft_tokens: int) -> None:
        """Match the last `size` tokens; draft at most `draft_tokens`."""
        self.name = name
        self._size = size
        self._draft_tokens = draft_tokens
        self._text: list[int] = []
        self._last_end: dict[tuple[int, ...], int] = {}

    def begin(self, prompt_ids: Sequence[int], prediction_ids: Sequence[int], hints: Hints = NO_HINTS) -> None:
        """Index the prompt."""
        self._text, self._last_end = [], {}
        self.commit(prompt_ids)

    def commit(self, token_ids: Sequence[int]) -> None:
        """Index the tokens that the target emitted."""
        for token_id in token_ids:
            self._text.append(token_id)
            end = len(self._text) - 2
            # The very first n-gram is never found: its position 0 means that there is none.
            if end > self._size:
                self._last_end[tuple(self._text[end - self._size : end])] = end

    def propose(self, budget: int) -> DraftTree:
        """A chain of at most `budget` tokens."""
        older = len(self._text) - 1
        end = self._last_end.get(tuple(self._text[-self._size :]))
        if end is None or older <= self._size + self._draft_tokens + 1:
            return DraftTree.chain([])
        run = self._text[end : min(end + self._draft_tokens, older)]
        return DraftTree.chain(run[:budget] if len(run) >= self._size else [])


class SuffixTree:
    """Drafts the most frequent continuation of a suffix, never longer than that suffix (SuffixDecoding).

    The rule of Oliaro et al., 2024 (arXiv 2411.04975), as Arctic Inference ships it, over one request's prompt and
    output. For each suffix that occurs earlier: follow the most frequent next token, again and again. A token's
    probability is its count over that of the text before it, where the text's own end counts as an occurrence without a
    next token. Stop where the product falls under `MIN_PROBABILITY`, at as many tokens as the suffix has, or where both
    together are `MAX_DEPTH`. The draft with the largest sum of probabilities is taken, of equal ones that of the
    longest suffix. Among equally frequent tokens, which the rule leaves open, the one seen first is taken.

    Instead of a tree this keeps where each token stands, and narrows those places: the same drafts, in less memory.

    Example: after [1, 2, 3, 5, 1, 2, 3, 4, 9, 1, 2, 3, 4, 8, 1, 2, 3] it drafts [4, 9, 1].
    """

    MAX_DEPTH = 64
    MIN_PROBABILITY = 0.1

    def __init__(self, name: str) -> None:
        self.name = name
        self._text: list[int] = []
        self._ends: dict[int, list[int]] = {}

    def begin(self, prompt_ids: Sequence[int], prediction_ids: Sequence[int], hints: Hints = NO_HINTS) -> None:
        """Index the prompt."""
        self._text, self._ends = [], {}
        self.commit(prompt_ids)

    def commit(self, token_ids: Sequence[int]) -> None:
        """Index the tokens that the target emitted."""
        for token_id in token_ids:
            self._text.append(token_id)
            self._ends.setdefault(token_id, []).append(len(self._text))

    def propose(self, budget: int) -> DraftTree:
        """A chain of at most `budget` tokens."""
        text = self._text
        limit = min(len(text), self.MAX_DEPTH) - 1
        ends = self._ends[text[-1]] if limit > 0 else []
        best: list[int] = []
        best_score = 0.0
        shortest = length = 1
        while len(ends) > 1 and length <= limit:
            longer = [end for end in ends if end > length and text[end - length - 1] == text[-length - 1]]
            if len(longer) < len(ends) or length == limit:
                # Suffixes with the same places have the same continuation: the one that may draft most stands for all.
                suffix = min(max(shortest, self.MAX_DEPTH // 2), length)
                draft, score = self._most_frequent(ends, min(budget, suffix, self.MAX_DEPTH - suffix))
                if score >= best_score:
                    best, best_score = draft, score
                shortest = length + 1
            ends, length = longer, length + 1
        return DraftTree.chain(best)

    def _most_frequent(self, ends: list[int], count: int) -> tuple[list[int], float]:
        """The most frequent continuation of `ends`, at most `count` tokens, and the sum of their probabilities."""
        text = self._text
        draft: list[int] = []
        score, probability = 0.0, 1.0
        while len(draft) < count:
            if len(ends) == 1:
                run = text[ends[0] : ends[0] + count - len(draft)]
                return draft + run, score + probability * len(run)
            after: dict[int, list[int]] = {}
            for end in ends:
                if end < len(text):
                    after.setdefault(text[end], []).append(end + 1)
            token_id, following = max(after.items(), key=lambda item: len(item[1]), default=(-1, []))
            probability *= len(following) / len(ends)
            if probability < self.MIN_PROBABILITY:
                break
            draft.append(token_id)
            score += probability
            ends = following
        return draft, score
