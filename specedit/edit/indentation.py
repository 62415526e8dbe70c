"""How code is indented, and text brought to that."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

_USUAL_UNIT = 4
_UNITS = range(2, 9)
_MOST_LINES = 200
_OPENS = re.compile(r"(?:[:{(\[]|=>|->|\b(?:then|do|begin))\s*(?:#.*|//.*)?$")


@dataclass(frozen=True, slots=True)
class Indentation:
    """What one level is: a tab, or `width` blanks; known where any line is indented."""

    tabs: bool = False
    width: int = _USUAL_UNIT
    known: bool = False

    @classmethod
    def of(cls, lines: Sequence[str]) -> Indentation:
        """The indentation of most of the last `lines`; four blanks where none is indented."""
        margins = [margin_of(line) for line in lines[-_MOST_LINES:] if line.strip()]
        tabbed = sum(margin.startswith("\t") for margin in margins)
        blanks = [len(margin) for margin in margins if not margin.startswith("\t")]
        return cls(tabbed > sum(map(bool, blanks)), _unit(blanks), any(margins))

    def columns(self, margin: str) -> int:
        """How far a margin indents; a tab is one level."""
        return sum(self.width if char == "\t" else 1 for char in margin)

    def margin(self, line: str, unit: int) -> str:
        """The margin of a line in this indentation, where the line's own levels are tabs or `unit` blanks."""
        margin = margin_of(line)
        if not self.known:
            return margin
        if self.tabs and " " in margin and not margin.startswith("\t"):
            levels, rest = divmod(len(margin), unit)
            return "\t" * levels + " " * rest
        return margin if self.tabs else margin.replace("\t", " " * self.width)

    def expected(self, line_above: str) -> int:
        """How many columns the line below `line_above` is indented by, if it goes on with it or in its block."""
        return self.columns(margin_of(line_above)) + self.width * opens_block(line_above)


def opens_block(line: str) -> bool:
    """Whether the line below is likely to be indented more."""
    return bool(_OPENS.search(line.rstrip()))


def margin_of(line: str) -> str:
    """The blanks and tabs that a line begins with."""
    return line[: len(line) - len(line.lstrip(" \t"))]


def shifted(line: str, columns: int) -> str:
    """`line` without so many blanks and tabs at its beginning, or as many as it has."""
    return line[min(columns, len(margin_of(line))) :]


def in_indentation(lines: Iterable[str], indentation: Indentation) -> list[str]:
    """`lines` with their margins as `indentation` has them."""
    lines = list(lines)
    unit = _unit([len(margin_of(line)) for line in lines if line.strip()])
    return [indentation.margin(line, unit) + line[len(margin_of(line)) :] for line in lines]


def _unit(widths: Sequence[int]) -> int:
    """The most frequent step from a line to one that is indented more; the smallest of those as frequent."""
    steps = Counter(after - before for before, after in pairwise(widths) if after - before in _UNITS)
    if not steps:
        return min((width for width in widths if 2 <= width < _USUAL_UNIT), default=_USUAL_UNIT)
    most = max(steps.values())
    return min(step for step, count in steps.items() if count == most)
