"""Where a completion ends: with the statement or block that it began, or with the paragraph of statements.

Lines that are indented more than the cursor's line belong to what began there. Of the others a tree tells whether they
do, such as `else:`, a closing bracket or the rest of a string; without a grammar, how they begin.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from tree_sitter import Node

from specedit.edit.gap import Gap
from specedit.edit.indentation import Indentation, margin_of
from specedit.edit.lexemes import CLOSERS
from specedit.edit.pairing import open_brackets, open_quote
from specedit.edit.syntax import root_of

MAX_LINES = 20

# Nodes that only hold one statement after the other.
_SEQUENCES = frozenset({"module", "program", "source_file", "translation_unit", "statement_list"})
_PYTHON_BLOCK = "block"

_CONTINUING = re.compile(r"(?:else|elif|elsif|elseif|except|finally|catch|rescue|ensure|then|do|end|fi|done|esac)\b")
_FIRST_WORD = re.compile(r"\s*(?:\w+\W|[^\w\s])")
_UNFINISHED = re.compile(r"[-+*/%&|^=<>.,:?\\@({\[]$")
_DECORATOR = "@"
_ENDS_WITH_LINE = frozenset({"python", "go"})
_LONG_QUOTES = {"python": ('"""', "'''"), **dict.fromkeys(("go", "javascript", "typescript", "tsx"), ("`",))}


@dataclass(frozen=True)
class SyntacticEnd:
    """The rule for one gap.

    Attributes:
        gap: where the completion goes.
        language: a grammar's, or None.
        indentation: of the file.
    """

    gap: Gap
    language: str | None
    indentation: Indentation

    def find(self, text: str, *, finished: bool = False) -> int | None:
        """The offset in `text` where the completion ends; None while more of it may come.

        The completed text does not leave the block around the cursor. Where the cursor's line had begun a statement, it
        ends with that, or with the line, if the block of the statement stands below already; else with the first empty
        line after which another statement begins; always after 20 lines.

        Args:
            text: what follows the cursor.
            finished: whether the text goes on no more.
        """
        lines = text.split("\n")
        starts = [0, *accumulate(len(line) + 1 for line in lines)]
        base, begun = self._beginning(lines)
        if len(lines) > 1 and lines[0].strip() and self._has_block(base):
            return starts[1] - 1
        if len(lines) > 1 and begun and lines[0].strip() and self._is_whole(lines[0]):
            return starts[1] - 1
        was_blank = was_deeper = False
        for number, line in enumerate(lines[1:], start=1):
            if number == MAX_LINES:
                return starts[number] - 1
            is_whole = finished or number < len(lines) - 1
            if not line.strip():
                was_blank = was_blank or is_whole
                continue
            columns = self.indentation.columns(margin_of(line))
            if not is_whole and not (_FIRST_WORD.match(line) and (was_blank or columns != base)):
                break
            if columns > base:
                was_deeper, was_blank = True, False
                continue
            if self._goes_on(lines[: number + 1], was_blank=was_blank, was_deeper=was_deeper):
                begun = begun or bool(self.gap.line_before.strip())
            elif begun or was_blank or columns < base or line.lstrip()[0] in CLOSERS:
                return _end_before(lines, starts, number)
            was_blank = False
        return len(text) if finished else None

    def _beginning(self, lines: list[str]) -> tuple[int, bool]:
        """The columns that the cursor's line is indented by, and whether the completion goes on with what it began."""
        before, first = self.gap.line_before, lines[0]
        columns = self.indentation.columns
        below = next((line for line in lines[1:] if line.strip()), "")
        if before.strip():
            base = columns(margin_of(before))
            return base, bool(first.strip()) or columns(margin_of(below)) > base
        # Where the line has a margin, one that the model writes anew is taken for it.
        return columns(before) or columns(margin_of(first if first.strip() else below)), False

    def _has_block(self, base: int) -> bool:
        """Whether what the cursor's line began goes on below the cursor."""
        below = [self.indentation.columns(margin_of(line)) for line in self.gap.lines_below[:1]]
        return bool(self.gap.line_before.strip()) and any(columns > base for columns in below)

    def _goes_on(self, lines: list[str], *, was_blank: bool, was_deeper: bool) -> bool:
        """Whether the last of `lines` belongs to a statement that began on or after the cursor's line."""
        line = lines[-1].lstrip()
        so_far = self.gap.line_before + "\n".join(lines[:-1])
        above = self.gap.head[: len(self.gap.head) - len(self.gap.line_before)]
        long_quotes = _LONG_QUOTES.get(self.language or "", ())
        if open_quote(so_far + "\n") in long_quotes and not open_quote(above):
            return True
        if line[0] in CLOSERS:
            return open_brackets(so_far) > 0
        if was_deeper and _CONTINUING.match(line):
            return True
        return self.language is not None and self._is_covered("\n".join(lines), line, errors=not was_blank)

    def _is_covered(self, text: str, line: str, *, errors: bool) -> bool:
        """Whether a node that began on or after the cursor's line holds the beginning of `line`, the last of `text`."""
        assert self.language
        head = self.gap.head
        own = self.gap.line_before
        first = len(head) - len(own.lstrip()) if own.strip() else len(head) + len(text) - len(text.lstrip())
        source = head + text
        at = len(source) - len(line)
        start_byte, at_byte = _byte(source, first), _byte(source, at)
        node = root_of(source.encode("utf-8"), self.language).descendant_for_byte_range(at_byte, at_byte + 1)
        return any(
            start_byte <= around.start_byte < at_byte and not _is_sequence(around) and (errors or not around.is_error)
            for around in _outwards(node)
        )

    def _is_whole(self, first_line: str) -> bool:
        """Whether a statement that the cursor's line began surely ends with the line."""
        line = (self.gap.line_before + first_line).rstrip()
        may_end = line.endswith(";") or (self.language in _ENDS_WITH_LINE and not _UNFINISHED.search(line))
        if not may_end or line.lstrip().startswith(_DECORATOR) or open_brackets(line) or open_quote(line):
            return False
        return not self._goes_on([first_line, margin_of(line) + "x"], was_blank=False, was_deeper=False)


def _end_before(lines: list[str], starts: list[int], number: int) -> int:
    """Where the text before the line ends, without blank lines."""
    while number > 0 and not lines[number - 1].strip():
        number -= 1
    return starts[number] - 1 if number else 0


def _is_sequence(node: Node) -> bool:
    if node.type == _PYTHON_BLOCK:
        return bool(node.children) and node.children[0].is_named
    return node.type in _SEQUENCES


def _outwards(node: Node | None) -> Iterator[Node]:
    while node is not None:
        yield node
        node = node.parent


def _byte(text: str, offset: int) -> int:
    return len(text[:offset].encode("utf-8"))
