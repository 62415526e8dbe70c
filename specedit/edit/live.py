"""Hunks while the answer is written: each is given once what follows shows where the answer is in the region again.

What is given early is what the whole answer will say, as far as that can be told; `conclude` sets right what could not.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from specedit.edit.answer_lines import AnswerLines
from specedit.edit.document import Document, split_lines
from specedit.edit.region import Region
from specedit.edit.stream import Hunk, hunks

#: So many unchanged lines settle the hunk before them, where they stand but once in what is left of the region ...
SETTLING_LINES = 2
#: ... and so many in any case: the first place where they stand is taken.
CERTAIN_LINES = 6


@dataclass(frozen=True, slots=True)
class LiveHunk:
    """A hunk, and the number by which an editor knows it."""

    id: int
    hunk: Hunk

    @property
    def lines(self) -> tuple[int, int]:
        """The first of the lines that it replaces, 1-based, and the one after the last."""
        return self.hunk.start_line, self.hunk.start_line + len(split_lines(self.hunk.old))


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What the whole answer makes of the hunks that were given before.

    Attributes:
        hunks: all hunks of the result, in order; those that were given, or are in the place of such, have their ids.
        changed: those of them that were not given, or not as they are.
        removed: ids of what was given and is in the result no more.
    """

    hunks: tuple[LiveHunk, ...]
    changed: tuple[LiveHunk, ...]
    removed: tuple[int, ...]


class LiveHunks:
    """The hunks of an answer that is being written.

    What a chunk costs does not grow with the answer: lines are compared with the region from where the answer is in it,
    and after a change only what came since is aligned.
    """

    def __init__(self, document: Document, region: Region, instruction: str) -> None:
        """Follow the answer to `instruction` about `region` of `document`."""
        self._lines = split_lines(document.text[region.span.start : region.span.end])
        self._first_line = document.line_number(region.span.start)
        self._line_ending = document.line_ending
        self._answer = AnswerLines(document, region, instruction)
        self._alignment = _Alignment([line.rstrip("\r\n") for line in self._lines])
        self._given: list[LiveHunk] = []

    def feed(self, text: str) -> tuple[LiveHunk, ...]:
        """The hunks that are settled now that `text` came."""
        gaps = [gap for line in self._answer.feed(text) if (gap := self._alignment.take(line)) is not None]
        found = [hunk for gap in gaps for hunk in self._hunks(gap)]
        new = tuple(LiveHunk(number, hunk) for number, hunk in enumerate(found, start=len(self._given) + 1))
        self._given += new
        return new

    def conclude(self, final: Sequence[Hunk]) -> Conclusion:
        """What the hunks of the result are, set against those that were given."""
        numbers = {given.hunk: given.id for given in self._given}
        standing = numbers.keys() & set(final)
        stale = deque(given for given in self._given if given.hunk not in standing)
        next_number = len(self._given)
        result: list[LiveHunk] = []
        removed: list[int] = []
        for hunk in final:
            if hunk in standing:
                result.append(LiveHunk(numbers[hunk], hunk))
                continue
            start, end = LiveHunk(0, hunk).lines
            while stale and stale[0].lines[1] < start:
                removed.append(stale.popleft().id)
            if stale and stale[0].lines[0] <= end:
                result.append(LiveHunk(stale.popleft().id, hunk))
            else:
                next_number += 1
                result.append(LiveHunk(next_number, hunk))
        removed += [given.id for given in stale]
        changed = tuple(live for live in result if live.hunk not in standing)
        return Conclusion(tuple(result), changed, tuple(removed))

    def _hunks(self, gap: _Gap) -> Iterator[Hunk]:
        old = [line.rstrip("\r\n") for line in self._lines[gap.start : gap.end]]
        first_line = self._first_line + gap.start
        for hunk in hunks([f"{line}\n" for line in old], [f"{line}\n" for line in gap.new], first_line=first_line):
            start = hunk.start_line - self._first_line
            replaced = self._lines[start : start + hunk.old.count("\n")]
            yield Hunk(hunk.start_line, "".join(replaced), "".join(self._with_ends(hunk.new, replaced)))

    def _with_ends(self, new: str, replaced: list[str]) -> Iterator[str]:
        """The lines of `new` with the ends of those in whose place they stand."""
        for index, line in enumerate(new.split("\n")[:-1]):
            old = replaced[index] if index < len(replaced) else ""
            yield line + (old[len(old.rstrip("\r\n")) :] or self._line_ending)


@dataclass(frozen=True, slots=True)
class _Gap:
    """The lines `start` up to `end` of the region, counted from 0, became `new`."""

    start: int
    end: int
    new: list[str]


class _Alignment:
    """Where in the old lines the new ones are, as they come."""

    def __init__(self, old: list[str]) -> None:
        self._old = old
        self._at = 0
        self._tail: list[str] = []

    def take(self, line: str) -> _Gap | None:
        """The change that ended before the last lines, if they settle it."""
        if not self._tail and self._at < len(self._old) and self._old[self._at] == line:
            self._at += 1
            return None
        self._tail.append(line)
        return self._settled()

    def _settled(self) -> _Gap | None:
        places = self._places.get(tuple(self._tail[-SETTLING_LINES:]), [])
        first = bisect_left(places, self._at + SETTLING_LINES)
        if first == len(places):
            return None
        end, count = places[first], self._unchanged(places[first])
        skipped, written = end - count - self._at, len(self._tail) - count
        # Where much is left out, it may be that something from further down was written here as well.
        needed = min(CERTAIN_LINES, SETTLING_LINES + max(0, skipped - written))
        is_only = first == len(places) - 1
        if count < (needed if is_only else CERTAIN_LINES):
            return None
        gap = _Gap(self._at, end - count, self._tail[:written])
        self._at, self._tail = end, []
        return gap

    def _unchanged(self, end: int) -> int:
        """How many of the last new lines are those before the old line `end`."""
        most = min(end - self._at, len(self._tail))
        return next((k for k in range(most) if self._tail[-1 - k] != self._old[end - 1 - k]), most)

    @cached_property
    def _places(self) -> dict[tuple[str, ...], list[int]]:
        """By two lines that follow each other, the numbers of the lines after them."""
        places: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for index, two in enumerate(pairwise(self._old)):
            places[two].append(index + 2)
        return places
