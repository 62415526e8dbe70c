"""An editor without a connection: it keeps what it is told and answers as a test says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lsprotocol.types import (
    ApplyWorkspaceEditParams,
    ApplyWorkspaceEditResult,
    ChangeAnnotationsSupportOptions,
    ClientCapabilities,
    ClientCodeActionKindOptions,
    ClientCodeActionLiteralOptions,
    CodeActionClientCapabilities,
    CodeActionTag,
    CodeActionTagOptions,
    MessageType,
    ShowDocumentParams,
    TextDocumentClientCapabilities,
    WindowClientCapabilities,
    WorkspaceClientCapabilities,
    WorkspaceEditClientCapabilities,
)


def capabilities() -> ClientCapabilities:
    """What an editor can do that can do all."""
    return ClientCapabilities(
        workspace=WorkspaceClientCapabilities(
            apply_edit=True,
            workspace_edit=WorkspaceEditClientCapabilities(
                document_changes=True,
                change_annotation_support=ChangeAnnotationsSupportOptions(),
                metadata_support=True,
            ),
        ),
        window=WindowClientCapabilities(work_done_progress=True),
        text_document=TextDocumentClientCapabilities(
            code_action=CodeActionClientCapabilities(
                code_action_literal_support=ClientCodeActionLiteralOptions(ClientCodeActionKindOptions([])),
                disabled_support=True,
                tag_support=CodeActionTagOptions([CodeActionTag.LlmGenerated]),
            )
        ),
    )


@dataclass
class FakeClient:
    """A `Client` that records.

    Attributes:
        capabilities: what it says it can do.
        name: what it calls itself.
        answers: by method, what `request` gives; an exception is raised, a callable is given the parameters.
        on_edit: makes the answer to an edit, and perhaps applies it.
        shows_documents: what `show_document` answers.
        notifications: (method, params) that it was told, in order.
        shown: (message, kind) that were shown to the user, in order.
        logged: (message, kind) that were logged, in order.
        requests: (method, params) that it was asked, in order.
        edits: what it was asked to apply, in order.
        documents: what it was asked to show, in order.
    """

    capabilities: ClientCapabilities = field(default_factory=capabilities)
    name: str = ""
    answers: dict[str, Any] = field(default_factory=dict)
    on_edit: Callable[[ApplyWorkspaceEditParams], ApplyWorkspaceEditResult] = lambda _: ApplyWorkspaceEditResult(True)
    shows_documents: bool = True
    notifications: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    shown: list[tuple[str, MessageType]] = field(default_factory=list)
    logged: list[tuple[str, MessageType]] = field(default_factory=list)
    requests: list[tuple[str, Any]] = field(default_factory=list)
    edits: list[ApplyWorkspaceEditParams] = field(default_factory=list)
    documents: list[ShowDocumentParams] = field(default_factory=list)

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        self.notifications.append((method, dict(params)))

    def show(self, message: str, kind: MessageType = MessageType.Info) -> None:
        self.shown.append((message, kind))

    def log(self, message: str, kind: MessageType = MessageType.Info) -> None:
        self.logged.append((message, kind))

    async def request(self, method: str, params: Any) -> Any:
        self.requests.append((method, params))
        answer = self.answers.get(method)
        if isinstance(answer, Exception):
            raise answer
        return answer(params) if callable(answer) else answer

    async def apply_edit(self, params: ApplyWorkspaceEditParams) -> ApplyWorkspaceEditResult:
        self.edits.append(params)
        return self.on_edit(params)

    async def show_document(self, params: ShowDocumentParams) -> bool:
        self.documents.append(params)
        return self.shows_documents

    def told(self, method: str) -> list[dict[str, Any]]:
        """The parameters of all notifications of that method so far."""
        return [params for name, params in self.notifications if name == method]

    @property
    def messages(self) -> list[str]:
        """What was shown to the user, whatever its kind."""
        return [message for message, _ in self.shown]
