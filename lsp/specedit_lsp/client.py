"""What the features say to the editor."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any
from typing import Protocol as Interface

from lsprotocol.types import (
    WINDOW_SHOW_DOCUMENT,
    WORKSPACE_APPLY_EDIT,
    ApplyWorkspaceEditParams,
    ApplyWorkspaceEditResult,
    ClientCapabilities,
    MessageType,
    ShowDocumentParams,
    ShowMessageParams,
)
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from specedit_lsp.protocol import Protocol

_log = logging.getLogger(__name__)
_LEVELS = {MessageType.Error: logging.ERROR, MessageType.Warning: logging.WARNING, MessageType.Log: logging.DEBUG}


class Client(Interface):
    """The editor at the other end. All methods are called on the event loop."""

    @property
    def name(self) -> str:
        """What it calls itself; empty where it doesn't."""
        ...

    @property
    def capabilities(self) -> ClientCapabilities:
        """What it can do, as it said in `initialize`."""
        ...

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification, of ours or of LSP; `params` is what goes over the wire."""
        ...

    def show(self, message: str, kind: MessageType = MessageType.Info) -> None:
        """Show a message to the user; errors say the fix."""
        ...

    def log(self, message: str, kind: MessageType = MessageType.Info) -> None:
        """Write a line to the editor's log and the log file. Never code or prompts."""
        ...

    async def request(self, method: str, params: Any) -> Any:
        """Ask the editor; the result is of LSP's type for the method.

        Raises:
            JsonRpcException: it refused.
        """
        ...

    async def apply_edit(self, params: ApplyWorkspaceEditParams) -> ApplyWorkspaceEditResult:
        """Ask the editor to apply an edit; one that refuses with an error counts as not applied, with its reason."""
        ...

    async def show_document(self, params: ShowDocumentParams) -> bool:
        """Ask the editor to show a place; whether it did."""
        ...


class EditorClient:
    """The editor behind a server's connection.

    Attributes:
        name: what it called itself in `initialize`.
    """

    def __init__(self, server: LanguageServer, protocol: Protocol) -> None:
        """Speak through `server`, whose protocol is `protocol`."""
        self.name = ""
        self._server = server
        self._protocol = protocol

    @property
    def capabilities(self) -> ClientCapabilities:
        """What it can do; nothing before `initialize`."""
        return getattr(self._protocol, "client_capabilities", None) or ClientCapabilities()

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification."""
        self._protocol.notify_plainly(method, params)

    def show(self, message: str, kind: MessageType = MessageType.Info) -> None:
        """Show a message to the user."""
        self._server.window_show_message(ShowMessageParams(kind, message))

    def log(self, message: str, kind: MessageType = MessageType.Info) -> None:
        """Write a line to the log, which sends it to the editor too."""
        _log.log(_LEVELS.get(kind, logging.INFO), "%s", message)

    async def request(self, method: str, params: Any) -> Any:
        """Ask the editor."""
        return await self._protocol.send_request_async(method, params)

    async def apply_edit(self, params: ApplyWorkspaceEditParams) -> ApplyWorkspaceEditResult:
        """Ask the editor to apply an edit."""
        try:
            result: ApplyWorkspaceEditResult = await self.request(WORKSPACE_APPLY_EDIT, params)
        except JsonRpcException as error:
            return ApplyWorkspaceEditResult(applied=False, failure_reason=error.message)
        return result

    async def show_document(self, params: ShowDocumentParams) -> bool:
        """Ask the editor to show a place."""
        try:
            return bool((await self.request(WINDOW_SHOW_DOCUMENT, params)).success)
        except JsonRpcException:
            return False
