"""What drafters know of a target's vocabulary: text to tokens and back, and the kind of each token."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

# Kinds of tokens, by their text. `LINE` and `BLANK` tell where a line begins, the others what may follow what.
LINE = 0  # holds a line end
BLANK = 1  # other white space
WORD = 2  # a blank, then a letter
PART = 3  # begins with a letter
NUMBER = 4
OPEN = 5  # ends with an opening bracket
CLOSE = 6  # begins with a closing bracket
COMMA = 7  # ends with , ; or :
QUOTE = 8  # holds a quotation mark
OTHER = 9
NUM_KINDS = 10


class Codec(Protocol):
    """A tokenizer, as far as drafters need one."""

    def encode(self, text: str) -> list[int]:
        """The tokens of plain text."""
        ...

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes that a token stands for."""
        ...


@dataclass(frozen=True)
class Vocabulary:
    """A codec with what is worked out of it once.

    Attributes:
        codec: the target's tokenizer.
        size: columns of the target's logits; token ids are below it.
        kinds: [size] the kind of each token.
        chars: [size] code points that begin in each token.
        barred: [size] tokens that are never drafted.
    """

    codec: Codec
    size: int
    kinds: npt.NDArray[np.uint8]
    chars: npt.NDArray[np.int32]
    barred: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, codec: Codec, size: int, special_ids: Collection[int]) -> Vocabulary:
        """Work out the kinds; a tenth of a second for a vocabulary of 150,000."""
        pieces = [codec.token_bytes(token_id) for token_id in range(size)]
        kinds = np.fromiter(map(kind_of, pieces), np.uint8, size)
        chars = np.fromiter(map(chars_of, pieces), np.int32, size)
        barred = np.zeros(size, dtype=np.bool_)
        barred[[token_id for token_id in special_ids if token_id < size]] = True
        return cls(codec, size, kinds, chars, barred)

    def text(self, token_ids: Sequence[int]) -> str:
        """The text of tokens; bytes that are no UTF-8 become U+FFFD."""
        return b"".join(map(self.codec.token_bytes, token_ids)).decode("utf-8", errors="replace")


def chars_of(piece: bytes) -> int:
    """How many code points of UTF-8 begin in these bytes."""
    return len(piece) if piece.isascii() else sum(byte & 0xC0 != 0x80 for byte in piece)


def kind_of(piece: bytes) -> int:
    """The kind of a token that stands for these bytes."""
    if b"\n" in piece or b"\r" in piece:
        return LINE
    bare = piece.lstrip(b" \t")
    if not bare:
        return BLANK
    first, last = bare[:1], bare[-1:]
    if b'"' in bare or b"'" in bare or b"`" in bare:
        return QUOTE
    if first.isalpha() or first == b"_" or first >= b"\x80":
        return PART if bare == piece else WORD
    if first.isdigit():
        return NUMBER
    if last in b"([{":
        return OPEN
    if first in b")]}":
        return CLOSE
    return COMMA if last in b",;:" else OTHER
