"""Healing: an answer that begins with a given text, in whichever tokens the target spells it.

A prompt that ends within a word holds the target to how the beginning alone is tokenized, which it rarely saw in
training. Instead it is asked from before that beginning, and until the answer covers it only tokens that agree with it
can be drawn (token healing, as in guidance; Lundberg, 2023).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Sequence

import numpy as np

from specedit.draft.tree import IntArray


class SpelledTokens:
    """The tokens of a vocabulary in the order of their bytes."""

    def __init__(self, pieces: Iterable[tuple[int, bytes]]) -> None:
        """Sort the tokens; a tenth of a second for 150,000.

        Args:
            pieces: token ids with the bytes that they stand for; those without bytes are left out.
        """
        ranked = sorted((piece, token_id) for token_id, piece in pieces if piece)
        self._pieces = [piece for piece, _ in ranked]
        self._ids = np.array([token_id for _, token_id in ranked], dtype=np.int64)
        self._bytes_of = {token_id: piece for piece, token_id in ranked}
        self._longest = max(map(len, self._pieces), default=0)

    def bytes_of(self, token_id: int) -> bytes:
        """What a token stands for; nothing for one that is not here."""
        return self._bytes_of.get(token_id, b"")

    def fitting(self, text: bytes) -> IntArray:
        """[tokens] those that begin `text`, the whole of it included, and those that it begins; ascending.

        `text` is a beginning of UTF-8 that is not empty. With tokens a, ab, abc and b, "ab" fits a, ab and abc.
        """
        beginnings = (text[:size] for size in range(1, min(len(text), self._longest + 1)))
        spans = [(bisect_left(self._pieces, piece), bisect_right(self._pieces, piece)) for piece in beginnings]
        # No byte of UTF-8 is 0xFF, so there is one above the last.
        above = text[:-1] + bytes([text[-1] + 1])
        spans.append((bisect_left(self._pieces, text), bisect_left(self._pieces, above)))
        found: IntArray = np.sort(np.concatenate([self._ids[start:end] for start, end in spans]))
        return found


class Healing:
    """What one answer must begin with."""

    def __init__(self, tokens: SpelledTokens, text: bytes, *, vocab_size: int, barred: Collection[int] = ()) -> None:
        """Begin an answer.

        Args:
            tokens: of the target.
            text: the answer's first bytes, UTF-8.
            vocab_size: columns of the target's logits; other tokens don't exist.
            barred: tokens that can't be drawn while this holds, such as the end-of-text ones.
        """
        self._tokens = tokens
        self._rest = text
        self._vocab_size = vocab_size
        self._barred = np.array(sorted(barred), dtype=np.int64)

    def commit(self, token_ids: Sequence[int]) -> None:
        """Take note of tokens that are now part of the answer."""
        self._rest = self._after(token_ids)

    def fitting(self, path: Sequence[int] = ()) -> IntArray | None:
        """[tokens] those that may follow the committed ones and `path`, ascending; None where any may.

        Any may once the text is covered, and where no token fits.
        """
        rest = self._after(path)
        if not rest:
            return None
        found = self._tokens.fitting(rest)
        found = found[(found < self._vocab_size) & ~np.isin(found, self._barred)]
        return found if len(found) else None

    def _after(self, token_ids: Sequence[int]) -> bytes:
        """What is left of the text behind these tokens; nothing once one has left it."""
        rest = self._rest
        for token_id in token_ids:
            if not rest:
                break
            piece = self._tokens.bytes_of(token_id)
            rest = rest[len(piece) :] if rest.startswith(piece) and piece else b""
        return rest
