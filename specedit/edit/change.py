"""One changed text as tokens: what differs, and old and new as text with holes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import NamedTuple

from specedit.edit.lexemes import (
    CLOSERS,
    COMMA,
    KEYWORDS,
    OPENERS,
    QUOTES,
    closing,
    common,
    is_operand,
    is_string,
    pieces_of,
    tokens_of,
    unmatched,
)
from specedit.edit.line_rewrite import Hole, HoleKind, Parts, joined, longest_word
from specedit.edit.names import is_name

_MAX_HOLES = 6


class Run(NamedTuple):
    """Old tokens [start, end) that became the new tokens [new_start, new_end)."""

    start: int
    end: int
    new_start: int
    new_end: int


@dataclass(frozen=True)
class Change:
    """A changed text as tokens; a string literal is one token where both texts have it."""

    old: list[str]
    new: list[str]

    @classmethod
    def of(cls, old: str, new: str) -> Change:
        """The change from one text to the other."""
        kept = set(tokens_of(old)) & set(tokens_of(new))
        return cls(list(_tokens(old, kept)), list(_tokens(new, kept)))

    def runs(self) -> list[Run]:
        """Where the texts differ; what a lone dot or blank parts is one run."""
        matcher = SequenceMatcher(None, self.old, self.new, autojunk=False)
        found: list[Run] = []
        for tag, *bounds in matcher.get_opcodes():
            if tag == "equal":
                continue
            run = Run(*bounds)
            if found and self._connected(found[-1], run):
                run = Run(found[-1].start, run.end, found[-1].new_start, run.new_end)
                found.pop()
            found.append(run)
        return found

    def _connected(self, run: Run, following: Run) -> bool:
        between = self.old[run.end : following.start]
        if between == ["."] or between == ["::"]:
            return True
        return all(token.isspace() for token in between) and not (
            one_name_each(self.texts(run)) and one_name_each(self.texts(following))
        )

    def texts(self, run: Run) -> tuple[str, str]:
        """The old and the new text of a run."""
        return "".join(self.old[run.start : run.end]), "".join(self.new[run.new_start : run.new_end])

    def breaks_brackets(self, run: Run) -> bool:
        """Whether a run opens or closes brackets that another run of this change closes or opens."""
        old, new = self.old[run.start : run.end], self.new[run.new_start : run.new_end]
        return unmatched(old) != unmatched(new) and unmatched(self.old) == unmatched(self.new)

    def brackets(self) -> tuple[int, int, int] | None:
        """The innermost brackets around all that changed: opening and closing token, and the new closing one."""
        head = common(self.old, self.new)
        tail = common(self.old[head:][::-1], self.new[head:][::-1])
        depth = 0
        for start in range(head - 1, -1, -1):
            depth += (self.old[start] in CLOSERS) - (self.old[start] in OPENERS)
            if depth < 0:
                end, new_end = closing(self.old, start), closing(self.new, start)
                outside = end and new_end and len(self.old) - end <= tail and len(self.new) - new_end <= tail
                return (start, end, new_end) if end and new_end and outside else None
        return None

    def balanced_region(self) -> tuple[int, int, int, int] | None:
        """The bounds, old and new, of what changed, widened to whole brackets and to a word that stays."""
        head = common(self.old, self.new)
        tail = common(self.old[head:][::-1], self.new[head:][::-1])
        while True:
            bounds = (head, len(self.old) - tail, head, len(self.new) - tail)
            old, new = self.old[bounds[0] : bounds[1]], self.new[bounds[2] : bounds[3]]
            needs_left = max(unmatched(old)[0], unmatched(new)[0])
            needs_right = max(unmatched(old)[1], unmatched(new)[1])
            cut_call = bool(old and head and old[0] in OPENERS and is_name(self.old[head - 1]))
            cut_name = bool(head and self.old[head - 1] in (".", "::"))
            wordless = not any(is_name(token) and (token not in new or token in KEYWORDS) for token in old)
            if needs_right:
                if not tail:
                    return None
                tail -= 1
            elif needs_left or cut_call or cut_name or (wordless and head):
                if not head:
                    return None
                head -= 1
            else:
                return bounds

    def with_holes(self, start: int, end: int, new_start: int, new_end: int) -> tuple[Parts, Parts] | None:
        """The old and the new text with what both have as holes; None where they have nothing, or nothing is left."""
        old, new = self.old[start:end], self.new[new_start:new_end]
        old_holes: dict[int, tuple[int, Hole]] = {}
        new_holes: dict[int, tuple[int, Hole]] = {}
        for at, new_at, size in _shared_runs(old, new):
            if len(old_holes) == _MAX_HOLES:
                break
            if _overlaps(old_holes, at, size) or _overlaps(new_holes, new_at, size):
                continue
            ends_line = end == len(self.old) or all(token in (";", ":", ",", "{", " ") for token in self.old[end:])
            hole = Hole(len(old_holes), _hole_kind(old, at, at + size == len(old), ends_line))
            old_holes[at], new_holes[new_at] = (size, hole), (size, hole)
        if not old_holes:
            return None
        parts = _with(old, old_holes), _with(new, new_holes)
        return parts if longest_word(parts[0]) and parts[0] != parts[1] else None


def one_name_each(texts: tuple[str, str]) -> bool:
    """Whether the old and the new text are a name each, and no keyword."""
    return all(is_name(text) and text not in KEYWORDS for text in texts)


def _tokens(text: str, whole: set[str]) -> Iterator[str]:
    for token in tokens_of(text):
        if is_string(token) and token not in whole:
            yield from pieces_of(token)
        else:
            yield token


def _shared_runs(old: list[str], new: list[str]) -> list[tuple[int, int, int]]:
    """Runs of tokens that both texts have and that may be holes: (old index, new index, tokens), longest first."""
    runs = set()
    lengths: dict[int, int] = {}
    for at in range(len(old) - 1, -1, -1):
        fresh = {}
        for new_at, token in enumerate(new):
            if token == old[at]:
                fresh[new_at] = lengths.get(new_at + 1, 0) + 1
                if not (at and new_at and old[at - 1] == new[new_at - 1]):
                    runs.add((at, new_at, fresh[new_at]))
        lengths = fresh
    trimmed = {found for run in runs for found in _operands(old, new, *run)}
    return sorted(trimmed, key=lambda run: (-run[2], run[0], run[1]))


def _operands(old: list[str], new: list[str], at: int, new_at: int, size: int) -> Iterator[tuple[int, int, int]]:
    """The parts of a shared run that stand for themselves: balanced, no comma of their own, no call cut in two."""
    start = at
    depth = 0
    bounds = []
    for i in range(at, at + size + 1):
        token = old[i] if i < at + size else COMMA
        closes_more = token in CLOSERS and depth == 0
        if (token == COMMA and depth == 0) or closes_more or i == at + size:
            bounds.append((start, i))
            start, depth = i + 1, 0
        elif token in OPENERS:
            if closing(old[: at + size], i) is None:
                bounds.append((start, i))
                start = i + 1
            else:
                depth += 1
        elif token in CLOSERS:
            depth -= 1
    for first, last in bounds:
        while first < last and (not _opens_operand(old[first]) or old[first] in KEYWORDS):
            first += 1
        while first < last and not _ends_operand(old, last, new, new_at + last - at):
            last -= 1
        whole_in_new = first < last and not (
            old[first - 1 : first] and first and old[first - 1] in (".", "::") and is_operand(old[first])
        )
        if whole_in_new and unmatched(old[first:last]) == (0, 0) and any(map(is_operand, old[first:last])):
            yield first, new_at + first - at, last - first


def _opens_operand(token: str) -> bool:
    return is_operand(token) or token in OPENERS or token in ("-", "!", "&", "*", "@", "$")


def _ends_operand(old: list[str], end: int, new: list[str], new_end: int) -> bool:
    last = old[end - 1]
    if not (is_operand(last) or last in CLOSERS):
        return False
    beside = (old[end : end + 1], new[new_end : new_end + 1])
    return not any(token in (["("], ["["], ["!"]) for token in beside) or last in CLOSERS


def _hole_kind(old: list[str], at: int, is_last: bool, ends_line: bool) -> HoleKind:
    if _in_string(old, at):
        return "string"
    if is_last:
        return "rest" if ends_line else "operand"
    return "operand" if at == 0 else "argument"


def _in_string(tokens: list[str], at: int) -> bool:
    """Whether an odd number of lone quotes stands before a token."""
    return any(sum(token == quote for token in tokens[:at]) % 2 for quote in QUOTES)


def _overlaps(holes: dict[int, tuple[int, Hole]], at: int, size: int) -> bool:
    return any(at < start + length and start < at + size for start, (length, _) in holes.items())


def _with(tokens: list[str], holes: dict[int, tuple[int, Hole]]) -> Parts:
    parts: list[str | Hole] = []
    at = 0
    while at < len(tokens):
        size, part = holes.get(at, (1, tokens[at]))
        parts.append(part)
        at += size
    return joined(tuple(parts))
