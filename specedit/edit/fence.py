"""Code fences, by CommonMark's rules (spec 0.31, section 4.5).

A fence is a line of at least three backticks or tildes, indented by at most three spaces. It closes an open
one when it has the same character, is at least as long, and nothing follows it. After a fence of backticks no
further backtick may stand on its line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_FENCE = re.compile(r" {0,3}(?P<run>`{3,}(?=[^`]*$)|~{3,})(?P<info>.*?)\s*$")
_RUN_AT_LINE_START = re.compile(r"^[ \t]*(`{3,})", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Fence:
    """One fence line: where it stands (an index of lines), its character, its length and what follows it."""

    index: int
    char: str
    length: int
    info: str

    def closes(self, opener: Fence) -> bool:
        """Whether this line ends the block that `opener` began."""
        return self.char == opener.char and self.length >= opener.length and not self.info

    @property
    def mark(self) -> tuple[str, int, str]:
        """What the line says, wherever it stands."""
        return self.char, self.length, self.info


def find_fences(lines: Sequence[str]) -> list[Fence]:
    """The lines that look like fences, inside a block or not."""
    found = []
    for index, line in enumerate(lines):
        if match := _FENCE.match(line):
            found.append(Fence(index, match["run"][0], len(match["run"]), match["info"].strip()))
    return found


def pair(fences: Iterable[Fence]) -> tuple[list[Fence], bool]:
    """The fences that open a block, and whether the last block is closed."""
    openers: list[Fence] = []
    open_fence: Fence | None = None
    for fence in fences:
        if open_fence is None:
            openers.append(fence)
            open_fence = fence
        elif fence.closes(open_fence):
            open_fence = None
    return openers, open_fence is None


def fence_for(text: str) -> str:
    """A run of backticks that no line of `text` can close."""
    longest = max((len(run) for run in _RUN_AT_LINE_START.findall(text)), default=2)
    return "`" * (longest + 1)
