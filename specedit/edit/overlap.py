"""Text that a completion must not repeat: what stands after the cursor already, or right before it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from specedit.edit.gap import Gap
from specedit.edit.pairing import unopened

_CLOSING_REST = re.compile(r"[\s)\]}>\"'`;,:]*")
_PUNCTUATION = frozenset(";,:")
_SHORTEST_OVERLAP = 3
_LONGEST_PERIOD = 8
_TIMES = 2
_TAB = 4


def is_closing(rest_of_line: str) -> bool:
    """Whether the rest of a line only closes what was opened before: brackets, quotes, a semicolon."""
    return bool(_CLOSING_REST.fullmatch(rest_of_line))


def first_repeat(text: str, gap: Gap, *, finished: bool = True) -> int | None:
    """Where `text` begins to repeat the rest of the cursor's line, or the lines below it; None if nowhere.

    Blank lines don't count. A line of brackets is a repeat only where it closes what the text has not opened. Of a text
    that is not finished, the last line is not looked at as a whole.
    """
    found = _rest_of_line(text, gap)
    lines = text.split("\n")
    start = 0
    for number, line in enumerate(lines if finished else lines[:-1]):
        whole = line if number else gap.line_before + line
        if gap.lines_below and line.strip() and (number or not gap.line_before.strip()):
            is_next = _spaced(whole) == _spaced(gap.lines_below[0])
            if is_next and (any(map(str.isalnum, line)) or _closes_more(text[: start + len(line)], gap)):
                return start if found is None else min(start, found)
        start += len(line) + 1
    return found


def without_standing(text: str, gap: Gap) -> tuple[str, int]:
    r"""`text` without what its end repeats of the rest of the cursor's line, and how many characters it replaces.

    Those are closing brackets and quotes after the cursor that the text has too, and goes on after; or has on a line of
    their own. With `foo(|)`, `a, b)` gives `a, b` and 0, while `a)\nbar()` stays and replaces 1.
    """
    after = gap.line_after
    if not is_closing(after):
        return _without_overlap(text, gap), 0
    matches: list[tuple[tuple[int, int], tuple[int, int]]] = []
    at = 0
    for start in unopened(text, gap.line_before, after):
        if matches and start < matches[-1][0][1]:
            continue
        begin = at + len(after[at:]) - len(after[at:].lstrip())
        length = _common(text[start:], after[begin:])
        if length:
            matches.append(((start, start + length), (at, begin + length)))
            at = begin + length
    while matches and not text[matches[-1][0][1] :].strip():
        (start, end), (before, at) = matches.pop()
        line = text[text.rfind("\n", 0, start) + 1 : start]
        if "\n" in text[:start] and not line.strip():
            return text[:end], at
        text, at = text[:start], before
    rest = after[at:].strip()
    if rest and _PUNCTUATION.issuperset(rest):
        text = text.rstrip().removesuffix(rest) if text.rstrip().endswith(rest) else text
    return text, at


def is_babble(text: str, gap: Gap) -> bool:
    """Whether `text` is nothing but the lines right before the cursor, at least twice over."""
    first, _, rest = text.partition("\n")
    own = gap.line_before.strip()
    if own and first.strip():
        return False
    above = [*gap.lines_above, gap.line_before.rstrip()] if own else gap.lines_above
    lines = [line.rstrip() for line in (rest if own else gap.line_before + text).split("\n") if line.strip()]
    periods = range(1, min(_LONGEST_PERIOD, len(above), len(lines) // _TIMES) + 1)
    return any(lines == (above[-period:] * len(lines))[: len(lines)] for period in periods)


def loop_start(lines: Sequence[str]) -> int | None:
    """After how many of `lines` they only repeat themselves, at least twice more; None if they don't."""
    for period in range(1, min(_LONGEST_PERIOD, len(lines) // (_TIMES + 1)) + 1):
        last = lines[len(lines) - period :]
        times = 1
        while lines[max(0, len(lines) - (times + 1) * period) : len(lines) - times * period] == last:
            times += 1
        if times > _TIMES and any(char.isalnum() for line in last for char in line):
            return len(lines) - (times - 1) * period
    return None


def _rest_of_line(text: str, gap: Gap) -> int | None:
    rest = gap.line_after.strip()
    if is_closing(rest) or len(rest) < _SHORTEST_OVERLAP:
        return None
    first = text.partition("\n")[0]
    at = first.find(rest)
    return at if at >= 0 and _is_boundary(first, at) else None


def _without_overlap(text: str, gap: Gap) -> str:
    """`text`, one line, up to where it closes or repeats what goes on after the cursor."""
    after = gap.line_after.lstrip()
    closed = next(unopened(after, gap.line_before, after), None)
    for start in unopened(text, gap.line_before, after):
        if closed is not None and text[start] == after[closed]:
            return text[:start]
    for length in range(min(len(text), len(after)), 0, -1):
        start = len(text) - length
        is_long = length >= _SHORTEST_OVERLAP or length in (len(text), len(after.rstrip()))
        if is_long and after.startswith(text[start:]) and (start == 0 or _is_boundary(text, start)):
            return text[:start]
    return text


def _is_boundary(text: str, at: int) -> bool:
    """Whether no word goes on across the place."""
    return at == 0 or not (_is_word(text[at - 1]) and _is_word(text[at]))


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def _closes_more(text: str, gap: Gap) -> bool:
    return next(unopened(text, gap.line_before), None) is not None


def _common(one: str, other: str) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _spaced(line: str) -> str:
    return line.rstrip().expandtabs(_TAB)
