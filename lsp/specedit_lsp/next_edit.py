"""The next edit: proposed after the user's own, a moment after typing rests, and withdrawn when it no longer holds.

The editor is told with `specedit/nextEdit {uri, version, range, newText, source}`, `range` null to withdraw. What a
model has to be asked for comes later than what follows from the user's edits alone; typing on ends both.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
from lsprotocol.types import MessageType, Position

from specedit.edit.document import Document
from specedit.engine.api import CancelToken
from specedit.errors import SpecEditError, UsageError
from specedit_lsp import convert
from specedit_lsp.bridge import in_thread, on_loop
from specedit_lsp.documents import Documents, OpenDocument, TextChange
from specedit_lsp.troubles import loggable
from specedit_lsp.turns import Turns

if TYPE_CHECKING:
    from specedit.edit.next_edit import Asked, NextEdit
    from specedit.edit.recent import RecentEdit, RecentEdits
    from specedit_lsp.backend import Backend
    from specedit_lsp.client import Client
    from specedit_lsp.options import OptionsStore
    from specedit_lsp.statistics import Statistics

_log = logging.getLogger(__name__)

METHOD = "specedit/nextEdit"
MAX_CHARS = 1_000_000
"""Longer documents get no proposals: what guards an answer parses the whole text, which would hold everything up."""

REST_SECONDS = 0.3
FINISHED_SECONDS = 0.7
_EDITS = 8
_MOST_IGNORED = 2
_MOST_DECLINED = 256


class _Place(msgspec.Struct, frozen=True):
    line: int
    character: int


class _Identifier(msgspec.Struct, frozen=True):
    uri: str


class _Here(msgspec.Struct, frozen=True, rename="camel"):
    """The argument of `specedit.nextEdit`."""

    text_document: _Identifier
    position: _Place


@dataclass(frozen=True, slots=True)
class _Offer:
    """What was proposed, the first of it shown, and the text that it was made for."""

    edits: Sequence[NextEdit]
    text: Document


@dataclass(slots=True)
class _Watch:
    """One document.

    Attributes:
        offer: what is proposed in it.
        task: what looks for the next proposal.
        declined: pairs (old line, new line) that the user did not want.
        ignored: such pairs -> how many of the user's edits passed them by.
        last: the user's newest edit when the offer was made.
    """

    offer: _Offer | None = None
    task: asyncio.Task[None] | None = None
    declined: dict[tuple[str, str], None] = field(default_factory=dict)
    ignored: dict[tuple[str, str], int] = field(default_factory=dict)
    last: tuple[int, str] | None = None


class NextEdits:
    """The proposals for all open documents. All methods are called on the event loop."""

    def __init__(
        self,
        documents: Documents,
        backend: Backend,
        options: OptionsStore,
        recent: RecentEdits,
        client: Client,
        statistics: Statistics | None = None,
        *,
        rest_seconds: float = REST_SECONDS,
        finished_seconds: float = FINISHED_SECONDS,
    ) -> None:
        """Propose nothing yet.

        Args:
            documents: those that are open.
            backend: where the model is.
            options: what the user set.
            recent: the edits, recorded before `changed` is called.
            client: the editor.
            statistics: where proposals are counted.
            rest_seconds: how long typing must rest before one is looked for.
            finished_seconds: how much longer, before a word at the cursor counts as whole and the model is asked.
        """
        self._documents, self._backend, self._options = documents, backend, options
        self._recent, self._client, self._statistics = recent, client, statistics
        self._rest_seconds, self._finished_seconds = rest_seconds, finished_seconds
        self._watches: dict[str, _Watch] = {}
        self._turns = Turns(1)

    def changed(self, uri: str, changes: Sequence[TextChange]) -> None:
        """The document has changed: what was proposed is old, and the next proposal is looked for once typing rests.

        Where the change is what was proposed, the next one is looked for at once.
        """
        document = self._documents.get(uri)
        if document is None or not changes:
            return
        watch = self._watches.setdefault(document.uri, _Watch())
        self._end(watch)
        if len(document.text) > MAX_CHARS or not self._options.for_uri(document.uri).next_edit.enabled:
            self._withdraw(document, watch)
            return
        accepted = self._take_accepted(document, watch)
        cursor = changes[-1].span.start + len(changes[-1].new_text)
        watch.task = asyncio.get_running_loop().create_task(self._look(document, watch, cursor, at_once=accepted))

    def closed(self, uri: str) -> None:
        """Forget a document; its URI is spelled as it was opened."""
        if watch := self._watches.pop(uri, None):
            self._end(watch)

    def close(self) -> None:
        """End what is under way, with the server."""
        for uri in list(self._watches):
            self.closed(uri)

    def at(self, uri: str, offset: int) -> NextEdit | None:
        """What is proposed on the line of `offset`, there or behind it; None where nothing is."""
        document = self._documents.get(uri)
        if document is None:
            return None
        offer = self._valid(document)
        line = document.position(offset).line
        for edit in offer.edits if offer else ():
            if offset <= edit.span.end and document.position(edit.span.start).line == line:
                return edit
        return None

    async def ask_now(self, arguments: Any) -> dict[str, Any] | None:
        """`specedit.nextEdit {textDocument, position}`: the next proposal, as the notification has it; None for none.

        Raises:
            UsageError: the argument is another one, or the document is not open.
            SpecEditError: the model can't be asked.
        """
        here = _checked(arguments)
        document = self._documents.get(here.text_document.uri)
        if document is None:
            raise UsageError("specedit.nextEdit was asked for a document that is not open. Open it first.")
        watch = self._watches.setdefault(document.uri, _Watch())
        self._end(watch)
        cursor = document.offset(Position(here.position.line, here.position.character))
        text = document.snapshot()
        edits = await self._repeats(document, watch, cursor, finished=True)
        if not edits and self._options.for_uri(document.uri).next_edit.model:
            asked = await self._asked(document, watch, cursor)
            if asked.failure:
                self._client.show(asked.failure, MessageType.Warning)
            edits = asked.edits
        if document.version != text.version or self._documents.get(document.uri) is not document:
            return None
        self._offer(document, watch, text, edits)
        return self._told(document, edits[0]) if edits else None

    async def _look(self, document: OpenDocument, watch: _Watch, cursor: int, *, at_once: bool) -> None:
        """Propose what there is, or withdraw."""
        try:
            text = document.snapshot()
            if not at_once:
                await asyncio.sleep(self._rest_seconds)
            self._count_ignored(document, watch)
            edits = await self._repeats(document, watch, cursor, finished=at_once)
            if not edits and not at_once:
                await asyncio.sleep(self._finished_seconds)
                edits = await self._repeats(document, watch, cursor, finished=True)
            if not edits and self._options.for_uri(document.uri).next_edit.model:
                self._withdraw(document, watch)
                asked = await self._asked(document, watch, cursor)
                if asked.failure:
                    _log.info("the model gave no answer for the next edit")
                edits = asked.edits
            if document.version == text.version:
                self._offer(document, watch, text, edits)
        except SpecEditError as error:
            _log.info("no next edit: %s", loggable(error))
        except Exception as error:  # noqa: BLE001 (nobody awaits this; its message may hold the user's code)
            _log.error("looking for the next edit failed: %s", type(error).__name__)

    async def _repeats(
        self, document: OpenDocument, watch: _Watch, cursor: int, *, finished: bool
    ) -> Sequence[NextEdit]:
        from specedit.edit.next_edit import repeats

        text, recent, declined = document.snapshot(), self._recent.latest(_EDITS), frozenset(watch.declined)
        return await in_thread(
            lambda: repeats(text, recent, cursor, finished=finished, declined=declined), CancelToken()
        )

    async def _asked(self, document: OpenDocument, watch: _Watch, cursor: int) -> Asked:
        """What the model proposes. It is shown edits of this document alone, and no document that holds secrets."""
        from specedit.edit.next_edit import Asked, ask, place_to_ask_about
        from specedit_lsp.exposure import why_withheld

        cancel, text = CancelToken(), document.snapshot()
        recent, declined = self._recent.latest(_EDITS, document.uri), frozenset(watch.declined)
        settings = self._backend.settings_for(document.path)

        def may_ask() -> bool:
            place = place_to_ask_about(text, recent, cursor, finished=True)
            return place is not None and not why_withheld(document.uri, document.path, text.text, settings)

        if not await in_thread(may_ask, cancel):
            return Asked()
        await self._turns.take(document.uri)
        with ExitStack() as turn:
            turn.callback(self._turns.give_back, document.uri)
            engine = self._backend.engine()
            # The turn ends with the thread, which goes on for a step where this is cancelled.
            end_turn = on_loop(turn.pop_all().close)

            def work() -> Asked:
                try:
                    return ask(text, recent, cursor, engine, cancel, finished=True, declined=declined)
                finally:
                    end_turn()

            began = time.monotonic()
            with self._backend.busy("nextEdit"):
                asked = await in_thread(work, cancel)
        if self._statistics and asked.usage.output_tokens:
            self._statistics.answered("nextEdit", asked.usage, time.monotonic() - began)
        return asked

    def _valid(self, document: OpenDocument) -> _Offer | None:
        """The offer, if it is for the text as it is."""
        watch = self._watches.get(document.uri)
        offer = watch.offer if watch else None
        return offer if offer and offer.text.version == document.version else None

    def _offer(self, document: OpenDocument, watch: _Watch, text: Document, edits: Sequence[NextEdit]) -> None:
        if not edits:
            self._withdraw(document, watch)
            return
        is_new = watch.offer is None or _change(watch.offer.text, watch.offer.edits[0]) != _change(text, edits[0])
        watch.offer = _Offer(edits, text)
        watch.last = self._newest(document)
        self._client.notify(METHOD, self._told(document, edits[0]))
        if is_new and self._statistics:
            self._statistics.shown("nextEdit")

    def _withdraw(self, document: OpenDocument, watch: _Watch) -> None:
        if watch.offer is not None:
            watch.offer = None
            self._client.notify(METHOD, {"uri": document.uri, "version": document.version, "range": None})

    def _take_accepted(self, document: OpenDocument, watch: _Watch) -> bool:
        """Whether the document is what one of the proposals makes of it; then the proposals are used up."""
        offer = watch.offer
        for edit in offer.edits if offer else ():
            assert offer is not None
            before, span = offer.text.text, edit.span
            if len(document.text) != len(before) + len(edit.new_text) - (span.end - span.start):
                continue
            if document.text == before[: span.start] + edit.new_text + before[span.end :]:
                watch.offer = None
                if self._statistics:
                    self._statistics.accepted("nextEdit", len(edit.new_text))
                return True
        return False

    def _count_ignored(self, document: OpenDocument, watch: _Watch) -> None:
        """Take a proposal that two edits elsewhere passed by for one that is not wanted."""
        newest = self._newest(document)
        if watch.offer is None or newest is None or newest == watch.last:
            return
        watch.last = newest
        change = _change(watch.offer.text, watch.offer.edits[0])
        watch.ignored[change] = watch.ignored.get(change, 0) + 1
        if watch.ignored[change] >= _MOST_IGNORED:
            watch.declined[change] = None
            if self._statistics:
                self._statistics.rejected("nextEdit")
        for known in (watch.declined, watch.ignored):
            if len(known) > _MOST_DECLINED:
                del known[next(iter(known))]

    def _newest(self, document: OpenDocument) -> tuple[int, str] | None:
        """What tells the user's newest edit in a document from others, however far it has come."""
        newest: tuple[RecentEdit, ...] = self._recent.latest(1, document.uri)
        return (newest[0].line, newest[0].before) if newest else None

    def _told(self, document: OpenDocument, edit: NextEdit) -> dict[str, Any]:
        """A proposal as it goes over the wire."""
        return {
            "uri": document.uri,
            "version": document.version,
            "range": convert.to_json(document.range(edit.span)),
            "newText": edit.new_text,
            "source": edit.source,
        }

    def _end(self, watch: _Watch) -> None:
        if watch.task is not None:
            watch.task.cancel()
            watch.task = None


def _change(text: Document, edit: NextEdit) -> tuple[str, str]:
    """What the lines of an edit are and become, without their ends."""
    first, last = text.line_number(edit.span.start), text.line_number(max(edit.span.start, edit.span.end - 1))
    start = text.line_spans[first - 1].start if first <= len(text.line_spans) else len(text.text)
    end = text.line_spans[last - 1].end if last <= len(text.line_spans) else len(text.text)
    old = text.text[start:end]
    new = text.text[start : edit.span.start] + edit.new_text + text.text[edit.span.end : end]
    return old.rstrip("\r\n"), new.rstrip("\r\n")


def _checked(arguments: Any) -> _Here:
    if isinstance(arguments, list) and len(arguments) == 1:
        arguments = arguments[0]
    try:
        return msgspec.convert(arguments if isinstance(arguments, Mapping) else None, _Here)
    except msgspec.ValidationError as error:
        raise UsageError(
            f"specedit.nextEdit takes one argument {{textDocument, position}}: {error}. Update the plugin or specedit."
        ) from error
