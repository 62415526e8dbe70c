"""Answer: one answer under way, with the texts that it may be copied from and where it stands in them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from specedit.draft import edit_cursor as cursor
from specedit.draft.edit_cursor import STATE_SIZE, Texts
from specedit.draft.suffix_index import BOUNDARY, SuffixIndex, Tokens
from specedit.draft.tree import IntArray
from specedit.draft.vocabulary import Vocabulary
from specedit.engine.api import Hints

#: Tokens of the prompt's end that count as the answer's past.
_PAST = 32
_ROOM = 1024


class Answer:
    """The arrays that drafting kernels read, and the verbs that change them.

    Attributes:
        texts, state: see `edit_cursor`; the arrays are replaced where they grow.
        index: over prompt and prediction.
        written: over the output array.
        resume: ground places where the text half expects the answer to rejoin the prediction, ascending.
    """

    def __init__(self, vocabulary: Vocabulary, prompt: Tokens, prediction: Tokens, hints: Hints) -> None:
        """Index prompt and prediction and put the cursor where the answer begins."""
        boundary = np.array([BOUNDARY], dtype=np.int32)
        ground = np.concatenate((prompt, boundary, prediction, boundary))
        start, end = len(prompt) + 1, len(ground) - 1
        past = prompt[-_PAST:]
        self.state = np.zeros(STATE_SIZE, dtype=np.int64)
        self.state[cursor.START], self.state[cursor.END] = start, end
        self.state[cursor.CURSOR], self.state[cursor.FOLLOWING] = start, 1
        self.state[cursor.DIVERGED_AT] = start
        self.state[cursor.AFTER] = cursor.NOWHERE
        self.state[cursor.OPENED] = -1
        self.state[cursor.LENGTH] = len(past)
        # The prompt shows the prediction once more: reading on there would say the same a second time.
        searched = ground.copy()
        shown = _where_shown(prompt, prediction)
        if shown is not None:
            searched[shown[0] : shown[1]] = BOUNDARY
            if shown[2]:
                self.state[cursor.AFTER] = shown[1]
        self.index = SuffixIndex(len(ground), indexed=int(np.count_nonzero(searched != BOUNDARY)))
        self.index.extend(searched)
        self.written = SuffixIndex(_ROOM)
        self.written.extend(past)
        self.resume: IntArray = start + _tokens_at(vocabulary.chars[prediction], hints.resume_offsets)
        output = np.full(_ROOM, BOUNDARY, dtype=np.int32)
        output[: len(past)] = past
        self._events = np.empty((cursor.EVENT_ROOM, 3), dtype=np.int64)
        self.texts = Texts(
            ground=ground,
            output=output,
            made=np.full(_ROOM, BOUNDARY, dtype=np.int32),
            stands_for=np.zeros(_ROOM, dtype=np.int32),
            sites=np.full(len(prediction) + 1, -1, dtype=np.int32),
            trust=np.zeros(len(prediction) + 1, dtype=np.float32),
            kinds=vocabulary.kinds,
            scratch=np.zeros(vocabulary.size, dtype=np.int16),
        )
        if len(prediction):
            self._frame(vocabulary, hints)

    @property
    def memory_bytes(self) -> int:
        """Bytes of its texts and indexes."""
        arrays = (array for array in self.texts if array is not self.texts.kinds)
        return self.index.memory_bytes + self.written.memory_bytes + sum(array.nbytes for array in arrays)

    @property
    def output(self) -> Tokens:
        """[length] the prompt's last tokens, then the answer so far."""
        return self.texts.output[: self.state[cursor.LENGTH]]

    @property
    def following(self) -> bool:
        """Whether it follows the prediction or a made text."""
        return bool(self.state[cursor.FOLLOWING])

    @property
    def place(self) -> int | None:
        """The prediction's token that it stands at, or that it left when it last diverged; None beyond both."""
        place = int(self.state[cursor.CURSOR] if self.following else self.state[cursor.DIVERGED_AT])
        if place >= cursor.MADE:
            place = int(self.texts.stands_for[place - cursor.MADE])
        start, end = int(self.state[cursor.START]), int(self.state[cursor.END])
        return place - start if start <= place <= end else None

    def commit(self, tokens: Tokens) -> list[list[int]]:
        """Append tokens that the target emitted; return the events of `edit_cursor.follow`."""
        if self.state[cursor.LENGTH] + len(tokens) > len(self.texts.output):
            self.texts = self.texts._replace(output=_grown(self.texts.output, len(tokens)))
        self.written.extend(tokens)
        count = cursor.follow(self.texts, self.state, self._events, tokens)
        events: list[list[int]] = self._events[:count].tolist()
        return events

    def make(self, tokens: Sequence[int], stands_for: Sequence[int], end: int | None) -> int:
        """Append a made text; return where it begins.

        Args:
            tokens: the text.
            stands_for: [tokens] tokens of the prediction; none where it stands for nothing.
            end: the token of the prediction that comes after it; None where nothing follows.
        """
        texts, start = self.texts, int(self.state[cursor.START])
        made = int(self.state[cursor.MADE_LENGTH])
        if made + len(tokens) + 1 > len(texts.made):
            texts = self.texts = texts._replace(
                made=_grown(texts.made, len(tokens) + 1), stands_for=_grown(texts.stands_for, len(tokens) + 1)
            )
        stop = made + len(tokens)
        texts.made[made:stop] = tokens
        texts.stands_for[made:stop] = [start + place for place in stands_for] or start + (end or 0)
        texts.made[stop] = BOUNDARY
        texts.stands_for[stop] = cursor.NOWHERE if end is None else start + end
        self.state[cursor.MADE_LENGTH] = stop + 1
        return made

    def _frame(self, vocabulary: Vocabulary, hints: Hints) -> None:
        """Lay out what stands around the prediction in the answer; the cursor begins with it."""
        encode = vocabulary.codec.encode
        if hints.opening:
            opening = encode(hints.opening)
            self.state[cursor.CURSOR] = cursor.MADE + self.make(opening, (), 0)
            self.state[cursor.OPENED] = len(opening)
        if hints.closing:
            self.state[cursor.AFTER] = cursor.MADE + self.make(encode(hints.closing), (), None)
        self.state[cursor.FRAMED] = self.state[cursor.MADE_LENGTH]


def _tokens_at(chars: Tokens, offsets: Sequence[int]) -> IntArray:
    """The tokens that begin at code-point offsets, where `chars` begin in each; offsets within one are left out."""
    begins = np.cumsum(chars) - chars
    # A mask over the text is many times as fast as searching: there are thousands of offsets.
    wanted = np.zeros(int(chars.sum()) + 1, dtype=np.bool_)
    given = np.fromiter(offsets, dtype=np.int64, count=len(offsets))
    wanted[given[(given >= 0) & (given < len(wanted))]] = True
    return np.flatnonzero(wanted[begins] & (chars > 0))


def _grown(array: Tokens, more: int) -> Tokens:
    grown = np.full(max(2 * len(array), len(array) + more), BOUNDARY, dtype=array.dtype)
    grown[: len(array)] = array
    return grown


def _where_shown(prompt: Tokens, prediction: Tokens) -> tuple[int, int, bool] | None:
    """Where the prompt shows the prediction: from, to, and whether up to its end; None where it does not."""
    size = len(prediction)
    if size < 4 or len(prompt) < size // 2:
        return None
    for anchor in (size // 2, size // 4, 3 * size // 4):
        probe = prediction[anchor : anchor + 12]
        found = np.flatnonzero(prompt[: max(0, len(prompt) - len(probe) + 1)] == probe[0])
        for place in found.tolist():
            if not (prompt[place : place + len(probe)] == probe).all():
                continue
            first = _agreeing(prompt[:place][::-1], prediction[:anchor][::-1])
            last = _agreeing(prompt[place:], prediction[anchor:])
            if first + last >= size // 2:
                return place - first, place + last, anchor + last >= size - 1
    return None


def _agreeing(left: Tokens, right: Tokens) -> int:
    """How many tokens two texts have in common at their start."""
    size = min(len(left), len(right))
    differing = np.flatnonzero(left[:size] != right[:size])
    return int(differing[0]) if len(differing) else size
