"""A tokenizer of words and signs, small enough to read its tokens."""

from __future__ import annotations

import re
from collections.abc import Sequence

from specedit.draft.vocabulary import Vocabulary

# As tokenizers of code models split: a word takes the blank before it, signs take the line ends after them.
_PIECE = re.compile(r"\n+|[ \t]+(?= \S)| ?\w+| ?[^\w\s]+\n*|[ \t]+|\s")


class TinyCodec:
    """Words and signs, each with a blank before it, runs of blanks, line ends; what its texts lack is spelt in bytes.

    Example: "    f(x) == 1:\\n" is "   ", " f", "(", "x", ")", " ==", " 1", ":\\n".
    """

    def __init__(self, texts: Sequence[str]) -> None:
        pieces = dict.fromkeys(b" " * size for size in range(2, 17))
        pieces |= dict.fromkeys(piece.encode() for text in texts for piece in _PIECE.findall(text))
        self.pieces = [bytes([byte]) for byte in range(256)] + [piece for piece in pieces if len(piece) > 1]
        self._ids = {piece: token_id for token_id, piece in enumerate(self.pieces)}

    @property
    def size(self) -> int:
        """How many tokens there are, the special one counted."""
        return len(self.pieces) + 1

    @property
    def special_id(self) -> int:
        """A token that stands for no text."""
        return len(self.pieces)

    def vocabulary(self) -> Vocabulary:
        """What drafters know of it."""
        return Vocabulary.of(self, self.size, [self.special_id])

    def encode(self, text: str) -> list[int]:
        """The tokens of plain text."""
        tokens: list[int] = []
        for piece in _PIECE.findall(text):
            data = piece.encode()
            tokens += [self._ids[data]] if data in self._ids else data
        return tokens

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes that a token stands for."""
        return self.pieces[token_id] if token_id < len(self.pieces) else b""

    def decode(self, token_ids: Sequence[int]) -> str:
        """The text of tokens."""
        return b"".join(map(self.token_bytes, token_ids)).decode(errors="replace")
