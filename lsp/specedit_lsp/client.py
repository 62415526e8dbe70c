"""What the features say to the editor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from lsprotocol.types import (
    ApplyWorkspaceEditParams,
    ApplyWorkspaceEditResult,
    ClientCapabilities,
    MessageType,
    ShowDocumentParams,
)


class Client(Protocol):
    """The editor at the other end. All methods are called on the event loop."""

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
