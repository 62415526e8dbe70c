"""Repeated edits as pure text: what was changed once is likely to be changed again.

`Repeats` learns rewrites from the hunks of an answer and from the names in the instruction, and tells what the lines
ahead may become, each with a probability. Beliefs are counts: a rewrite that was right gains one, one that was wrong
loses two, for it tends to stay wrong; below a floor it is silent until another example teaches it again.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from specedit.edit.induce import MAX_CHARS, Lesson, block_lessons, insertion_lessons, line_lessons
from specedit.edit.line_rewrite import Block, Edit, Insertion, LineRewrite, Literally, Rename
from specedit.edit.names import Spelling, is_name

_MAX_RULES = 64
_MAX_SETS = 256
_MAX_HUNK_LINES = 30
_MAX_BLOCK_LINES = 8
_MOST = 3
_FLOOR = 0.1
_LIKELY = 0.5
_SURE = 0.98
_HINTED = (3.0, 0.5)
_SIMILAR = 0.25
_PIECE = re.compile(r"\w+|[^\w\s]")

# How much of the belief in a name itself holds for its other spellings.
_SPELLINGS: dict[Spelling, float] = {"exact": 1.0, "variant": 0.85, "compound": 0.6, "prose": 0.45}
_SPELLING_OF = tuple(_SPELLINGS)


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a line may become.

    Attributes:
        text: the whole new line.
        rule: for `Repeats.confirm`.
        confidence: the probability, between 0 and 1, that the answer has this text here.
    """

    text: str
    rule: int
    confidence: float


@dataclass(frozen=True, slots=True)
class BlockPrediction:
    """What the next lines may become.

    Attributes:
        consumed: how many old lines are replaced; 0 where the new lines come in before them.
        lines: the new lines, without line ends; empty where the old ones are deleted.
        rule: for `Repeats.confirm`.
        confidence: the probability, between 0 and 1, that the answer has these lines here.
    """

    consumed: int
    lines: tuple[str, ...]
    rule: int
    confidence: float


@dataclass(slots=True)
class _Belief:
    right: float = 0.0
    wrong: float = 0.0
    credit: int = 0


@dataclass(slots=True)
class _Rule:
    """A rewrite with the beliefs in it, one for each spelling; only a rename has more than the exact one."""

    rewrite: LineRewrite | Block | Insertion
    number: int
    key: str
    beliefs: dict[Spelling, _Belief] = field(default_factory=dict)

    def confidence(self, spelling: Spelling = "exact") -> float:
        belief = self.beliefs[spelling]
        if spelling == "exact":
            return belief.right / (belief.right + belief.wrong)
        inherited = _SPELLINGS[spelling] * self.confidence()
        return (belief.right + inherited) / (belief.right + belief.wrong + 1)


class _Hit(NamedTuple):
    """A rule that applies to a line."""

    rule: _Rule
    spelling: Spelling
    edits: list[Edit]
    confidence: float


class Repeats:
    """The rewrites believed in during one answer. Deterministic, and bounded in rules and in work a line."""

    def __init__(self) -> None:
        self._rules: dict[LineRewrite | Block | Insertion, _Rule] = {}
        self._by_number: dict[int, _Rule] = {}
        self._next = 0
        self._sets: OrderedDict[int, tuple[int, ...]] = OrderedDict()
        self._set_ids: dict[tuple[int, ...], int] = {}

    def hint(self, old: str, new: str) -> None:
        """Believe strongly that `old` becomes `new` throughout, as when the instruction says so."""
        if old != new and old.strip() and len(old) <= MAX_CHARS and "\n" not in old + new:
            rewrite = Rename(old, new) if is_name(old) and is_name(new) else Literally(old, new)
            self._add(rewrite, *_HINTED)

    def learn(self, old_lines: Sequence[str], new_lines: Sequence[str], before: str = "", after: str = "") -> None:
        """Take a finished hunk as an example.

        Args:
            old_lines: whole lines without line ends; none where lines came in.
            new_lines: what they became; none where they were deleted.
            before: the unchanged line before the hunk, empty if there is none.
            after: the unchanged line after it.
        """
        if max(len(old_lines), len(new_lines)) > _MAX_HUNK_LINES:
            return
        for lesson in _lessons(list(old_lines), list(new_lines), before, after):
            self._learn(lesson)

    def predict(self, line: str) -> list[Prediction]:
        """What the old line `line` may become, most probable first; at most three, none where nothing applies."""
        if len(line) > MAX_CHARS:
            return []
        hits = self._hits(line)
        if not hits:
            return []
        best: dict[str, tuple[float, list[_Hit]]] = {}
        for chosen, chance in _choices(hits):
            text = _applied(line, chosen)
            if text != line and chance > best.get(text, (0.0, []))[0]:
                best[text] = (chance, chosen)
        ranked = sorted(best.items(), key=lambda item: -item[1][0])[:_MOST]
        scale = min(1.0, _SURE / sum(chance for _, (chance, _) in ranked)) if ranked else 1.0
        return [Prediction(text, self._name(chosen), chance * scale) for text, (chance, chosen) in ranked]

    def predict_block(self, lines: Sequence[str], before: str = "") -> list[BlockPrediction]:
        """What the old lines from `lines[0]` on may become where the number of lines changes; at most three.

        Args:
            lines: the lines ahead; eight are enough.
            before: the line that stands before `lines[0]`, old and new; lines may come in after it.
        """
        ahead = list(lines[:_MAX_BLOCK_LINES])
        first = ahead[0].lower() if ahead else ""
        last = before.lower()
        found = []
        for rule in self._rules.values():
            rewrite, confidence = rule.rewrite, 0.0
            new: list[str] | None = None
            consumed = 0
            if isinstance(rewrite, Block) and rule.key in first:
                new, consumed = rewrite.lines(ahead), rewrite.line_count
            elif isinstance(rewrite, Insertion) and rule.key in (last if rewrite.after else first):
                new = rewrite.lines(before, ahead[0] if ahead else "")
            if new is not None and (confidence := rule.confidence()) >= _FLOOR:
                found.append(BlockPrediction(consumed, tuple(new), rule.number, confidence))
        found.sort(key=lambda block: (-block.confidence, -block.rule))
        unique = list({(block.consumed, block.lines): block for block in reversed(found)}.values())[::-1]
        return unique[:_MOST]

    def confirm(self, rule: int, used: bool) -> None:
        """Say that the answer has, or has not, what `rule` predicted at a place where it did."""
        numbers = self._sets.get(rule, (rule,))
        known = [(self._by_number[number >> 2], _SPELLING_OF[number & 3]) for number in numbers if self._knows(number)]
        if not known:
            return
        if used:
            for one, spelling in known:
                one.beliefs[spelling].right += 1
                one.beliefs[spelling].credit += 1
        else:
            weakest, spelling = min(known, key=lambda pair: pair[0].confidence(pair[1]))
            weakest.beliefs[spelling].wrong += 2

    def _knows(self, number: int) -> bool:
        return number >> 2 in self._by_number

    def _learn(self, lesson: Lesson) -> None:
        known = self._rules.get(lesson.rewrite)
        if known is not None:
            belief = known.beliefs["exact"]
            # A place that was confirmed comes back as a hunk: that is one success, not two.
            if belief.credit:
                belief.credit -= 1
            else:
                belief.right += 1
            return
        chance = lesson.chance
        for rule in self._rules.values():
            if type(rule.rewrite) is type(lesson.rewrite) and rule.rewrite.replaced == lesson.rewrite.replaced:
                belief = rule.beliefs["exact"]
                belief.right, belief.wrong = belief.right / 2, belief.wrong + 1
                chance *= 0.8
        self._add(lesson.rewrite, chance, 1 - chance)

    def _add(self, rewrite: LineRewrite | Block | Insertion, right: float, wrong: float) -> None:
        spellings = _SPELLING_OF if isinstance(rewrite, Rename) else ("exact",)
        rule = _Rule(rewrite, self._next << 2, rewrite.key, {spelling: _Belief() for spelling in spellings})
        rule.beliefs["exact"] = _Belief(right, wrong)
        if known := self._rules.pop(rewrite, None):
            del self._by_number[known.number >> 2]
        self._rules[rewrite] = self._by_number[self._next] = rule
        self._next += 1
        if len(self._rules) > _MAX_RULES:
            weakest = min(self._rules.values(), key=lambda one: (one.confidence(), one.number))
            del self._rules[weakest.rewrite], self._by_number[weakest.number >> 2]

    def _hits(self, line: str) -> list[_Hit]:
        """The rules that apply to `line`, the most credible first; of equals the more specific, then the latest."""
        lower = line.lower()
        hits = []
        for rule in self._rules.values():
            if rule.key not in lower or isinstance(rule.rewrite, Block | Insertion):
                continue
            edits = rule.rewrite.edits(line)
            for spelling in dict.fromkeys(edit.spelling for edit in edits):
                confidence = rule.confidence(spelling)
                if confidence >= _FLOOR:
                    hits.append(_Hit(rule, spelling, [edit for edit in edits if edit.spelling == spelling], confidence))
        if len(hits) > 1:
            hits.sort(key=lambda hit: (-round(hit.confidence, 6), -len(hit.rule.rewrite.replaced), -hit.rule.number))
        return hits

    def _name(self, chosen: list[_Hit]) -> int:
        """One number for all the rules of a prediction."""
        numbers = tuple(hit.rule.number + _SPELLING_OF.index(hit.spelling) for hit in chosen)
        if len(numbers) == 1:
            return numbers[0]
        if numbers not in self._set_ids:
            self._set_ids[numbers] = -1 - self._next
            self._sets[-1 - self._next] = numbers
            self._next += 1
            if len(self._sets) > _MAX_SETS:
                _, oldest = self._sets.popitem(last=False)
                del self._set_ids[oldest]
        return self._set_ids[numbers]


def _choices(hits: list[_Hit]) -> Iterator[tuple[list[_Hit], float]]:
    """Which of the rules to apply together, and the probability that it is these and no others.

    Rules of one answer hold together: several are as probable as the least of them.
    """
    if len(hits) == 1:
        yield hits, hits[0].confidence
        return
    fitting, rivals = _compatible(hits)
    likely = [hit for hit in fitting if hit.confidence >= _LIKELY] or fitting[:1]
    rest = [hit for hit in fitting if hit not in likely]
    chance = min(hit.confidence for hit in likely)
    more = [_given(hit, likely) for hit in rest]
    yield likely, chance * (1 - max(more, default=0.0))
    if rest:
        yield likely + rest, chance * min(more)
    if len(likely) > 1:
        yield likely[:-1], min(hit.confidence for hit in likely[:-1]) * (1 - likely[-1].confidence)
    for rival in rivals:
        rivalled = max(hit.confidence for hit in fitting if _overlap(hit, rival))
        yield [rival], rival.confidence * (1 - rivalled)


def _given(hit: _Hit, held: list[_Hit]) -> float:
    """The belief in a rule where those of `held` are right: a name's other spellings go with the name."""
    return hit.confidence / hit.rule.confidence() if any(hit.rule is other.rule for other in held) else hit.confidence


def _compatible(hits: list[_Hit]) -> tuple[list[_Hit], list[_Hit]]:
    """The rules that can be applied together, best first, and those that a better one stands in the way of."""
    fitting: list[_Hit] = []
    rivals: list[_Hit] = []
    for hit in hits:
        (rivals if any(_overlap(hit, other) for other in fitting) else fitting).append(hit)
    return fitting, rivals


def _overlap(one: _Hit, other: _Hit) -> bool:
    return any((a.start < b.end and b.start < a.end) or a.start == b.start for a in one.edits for b in other.edits)


def _applied(line: str, chosen: Iterable[_Hit]) -> str:
    text = line
    for edit in sorted((edit for hit in chosen for edit in hit.edits), reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def _lessons(old: list[str], new: list[str], before: str, after: str) -> Iterator[Lesson]:
    pairs = _aligned(old, new)
    for at, new_at in pairs:
        yield from line_lessons(old[at].strip(), new[new_at].strip())
    if len(old) != len(new) and old and new and max(len(old), len(new)) <= _MAX_BLOCK_LINES:
        yield from block_lessons(old, new)
    edges = [(-1, -1), *pairs, (len(old), len(new))]
    for (at, new_at), (to, new_to) in pairwise(edges):
        gone, come = old[at + 1 : to], new[new_at + 1 : new_to]
        if len(gone) == len(come):
            for one, other in zip(gone, come, strict=True):
                yield from line_lessons(one.strip(), other.strip())
        elif gone and not come and len(gone) <= _MAX_BLOCK_LINES:
            yield from block_lessons(gone, [])
        elif come and not gone and len(come) <= _MAX_BLOCK_LINES:
            above = before if at < 0 else old[at]
            below = after if to == len(old) else old[to]
            yield from insertion_lessons(above, come, below)


def _aligned(old: list[str], new: list[str]) -> list[tuple[int, int]]:
    """Pairs of an old line and the new line that it became, in order: those that are most alike in sum."""
    if len(old) == len(new) == 1:
        return [(0, 0)]
    pieces, new_pieces = [_pieces(line) for line in old], [_pieces(line) for line in new]
    alike = [[_alike(one, other) for other in new_pieces] for one in pieces]
    best = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for at in range(len(old) - 1, -1, -1):
        for new_at in range(len(new) - 1, -1, -1):
            paired = alike[at][new_at] + best[at + 1][new_at + 1] if alike[at][new_at] >= _SIMILAR else 0.0
            best[at][new_at] = max(paired, best[at + 1][new_at], best[at][new_at + 1])
    pairs = []
    at = new_at = 0
    while at < len(old) and new_at < len(new):
        if best[at][new_at] == best[at + 1][new_at]:
            at += 1
        elif best[at][new_at] == best[at][new_at + 1]:
            new_at += 1
        else:
            pairs.append((at, new_at))
            at, new_at = at + 1, new_at + 1
    return pairs


def _pieces(line: str) -> frozenset[str]:
    return frozenset(_PIECE.findall(line[:MAX_CHARS]))


def _alike(one: frozenset[str], other: frozenset[str]) -> float:
    return 2 * len(one & other) / (len(one) + len(other)) if one and other else 0.0
