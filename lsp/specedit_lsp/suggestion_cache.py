"""Suggestions that may be given again: as the user types along one, takes a word of it, or deletes back."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from specedit.edit.document import Span, split_lines

MAX_SUGGESTIONS = 32

# About as much as a model is shown; what changes farther away leaves a suggestion as good as it was.
_BEFORE_CHARS = 4_000
_AFTER_CHARS = 1_000

_CLOSERS = frozenset(")]}>\"'`")
_MAX_CLOSERS = 8


@dataclass(frozen=True, slots=True)
class Rest:
    """What of a suggestion is not in the document yet: put `text` in the place of `span`.

    `origin` is the suggestion's.
    """

    span: Span
    text: str
    origin: int


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Text proposed at a place, and the text around it by which the place is known again.

    Attributes:
        key: of the document.
        text: what was proposed; empty where nothing was, which is worth remembering too.
        before: what stood before it, as far as it matters.
        replaced: what stood behind the cursor, and was to be replaced.
        after: what stood behind that, as far as it matters.
        settings: what else the proposal hung on; it is good only where these are equal.
        origin: a number of the caller's, to know the suggestion by.
    """

    key: str
    text: str
    before: str
    replaced: str
    after: str
    settings: object
    origin: int = field(compare=False)

    @classmethod
    def at(
        cls, key: str, document_text: str, span: Span, cursor: int, text: str, settings: object, origin: int
    ) -> Suggestion:
        """`text` for `span` of the document, where the cursor stands at `cursor`, in the span or at an end of it."""
        return cls(
            key,
            text,
            document_text[max(0, span.start - _BEFORE_CHARS) : span.start],
            document_text[cursor : span.end],
            document_text[span.end : span.end + _AFTER_CHARS],
            settings,
            origin,
        )

    def rest(self, document_text: str, cursor: int) -> Rest | None:
        """What is left of it in that text with the cursor there; None where it doesn't fit.

        It fits where nothing but its own beginning has come in before the cursor, and nothing but closing brackets and
        quotes behind: editors set these by themselves.
        """
        for typed in range(min(len(self.text), cursor), -1, -1):
            if typed and self.text[typed - 1] != document_text[cursor - 1]:
                continue
            start = cursor - typed
            if document_text[start:cursor] == self.text[:typed] and (
                document_text[max(0, start - _BEFORE_CHARS) : start] == self.before
            ):
                left = self.text[typed:]
                end = self._end(document_text, cursor, left)
                return None if end is None else Rest(Span(cursor, end), left, self.origin)
        return None

    def _end(self, text: str, cursor: int, left: str) -> int | None:
        """Where the text that is to be replaced ends."""
        for end in range(cursor, min(len(text), cursor + max(_MAX_CLOSERS, len(self.replaced))) + 1):
            between = text[cursor:end]
            if text[end : end + _AFTER_CHARS] == self.after and (
                between == self.replaced or (_CLOSERS.issuperset(between) and only_adds(left, between))
            ):
                return end
        return None


class SuggestionCache:
    """The last suggestions, the one that was used last first."""

    def __init__(self) -> None:
        self._suggestions: deque[Suggestion] = deque(maxlen=MAX_SUGGESTIONS)

    def __len__(self) -> int:
        return len(self._suggestions)

    def put(self, suggestion: Suggestion) -> None:
        """Keep a suggestion; the one that was used least recently may go."""
        if suggestion in self._suggestions:
            self._suggestions.remove(suggestion)
        self._suggestions.appendleft(suggestion)

    def find(
        self,
        key: str,
        document_text: str,
        cursor: int,
        settings: object,
        selected: tuple[Span, str] | None = None,
    ) -> Rest | None:
        """What to give at the cursor; its text is empty where the model is known to propose nothing.

        Args:
            key: of the document.
            document_text: all of it.
            cursor: an offset into it.
            settings: equal to the suggestion's.
            selected: an item of the editor's own list, the text that it puts in the place of a span. What is given then
                takes the place of that span, and goes on from that text.
        """
        for suggestion in self._suggestions:
            if suggestion.key != key or suggestion.settings != settings:
                continue
            rest = suggestion.rest(document_text, cursor)
            if rest and selected:
                rest = _going_on(rest, document_text, cursor, *selected)
            if rest and (rest.text or not suggestion.text):
                self._suggestions.remove(suggestion)
                self._suggestions.appendleft(suggestion)
                return rest
        return None

    def drop(self, key: str) -> None:
        """Forget a document."""
        kept = [suggestion for suggestion in self._suggestions if suggestion.key != key]
        self._suggestions = deque(kept, maxlen=MAX_SUGGESTIONS)

    def clear(self) -> None:
        """Forget all."""
        self._suggestions.clear()


def _going_on(rest: Rest, text: str, cursor: int, span: Span, selected_text: str) -> Rest | None:
    """`rest` from the start of the selected item's span, if it then goes on from the item's text."""
    whole = text[span.start : cursor] + rest.text
    if not span.start <= cursor or span.end > rest.span.end:
        return None
    if not whole.startswith(selected_text) or whole == selected_text:
        return None
    return Rest(Span(span.start, rest.span.end), whole, rest.origin)


def only_adds(text: str, standing: str) -> bool:
    """Whether the first line of `text` has all that is `standing`, in order: what an editor can show as an addition."""
    line = iter("".join(split_lines(text)[:1]))
    return all(character in line for character in standing)
