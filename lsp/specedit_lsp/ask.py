"""A request for inline completion, for as long as it is answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lsprotocol.types import InlineCompletionParams, InlineCompletionTriggerKind, Position, SelectedCompletionInfo

from specedit.edit.document import Span
from specedit.engine.api import CancelToken
from specedit_lsp.documents import OpenDocument, TextChange

if TYPE_CHECKING:
    from specedit_lsp.options import Options


@dataclass(eq=False, slots=True)
class Ask:
    """What was asked, and where that is in the text as it changes.

    Attributes:
        document: where it was asked.
        position: where in it, as the editor said.
        selected_info: the item that is selected in the editor's own list.
        is_invoked: whether the user asked, not the editor by itself.
        options: those in force.
        cursor: the offset of the position in the text as it is now.
        is_ahead: whether the position lies in a text that the editor has not sent yet.
        cancel: stops the model.
    """

    document: OpenDocument
    position: Position
    selected_info: SelectedCompletionInfo | None
    is_invoked: bool
    options: Options
    cursor: int
    is_ahead: bool
    cancel: CancelToken = field(default_factory=CancelToken)

    @classmethod
    def of(cls, params: InlineCompletionParams, document: OpenDocument, options: Options) -> Ask:
        """The request with those parameters. A position outside the text is taken as the nearest one in it."""
        cursor = document.offset(params.position)
        return cls(
            document,
            params.position,
            params.context.selected_completion_info,
            params.context.trigger_kind == InlineCompletionTriggerKind.Invoked,
            options,
            cursor,
            is_ahead=document.position(cursor) != params.position,
        )

    @property
    def key(self) -> str:
        """The document, as it was opened."""
        return self.document.uri

    @property
    def selected(self) -> tuple[Span, str] | None:
        """The span and the text of the selected item; None where there is none or the cursor isn't at it."""
        if self.selected_info is None or not self.selected_info.text:
            return None
        span = self.document.span(self.selected_info.range)
        return (span, self.selected_info.text) if span.start <= self.cursor <= span.end else None

    def document_changed(self, changes: Sequence[TextChange]) -> None:
        """Keep the cursor where it is, and stop: the model is asked about a text that is no more.

        Where the editor was ahead of itself, this is the text that it asked about, and the model may have guessed it.
        """
        if self.is_ahead:
            self.cursor = self.document.offset(self.position)
            self.is_ahead = self.document.position(self.cursor) != self.position
        else:
            for change in changes:
                self.cursor = _moved(self.cursor, change)
            self.cancel.cancel()


def _moved(cursor: int, change: TextChange) -> int:
    start, end = change.span.start, change.span.end
    if end <= cursor:
        return cursor + len(change.new_text) - (end - start)
    return start + len(change.new_text) if start < cursor else cursor
