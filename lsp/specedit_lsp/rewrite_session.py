"""One rewrite, from the command until nobody asks for it any more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from specedit.edit.document import Document, Span, TextEdit
from specedit.engine.api import CancelToken
from specedit.errors import UsageError
from specedit_lsp import convert
from specedit_lsp.documents import OpenDocument, TextChange
from specedit_lsp.places import Places, is_apart
from specedit_lsp.progress import Progress
from specedit_lsp.rewrite_arguments import Apply

if TYPE_CHECKING:
    from specedit.edit.region import Region
    from specedit.edit.stream import Hunk

Outcome = Literal["ready", "refused", "cancelled", "stale"]
Verdict = Literal["accepted", "rejected"]

# Hunks are numbered from 1.
_REGION = 0


@dataclass(eq=False)
class RewriteSession:
    """A rewrite of a part of a document.

    Attributes:
        id: by which editor and server know it.
        document: what is rewritten, as it changes.
        before: its text when it was asked for; the model sees this one.
        region: the part, in that text.
        instruction: what to do to it.
        apply: who applies the result.
        seed: of the answer.
        least_temperature: of the answer; that of the options counts where it is higher.
        progress: what the editor shows meanwhile.
        cancel: stops the model.
        outcome: what became of the answer; None while the model writes.
        hunks: those of the result by number; what was told of them while the model writes is not kept here.
        verdicts: what became of them.
        written_chars: how much of the answer there is.
        told: how many hunks the editor was told of.
        line: the number of the part's first line that the editor knows, from 0.
        is_at_work: whether a thread is still busy with it.
    """

    id: str
    document: OpenDocument
    before: Document
    region: Region
    instruction: str
    apply: Apply
    seed: int
    least_temperature: float
    progress: Progress
    cancel: CancelToken = field(default_factory=CancelToken)
    outcome: Outcome | None = None
    hunks: dict[int, Hunk] = field(default_factory=dict)
    verdicts: dict[int, Verdict] = field(default_factory=dict)
    written_chars: int = 0
    told: int = 0
    line: int = 0
    is_at_work: bool = True

    def __post_init__(self) -> None:
        self._text = self.before.text
        self._places = Places({_REGION: self.region.span})
        self.line = self.document.position(self.region.span.start).line

    @property
    def place(self) -> Span | None:
        """Where the part is in the text as it is now; None where changes went across its edges."""
        return self._places[_REGION]

    @property
    def moved_by(self) -> int:
        """How many characters further on the part is than in the text that it was asked for."""
        assert self.place is not None
        return self.place.start - self.region.span.start

    def rebase(self, changes: Sequence[TextChange]) -> bool:
        """Follow changes while the model writes.

        False where one is not apart from the part that it writes, or the text is not what they make of the one before.
        """
        are_apart = True
        for change in changes:
            are_apart = are_apart and self.place is not None and is_apart(self._text, self.place, change)
            self._text = self._text[: change.span.start] + change.new_text + self._text[change.span.end :]
            self._places.follow(change)
        return are_apart and self.is_of_this_text

    @property
    def is_of_this_text(self) -> bool:
        """Whether all changes of the document so far were followed."""
        return self._text == self.document.text

    def follow(self, changes: Sequence[TextChange]) -> None:
        """Follow changes once the model has ended."""
        for change in changes:
            self._places.follow(change)

    def span(self, hunk: Hunk) -> Span:
        """Where what the hunk replaces stands while the part is as it was."""
        lines = self.before.line_spans
        at = hunk.start_line - 1
        start = (lines[at].start if at < len(lines) else len(self.before.text)) + self.moved_by
        return Span(start, start + len(hunk.old))

    def conclude(self, hunks: Mapping[int, Hunk]) -> None:
        """The model has ended, and these are the hunks of the result."""
        assert self.place is not None
        self.outcome, self._text = "ready", ""
        self.hunks = dict(hunks)
        self._places = Places({_REGION: self.place, **{number: self.span(hunk) for number, hunk in hunks.items()}})

    def end(self, outcome: Outcome) -> None:
        """The model has ended or will soon, and there is no result."""
        self.outcome, self._text = outcome, ""
        self.cancel.cancel()

    def open_hunks(self) -> list[int]:
        """The numbers of the hunks that are neither accepted nor rejected."""
        return [number for number in self.hunks if number not in self.verdicts]

    def edits(self, numbers: Iterable[int]) -> list[TextEdit]:
        """The edits that make the hunks in the text as it is now.

        Raises:
            UsageError: other text stands in the place of one.
        """
        return [TextEdit(self._fitting(number), self.hunks[number].new) for number in numbers]

    def making_hunks(self, text: str, changes: Sequence[TextChange]) -> list[bool]:
        """For changes that follow each other from `text` on, whether each makes a hunk that is not decided on yet.

        An editor that makes hunks itself reports that after the change.
        """
        places, found = self._places.copy(), []
        for change in changes:
            after = text[: change.span.start] + change.new_text + text[change.span.end :]
            found.append(any(_becomes(text, places[number], self.hunks[number], after) for number in self.open_hunks()))
            places.follow(change)
            text = after
        return found

    def is_as_it_was(self) -> bool:
        """Whether the part is still what it was when the rewrite was asked for."""
        text, span = self.document.text, self.region.span
        return self.place is not None and (
            text[self.place.start : self.place.end] == self.before.text[span.start : span.end]
        )

    def _fitting(self, number: int) -> Span:
        text, span = self.document.text, self._places[number]
        begins_a_line = span is not None and (span.start == 0 or text[span.start - 1] in "\r\n")
        if span is None or not begins_a_line or text[span.start : span.end] != self.hunks[number].old:
            raise UsageError(
                "the text has changed where this change was to be made. "
                "Undo what was changed there, or have the rewrite made anew."
            )
        return span


def _becomes(text: str, span: Span | None, hunk: Hunk, after: str) -> bool:
    """Whether `after` is `text` with the hunk in the place of `span`."""
    if (
        span is None
        or text[span.start : span.end] != hunk.old
        or len(after) - len(text) != len(hunk.new) - len(hunk.old)
    ):
        return False
    return after == text[: span.start] + hunk.new + text[span.end :]


def to_json(session: RewriteSession, number: int, hunk: Hunk) -> dict[str, Any]:
    """The parameters of `specedit/hunk`."""
    return {
        "session": session.id,
        "id": number,
        "uri": session.document.uri,
        "version": session.document.version,
        "range": convert.to_json(session.document.range(session.span(hunk))),
        "oldText": hunk.old,
        "newText": hunk.new,
    }
