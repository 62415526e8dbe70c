"""Rewriting a selection: the commands, what the editor is told meanwhile, and how the result gets into its text."""

from __future__ import annotations

import asyncio
import logging
import time
import traceback
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

from lsprotocol.types import MessageType

from specedit.edit.document import Document, Span
from specedit.engine.api import Engine, Sampling, Usage
from specedit.errors import RefusedFileError, SpecEditError, UsageError
from specedit_lsp import convert
from specedit_lsp.applier import ARRIVAL_SECONDS, Applier
from specedit_lsp.bridge import in_thread, on_loop
from specedit_lsp.convert import same_uri
from specedit_lsp.exposure import why_withheld
from specedit_lsp.progress import Progress, Token
from specedit_lsp.rewrite_arguments import Apply, HunkArguments, RewriteArguments, SessionArguments, understood
from specedit_lsp.rewrite_session import Outcome, RewriteSession, to_json
from specedit_lsp.wording import in_editor_words
from specedit_lsp.workspace_edit import can_apply

if TYPE_CHECKING:
    from specedit.edit.live import LiveHunk, LiveHunks
    from specedit.edit.region import Region
    from specedit.edit.session import EditResult
    from specedit_lsp.backend import Backend
    from specedit_lsp.client import Client
    from specedit_lsp.documents import Documents, OpenDocument, TextChange
    from specedit_lsp.options import OptionsStore, RewriteOptions
    from specedit_lsp.statistics import Statistics

MOST_AT_ONCE = 4
MOST_REMEMBERED = 16
REGENERATED_TEMPERATURE = 0.7
"""The least with which an answer is made anew: a greedy one would be the same again."""

_MAX_LABEL_CHARS = 60

_log = logging.getLogger(__name__)


class Rewrites:
    """The rewrites that are under way, and the last ones that were. All methods are called on the event loop.

    What the model writes is told as `specedit/hunk {session, id, uri, version, range, oldText, newText}`; a further one
    with the same id takes its place, `specedit/hunkRemoved {session, id}` takes it back, and after
    `specedit/rebased {session, uri, version, lines}` ranges are in the text of that version, where those that were told
    before are so many lines further down. `specedit/rewriteEnd {session, outcome, reason, fix, stats}` is the end.
    """

    def __init__(
        self,
        documents: Documents,
        backend: Backend,
        options: OptionsStore,
        client: Client,
        statistics: Statistics,
        arrival_seconds: float = ARRIVAL_SECONDS,
    ) -> None:
        """Rewrite parts of `documents` by the engine of `backend`."""
        self._documents = documents
        self._backend = backend
        self._options = options
        self._client = client
        self._statistics = statistics
        self._applier = Applier(client, arrival_seconds)
        self._numbers = count(1)
        self._sessions: dict[str, RewriteSession] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    # --- commands

    def start(self, arguments: Any) -> dict[str, Any]:
        """`specedit.rewrite`: begin, and give {session, uri, version, range, label} of the part at once.

        Raises:
            UsageError: it can't be done: no such document, another version, no instruction, an editor that takes no
                edits, or too much under way.
            RefusedFileError: the document must not be shown to a model.
        """
        wanted = understood(arguments, RewriteArguments, "specedit.rewrite")
        document = self._document(wanted.text_document.uri)
        version = wanted.text_document.version
        if version not in (None, document.version):
            raise UsageError(
                f"the text has changed since the rewrite was asked for (version {version}, now {document.version}). "
                "Ask again for the text as it is now."
            )
        if not wanted.instruction.strip():
            raise UsageError("there is no instruction. Say what to change.")
        if wanted.apply != "client" and not can_apply(self._client.capabilities):
            raise UsageError("this editor takes no edits from a language server. Use specedit's plugin for it.")
        settings = self._backend.settings_for(document.path)
        if why := why_withheld(document.uri, document.path, document.text, settings):
            raise RefusedFileError(f"{document.path or document.uri} is not shown to a model: {why}.")
        # Grammars load with it, which is not for the server's start.
        from specedit.edit.region import selected

        before = document.snapshot()
        region = selected(before, document.span(wanted.range.to_range()))
        return self._begin(document, before, region, wanted.instruction, wanted.apply, wanted.work_done_token)

    async def regenerate(self, arguments: Any) -> dict[str, Any]:
        """`specedit.regenerate`: the same request with the next seed, as a session of its own; gives what `start` does.

        Raises:
            UsageError: the part is not what it was, or the rewrite is forgotten.
        """
        wanted = understood(arguments, SessionArguments, "specedit.regenerate")
        old = self._session(wanted.session)
        if not old.is_as_it_was():
            raise UsageError(
                "the part to rewrite has changed since. Undo that and try again, or ask for a new rewrite of it."
            )
        region, by = old.region, old.moved_by
        here = replace(region, span=_shifted(region.span, by), user_span=_shifted(region.user_span, by))
        return self._begin(
            old.document,
            old.document.snapshot(),
            here,
            old.instruction,
            old.apply,
            wanted.work_done_token,
            seed=old.seed + 1,
            least_temperature=REGENERATED_TEMPERATURE,
        )

    async def cancel(self, arguments: Any) -> dict[str, Any]:
        """`specedit.cancelRewrite`: stop the model; one that has ended stays as it is. Gives {session, outcome}.

        Raises:
            UsageError: the rewrite is forgotten.
        """
        session = self._session(understood(arguments, SessionArguments, "specedit.cancelRewrite").session)
        self._end(session, "cancelled", "it was cancelled")
        return {"session": session.id, "outcome": session.outcome}

    def progress_cancelled(self, token: Token) -> None:
        """`window/workDoneProgress/cancel`."""
        for session in list(self._sessions.values()):
            if session.progress.token == token:
                self._end(session, "cancelled", "it was cancelled")

    async def accept_hunk(self, arguments: Any) -> dict[str, Any]:
        """`specedit.acceptHunk`: make it in the text, where the server applies; gives {session, ids}.

        Raises:
            UsageError: there is no such hunk, it can't be accepted yet, or it does not fit the text any more.
        """
        wanted = understood(arguments, HunkArguments, "specedit.acceptHunk")
        session = self._decidable(wanted.session)
        return await self._accept(session, [_known(session, wanted.id)])

    async def accept_all(self, arguments: Any) -> dict[str, Any]:
        """`specedit.acceptAll`: the same for all that are not decided on yet, as one edit.

        Raises:
            UsageError: they can't be accepted yet, or one does not fit the text any more.
        """
        session = self._decidable(understood(arguments, SessionArguments, "specedit.acceptAll").session)
        return await self._accept(session, session.open_hunks())

    async def reject_hunk(self, arguments: Any) -> dict[str, Any]:
        """`specedit.rejectHunk`: count it as not wanted; gives {session, ids}.

        Raises:
            UsageError: there is no such hunk, it is in the text already, or the model is still writing.
        """
        wanted = understood(arguments, HunkArguments, "specedit.rejectHunk")
        session = self._decidable(wanted.session)
        number = _known(session, wanted.id)
        if session.apply == "review" and session.verdicts.get(number) == "accepted":
            raise UsageError("this change is in the text already. Undo it in the editor.")
        return self._reject(session, [number])

    async def reject_all(self, arguments: Any) -> dict[str, Any]:
        """`specedit.rejectAll`: the same for all that are not decided on yet.

        Raises:
            UsageError: the model is still writing, or there is no result.
        """
        session = self._decidable(understood(arguments, SessionArguments, "specedit.rejectAll").session)
        return self._reject(session, session.open_hunks())

    # --- what happens to documents

    def document_changed(self, uri: str, changes: Sequence[TextChange]) -> None:
        """The text of a document is another now, after `changes`."""
        self._applier.document_changed()
        document = self._documents.get(uri)
        for session in self._in(uri):
            if session.document is not document:
                self._end(session, "stale", "the document was opened anew", "ask again for the text as it is now")
                del self._sessions[session.id]
            elif session.outcome is not None:
                session.follow(changes)
            elif session.rebase(changes):
                self._tell_rebased(session)
            else:
                self._end_as_stale(session)

    def document_closed(self, uri: str) -> None:
        """A document was closed: nothing more is done in it."""
        for session in self._in(uri):
            self._end(session, "cancelled", "the document was closed")
            del self._sessions[session.id]
        self._applier.document_closed(uri)

    def making(self, uri: str, text: str, changes: Sequence[TextChange]) -> list[bool]:
        """For changes of a document that follow each other from `text` on, whether each may be a rewrite's."""
        if self._applier.is_applying(uri):
            return [True] * len(changes)
        deciding = [session for session in self._in(uri) if session.outcome == "ready" and session.apply == "client"]
        found = [session.making_hunks(text, changes) for session in deciding]
        return [any(made) for made in zip(*found, strict=True)] if found else [False] * len(changes)

    def close(self) -> None:
        """Stop what is under way; nothing is told any more. Idempotent."""
        for session in self._sessions.values():
            session.cancel.cancel()
        for task in self._tasks:
            task.cancel()

    # --- the answer

    def _begin(
        self,
        document: OpenDocument,
        before: Document,
        region: Region,
        instruction: str,
        apply: Apply,
        token: Token | None,
        *,
        seed: int = 0,
        least_temperature: float = 0.0,
    ) -> dict[str, Any]:
        for other in self._in(document.uri):
            if other.outcome is None and other.place is not None and _touch(other.place, region.span):
                self._end(other, "cancelled", "a newer rewrite of the same lines was asked for")
        if sum(session.is_at_work for session in self._sessions.values()) >= MOST_AT_ONCE:
            raise UsageError(f"{MOST_AT_ONCE} rewrites are under way. Wait for one to end, or cancel one.")
        session = RewriteSession(
            str(next(self._numbers)),
            document,
            before,
            region,
            instruction,
            apply,
            seed,
            least_temperature,
            Progress(self._client, f"Rewriting {region.label}", token),
        )
        self._remember(session)
        self._spawn(session.progress.begin())
        self._spawn(self._run(session))
        return {
            "session": session.id,
            "uri": document.uri,
            "version": document.version,
            "range": convert.to_json(document.range(region.span)),
            "label": region.label,
        }

    async def _run(self, session: RewriteSession) -> None:
        try:
            result, live = await self._answered(session)
            await self._conclude(session, result, live)
        except SpecEditError as error:
            self._end(session, "refused", str(error))
        except Exception as error:  # noqa: BLE001 (the editor waits for an end)
            # Where it happened is ours; the message may hold the user's code.
            where = "".join(traceback.format_tb(error.__traceback__))
            _log.error("a rewrite failed: %s\n%s", type(error).__name__, where)
            self._end(session, "refused", "specedit itself failed", "ask again; its log says more")
        finally:
            session.is_at_work = False

    async def _answered(self, session: RewriteSession) -> tuple[EditResult, LiveHunks]:
        began = time.perf_counter()
        options = self._options.for_uri(session.document.uri).rewrite
        with self._backend.busy("rewrite"):
            work = partial(_asked, session, options, self._backend, self._backend.engine(), on_loop(self._wrote))
            result, live = await in_thread(work, session.cancel)
        session.is_at_work = False
        self._statistics.answered("rewrite", result.usage, time.perf_counter() - began)
        return result, live

    def _wrote(self, session: RewriteSession, hunks: Sequence[LiveHunk], chars: int) -> None:
        """The model wrote so many characters, which settled these hunks."""
        if session.outcome is not None:
            return
        for live in hunks:
            self._tell_hunk(session, live)
        session.written_chars += chars
        length = session.region.span.end - session.region.span.start
        changes = f"{session.told} change{'' if session.told == 1 else 's'} so far" if session.told else ""
        session.progress.report(100 * session.written_chars // max(1, length), changes)

    async def _conclude(self, session: RewriteSession, result: EditResult, live: LiveHunks) -> None:
        if session.outcome is not None:
            return
        if not session.is_of_this_text or self._documents.get(session.document.uri) is not session.document:
            self._end_as_stale(session, result.usage)
        elif result.status == "changed":
            self._show_result(session, result, live)
            if session.apply == "server":
                await self._apply_whole(session)
        elif result.status == "cancelled":
            self._end(session, "cancelled", "it was cancelled", usage=result.usage)
        else:
            self._end(session, "refused", result.reason, result.fix, result.usage)

    def _show_result(self, session: RewriteSession, result: EditResult, live: LiveHunks) -> None:
        conclusion = live.conclude(result.hunks)
        for number in conclusion.removed:
            self._client.notify("specedit/hunkRemoved", {"session": session.id, "id": number})
        for changed in conclusion.changed:
            self._tell_hunk(session, changed)
        session.conclude({each.id: each.hunk for each in conclusion.hunks})
        for _ in session.hunks:
            self._statistics.shown("rewrite")
        self._tell_end(session, "ready", "", "", result.usage)

    # --- the result in the text

    async def _apply_whole(self, session: RewriteSession) -> None:
        options = self._options.for_uri(session.document.uri).rewrite
        try:
            await self._apply(session, session.open_hunks(), confirm=options.confirm)
        except UsageError as error:
            self._client.show(str(error), MessageType.Warning)

    async def _apply(self, session: RewriteSession, numbers: list[int], *, confirm: bool = False) -> None:
        """Have the editor make hunks in its text.

        Raises:
            UsageError: it did not.
        """
        await self._applier.apply(session.document, lambda: session.edits(numbers), _label(session), confirm=confirm)
        for number in numbers:
            self._decide_accepted(session, number)

    async def _accept(self, session: RewriteSession, numbers: list[int]) -> dict[str, Any]:
        if session.apply == "review" and numbers:
            await self._apply(session, numbers)
        else:
            for number in numbers:
                self._decide_accepted(session, number)
        return {"session": session.id, "ids": numbers}

    def _decide_accepted(self, session: RewriteSession, number: int) -> None:
        # Counted is what was decided first: an editor may take back what it accepted.
        if number not in session.verdicts:
            self._statistics.accepted("rewrite", len(session.hunks[number].new))
        session.verdicts[number] = "accepted"

    def _reject(self, session: RewriteSession, numbers: list[int]) -> dict[str, Any]:
        for number in numbers:
            if number not in session.verdicts:
                self._statistics.rejected("rewrite")
            session.verdicts[number] = "rejected"
        return {"session": session.id, "ids": numbers}

    # --- what the editor is told

    def _tell_hunk(self, session: RewriteSession, live: LiveHunk) -> None:
        session.told = max(session.told, live.id)
        self._client.notify("specedit/hunk", to_json(session, live.id, live.hunk))

    def _tell_rebased(self, session: RewriteSession) -> None:
        document, place = session.document, session.place
        assert place is not None
        line = document.position(place.start).line
        params = {"session": session.id, "uri": document.uri, "version": document.version, "lines": line - session.line}
        session.line = line
        self._client.notify("specedit/rebased", params)

    def _end_as_stale(self, session: RewriteSession, usage: Usage | None = None) -> None:
        reason = "the text was changed while the model wrote"
        self._end(session, "stale", reason, "ask again for the text as it is now", usage)

    def _end(
        self, session: RewriteSession, outcome: Outcome, reason: str, fix: str = "", usage: Usage | None = None
    ) -> None:
        """End a rewrite without a result, and stop the model; one that has ended stays as it is."""
        if session.outcome is not None:
            return
        session.end(outcome)
        reason, fix = in_editor_words(reason), in_editor_words(fix)
        self._tell_end(session, outcome, reason, fix, usage or Usage())
        if outcome in ("refused", "stale") and session.apply != "client":
            said = "; ".join(filter(None, (reason, fix)))
            self._client.show(f"{session.region.label} was not rewritten: {said}", MessageType.Warning)

    def _tell_end(self, session: RewriteSession, outcome: Outcome, reason: str, fix: str, usage: Usage) -> None:
        session.progress.end(outcome)
        stats = {**_plain(usage), "hunks": len(session.hunks)}
        params = {"session": session.id, "outcome": outcome, "reason": reason, "fix": fix, "stats": stats}
        self._client.notify("specedit/rewriteEnd", params)
        _log.info("rewrite %s: %s", session.id, outcome)

    # --- sessions

    def _remember(self, session: RewriteSession) -> None:
        self._sessions[session.id] = session
        ended = [number for number, other in self._sessions.items() if other.outcome is not None]
        for number in ended[: max(0, len(self._sessions) - MOST_REMEMBERED)]:
            del self._sessions[number]

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _in(self, uri: str) -> list[RewriteSession]:
        return [session for session in self._sessions.values() if same_uri(session.document.uri, uri)]

    def _document(self, uri: str) -> OpenDocument:
        document = self._documents.get(uri)
        if document is None:
            raise UsageError(f"{uri} is not open in the editor. Open it and ask again.")
        return document

    def _session(self, number: str) -> RewriteSession:
        session = self._sessions.get(number)
        if session is None:
            raise UsageError(f"there is no rewrite {number}, or it was too long ago. Ask for a new one.")
        return session

    def _decidable(self, number: str) -> RewriteSession:
        """A rewrite whose hunks can be accepted and rejected."""
        session = self._session(number)
        if session.outcome is None:
            raise UsageError("the model is still writing: nothing can be accepted or rejected before it is done. Wait.")
        if session.outcome != "ready":
            raise UsageError(f"this rewrite has no result: it was {session.outcome}. Ask for a new one.")
        if session.apply == "server":
            raise UsageError(
                "this rewrite is applied as one edit: its changes are not decided on one by one. "
                "Undo it in the editor, or ask for it hunk by hunk."
            )
        return session


def _asked(
    session: RewriteSession,
    options: RewriteOptions,
    backend: Backend,
    engine: Engine,
    wrote: Callable[[RewriteSession, Sequence[LiveHunk], int], None],
) -> tuple[EditResult, LiveHunks]:
    """Ask the engine; run in a thread."""
    from specedit.edit.live import LiveHunks
    from specedit.edit.session import EditRequest, run_edit

    settings = backend.settings_for(session.document.path)
    temperature = options.temperature or settings.temperature
    request = EditRequest(
        session.before,
        session.region,
        session.instruction,
        Sampling(temperature=max(session.least_temperature, temperature), top_p=settings.top_p),
        session.seed,
        options.max_new_tokens or settings.max_new_tokens,
        allow_deletions=options.allow_deletions or settings.allow_deletions,
        allow_syntax_errors=options.allow_syntax_errors or settings.allow_syntax_errors,
        cancel=session.cancel,
    )
    live = LiveHunks(session.before, session.region, session.instruction)
    return run_edit(request, engine, lambda text: wrote(session, live.feed(text), len(text))), live


def _known(session: RewriteSession, number: int) -> int:
    if number not in session.hunks:
        raise UsageError(f"rewrite {session.id} has no change {number}. Update the plugin or specedit.")
    return number


def _label(session: RewriteSession) -> str:
    """How the editor calls the edit, in its list of things to undo."""
    instruction = " ".join(session.instruction.split())
    shown = instruction if len(instruction) <= _MAX_LABEL_CHARS else f"{instruction[: _MAX_LABEL_CHARS - 3]}..."
    return f"specedit: {shown}"


def _shifted(span: Span, by: int) -> Span:
    return Span(span.start + by, span.end + by)


def _touch(one: Span, other: Span) -> bool:
    return one.start == other.start or (one.start < other.end and other.start < one.end)


def _plain(usage: Usage) -> dict[str, Any]:
    return {
        "promptTokens": usage.prompt_tokens,
        "cachedTokens": usage.cached_tokens,
        "outputTokens": usage.output_tokens,
        "forwards": usage.forwards,
        "tokensPerForward": round(usage.tokens_per_forward, 2),
        "drafted": usage.drafted,
        "accepted": usage.accepted,
        "seconds": round(usage.seconds, 3),
    }
