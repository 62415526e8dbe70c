"""Inline completion: from the editor's request to items, with no more work under way than one keystroke is worth."""

from __future__ import annotations

import asyncio
import logging
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsprotocol.types import InlineCompletionItem, InlineCompletionList, InlineCompletionParams

from specedit.edit.document import Document, Span
from specedit.edit.files import project_root
from specedit.engine.api import Engine
from specedit.errors import FimUnsupportedError, SpecEditError, UnsupportedModelError
from specedit_lsp.ask import Ask
from specedit_lsp.bridge import in_thread, on_loop
from specedit_lsp.client import Client
from specedit_lsp.documents import Documents, OpenDocument, TextChange
from specedit_lsp.exposure import why_withheld
from specedit_lsp.offers import Offers
from specedit_lsp.suggestion_cache import Rest, Suggestion, SuggestionCache, only_adds
from specedit_lsp.troubles import Troubles
from specedit_lsp.turns import Turns

if TYPE_CHECKING:
    from specedit.edit.completion import Completion
    from specedit.edit.context import Sources
    from specedit.edit.prompt_budget import PromptBudget
    from specedit_lsp.backend import Backend
    from specedit_lsp.next_edit import NextEdits
    from specedit_lsp.options import Options, OptionsStore
    from specedit_lsp.statistics import Kind, Statistics

SourcesOf = Callable[[OpenDocument], "Sources"]
"""Gives what a document's context may be gathered from; called on the event loop, read in a thread."""

_log = logging.getLogger(__name__)

# They give each line of an item their own file's end, and take the \r of another one for a character (Neovim 0.12).
_SPLIT_AT_LF = frozenset({"Neovim"})


@dataclass(frozen=True, slots=True)
class _Place:
    """What a thread works on: a text, the cursor in it, and the item selected in the editor's list."""

    document: Document
    cursor: int
    selected: tuple[Span, str] | None


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a thread found: completions and how long they took, or why the document is withheld."""

    completions: tuple[Completion, ...] = ()
    seconds: float = 0.0
    withheld: str = ""


class InlineCompletions:
    """Completions at the cursor.

    A newer request for a document ends the older one. Where typing goes along a suggestion, the rest of it is given
    without asking the model. All methods are called on the event loop.
    """

    def __init__(
        self,
        documents: Documents,
        backend: Backend,
        options: OptionsStore,
        client: Client,
        statistics: Statistics,
        sources: SourcesOf,
        next_edits: NextEdits,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Complete in `documents` by the engine of `backend`.

        Args:
            documents: those that are open.
            backend: whose engine is asked.
            options: the user's.
            client: who is told what goes wrong.
            statistics: where it is counted.
            sources: what the context of a document may be gathered from.
            next_edits: what is proposed elsewhere; where the cursor is there, it is given first.
            clock: seconds that don't go back.
        """
        self._documents = documents
        self._backend = backend
        self._options = options
        self._client = client
        self._statistics = statistics
        self._sources = sources
        self._next_edits = next_edits
        self._troubles = Troubles(client, "inline completion", clock)
        self._cache = SuggestionCache()
        self._offers = Offers(statistics)
        self._turns = Turns()
        self._origins = count(1)
        self._asks: dict[str, tuple[Ask, asyncio.Task[list[InlineCompletionItem]]]] = {}
        self._withheld: set[str] = set()
        self._off: list[Options] = []

    async def complete(self, params: InlineCompletionParams) -> InlineCompletionList:
        """The items for a position; none where nothing fits, or a newer request for the document came meanwhile."""
        document = self._documents.get(params.text_document.uri)
        options = self._options.for_uri(params.text_document.uri)
        if document is None or not options.inline.enabled:
            return InlineCompletionList([])
        self._documents.touch(document.uri)
        ask = Ask.of(params, document, options)
        self._end(ask.key)
        task = asyncio.ensure_future(self._items(ask))
        self._asks[ask.key] = ask, task
        try:
            await asyncio.wait({task})
        finally:
            task.cancel()
            if self._asks.get(ask.key) == (ask, task):
                del self._asks[ask.key]
        return InlineCompletionList([] if task.cancelled() else task.result())

    def document_changed(self, uri: str, changes: Sequence[TextChange]) -> None:
        """The text of a document is another now, after `changes`."""
        if (key := self._key(uri)) in self._asks:
            ask, _ = self._asks[key]
            ask.document_changed(changes)

    def document_closed(self, uri: str) -> None:
        """A document was closed; `uri` is the one that it was opened by, or means the same while it is open."""
        key = self._key(uri)
        self._end(key)
        self._cache.drop(key)
        self._offers.forget(key)
        self._withheld.discard(key)

    def engine_restarted(self) -> None:
        """Another model may answer from now on."""
        self._off.clear()
        self._cache.clear()

    def close(self) -> None:
        """End the requests that are under way; idempotent."""
        for key in list(self._asks):
            self._end(key)

    def did_show(self, params: Any) -> None:
        """`textDocument/didShowCompletion {item}`."""
        self._offers.did_show(params)

    def did_accept(self, argument: Any) -> None:
        """The command of an item, with its argument: the editor has inserted it."""
        self._offers.did_accept(argument)

    def did_partially_accept(self, params: Any) -> None:
        """`textDocument/didPartiallyAcceptCompletion {item, acceptedLength}`."""
        self._offers.did_partially_accept(params)

    def _key(self, uri: str) -> str:
        document = self._documents.get(uri)
        return document.uri if document else uri

    def _end(self, key: str) -> None:
        """End the request that is under way for a document, if there is one; it gives nothing."""
        if key in self._asks:
            _, task = self._asks.pop(key)
            task.cancel()

    async def _items(self, ask: Ask) -> list[InlineCompletionItem]:
        try:
            return await self._next_edit(ask) or await self._suggestions(ask)
        except SpecEditError as error:
            if not ask.cancel.cancelled:
                is_off = isinstance(error, FimUnsupportedError | UnsupportedModelError)
                if is_off:
                    self._off.append(ask.options)
                self._troubles.tell(error, at_once=is_off)
        except Exception as error:  # noqa: BLE001 (an editor would show it at every keystroke)
            # Where it happened is ours; the message may hold the user's code.
            where = "".join(traceback.format_tb(error.__traceback__))
            _log.error("inline completion failed: %s\n%s", type(error).__name__, where)
        return []

    async def _next_edit(self, ask: Ask) -> list[InlineCompletionItem]:
        """The change that is proposed at the cursor, where one line holds what it replaces."""
        document, text, cursor = ask.document, ask.document.text, ask.cursor
        edit = self._next_edits.at(document.uri, cursor)
        if edit is None or ask.selected:
            return []
        span = Span(min(edit.span.start, cursor), max(edit.span.end, cursor))
        old = text[span.start : span.end]
        new = text[span.start : edit.span.start] + edit.new_text + text[edit.span.end : span.end]
        if new == old or "\n" in old or "\r" in old or not new.startswith(text[span.start : cursor]):
            return []
        if edit.span.start > cursor and not only_adds(new, old):
            # Editors could not show it so far away, and it would stand in the way of what is proposed here.
            return []
        if await in_thread(lambda: self._why_withheld(ask.document, text), ask.cancel) or document.text != text:
            return []
        rest = Rest(Span(cursor, span.end), new[cursor - span.start :], next(self._origins))
        return [self._item(ask, rest, "nextEdit")]

    async def _suggestions(self, ask: Ask) -> list[InlineCompletionItem]:
        text, known = ask.document.text, self._known(ask)
        if known and not ask.is_invoked:
            return self._offered(ask, [known])
        if ask.options in self._off:
            return []
        if not ask.is_invoked:
            await asyncio.sleep(ask.options.inline.debounce_ms / 1000)
            if ask.cancel.cancelled:
                return []
        place, answer = await self._generated(ask)
        if answer.withheld and ask.key not in self._withheld:
            self._withheld.add(ask.key)
            self._client.log(f"{ask.key} is not completed: {answer.withheld}.")
        found = self._kept(ask, place, answer)
        if ask.document.text != place.document.text:
            _log.debug("a completion was dropped: the text has changed since it was asked for")
            found = []
        if ask.document.text != text:
            known = self._known(ask)
        return self._offered(ask, [*([known] if known else []), *found])

    async def _generated(self, ask: Ask) -> tuple[_Place, _Answer]:
        """What the model proposes at the cursor, which is where it is once the document's turn has come."""
        await self._turns.take(ask.key)
        with ExitStack() as turn:
            turn.callback(self._turns.give_back, ask.key)
            place = _Place(ask.document.snapshot(), ask.cursor, ask.selected)
            if ask.cancel.cancelled:
                return place, _Answer()
            engine, sources = self._backend.engine(), self._sources(ask.document)
            with self._backend.busy("inline"):
                # The turn ends with the thread, which goes on for a step where this is cancelled.
                end_turn = on_loop(turn.pop_all().close)

                def work() -> _Answer:
                    try:
                        if withheld := self._why_withheld(ask.document, place.document.text):
                            return _Answer(withheld=withheld)
                        return _completed(ask, place, sources, engine, self._budget(ask))
                    finally:
                        end_turn()

                return place, await in_thread(work, ask.cancel)

    def _budget(self, ask: Ask) -> PromptBudget:
        """How much the model is shown: what the user says, else what suits the place where it runs; may wait for it."""
        from specedit.edit.prompt_budget import PromptBudget

        chosen, given = PromptBudget.for_device(self._backend.device(ask.cancel)), ask.options.inline
        return replace(
            chosen,
            prefix_tokens=_given(given.prefix_tokens, chosen.prefix_tokens),
            suffix_tokens=_given(given.suffix_tokens, chosen.suffix_tokens),
            context_tokens=_given(given.context_tokens, chosen.context_tokens),
        )

    def _why_withheld(self, document: OpenDocument, text: str) -> str:
        return why_withheld(document.uri, document.path, text, self._backend.settings_for(document.path))

    def _known(self, ask: Ask) -> Rest | None:
        """What the cache has for the cursor as it is now."""
        return self._cache.find(ask.key, ask.document.text, ask.cursor, ask.options.inline, ask.selected)

    def _kept(self, ask: Ask, place: _Place, answer: _Answer) -> list[Rest]:
        """Count the answer and keep it for later; gives what it proposes, in the text that it was made for."""
        if answer.completions:
            self._troubles.over()
        for completion in answer.completions:
            self._statistics.answered("inline", completion.usage, answer.seconds / len(answer.completions))
        found = [
            Rest(completion.span, completion.text, next(self._origins))
            for completion in answer.completions
            if completion.status == "found"
        ]
        nothing = bool(answer.completions) and all(each.status == "nothing" for each in answer.completions)
        if nothing and place.selected is None:
            self._keep(ask, place, Rest(Span(place.cursor, place.cursor), "", next(self._origins)))
        for rest in reversed(found):
            self._keep(ask, place, rest)
        return found

    def _keep(self, ask: Ask, place: _Place, rest: Rest) -> None:
        text, settings = place.document.text, ask.options.inline
        self._cache.put(Suggestion.at(ask.key, text, rest.span, place.cursor, rest.text, settings, rest.origin))

    def _offered(self, ask: Ask, found: Sequence[Rest]) -> list[InlineCompletionItem]:
        """The items for what was found, each text once."""
        different: dict[str, Rest] = {}
        for rest in found:
            if rest.text:
                different.setdefault(rest.text, rest)
        most = ask.options.inline.alternatives if ask.is_invoked else 1
        return [self._item(ask, rest, "inline") for rest in list(different.values())[:most]]

    def _item(self, ask: Ask, rest: Rest, kind: Kind) -> InlineCompletionItem:
        standing = ask.document.text[rest.span.start : ask.cursor]
        # Editors hide what doesn't begin with what stands there, unless they are told to look at something else.
        is_seen = rest.text.lower().startswith(standing.lower())
        text = rest.text
        if self._client.name in _SPLIT_AT_LF:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        return InlineCompletionItem(
            text,
            filter_text=None if is_seen else standing + text,
            range=ask.document.range(rest.span),
            command=self._offers.new(ask.key, kind, text, len(standing), rest.origin),
        )


def _completed(ask: Ask, place: _Place, sources: Sources, engine: Engine, budget: PromptBudget) -> _Answer:
    """Ask the engine, with context; run in a thread."""
    # Grammars load with these, which is not for the server's start.
    from specedit.edit.completion import CompletionRequest, alternatives, complete
    from specedit.edit.context import gather

    began = time.perf_counter()
    options = ask.options.inline
    request = CompletionRequest(
        document=place.document,
        offset=place.cursor,
        files=gather(place.document, place.cursor, sources, budget),
        selected=place.selected,
        max_new_tokens=options.invoked_max_new_tokens if ask.is_invoked else options.max_new_tokens,
        budget=budget,
        multi_line=options.multi_line,
        cancel=ask.cancel,
        name=_name(place.document, sources.root),
    )
    if ask.is_invoked and options.alternatives > 1:
        completions = tuple(alternatives(request, engine, options.alternatives))
    else:
        completions = (complete(request, engine),)
    return _Answer(completions, time.perf_counter() - began)


def _given(tokens: int | None, chosen: int) -> int:
    return chosen if tokens is None else tokens


def _name(document: Document, root: Path | None) -> str:
    """As the files of the context have theirs: relative to the project; nothing for a document that is no file."""
    path = document.path
    if path is None or not path.is_absolute():
        return ""
    root = root or project_root(path)
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else ""
