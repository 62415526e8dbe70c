"""A client that nobody here wrote, with what known editors say of themselves: it warns where LSP is not kept."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest
from cattrs import Converter
from lsprotocol.types import (
    WORKSPACE_APPLY_EDIT,
    ApplyWorkspaceEditParams,
    ApplyWorkspaceEditResult,
    CodeAction,
    CodeActionContext,
    CodeActionParams,
    Command,
    DidChangeTextDocumentParams,
    DidOpenTextDocumentParams,
    ExecuteCommandParams,
    InitializeParams,
    InlineCompletionContext,
    InlineCompletionList,
    InlineCompletionParams,
    InlineCompletionTriggerKind,
    Position,
    Range,
    TextDocumentContentChangeWholeDocument,
    TextDocumentEdit,
    TextDocumentIdentifier,
    TextDocumentItem,
    VersionedTextDocumentIdentifier,
    WorkspaceFolder,
)
from pygls.protocol import default_converter
from pytest_lsp import LanguageClient, client_capabilities
from pytest_lsp.client import register_lsp_features

from tests.lsp.harness import ROOT, environment

TEXT = "alpha = 1\n0\n0\nbeta = "


@pytest.mark.filterwarnings("error::pytest_lsp.LspSpecificationWarning")
@pytest.mark.parametrize("editor", ["visual-studio-code", "neovim", "emacs"])
def test_what_known_editors_get(tmp_path: Path, editor: str) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"completions": ["completed"]}))
    asyncio.run(asyncio.wait_for(use(tmp_path, script, editor), 60))


def converter() -> Converter:
    """As lsprotocol's, which takes each code action that has a command for one."""
    made = default_converter()
    made.register_structure_hook(Command | CodeAction, lambda action, _: made.structure(action, CodeAction))
    return made


async def use(place: Path, script: Path, editor: str) -> None:
    client = LanguageClient(converter_factory=converter)
    register_lsp_features(client)
    client.set_configuration({"specedit": {"inline": {"debounceMs": 0}, "nextEdit": {"enabled": False}}})
    edits: asyncio.Queue[ApplyWorkspaceEditParams] = asyncio.Queue()

    @client.feature(WORKSPACE_APPLY_EDIT)
    def apply(params: ApplyWorkspaceEditParams) -> ApplyWorkspaceEditResult:
        edits.put_nowait(params)
        text = TextDocumentContentChangeWholeDocument(TEXT.upper())
        version = VersionedTextDocumentIdentifier(uri=uri, version=2)
        client.text_document_did_change(DidChangeTextDocumentParams(version, [text]))
        return ApplyWorkspaceEditResult(applied=True)

    await client.start_io(
        sys.executable, "-m", "tests.lsp.scripted_lsp", str(script), cwd=str(ROOT), env=environment(place)
    )
    folder = WorkspaceFolder(uri=place.as_uri(), name="project")
    params = InitializeParams(capabilities=client_capabilities(editor), workspace_folders=[folder])
    result = await client.initialize_session(params)
    assert result.capabilities.inline_completion_provider is not None

    uri = (place / "a.py").as_uri()
    client.text_document_did_open(DidOpenTextDocumentParams(TextDocumentItem(uri, "python", 1, TEXT)))
    document = TextDocumentIdentifier(uri)
    found = await client.text_document_inline_completion_async(
        InlineCompletionParams(InlineCompletionContext(InlineCompletionTriggerKind.Automatic), document, Position(3, 7))
    )
    assert isinstance(found, InlineCompletionList)
    assert [item.insert_text for item in found.items] == ["completed"]

    everything = Range(Position(0, 0), Position(3, 7))
    actions = await client.text_document_code_action_async(
        CodeActionParams(document, everything, CodeActionContext(diagnostics=[]))
    )
    action = next(action for action in actions or [] if "Simplify" in action.title)
    assert action.command is not None
    command = ExecuteCommandParams(action.command.command, action.command.arguments)
    assert await client.workspace_execute_command_async(command)
    edit = await edits.get()
    assert edit.label == "specedit: Simplify this without changing what it does."
    (change,) = edit.edit.document_changes or ()
    assert isinstance(change, TextDocumentEdit)
    assert change.text_document.version == 1
    assert [each.new_text for each in change.edits] == ["ALPHA = 1\n", "BETA = "]
    assert client.messages == []
    await client.shutdown_session()
    assert client.error is None
    await client.stop()
