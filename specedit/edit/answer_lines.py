r"""The new lines of a region, told from an answer while it is still being written.

The rules are those of the whole answer (`stream.answer_body`, `echo.without_echo`, `stream.region_after`). Where the
end of an answer may still turn what its beginning means, no line is given from there on: the whole answer decides.
"""

from __future__ import annotations

import re
from collections import Counter

from specedit.edit.document import Document, split_lines
from specedit.edit.echo import without_echo
from specedit.edit.fence import Fence, find_fences
from specedit.edit.region import Region
from specedit.edit.stream import region_after, to_lf

# So many lines like the region's first ones are the region, not the text before it ...
_RECOGNIZED_LINES = 3
# ... and after so many that also stand before it, it is not looked for any more.
_MAX_FIRST_LINES = 50

_COMPLETE_LINES = re.compile(r"[^\r\n]*(?:\r\n|\n|\r(?!\Z))")
_THINKING, _THOUGHT = "<think>", "</think>"


class AnswerLines:
    """The lines of a region as an answer rewrites them.

    An answer without a code block, with a fence that may be the file's own, or that begins with text from around the
    region gives none.
    """

    def __init__(self, document: Document, region: Region, instruction: str) -> None:
        """Read an answer about `region` of `document`."""
        before = document.text[region.span.start : region.span.end]
        self._head = to_lf(document.text[: region.span.start])
        self._before = to_lf(before)
        self._old = [line.rstrip("\r\n") for line in split_lines(before)]
        self._own_fences = find_fences(self._old)
        self._keeps_edges = not _takes_over("x\n", "\nx\n", instruction)
        self._keeps_indentation = not _takes_over("  x\n", "x\n", instruction)
        self._unread: list[str] = []
        self._take = self._begin
        self._opener: Fence | None = None
        self._outside: list[str] = []
        self._first_lines: list[str] = []
        self._blanks: list[str] = []
        self._margin: _Margin | None = None

    def feed(self, text: str) -> list[str]:
        """The lines, without their ends, that can be told now that `text` came.

        A blank line comes with the next that is not: at the end of an answer it may not count.
        """
        self._unread.append(text)
        if not any("\n" in piece or "\r" in piece for piece in self._unread[-2:]):
            return []
        unread = "".join(self._unread)
        lines = _COMPLETE_LINES.findall(unread)
        self._unread = [unread[sum(map(len, lines)) :]]
        return [found for line in lines for found in self._take(line.rstrip("\r\n"))]

    # --- where the text stands

    def _begin(self, line: str) -> list[str]:
        if not line.strip():
            return []
        self._take = self._think if line.lstrip().startswith(_THINKING) else self._look_for_code
        return self._take(line)

    def _think(self, line: str) -> list[str]:
        _, found, rest = line.partition(_THOUGHT)
        if found:
            self._take = self._look_for_code
            return self._take(rest)
        return []

    def _look_for_code(self, line: str) -> list[str]:
        if _THOUGHT in line and _THOUGHT not in self._before:
            self._outside.clear()
            line = line.partition(_THOUGHT)[2]
        fences = find_fences([line])
        if not fences:
            self._outside.append(line.strip())
            return []
        self._opener = fences[0]
        talks_in_lines_of_the_region = set(self._outside) & ({line.strip() for line in self._old} - {""})
        may_be_the_files = any(
            fence.char == self._opener.char and fence.length >= self._opener.length for fence in self._own_fences
        )
        self._take = self._ignore if talks_in_lines_of_the_region or may_be_the_files else self._read_first_lines
        return []

    def _is_end(self, line: str) -> bool:
        assert self._opener is not None
        fences = find_fences([line])
        return bool(fences) and fences[0].closes(self._opener)

    def _ignore(self, line: str) -> list[str]:
        return []

    # --- what the lines say

    def _read_first_lines(self, line: str) -> list[str]:
        """Wait for a line that tells whether the answer begins with the region, or with what stands before it."""
        if self._is_end(line):
            self._take = self._ignore
            return []
        self._first_lines.append(line)
        if not line.strip():
            return []
        if len(self._first_lines) > _MAX_FIRST_LINES:
            self._take = self._ignore
            return []
        filled = [line.rstrip() for line in self._first_lines if line.strip()]
        own = [line.rstrip() for line in self._old if line.strip()][:_RECOGNIZED_LINES]
        is_elsewhere = f"\n{line.rstrip()}\n" in f"\n{self._head}"
        if is_elsewhere and not (len(filled) >= _RECOGNIZED_LINES and filled == own):
            return []
        body = "".join(f"{line}\n" for line in self._first_lines)
        margin = _Margin(self._old, next(line for line in self._first_lines if line.strip()))
        is_unclear = self._keeps_indentation and not margin.is_known
        if is_unclear or without_echo(body, self._head, "", self._before) != body:
            self._take = self._ignore
            return []
        self._take, self._margin = self._read, margin
        return [*self._leading_blanks(), *(found for line in self._first_lines for found in self._read(line))]

    def _leading_blanks(self) -> list[str]:
        if not (self._keeps_edges and any(line.strip() for line in self._old)):
            return []
        while not self._first_lines[0].strip():
            self._first_lines.pop(0)
        return self._old[: next(index for index, line in enumerate(self._old) if line.strip())]

    def _read(self, line: str) -> list[str]:
        if self._is_end(line):
            self._take = self._ignore
            return []
        # Trailing blank lines are the region's, not the answer's: a blank line counts when another follows.
        if not line.strip():
            self._blanks.append(line)
            return []
        assert self._margin is not None
        moved = self._margin.moved(line) if self._keeps_indentation else line
        if moved is None:
            self._take = self._ignore
            return []
        found = [*self._blanks, moved]
        self._blanks.clear()
        return found


class _Margin:
    """Moves lines to the indentation of the region, where the answer has the region further left or right."""

    def __init__(self, old: list[str], first: str) -> None:
        was, is_now = next((_indent(line) for line in old if line.strip()), ""), _indent(first)
        self._added = was[len(is_now) :] if was.startswith(is_now) else ""
        self._dropped = is_now[len(was) :] if is_now.startswith(was) else ""
        counts = Counter(line.strip() for line in old)
        self._old = {line.strip(): line for line in old if counts[line.strip()] == 1}
        self._begins_as_before = first.strip() in counts

    @property
    def is_known(self) -> bool:
        """Whether the first line tells how far to move; a new one may just have another indentation."""
        return self._begins_as_before or not (self._added or self._dropped)

    def moved(self, line: str) -> str | None:
        """The line in its place; None where it shows that the answer is not the region moved as a whole."""
        if not self._added and not self._dropped:
            return line
        was = self._old.get(line.strip())
        if was is not None and self._added and len(_indent(was)) < len(self._added):
            # It stands in a string: it was never indented.
            return was
        by = len(self._added) - len(self._dropped)
        if was is not None and (len(_indent(was)) - len(_indent(line)) - by) * by < 0:
            return None
        if self._dropped:
            return line.removeprefix(self._dropped) if line.startswith(self._dropped) else None
        return self._added + line


def _takes_over(old: str, new: str, instruction: str) -> bool:
    """Whether the instruction is about what else stays as it is in the region: `region_after` knows."""
    return region_after(new, old, line_ending="\n", instruction=instruction) == new


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]
