"""Where parts of a text are while it changes."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

from specedit.edit.document import Span
from specedit_lsp.documents import TextChange

_Key = TypeVar("_Key", bound=Hashable)

# A whole line, its end included, and something after it.
_LINE_AND_MORE = re.compile(r"[^\r\n]*(?:\r\n|\r(?!\n)|\n).", re.DOTALL)
_LINE = re.compile(r"[^\r\n]*[\r\n]")


class Places(Generic[_Key]):
    """Spans by name, each where it is in the text as it is now.

    A part grows and shrinks with changes within it. One that a change goes into from outside is lost.
    """

    def __init__(self, spans: Mapping[_Key, Span | None]) -> None:
        """Follow `spans` from the text that they are in."""
        self._spans: dict[_Key, Span | None] = dict(spans)

    def __getitem__(self, key: _Key) -> Span | None:
        return self._spans[key]

    def copy(self) -> Places[_Key]:
        """The same places, to be followed apart from these."""
        return Places(self._spans)

    def follow(self, change: TextChange) -> None:
        """The text was changed."""
        self._spans = {key: None if span is None else moved(span, change) for key, span in self._spans.items()}


def moved(span: Span, change: TextChange) -> Span | None:
    """Where `span` is after a change; None where it was partly replaced. What is put in beside it stays outside."""
    start, end = change.span.start, change.span.end
    by = len(change.new_text) - len(change.old_text)
    if end <= span.start:
        return Span(span.start + by, span.end + by)
    if span.end <= start:
        return span
    if span.start <= start and end <= span.end:
        return Span(span.start, span.end + by)
    return None


def is_apart(text: str, span: Span, change: TextChange) -> bool:
    """Whether a whole line that stays as it is lies between the lines of `span` and a change of `text`."""
    if change.span.end <= span.start:
        return _LINE_AND_MORE.match(text, change.span.end, span.start) is not None
    return _LINE.match(text, span.end, change.span.start) is not None
