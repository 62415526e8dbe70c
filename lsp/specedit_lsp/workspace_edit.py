"""Edits as the editor is asked to apply them."""

from __future__ import annotations

from collections.abc import Sequence

from lsprotocol.types import (
    AnnotatedTextEdit,
    ApplyWorkspaceEditParams,
    ChangeAnnotation,
    ClientCapabilities,
    OptionalVersionedTextDocumentIdentifier,
    SnippetTextEdit,
    TextDocumentEdit,
    TextEdit,
    WorkspaceEdit,
    WorkspaceEditMetadata,
)

from specedit.edit import document as edit_document
from specedit_lsp.documents import OpenDocument

_ANNOTATION = "specedit"


def can_apply(capabilities: ClientCapabilities) -> bool:
    """Whether the editor takes edits from a server."""
    return bool(capabilities.workspace and capabilities.workspace.apply_edit)


def workspace_edit(
    document: OpenDocument,
    edits: Sequence[edit_document.TextEdit],
    label: str,
    capabilities: ClientCapabilities,
    *,
    confirm: bool = False,
) -> ApplyWorkspaceEditParams:
    """One edit, one step to undo, for the document's text as it is now and no other, where the editor can tell.

    Args:
        document: what is edited.
        edits: in its text; they don't overlap.
        label: how the editor calls it, in its list of things to undo.
        capabilities: what the editor can do.
        confirm: have it ask the user first, if it can.
    """
    can = capabilities.workspace.workspace_edit if capabilities.workspace else None
    metadata = WorkspaceEditMetadata(is_refactoring=True) if can and can.metadata_support else None
    plain = [TextEdit(document.range(edit.span), edit.new_text) for edit in edits]
    # Operations on files stand among edits that carry a version: Neovim says only that it takes the former, and without
    # a version it would make an old edit in newer text.
    if not (can and (can.document_changes or can.resource_operations)):
        return ApplyWorkspaceEditParams(WorkspaceEdit(changes={document.uri: plain}), label, metadata)
    annotations = None
    changes: list[TextEdit | AnnotatedTextEdit | SnippetTextEdit] = [*plain]
    if can.change_annotation_support:
        annotations = {_ANNOTATION: ChangeAnnotation(label, needs_confirmation=confirm)}
        changes = [AnnotatedTextEdit(_ANNOTATION, edit.range, edit.new_text) for edit in plain]
    identifier = OptionalVersionedTextDocumentIdentifier(document.uri, document.version)
    edit = WorkspaceEdit(document_changes=[TextDocumentEdit(identifier, changes)], change_annotations=annotations)
    return ApplyWorkspaceEditParams(edit, label, metadata)
