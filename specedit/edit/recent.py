"""What was edited of late: keystrokes, put together to changes of whole lines.

A change of a few characters is looked at with the lines around it alone, so that a keystroke in a long file costs no
more than in a short one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from specedit.edit.document import Span, split_lines

Source = Literal["user", "rewrite"]

PAUSE_SECONDS = 3.0
MAX_EDITS = 64
MAX_CHARS = 8_000
MAX_TOTAL_CHARS = 128_000
_CONTEXT_LINES = 3
_MAX_CONTEXT_CHARS = 1_000


@dataclass(frozen=True, slots=True)
class RecentEdit:
    """One change of whole lines; all texts have their line ends.

    Attributes:
        name: of the document, to show to people and models.
        path: its file, if it has one.
        line: the 1-based line, in the text as it is now, that `after` begins with.
        before: the lines as they were when the edit began; empty where lines came in.
        after: the lines as the edit left them; empty where lines were deleted.
        context_before: at most three lines that stand before.
        context_after: at most three lines that stand behind.
        source: who made it; an accepted completion counts as the user's.
        key: of the document, as it was recorded.
        at: when it was last touched, in seconds of the caller's clock.
    """

    name: str
    path: Path | None
    line: int
    before: str
    after: str
    context_before: str
    context_after: str
    source: Source = "user"
    key: str = ""
    at: float = 0.0


@dataclass(slots=True)
class _Edit:
    """A change that may still grow: `span` are its lines in the text as it is now, `caret` what changed last."""

    key: str
    name: str
    path: Path | None
    source: Source
    at: float
    line: int
    span: Span
    caret: Span
    before: str
    after: str
    context_before: str
    context_after: str

    @property
    def chars(self) -> int:
        return len(self.before) + len(self.after)


@dataclass(slots=True)
class _Place:
    """A line of a text, so that lines need not be counted from the top."""

    start: int
    line: int
    text_chars: int


class RecentEdits:
    """The last edits of all documents, bounded in number and size.

    Changes of the same or of neighbouring lines are one edit while they follow each other within three seconds, or
    where the next begins at the last one's place. An edit that was undone vanishes; one of more than 8,000 characters
    is not kept.
    """

    def __init__(self) -> None:
        self._edits: list[_Edit] = []
        self._places: dict[str, _Place] = {}

    def record(
        self,
        key: str,
        name: str,
        path: Path | None,
        old_text: str,
        span: Span,
        new_text: str,
        at: float,
        source: Source = "user",
    ) -> None:
        """Take one change of a document: `span` of its `old_text` became `new_text`, at `at` seconds.

        Each change of a document is to be recorded, in order; else `forget` it.

        Args:
            key: tells documents apart, such as their URI.
            name: of the document, for `RecentEdit`.
            path: its file, if it has one.
            old_text: the whole text before the change.
            span: what of it was replaced.
            new_text: by what.
            at: seconds of any clock that does not go back.
            source: who made the change.
        """
        span, new_text = _trimmed(old_text, span, new_text)
        if span.start == span.end and not new_text:
            return
        lines = _whole_lines(old_text, span, new_text)
        line = self._line(key, old_text, lines.start)
        grown = len(new_text) - (span.end - span.start)
        open_edit = self._continued(key, lines, span, at, source)
        self._moved(key, lines, grown, _line_ends(new_text) - _line_ends(old_text[span.start : span.end]), open_edit)
        self._places[key] = _Place(lines.start, line, len(old_text) + grown)
        if open_edit:
            self._edits.remove(open_edit)
            lines, line, before = _joined(old_text, lines, line, open_edit)
        else:
            before = old_text[lines.start : lines.end] if lines.end - lines.start <= MAX_CHARS else None
        if before is None or lines.end - lines.start + len(new_text) > MAX_CHARS:
            return
        after = old_text[lines.start : span.start] + new_text + old_text[span.end : lines.end]
        if before != after:
            self._keep(
                _Edit(
                    key,
                    name,
                    path,
                    source,
                    at,
                    line,
                    Span(lines.start, lines.start + len(after)),
                    Span(span.start, span.start + len(new_text)),
                    before,
                    after,
                    _lines_before(old_text, lines.start),
                    _lines_after(old_text, lines.end),
                )
            )

    def latest(self, count: int, key: str | None = None) -> tuple[RecentEdit, ...]:
        """The last `count` edits, the newest first; those of one document where `key` is given."""
        found = [edit for edit in reversed(self._edits) if key is None or edit.key == key]
        return tuple(_shown(edit) for edit in found[:count])

    def forget(self, key: str) -> None:
        """Drop the place in a document, as when it is closed; its edits stay, and grow no more."""
        self._places.pop(key, None)
        for edit in self._edits:
            if edit.key == key:
                edit.caret = edit.span = Span(-2, -2)

    def _line(self, key: str, text: str, start: int) -> int:
        """The 1-based number of the line that starts at `start`, counted from the last known place."""
        place = self._places.get(key)
        if place is None or place.text_chars != len(text):
            return 1 + _line_ends(text, 0, start)
        if start >= place.start:
            return place.line + _line_ends(text, place.start, start)
        if start < place.start - start:
            return 1 + _line_ends(text, 0, start)
        return place.line - _line_ends(text, start, place.start)

    def _continued(self, key: str, lines: Span, span: Span, at: float, source: Source) -> _Edit | None:
        """The edit that a change goes on with."""
        edit = next((edit for edit in reversed(self._edits) if edit.key == key), None)
        if edit is None or edit.source != source or lines.end < edit.span.start or edit.span.end < lines.start:
            return None
        at_caret = edit.caret.start <= span.end and span.start <= edit.caret.end
        return edit if at_caret or at - edit.at <= PAUSE_SECONDS else None

    def _moved(self, key: str, lines: Span, grown: int, more_lines: int, but: _Edit | None) -> None:
        """Keep the places of the edits behind a change."""
        for edit in self._edits:
            if edit.key == key and edit is not but and edit.span.start >= lines.end:
                edit.span = Span(edit.span.start + grown, edit.span.end + grown)
                edit.caret = Span(edit.caret.start + grown, edit.caret.end + grown)
                edit.line += more_lines

    def _keep(self, new: _Edit) -> None:
        for edit in self._edits:
            if (edit.key, edit.line, edit.before, edit.after) == (new.key, new.line, new.after, new.before):
                self._edits.remove(edit)
                return
        self._edits.append(new)
        total = sum(edit.chars for edit in self._edits)
        while len(self._edits) > MAX_EDITS or total > MAX_TOTAL_CHARS:
            total -= self._edits.pop(0).chars


def _joined(text: str, lines: Span, line: int, edit: _Edit) -> tuple[Span, int, str | None]:
    """The lines, their number and what stood there, of a change and the edit that it goes on with."""
    start, end = min(lines.start, edit.span.start), max(lines.end, edit.span.end)
    before = text[start : edit.span.start] + edit.before + text[edit.span.end : end]
    return Span(start, end), min(line, edit.line), before if len(before) <= MAX_CHARS else None


def _shown(edit: _Edit) -> RecentEdit:
    """The edit without the lines at its edges that are as they were."""
    before, after = split_lines(edit.before), split_lines(edit.after)
    head = _common(before, after)
    tail = _common(before[head:][::-1], after[head:][::-1])
    end, new_end = len(before) - tail, len(after) - tail
    above = [*split_lines(edit.context_before), *after[:head]][-_CONTEXT_LINES:]
    below = [*after[new_end:], *split_lines(edit.context_after)][:_CONTEXT_LINES]
    return RecentEdit(
        edit.name,
        edit.path,
        edit.line + head,
        "".join(before[head:end]),
        "".join(after[head:new_end]),
        "".join(above),
        "".join(below),
        edit.source,
        edit.key,
        edit.at,
    )


def _trimmed(text: str, span: Span, new_text: str) -> tuple[Span, str]:
    """The change without what old and new begin and end with; editors may replace more than changes."""
    old_chars = span.end - span.start
    most = min(old_chars, len(new_text))
    if not most:
        return span, new_text
    old = text[span.start : span.end]
    head = bisect_left(range(1, most + 1), True, key=lambda count: old[:count] != new_text[:count])
    most -= head
    tail = bisect_left(range(1, most + 1), True, key=lambda count: old[-count:] != new_text[-count:])
    return Span(span.start + head, span.end - tail), new_text[head : len(new_text) - tail]


def _whole_lines(text: str, span: Span, new_text: str) -> Span:
    """The lines that a change touches; whole lines that come in or go touch no other."""
    start, end = _line_start(text, span.start), span.end
    from_line_to_line = start == span.start and (end == 0 or text[end - 1] in "\r\n")
    if from_line_to_line and (not new_text or new_text[-1] in "\r\n"):
        return span
    return Span(start, _line_end(text, end))


def _line_start(text: str, offset: int) -> int:
    start = text.rfind("\n", 0, offset) + 1
    # Looked for behind the line feed alone: in most texts there is no other one to find.
    return max(start, text.rfind("\r", start, offset) + 1)


def _line_end(text: str, offset: int) -> int:
    """The offset behind the end of the line that holds `offset`."""
    feed = text.find("\n", offset)
    end = len(text) if feed < 0 else feed + 1
    carriage = text.find("\r", offset, end)
    return end if carriage < 0 or carriage + 2 == end == feed + 1 else carriage + 1


def _line_ends(text: str, start: int = 0, end: int | None = None) -> int:
    end = len(text) if end is None else end
    return text.count("\n", start, end) + text.count("\r", start, end) - text.count("\r\n", start, end)


def _lines_before(text: str, start: int) -> str:
    first = start
    for _ in range(_CONTEXT_LINES):
        if not first:
            break
        before = first - 2 if text[first - 2 : first] == "\r\n" else first - 1
        first = _line_start(text, before)
    return text[first:start] if start - first <= _MAX_CONTEXT_CHARS else ""


def _lines_after(text: str, end: int) -> str:
    last = end
    for _ in range(_CONTEXT_LINES):
        last = _line_end(text, last)
    return text[end:last] if last - end <= _MAX_CONTEXT_CHARS else ""


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
