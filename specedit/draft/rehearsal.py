"""Rehearsal: what the old text ahead may become, laid out where drafting kernels read on in it."""

from __future__ import annotations

from specedit.draft import edit_cursor as cursor
from specedit.draft.answer import Answer
from specedit.draft.replay import Patch, Replay
from specedit.draft.vocabulary import FIRST_IN_LINE, Vocabulary

#: The longest hunk, in tokens, that is learned from.
_HUNK = 400
#: A line has another indent if that shows in its first tokens.
_LINE_BEGIN = 4


class Rehearsal:
    """Keeps the made texts of one answer: learns from its hunks, and lays out patches and shifted lines."""

    def __init__(self, answer: Answer, replay: Replay, vocabulary: Vocabulary) -> None:
        """Lay out what the hints alone tell."""
        self._answer = answer
        self._replay = replay
        self._vocabulary = vocabulary
        self._left: tuple[int, int] | None = None
        self._made_by: dict[int, Patch] = {}
        self._laid: dict[int, list[Patch]] = {}
        self._shifts: set[tuple[int, str]] = set()
        self._look_ahead()

    def follow(self, events: list[list[int]]) -> None:
        """Learn from what the answer did, and look ahead from where it stands now."""
        for event, one, other in events:
            if event == cursor.DIVERGED:
                self._left = (one, other)
            elif event == cursor.RESUMED and self._left is not None:
                self._learn(*self._left, one, other)
                self._left = None
            elif event in (cursor.USED, cursor.UNUSED) and one in self._made_by:
                self._replay.confirm(self._made_by[one], event == cursor.USED)
        self._look_ahead()

    def _learn(self, left: int, since: int, resumed: int, until: int) -> None:
        """A hunk has ended: the old text from `left` to `resumed` became the output from `since` to `until`."""
        texts, state = self._answer.texts, self._answer.state
        start, end = int(state[cursor.START]), int(state[cursor.END])
        if not (start <= left <= end and start <= resumed and since <= until):
            return
        written = texts.output[since:until].tolist()
        if resumed < left:
            # The run goes back behind the place that was left: the answer says that much again.
            written += texts.ground[resumed:left].tolist()
            resumed = left
        if resumed - left <= _HUNK and len(written) <= _HUNK:
            self._replay.learn(left - start, resumed - start, written)

    def _look_ahead(self) -> None:
        place = self._answer.place
        if place is None:
            return
        for line, patches in self._replay.ahead(place):
            if self._laid.get(line) is not patches:
                self._lay_out(line, patches)
        if not self._answer.following:
            self._shift(place)

    def _lay_out(self, line: int, patches: list[Patch]) -> None:
        """Put the patches of a line where its old tokens stand."""
        self._laid[line] = patches
        sites, trust = self._answer.texts.sites, self._answer.texts.trust
        sites[self._replay.line_start(line) : self._replay.line_start(line + 1)] = -1
        for patch in patches:
            made = self._answer.make(patch.tokens, [patch.start] * len(patch.tokens), patch.end)
            self._made_by[made] = patch
            if patch.start < len(sites) - 1:
                sites[patch.start] = made
                trust[patch.start] = patch.trust

    def _shift(self, place: int) -> None:
        """Lay out the old text with another indent, where the answer begins a line in another column."""
        begun = self._line_begun()
        if begun is None:
            return
        replay = self._replay
        line = replay.line_of(place)
        if place > replay.line_start(line) + 2:
            line += 1
        if line >= replay.line_count:
            return
        own = replay.indent(line)
        if begun.strip():
            indent = begun[: len(begun) - len(begun.lstrip(" \t"))]
        elif begun:
            # A tokenizer may leave the indent's last blank to the word after it.
            rest = own[len(replay.first_token(line)) :] if not replay.first_token(line).strip() else own
            indent = begun + rest if len(rest) <= 1 else begun
        else:
            indent = own + replay.unit
        if (line, indent) in self._shifts:
            return
        self._shifts.add((line, indent))
        shifted = replay.shifted(line, indent)
        if shifted is not None:
            self._answer.make(shifted.tokens, shifted.stands_for, shifted.end)

    def _line_begun(self) -> str | None:
        """What the answer's last line holds so far; None where that is more than its beginning."""
        output, kinds = self._answer.output, self._vocabulary.kinds
        for back in range(1, min(_LINE_BEGIN, len(output) - 1) + 1):
            if kinds[output[-back]] < FIRST_IN_LINE:
                return self._vocabulary.text(output[len(output) - back + 1 :].tolist())
        return None
