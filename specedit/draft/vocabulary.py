"""What drafters know of a target's vocabulary: text to tokens and back, and the kind of each token."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

# Kinds of tokens, by their text: what tells most about what may follow. Those below `FIRST_IN_LINE` end a line.
LINE, BLOCK_LINE, COMMA_LINE, CLOSED_LINE, BLANK_LINE = range(5)
FIRST_IN_LINE = 5
BLANK = 5  # white space without a line end
WORD, CAPITAL_WORD, KEYWORD = 6, 7, 8  # a blank, then letters
PART, CAPITAL_PART, JOINT = 9, 10, 11  # letters; an underscore
NUMBER = 12
DOT, COMMA, COLON, ASSIGN, ARROW, QUOTE, CLOSE = range(13, 20)
PAREN, BRACKET, BRACE = 20, 21, 22  # ends with an opening bracket
OTHER = 23
NUM_KINDS = 24
#: [NUM_KINDS] kinds after which much the same tokens stand, under one number.
FAMILIES = np.array([0, 0, 0, 0, 0, 1, 2, 2, 2, 3, 3, 3, 4, 9, 7, 7, 9, 9, 8, 6, 5, 5, 5, 9])

_KEYWORDS = frozenset(
    b"and as async await break case catch class const continue def default defer del do elif else enum except export"
    b" extends final finally fn for from func function go goto if impl import in instanceof interface is lambda let"
    b" match mod mut new not or package pass private pub public raise range return self static struct super switch"
    b" this throw trait try type typedef typeof use using var void where while with yield".split()
)
_LAST = {
    b"(": PAREN,
    b"[": BRACKET,
    b"{": BRACE,
    b".": DOT,
    b",": COMMA,
    b":": COLON,
    b";": COLON,
    b"=": ASSIGN,
}


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
    bare = piece.strip(b" \t")
    if b"\n" in piece or b"\r" in piece:
        return _kind_of_line_end(bare)
    if not bare:
        return BLANK
    first, last = bare[:1], bare[-1:]
    if b'"' in bare or b"'" in bare or b"`" in bare:
        return QUOTE
    if first.isalpha() or first >= b"\x80":
        spaced = piece[:1] in (b" ", b"\t")
        if spaced and bare in _KEYWORDS:
            return KEYWORD
        if first.isupper():
            return CAPITAL_WORD if spaced else CAPITAL_PART
        return WORD if spaced else PART
    if first == b"_":
        return JOINT
    if first.isdigit():
        return NUMBER
    if bare in (b"->", b"=>", b"::"):
        return ARROW
    if last in _LAST:
        return _LAST[last]
    return CLOSE if first in b")]}" else OTHER


def _kind_of_line_end(bare: bytes) -> int:
    before = bare.strip()
    if not before:
        return BLANK_LINE if bare.count(b"\n") > 1 else LINE
    if before[-1:] in b"{:([":
        return BLOCK_LINE
    if before[-1:] in b",":
        return COMMA_LINE
    return CLOSED_LINE
