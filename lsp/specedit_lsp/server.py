"""The server: what the editor sends, handed to the feature that it is for."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from specedit import __version__
from specedit.edit.recent import RecentEdits
from specedit_lsp.actions import code_actions
from specedit_lsp.backend import Backend, MakeEngine
from specedit_lsp.client import EditorClient
from specedit_lsp.documents import Documents, OpenDocument, TextChange
from specedit_lsp.editor_process import can_be_seen, ended
from specedit_lsp.exposure import why_secret
from specedit_lsp.inline import InlineCompletions
from specedit_lsp.log import Log, take_stdout
from specedit_lsp.next_edit import NextEdits
from specedit_lsp.options import OptionsStore
from specedit_lsp.protocol import Protocol, make_converter
from specedit_lsp.rewrite import Rewrites
from specedit_lsp.statistics import Statistics
from specedit_lsp.status import Status
from specedit_lsp.stdio import Writer, serve

if TYPE_CHECKING:
    from specedit.edit.context import Sources

_log = logging.getLogger(__name__)


class SpecEditServer(LanguageServer):
    """One editor's server. The features know the editor only as a `Client`, and the model only as an `Engine`."""

    protocol: Protocol

    def __init__(
        self, log_file: Path | None = None, log_level: str | None = None, make_engine: MakeEngine | None = None
    ) -> None:
        """Make a server.

        Args:
            log_file: where to log, whatever the editor's options say.
            log_level: how much to log, likewise.
            make_engine: stands in for the choice among real engines.
        """
        super().__init__("specedit", __version__, protocol_cls=Protocol, converter_factory=make_converter)
        self._log_file, self._log_level = log_file, log_level
        self.log = Log()
        self.warnings: list[str] = []
        self.editor_ended = asyncio.Event()
        self.client = EditorClient(self, self.protocol)
        self.documents = Documents()
        self.recent = RecentEdits()
        self.options = OptionsStore()
        self.statistics = Statistics()
        self.backend = Backend(self.options, self._tell_status, make_engine=make_engine)
        self.next_edits = NextEdits(
            self.documents, self.backend, self.options, self.recent, self.client, self.statistics
        )
        self.inline = InlineCompletions(
            self.documents, self.backend, self.options, self.client, self.statistics, self._sources, self.next_edits
        )
        self.rewrites = Rewrites(self.documents, self.backend, self.options, self.client, self.statistics)
        _register(self)

    def open_log(self) -> None:
        """Log where the command line says, else where the editor's options do."""
        own = self.options.own
        file = self._log_file or (Path(own.log_file).expanduser() if own.log_file else None)
        self.log.open(file, self._log_level or own.log_level)

    def watch_editor(self, process_id: int | None) -> None:
        """End the server with the editor's process, where it can be seen."""

        async def watch(process_id: int) -> None:
            await ended(process_id)
            self.editor_ended.set()

        # Looked at before the editor has its answer: one that ends right after is seen to.
        if process_id is not None and can_be_seen(process_id):
            self._watching = asyncio.ensure_future(watch(process_id))

    def close(self) -> None:
        """Stop what is under way and let go of the engine; idempotent."""
        self.rewrites.close()
        self.next_edits.close()
        self.inline.close()
        self.backend.close()

    def document_changed(self, params: types.DidChangeTextDocumentParams) -> None:
        """Make a change, remember it, and let go of what it makes old."""
        document = self.documents.get(params.text_document.uri)
        before = document.text if document else ""
        changes = self.documents.change(params)
        if document is None:
            return
        self._record(document, before, changes)
        self.rewrites.document_changed(document.uri, changes)
        self.inline.document_changed(document.uri, changes)
        self.next_edits.changed(document.uri, changes)

    def _record(self, document: OpenDocument, text: str, changes: tuple[TextChange, ...]) -> None:
        name = document.snapshot().path
        for change, is_rewritten in zip(changes, self.rewrites.making(document.uri, text, changes), strict=True):
            self.recent.record(
                document.uri,
                name.name if name else document.uri,
                document.path,
                text,
                change.span,
                change.new_text,
                time.monotonic(),
                "rewrite" if is_rewritten else "user",
            )
            text = text[: change.span.start] + change.new_text + text[change.span.end :]

    def _sources(self, document: OpenDocument) -> Sources:
        """What may be shown to the model beside a document."""
        # Grammars come with it, which the start does not wait for.
        from specedit.edit.context import DiskSources

        settings = self.backend.settings_for(document.path)

        def may_show(uri: str, path: Path | None) -> bool:
            # Of what is no file only the last part of its name goes further; the rest may say that it is a secret.
            return path is not None or not why_secret(uri, settings)

        return DiskSources(
            self.options.root_of(document.uri),
            [
                other.snapshot()
                for other in self.documents.recent()
                if other is not document and may_show(other.uri, other.path)
            ],
            [edit for edit in self.recent.latest(8) if may_show(edit.key, edit.path)],
            settings,
        )

    def _tell_status(self, status: Status) -> None:
        self.client.notify("specedit/status", status.to_json())

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Log what went wrong in a handler; the editor goes on."""
        _log.error("a message could not be handled", exc_info=error)
        self.client.log(f"specedit could not handle a message ({type(error).__name__}); its log says more")


# --- handlers


def _register(server: SpecEditServer) -> None:
    _register_lifecycle(server)
    _register_documents(server)
    _register_completions(server)
    _register_rewrites(server)
    _register_engine(server)


def _register_lifecycle(server: SpecEditServer) -> None:
    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        server.documents.encoding = types.PositionEncodingKind(server.protocol.workspace.position_encoding or "utf-16")
        server.client.name = params.client_info.name if params.client_info else ""
        folders = [folder.uri for folder in params.workspace_folders or ()] or list(filter(None, [params.root_uri]))
        server.warnings = server.options.initialize(params.initialization_options, folders)
        server.open_log()
        server.watch_editor(params.process_id)

    @server.feature(types.INITIALIZED)
    async def initialized(_params: types.InitializedParams) -> None:
        # Before this, LSP lets a server say next to nothing.
        server.log.to_editor(lambda line, kind: server.window_log_message(types.LogMessageParams(kind, line)))
        _warn(server, server.warnings)
        server.backend.warm_up()
        await _follow_configuration(server)

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    async def configured(params: types.DidChangeConfigurationParams) -> None:
        await _read_configuration(server, params.settings)

    @server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    async def folders_changed(params: types.DidChangeWorkspaceFoldersParams) -> None:
        server.options.change_folders(
            [folder.uri for folder in params.event.added], [folder.uri for folder in params.event.removed]
        )
        await _read_configuration(server, None)

    @server.feature(types.SHUTDOWN)
    def shutdown(_params: Any) -> None:
        server.close()


async def _follow_configuration(server: SpecEditServer) -> None:
    """Read the editor's settings, now and whenever they change."""
    workspace = server.client.capabilities.workspace
    if workspace and workspace.did_change_configuration and workspace.did_change_configuration.dynamic_registration:
        registration = types.Registration(
            "specedit-configuration",
            types.WORKSPACE_DID_CHANGE_CONFIGURATION,
            types.DidChangeConfigurationRegistrationOptions(section="specedit"),
        )
        with _refusal_is_logged(server):
            await server.client.request(types.CLIENT_REGISTER_CAPABILITY, types.RegistrationParams([registration]))
    await _read_configuration(server, None)


async def _read_configuration(server: SpecEditServer, pushed: Any) -> None:
    """Ask the editor for the settings of each folder, or take those that an editor sends that can't be asked."""
    workspace = server.client.capabilities.workspace
    folders: list[str | None] = [None, *server.options.folders]
    if workspace and workspace.configuration:
        items = [types.ConfigurationItem(scope_uri=folder, section="specedit") for folder in folders]
        answers = None
        with _refusal_is_logged(server):
            answers = await server.client.request(types.WORKSPACE_CONFIGURATION, types.ConfigurationParams(items))
        if answers is None:
            return
        found = dict(zip(folders, answers, strict=False))
    elif isinstance(pushed, dict) and "specedit" in pushed:
        found = {None: pushed["specedit"]}
    else:
        return
    _warn(server, server.options.configure(found))


@contextmanager
def _refusal_is_logged(server: SpecEditServer) -> Iterator[None]:
    """An editor that does not do what it said it can is no reason to do without the rest."""
    try:
        yield
    except JsonRpcException as error:
        server.client.log(f"the editor's settings can't be followed: {error.message}", types.MessageType.Warning)


def _warn(server: SpecEditServer, warnings: Sequence[str]) -> None:
    for warning in warnings:
        server.client.log(warning, types.MessageType.Warning)
    if warnings:
        server.client.show("\n".join(warnings), types.MessageType.Warning)


def _register_documents(server: SpecEditServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        document = server.documents.open(params.text_document)
        server.recent.forget(document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        server.document_changed(params)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        document = server.documents.close(params.text_document.uri)
        if document is None:
            return
        uri = document.uri
        server.rewrites.document_closed(uri)
        server.inline.document_closed(uri)
        server.next_edits.closed(uri)

    @server.feature("textDocument/didFocus")
    def focused(params: Any) -> None:
        if isinstance(params, dict) and isinstance(uri := (params.get("textDocument") or params).get("uri"), str):
            server.documents.touch(uri)


def _register_completions(server: SpecEditServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_INLINE_COMPLETION, types.InlineCompletionOptions())
    async def inline_completion(params: types.InlineCompletionParams) -> types.InlineCompletionList:
        return await server.inline.complete(params)

    @server.feature("textDocument/didShowCompletion")
    def shown(params: Any) -> None:
        server.inline.did_show(params)

    @server.feature("textDocument/didPartiallyAcceptCompletion")
    def partially_accepted(params: Any) -> None:
        server.inline.did_partially_accept(params)

    @server.command("specedit.didAcceptCompletion")
    def accepted(arguments: Any) -> None:
        server.inline.did_accept(arguments)

    @server.command("specedit.nextEdit")
    async def next_edit(arguments: Any) -> Any:
        return await server.next_edits.ask_now(arguments)


def _register_rewrites(server: SpecEditServer) -> None:
    rewrites = server.rewrites
    for name, run in {
        "rewrite": rewrites.start,
        "acceptHunk": rewrites.accept_hunk,
        "rejectHunk": rewrites.reject_hunk,
        "acceptAll": rewrites.accept_all,
        "rejectAll": rewrites.reject_all,
        "regenerate": rewrites.regenerate,
        "cancelRewrite": rewrites.cancel,
    }.items():
        # pygls marks what it registers, which a bound method does not let it.
        server.command(f"specedit.{name}")(partial(run))

    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION,
        types.CodeActionOptions([types.CodeActionKind.RefactorRewrite, types.CodeActionKind.QuickFix]),
    )
    def actions(params: types.CodeActionParams) -> list[types.CodeAction]:
        document = server.documents.get(params.text_document.uri)
        return code_actions(params, document, server.client.capabilities)

    @server.feature(types.WINDOW_WORK_DONE_PROGRESS_CANCEL)
    def progress_cancelled(params: types.WorkDoneProgressCancelParams) -> None:
        rewrites.progress_cancelled(params.token)


def _register_engine(server: SpecEditServer) -> None:
    @server.command("specedit.restartEngine")
    async def restart(*_arguments: Any) -> None:
        await server.backend.restart()
        server.inline.engine_restarted()

    @server.command("specedit.statistics")
    def statistics(*_arguments: Any) -> dict[str, Any]:
        return server.statistics.report()


# --- the process


def run(*, log_file: Path | None = None, log_level: str | None = None, make_engine: MakeEngine | None = None) -> None:
    """Serve the editor at stdin and stdout until it ends the connection."""
    stdout = take_stdout()
    # A descriptor of its own: the thread that waits on it must not hold sys.stdin when the interpreter ends.
    stdin = os.fdopen(os.dup(0), "rb")
    asyncio.run(_serve(SpecEditServer(log_file, log_level, make_engine), stdin, stdout))


def _log_failure(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log what nobody awaited; asyncio itself would quote what was at hand, which may be code."""
    error = context.get("exception")
    if not isinstance(error, asyncio.CancelledError):
        _log.error("something failed that nobody waits for", exc_info=error)


async def _serve(server: SpecEditServer, stdin: BinaryIO, stdout: BinaryIO) -> None:
    asyncio.get_running_loop().set_exception_handler(_log_failure)
    server.protocol.set_writer(Writer(stdout))
    server.open_log()
    reading = serve(stdin, server.protocol.handle_body, lambda problem: _log.warning("%s", problem))
    ends = {asyncio.ensure_future(end) for end in (reading, server.editor_ended.wait())}
    try:
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    finally:
        server.close()
