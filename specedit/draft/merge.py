"""EditDrafter: cursor, repeated changes, lookup and n-grams merged into one draft tree under one budget."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

import numpy as np

from specedit.draft import edit_cursor as cursor
from specedit.draft.base import NO_HINTS
from specedit.draft.beliefs import Beliefs, gather
from specedit.draft.edit_cursor import STATE_SIZE, Texts
from specedit.draft.expand import draft
from specedit.draft.ngrams import Table, empty_table
from specedit.draft.priors import Priors, load_priors
from specedit.draft.replay import Patch, Replay
from specedit.draft.suffix_index import BOUNDARY, SuffixIndex, Tokens
from specedit.draft.tree import DraftTree, IntArray
from specedit.draft.vocabulary import FIRST_IN_LINE, Vocabulary
from specedit.engine.api import Hints

Part = Literal["cursor", "replay", "lookup", "ngram"]
PARTS: tuple[Part, ...] = ("cursor", "replay", "lookup", "ngram")
PART_BITS = {part: 1 << bit for bit, part in enumerate(PARTS)}

#: Tokens of the prompt's end that count as the answer's past.
_PAST = 32
_ROOM = 1024
#: The longest hunk, in tokens, that is learned from.
_HUNK = 400
#: A line has another indent if that shows in its first tokens.
_LINE_BEGIN = 4


class EditDrafter:
    """Drafts an answer that edits its prediction.

    Attributes:
        name: under which its trees are counted where they do not name their parts.
        memory_bytes: what index and texts of the answer under way take.
        texts, state: where the answer stands; see `edit_cursor`.
        beliefs: what `gather` found last.
    """

    name = "edit"

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        parts: Collection[str] = PARTS,
        wide: bool = True,
        table: Table | None = None,
        priors: Priors | None = None,
    ) -> None:
        """Make a drafter for one answer at a time.

        Args:
            vocabulary: the target's.
            parts: which drafters take part.
            wide: whether drafts may branch; else each is a chain.
            table: static n-grams; None for none.
            priors: what is believed beforehand; None takes the shipped ones.
        """
        self._vocabulary = vocabulary
        self._parts = sum(PART_BITS[part] for part in PARTS if part in parts)
        self._wide = wide
        self._table = table if table is not None else empty_table()
        self._priors = priors or load_priors("plain" if table is None else "table")
        self._events = np.empty((cursor.EVENT_ROOM, 3), dtype=np.int64)
        self.beliefs = Beliefs.empty()
        self._scratch = np.zeros(vocabulary.size, dtype=np.int16)
        self.begin([], [])

    def begin(
        self, prompt_ids: Sequence[int] | Tokens, prediction_ids: Sequence[int] | Tokens, hints: Hints = NO_HINTS
    ) -> None:
        """Index prompt and prediction and put the cursor at the prediction's start."""
        prompt = np.asarray(prompt_ids, dtype=np.int32)
        prediction = np.asarray(prediction_ids, dtype=np.int32)
        boundary = np.array([BOUNDARY], dtype=np.int32)
        ground = np.concatenate((prompt, boundary, prediction, boundary))
        start, end = len(prompt) + 1, len(ground) - 1
        self.state = np.zeros(STATE_SIZE, dtype=np.int64)
        self.state[cursor.START], self.state[cursor.END] = start, end
        self.state[cursor.CURSOR], self.state[cursor.FOLLOWING] = start, 1
        self.state[cursor.DIVERGED_AT] = start
        self.state[cursor.AFTER] = cursor.NOWHERE
        self.state[cursor.OPENED] = -1
        # The prompt shows the prediction once more: reading on there would say the same a second time.
        searched = ground.copy()
        shown = _where_shown(prompt, prediction)
        if shown is not None:
            searched[shown[0] : shown[1]] = BOUNDARY
            if shown[2]:
                self.state[cursor.AFTER] = shown[1]
        self._index = SuffixIndex(len(ground))
        self._index.extend(searched)
        past = prompt[-_PAST:]
        self._written = SuffixIndex(_ROOM)
        self._written.extend(past)
        self.state[cursor.LENGTH] = self.state[cursor.ANSWER] = len(past)
        output = np.full(_ROOM, BOUNDARY, dtype=np.int32)
        output[: len(past)] = past
        self._resume = start + self._tokens_at(prediction, hints.resume_offsets)
        self._replay = Replay(self._vocabulary, prediction, hints)
        self._left: tuple[int, int] | None = None
        self._made_by: dict[int, Patch] = {}
        self._laid: dict[int, list[Patch]] = {}
        self._shifts: set[tuple[int, str]] = set()
        self.texts = Texts(
            ground=ground,
            output=output,
            made=np.full(_ROOM, BOUNDARY, dtype=np.int32),
            stands_for=np.zeros(_ROOM, dtype=np.int32),
            sites=np.full(len(prediction) + 1, -1, dtype=np.int32),
            trust=np.zeros(len(prediction) + 1, dtype=np.float32),
            kinds=self._vocabulary.kinds,
            scratch=self._scratch,
        )
        if len(prediction):
            self._frame(hints)
        self._replays = bool(self._parts & PART_BITS["replay"]) and len(prediction) > 0
        if self._replays:
            self._look_ahead()

    def _frame(self, hints: Hints) -> None:
        """Lay out what stands around the prediction in the answer; the cursor begins with it."""
        encode = self._vocabulary.codec.encode
        if hints.opening:
            opening = encode(hints.opening)
            self.state[cursor.CURSOR] = cursor.MADE + self._make(opening, (), 0)
            self.state[cursor.OPENED] = len(opening)
        if hints.closing:
            self.state[cursor.AFTER] = cursor.MADE + self._make(encode(hints.closing), (), None)
        self.state[cursor.FRAMED] = self.state[cursor.MADE_LENGTH]

    def _tokens_at(self, prediction: Tokens, offsets: Sequence[int]) -> IntArray:
        """The tokens of the prediction that begin at code-point offsets; offsets within a token are left out."""
        chars = self._vocabulary.chars[prediction]
        begins = np.cumsum(chars) - chars
        # A mask over the text is many times as fast as searching: there are thousands of offsets.
        wanted = np.zeros(int(chars.sum()) + 1, dtype=np.bool_)
        given = np.fromiter(offsets, dtype=np.int64, count=len(offsets))
        wanted[given[(given >= 0) & (given < len(wanted))]] = True
        return np.flatnonzero(wanted[begins] & (chars > 0))

    @property
    def memory_bytes(self) -> int:
        """Bytes of the texts and indexes of the answer under way."""
        arrays = (array for array in self.texts if array is not self._vocabulary.kinds)
        return self._index.memory_bytes + self._written.memory_bytes + sum(array.nbytes for array in arrays)

    def commit(self, token_ids: Sequence[int]) -> None:
        """Follow the tokens that the target emitted."""
        tokens = np.asarray(token_ids, dtype=np.int32)
        if self.state[cursor.LENGTH] + len(tokens) > len(self.texts.output):
            self.texts = self.texts._replace(output=_grown(self.texts.output, len(tokens)))
        self._written.extend(tokens)
        events = cursor.follow(self.texts, self.state, self._events, tokens)
        if self._replays:
            self._learn(self._events[:events].tolist())
            self._look_ahead()

    def propose(self, budget: int) -> DraftTree:
        """The most probable continuations, merged into one tree of at most `budget` nodes."""
        if budget <= 0 or self.state[cursor.LENGTH] < 2:
            return DraftTree.chain([])
        token_ids, parents, origins = np.empty((3, budget), dtype=np.int64)
        log_probs = np.empty(budget, dtype=np.float64)
        size, uniform = draft(
            self.texts,
            self.state,
            self._index.arrays,
            self._written.arrays,
            self._resume,
            self._table,
            self._priors.parameters,
            self._priors.survival,
            self._vocabulary.barred,
            self._parts,
            self._wide,
            self.beliefs,
            token_ids,
            parents,
            log_probs,
            origins,
        )
        names = (
            (PARTS[int(origins[0])],) * size
            if uniform and size
            else tuple(map(PARTS.__getitem__, origins[:size].tolist()))
        )
        return DraftTree(token_ids[:size], parents[:size], log_probs[:size], names)

    def gather(self) -> int:
        """Collect the beliefs about the next token in `beliefs`; return how many there are."""
        return gather(
            self.texts,
            self.state,
            self._index.arrays,
            self._written.arrays,
            self._resume,
            self._table,
            self._parts,
            self.beliefs,
        )

    def _learn(self, events: list[list[int]]) -> None:
        """Tell the replay what became of the old text."""
        state, start = self.state, int(self.state[cursor.START])
        for event, one, other in events:
            if event == cursor.DIVERGED:
                self._left = (one, other)
            elif event == cursor.RESUMED and self._left is not None:
                left, since = self._left
                self._left = None
                if start <= left <= state[cursor.END] and start <= one and other >= since and left < cursor.MADE:
                    old_end, written = one, self.texts.output[since:other].tolist()
                    if old_end < left:
                        # The run goes back behind the place that was left: the answer says that much again.
                        written += self.texts.ground[old_end:left].tolist()
                        old_end = left
                    if old_end - left <= _HUNK and len(written) <= _HUNK:
                        self._replay.learn(left - start, old_end - start, written)
            elif event in (cursor.USED, cursor.UNUSED) and one in self._made_by:
                self._replay.confirm(self._made_by[one], event == cursor.USED)

    def _look_ahead(self) -> None:
        """Lay out what the lines ahead may become."""
        state, texts = self.state, self.texts
        start = int(state[cursor.START])
        following = state[cursor.FOLLOWING] == 1
        place = int(state[cursor.CURSOR] if following else state[cursor.DIVERGED_AT])
        if place >= cursor.MADE:
            place = int(texts.stands_for[place - cursor.MADE])
        if not start <= place <= state[cursor.END]:
            return
        for line, patches in self._replay.ahead(place - start):
            if self._laid.get(line) is patches:
                continue
            self._laid[line] = patches
            first, last = self._replay.line_start(line), self._replay.line_start(line + 1)
            self.texts.sites[first:last] = -1
            for patch in patches:
                made = self._make(patch.tokens, [patch.start] * len(patch.tokens), patch.end)
                self._made_by[made] = patch
                if patch.start < len(self.texts.sites) - 1:
                    self.texts.sites[patch.start] = made
                    self.texts.trust[patch.start] = patch.trust
        if not following:
            self._shift(place - start)

    def _shift(self, place: int) -> None:
        """Lay out the old text with another indent, where the answer begins a line in another column."""
        written = self.texts.output[: self.state[cursor.LENGTH]]
        kinds = self._vocabulary.kinds
        size = len(written)
        back = 1
        while back <= min(_LINE_BEGIN, size) and kinds[written[-back]] >= FIRST_IN_LINE:
            back += 1
        if back > _LINE_BEGIN or back >= size:
            return
        replay = self._replay
        line = replay.line_of(place)
        if place > replay.line_start(line) + 2:
            line += 1
        if line >= replay.line_count:
            return
        begun = self._vocabulary.text(written[size - back + 1 :].tolist())
        old = replay.line_text(line)
        own = old[: len(old) - len(old.lstrip(" \t"))]
        if begun.strip():
            indents = [begun[: len(begun) - len(begun.lstrip(" \t"))]]
        elif begun:
            first = self._vocabulary.text([int(self.texts.ground[self.state[cursor.START] + replay.line_start(line)])])
            rest = own[len(first) :] if not first.strip() else own
            indents = [begun + rest] if len(rest) <= 1 else [begun]
        else:
            indents = [own + replay.unit]
        for indent in indents:
            if (line, indent) in self._shifts:
                continue
            self._shifts.add((line, indent))
            shifted = replay.shifted(line, indent)
            if shifted is not None:
                self._make(shifted.tokens, shifted.stands_for, shifted.end)

    def _make(self, tokens: Sequence[int], stands_for: Sequence[int], end: int | None) -> int:
        """Append a made text; return where it begins.

        Args:
            tokens: the text.
            stands_for: [tokens] places in the prediction; none where it stands for nothing.
            end: where the prediction goes on after it; None where nothing follows.
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
