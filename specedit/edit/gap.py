r"""The gap that a completion fills: the text around the cursor as the model is shown it, with `\n` line ends."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from specedit.edit.document import Document, Span
from specedit.edit.prompt import shown_text
from specedit.edit.prompt_budget import ON_GPU, PromptBudget

BYTES_PER_TOKEN = 3
"""What a token of code is taken for when text is cut to a budget; code has 3 to 4, so budgets are kept."""

# In lines; the shorter ones for long lines and small budgets.
_STEPS = (32, 16, 8, 4, 2, 1)
_STEP_CHARS = 256
_LONGEST_TYPED = 64
_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True)
class Gap:
    """Where a completion goes.

    Attributes:
        head: the text before it, from a line start; the selected item of a list is part of it.
        tail: the text after it, to a line end.
        head_start: where the head begins in the document.
        tail_end: where the tail ends in the document.
        first_line: the 1-based line of the document that the head begins in.
        line_ending: the most frequent line end around the gap; that of the document if there is none.
    """

    head: str
    tail: str
    head_start: int = 0
    tail_end: int = 0
    first_line: int = 1
    line_ending: str = "\n"

    @classmethod
    def at(
        cls,
        document: Document,
        offset: int,
        *,
        selected: tuple[Span, str] | None = None,
        budget: PromptBudget = ON_GPU,
    ) -> Gap:
        """The gap at `offset`, or behind the text that is selected to replace a span around it.

        The head begins at a line whose number is a multiple of as many lines as the budget allows, so that it begins
        at the same line while the user types, and what an engine has read of it can be used again.
        """
        span, selected_text = selected or (Span(offset, offset), "")
        start = _head_start(document.text, span.start, budget.prefix_tokens * BYTES_PER_TOKEN)
        end = _tail_end(document.text, span.end, budget.suffix_tokens * BYTES_PER_TOKEN)
        head = shown_text(document.text[start : span.start] + selected_text)
        around = Document(document.text[start : span.start] + document.text[span.end : end])
        return cls(
            head,
            shown_text(document.text[span.end : end]),
            start,
            end,
            _line_ends(document.text, start) + 1,
            around.line_ending if _LINE_END.search(around.text) else document.line_ending,
        )

    @cached_property
    def typed(self) -> str:
        """The beginning of a word at the cursor; nothing where there is none, or it is no usual one."""
        found = re.search(r"\w*\Z", self.head[-_LONGEST_TYPED - 1 :])
        typed = found[0] if found else ""
        return typed if len(typed) <= _LONGEST_TYPED else ""

    @property
    def prefix(self) -> str:
        """The head without `typed`."""
        return self.head[: len(self.head) - len(self.typed)]

    @cached_property
    def line_before(self) -> str:
        """The cursor's line up to the cursor."""
        return self.head[self.head.rfind("\n") + 1 :]

    @cached_property
    def line_after(self) -> str:
        """The rest of the cursor's line."""
        return self.tail.partition("\n")[0]

    @cached_property
    def lines_above(self) -> list[str]:
        """The lines before the cursor's, without those that are blank and without blanks at their ends."""
        return _filled(self.head[: self.head.rfind("\n") + 1])

    @cached_property
    def lines_below(self) -> list[str]:
        """The lines after the cursor's, in the same way."""
        return _filled(self.tail.partition("\n")[2])


def _filled(text: str) -> list[str]:
    return [line.rstrip() for line in text.split("\n") if line.strip()]


def _head_start(text: str, offset: int, budget_bytes: int) -> int:
    earliest = offset - _fitting_chars(text[max(0, offset - budget_bytes) : offset][::-1], budget_bytes)
    if earliest == 0:
        return 0
    first = _line_start_from(text, earliest, offset)
    for step in _STEPS if first is not None else ():
        start = first
        for _ in range(-_line_ends(text, first or 0) % step):
            start = None if start is None else _line_start_from(text, start + 1, offset)
        if start is not None and offset - start >= (offset - earliest) // 2:
            return start
    # The cursor's line alone takes half of the budget or more.
    start = earliest + -earliest % _STEP_CHARS
    return start if offset - start >= (offset - earliest) // 2 else earliest


def _tail_end(text: str, offset: int, budget_bytes: int) -> int:
    end = offset + _fitting_chars(text[offset : offset + budget_bytes], budget_bytes)
    if end == len(text):
        return end
    last = max(text.rfind("\n", offset, end), text.rfind("\r", offset, end))
    return end if last < 0 else last + 1


def _fitting_chars(text: str, budget_bytes: int) -> int:
    """How many characters at the beginning of `text` take at most so many bytes."""
    if text.isascii():
        return min(len(text), budget_bytes)
    return len(text.encode("utf-8", "replace")[:budget_bytes].decode("utf-8", "ignore"))


def _line_start_from(text: str, position: int, limit: int) -> int | None:
    """The first place at or after `position` where a line begins, if it is not after `limit`."""
    if position == 0:
        return 0
    found = _LINE_END.search(text, position - 1, limit + 1)
    return found.end() if found and found.end() <= limit else None


def _line_ends(text: str, end: int) -> int:
    return text.count("\n", 0, end) + text.count("\r", 0, end) - text.count("\r\n", 0, end)
