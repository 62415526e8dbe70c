"""TokenCache: a text that was encoded before, sent again with a line changed, costs only the changed lines.

What it begins and ends with as a recent text did is taken from there at once; of the rest, lines that are known. A text
is cut at line ends into pieces that this tokenizer encodes alone as it does in their context. Where that is so
depends on the tokenizer, and is found out when the cache is made: no token of its vocabulary may reach over such a cut,
and texts of every kind of character around it must come out the same. Without a safe cut texts are encoded whole.
"""

from __future__ import annotations

import itertools
import re
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

TokenIds = npt.NDArray[np.int32]
IntArray = npt.NDArray[np.int64]

_MOST_CHARS = 8_000_000
#: Shorter texts are encoded as they are.
_LEAST_CHARS = 2_000
#: Whole texts that are kept: a request has a file and a message around it.
_RECENT_TEXTS = 4
#: A cut is known to be safe by so many characters before it.
_LOOK_BEHIND = 2


#: Tokens are searched side by side, with a byte between them that no text has.
_SEAM = b"\xff"


class _Cut(NamedTuple):
    """A way to cut texts.

    Attributes:
        piece: matches the text up to the next cut; the last piece is the rest.
        reach: matches a token that could reach over a cut, with `_SEAM` at both its ends.
    """

    piece: re.Pattern[str]
    reach: re.Pattern[bytes]


class _Encoded(NamedTuple):
    """A whole text with its tokens, and where its pieces end in both.

    Attributes:
        text: what was encoded.
        ids: [tokens].
        ends: [pieces] in characters.
        token_ends: [pieces] in tokens.
    """

    text: str
    ids: TokenIds
    ends: IntArray
    token_ends: IntArray

    def piece_at(self, number: int) -> tuple[int, int]:
        """Where a piece begins: character and token."""
        return (int(self.ends[number - 1]), int(self.token_ends[number - 1])) if number else (0, 0)


_NOTHING = _Encoded("", np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.int64))

#: The finest first. Tokens of indentation often begin with the line end before them: then the cut goes before both.
_CUTS = (
    _Cut(
        re.compile(r"(?:[^\n]*+\n)+?(?<=\S\n)(?=[ \t]*\S)|[\s\S]++"),
        re.compile(rb"\n[ \t]*[^\s\xff]|\n[ \t]+\xff"),
    ),
    _Cut(
        re.compile(r"(?:\n*+[^\n]++)+?(?<=\S)(?=\n)|[\s\S]++"),
        re.compile(rb"[^\s\xff]\n"),
    ),
    _Cut(
        re.compile(r"(?:[^\n]*+\n)+?(?<=\S\n)(?=\S)|[\s\S]++"),
        re.compile(rb"\n[^\s\xff]"),
    ),
)

# What a pre-tokenizer may treat in its own way.
_ENDS = (
    "word", "Word", "WORD", "x1", "1", "123456", "_", "__a", "a_b", "'", "'s", "'ll", '"', "#", "//", "/*", "*/", "(",
    ")", "{", "}", "};", ");", ":", ",", ".", "...", "=", "==", "-", "->", "<", ">", "<|im_end|>", "@a", "$", "`", "\\",
    "|", "~",
    "\u00e9", "e\u0301", "\u0301", "\u4e16\u754c", "\u3002", "\U0001f600", "\u200d", "\ufeff", "\u0661", "\u2028",
    "\u00a0", "\u2581", "\0", "\x85",
)  # fmt: skip
_FEW_ENDS = ("word", "1", "(", ");", "\u4e16")
_GAPS = ("\n", "\n\n", "\n    ", "\n\t", "\n\n        ", " \n", "\n \n ")


class TokenCache:
    """Encodes texts piece by piece and keeps the pieces' tokens; those that were not used for long are dropped."""

    def __init__(
        self,
        encode_all: Callable[[Sequence[str]], list[list[int]]],
        vocabulary: Iterable[bytes],
        *,
        max_chars: int = _MOST_CHARS,
    ) -> None:
        """Find out how texts can be cut.

        Args:
            encode_all: texts to token ids.
            vocabulary: the bytes of all tokens.
            max_chars: how much text is kept.
        """
        self._encode_all = encode_all
        self._generation_chars = max_chars // 4
        self._recent_chars = max_chars // 2 // _RECENT_TEXTS
        self._recent: deque[_Encoded] = deque(maxlen=_RECENT_TEXTS)
        # What is used moves from the older generation to the newer one; when that is full, the older one is dropped.
        # Tokens are kept as the bytes of their ids: joining thousands of pieces is then one copy.
        self._newer: dict[str, bytes] = {}
        self._older: dict[str, bytes] = {}
        self._newer_chars = 0
        tokens = _SEAM + _SEAM.join(vocabulary) + _SEAM
        usable = (cut.piece for cut in _CUTS if not cut.reach.search(tokens) and self._holds(cut.piece))
        self._piece = next(usable, None)

    @property
    def cuts(self) -> bool:
        """Whether texts can be cut for this tokenizer at all."""
        return self._piece is not None

    @property
    def chars(self) -> int:
        """How much text is kept, in characters."""
        recent = sum(len(known.text) for known in self._recent)
        return sum(map(len, self._newer)) + sum(map(len, self._older)) + recent

    def encode(self, text: str) -> TokenIds:
        """[tokens] the ids of `text`, as the tokenizer gives them for the whole."""
        if self._piece is None or len(text) < _LEAST_CHARS:
            return _ids(self._encode_all([text])[0])
        heads = [(_shared(known.text, text), known) for known in self._recent]
        head, known = max(heads, key=itemgetter(0), default=(0, _NOTHING))
        encoded = self._encoded_like(known, head, text)
        if len(text) <= self._recent_chars:
            self._recent.append(encoded)
        return encoded.ids.copy()

    def _encoded_like(self, known: _Encoded, head: int, text: str) -> _Encoded:
        """Encode a text whose first `head` characters are those of a known one; what they end with alike is found."""
        room = min(len(known.text), len(text)) - head
        tail = _shared(known.text, text, room=room, at_end=True)
        # Whether a cut is safe depends on what stands around it, at most on the piece after it.
        first = max(0, int(np.searchsorted(known.ends, head, side="right")) - 1)
        last = int(np.searchsorted(known.ends, len(known.text) - tail + _LOOK_BEHIND)) + 1
        start, start_token = known.piece_at(first)
        end, end_token = known.piece_at(last) if last <= len(known.ends) else (len(known.text), len(known.ids))
        last = min(last, len(known.ends))
        pieces, found = self._found(text[start : len(text) - (len(known.text) - end)])
        ids = np.frombuffer(bytearray().join(found), dtype=np.int32)
        ends = start + np.cumsum([len(piece) for piece in pieces], dtype=np.int64)
        token_ends = start_token + np.cumsum([len(ids) for ids in found], dtype=np.int64) // ids.itemsize
        shift, token_shift = len(text) - len(known.text), start_token + len(ids) - end_token
        return _Encoded(
            text,
            np.concatenate((known.ids[:start_token], ids, known.ids[end_token:])),
            np.concatenate((known.ends[:first], ends, known.ends[last:] + shift)),
            np.concatenate((known.token_ends[:first], token_ends, known.token_ends[last:] + token_shift)),
        )

    def _found(self, text: str) -> tuple[list[str], list[bytes]]:
        """The pieces of a text, and the tokens of each."""
        assert self._piece is not None
        pieces = self._piece.findall(text)
        found = [self._newer.get(piece, b"") for piece in pieces]
        if missing := [place for place, ids in enumerate(found) if not ids]:
            known = self._learned({pieces[place] for place in missing})
            for place in missing:
                found[place] = known[pieces[place]]
        return pieces, found

    def _learned(self, pieces: Iterable[str]) -> dict[str, bytes]:
        """The tokens of pieces that are not in the newer generation; afterwards they are."""
        known = {piece: self._older[piece] for piece in pieces if piece in self._older}
        unknown = [piece for piece in pieces if piece not in known]
        known.update(
            (piece, _ids(ids).tobytes()) for piece, ids in zip(unknown, self._encode_all(unknown), strict=True)
        )
        chars = sum(map(len, known))
        if self._newer_chars + chars > self._generation_chars:
            self._older, self._newer, self._newer_chars = self._newer, {}, 0
        if chars <= self._generation_chars:
            self._newer.update(known)
            self._newer_chars += chars
        return known

    def _holds(self, piece: re.Pattern[str]) -> bool:
        """Whether what stands on both sides of a cut comes out the same alone as together."""
        sides = [*itertools.product(_ENDS, _FEW_ENDS), *itertools.product(_FEW_ENDS, _ENDS)]
        texts = [f"{left}{gap}{right}" for gap in _GAPS for left, right in sides]
        cut = [piece.findall(text) for text in texts]
        alone = iter(self._encode_all([part for parts in cut for part in parts]))
        return all(
            whole == [token for _ in parts for token in next(alone)]
            for whole, parts in zip(self._encode_all(texts), cut, strict=True)
        )


def _ids(ids: Sequence[int]) -> TokenIds:
    return np.array(ids, dtype=np.int32)


def _shared(one: str, other: str, *, room: int | None = None, at_end: bool = False) -> int:
    """How many characters, at most `room`, two texts have in common at their start or end."""
    low, high = 0, min(len(one), len(other)) if room is None else room
    while low < high:
        middle = (low + high + 1) // 2
        if at_end:
            same = one[len(one) - middle : len(one) - low] == other[len(other) - middle : len(other) - low]
        else:
            same = one[low:middle] == other[low:middle]
        low, high = (middle, high) if same else (low, middle - 1)
    return low
