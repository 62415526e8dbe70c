"""Faults of pygls that specedit works round: where a test fails, pygls is mended, and its message says what can go."""

from __future__ import annotations

import asyncio
import io
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cattrs.errors import ClassValidationError
from lsprotocol import types
from lsprotocol.converters import get_converter
from lsprotocol.types import Position, Range, TextDocumentContentChangePartial
from pygls.io_ import run_async
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path
from pygls.workspace import TextDocument, Workspace

OWN_MIRROR = "once all its faults are mended, documents, lines and convert may give way to pygls' workspace"


def pygls_document(text: str) -> TextDocument:
    return TextDocument("file:///a.py", text, version=1)


def insert(line: int, character: int, text: str) -> TextDocumentContentChangePartial:
    return TextDocumentContentChangePartial(Range(Position(line, character), Position(line, character)), text)


def fails(error: type[Exception], call: Callable[..., object], *given: object) -> bool:
    try:
        call(*given)
    except error:
        return True
    return False


# --- text and positions


@pytest.mark.parametrize("character", ["\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"])
def test_a_character_that_ends_no_line_ends_one(character: str) -> None:
    document = pygls_document(f"a{character}b\nsecond\n")
    document.apply_change(insert(1, 0, "x"))
    assert document.source != f"a{character}b\nxsecond\n", f"no longer ends a line: {OWN_MIRROR}"


def test_past_the_end_of_the_last_line_is_before_its_last_character() -> None:
    document = pygls_document("abc")
    document.apply_change(insert(0, 9, "x"))
    assert document.source == "abxc", f"pygls clamps to the end of the last line: {OWN_MIRROR}"


def test_inside_a_character_is_after_it() -> None:
    document = pygls_document("😋x")
    assert document.offset_at_position(Position(0, 1)) == 1, f"pygls snaps to before a character: {OWN_MIRROR}"


def test_the_end_of_a_text_lies_past_it() -> None:
    position = pygls_document("abc").client_position_at_offset(3)
    assert position == Position(1, 0), f"pygls knows where a text without a last line end ends: {OWN_MIRROR}"
    of_nothing = pygls_document("").client_position_at_offset
    assert fails(UnboundLocalError, of_nothing, 0), f"pygls knows where the empty text ends: {OWN_MIRROR}"


def test_asking_for_a_position_changes_it() -> None:
    position = Position(0, 9)
    pygls_document("abc").offset_at_position(position)
    assert position != Position(0, 9), f"pygls leaves the editor's positions as they are: {OWN_MIRROR}"


def test_a_change_of_what_is_not_open_raises() -> None:
    unknown = types.VersionedTextDocumentIdentifier(2, "file:///a.py")
    update = Workspace(None).update_text_document
    assert fails(KeyError, update, unknown, insert(0, 0, "x")), f"pygls bears it: {OWN_MIRROR}"


# --- URIs


def test_two_files_are_one_document() -> None:
    workspace = Workspace(None)
    for uri in ("file:///caf%E9.py", "file:///caf%E8.py"):
        workspace.put_text_document(types.TextDocumentItem(uri, "python", 1, uri))
    found = workspace.get_text_document("file:///caf%E9.py").source
    assert found == "file:///caf%E8.py", f"pygls keeps apart names that are not UTF-8: canonical may go, {OWN_MIRROR}"


def test_spellings_of_one_file_are_two_documents() -> None:
    workspace = Workspace(None)
    for uri in ("file:///a.py", "file://localhost/a.py"):
        workspace.put_text_document(types.TextDocumentItem(uri, "python", 1, uri))
    assert len(workspace.text_documents) == 2, f"pygls knows spellings of one file: canonical may go, {OWN_MIRROR}"


def test_a_name_that_is_not_utf8_is_another_file() -> None:
    assert to_fs_path("file:///caf%E9.py") != "/caf\udce9.py", "pygls keeps a path's bytes: path_of may use to_fs_path"


def test_a_share_is_a_file_of_this_machine() -> None:
    assert to_fs_path("file://host/share/a.py") == "//host/share/a.py", "pygls knows shares: path_of may use to_fs_path"


def test_what_is_no_file_is_read_from_the_disk(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("of this machine")
    source = Workspace(None).get_text_document(f"vscode-remote://host{tmp_path}/a.py").source
    assert source == "of this machine", f"pygls reads only files from the disk: {OWN_MIRROR}"


# --- messages


def wire_change(change: dict[str, Any]) -> dict[str, Any]:
    params = {"textDocument": {"uri": "file:///a.py", "version": 2}, "contentChanges": [change]}
    return {"jsonrpc": "2.0", "method": types.TEXT_DOCUMENT_DID_CHANGE, "params": params}


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("no range, written as null", {"range": None, "text": "x"}),
        (
            "the end of a line as the largest number of another type",
            {"range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 2**32 - 1}}, "text": "x"},
        ),
    ],
)
def test_a_change_is_refused_whole(what: str, change: dict[str, Any]) -> None:
    take = get_converter().structure
    refused = fails(ClassValidationError, take, wire_change(change), types.DidChangeTextDocumentNotification)
    assert refused, f"lsprotocol takes {what}: that part of register_lenient_hooks may go"


def test_an_argument_that_looks_like_a_message_is_taken_for_one() -> None:
    protocol = LanguageServer("trapped", "1").protocol
    argument = {"jsonrpc": "2.0", "method": "x", "params": None}
    message = {"jsonrpc": "2.0", "id": 1, "method": "workspace/executeCommand"}
    message["params"] = {"command": "c", "arguments": [argument]}
    read = json.loads(json.dumps(message), object_hook=protocol.structure_message)
    assert read.params.arguments != [argument], "pygls takes only messages for such: handle_body may use its reader"


def test_an_editor_that_knows_more_kinds_than_lsprotocol_is_refused_whole() -> None:
    code_action = {"tagSupport": {"valueSet": [1, 999]}}
    params = {"processId": None, "rootUri": None, "capabilities": {"textDocument": {"codeAction": code_action}}}
    message = {"jsonrpc": "2.0", "id": 1, "method": types.INITIALIZE, "params": params}
    refused = fails(ClassValidationError, get_converter().structure, message, types.InitializeRequest)
    assert refused, "lsprotocol bears kinds that it does not know: _value_of may go"


def test_parameters_of_our_own_methods_lose_their_names() -> None:
    protocol = LanguageServer("trapped", "1").protocol
    message = {"jsonrpc": "2.0", "method": "specedit/x", "params": {"class": 1, "a-b": 2}}
    params = protocol.structure_message(message).params
    assert not isinstance(params, dict), "pygls leaves the parameters of unknown methods alone: _as_it_is may go"


def test_a_header_in_small_letters_is_not_understood() -> None:
    heard: list[bytes] = []

    class Listener:
        structure_message = staticmethod(lambda message: message)
        handle_message = staticmethod(heard.append)

    class Reader(io.BytesIO):
        async def readline(self) -> bytes:
            return super().readline()

        async def readexactly(self, count: int) -> bytes:
            return self.read(count)

    async def listen(header: bytes) -> None:
        await run_async(threading.Event(), Reader(header + b": 2\r\n\r\n{}"), Listener())

    asyncio.run(listen(b"Content-Length"))
    assert heard == [{}]
    asyncio.run(listen(b"content-length"))
    assert heard == [{}], "pygls reads headers as HTTP has them: stdio may be left to it"


def test_stdin_is_read_in_the_pool_of_the_handlers() -> None:
    server = LanguageServer("trapped", "1", max_workers=1)
    read_in: list[str] = []

    class Stdin(io.BytesIO):
        def readline(self, *given: Any) -> bytes:
            read_in.append(threading.current_thread().name)
            return super().readline(*given)

    server.start_io(Stdin(b""), io.BytesIO())
    assert read_in[0].startswith("ThreadPoolExecutor"), "pygls reads stdin in a thread of its own: stdio may go"


# --- cancelling


class Editor:
    """Both ends of a connection to a server in this process."""

    def __init__(self) -> None:
        self.server = LanguageServer("trapped", "1")
        self.server.protocol.set_writer(self)
        self.sent: list[dict[str, Any]] = []

    def write(self, data: bytes) -> None:
        self.sent.append(json.loads(data.partition(b"\r\n\r\n")[2]))

    def close(self) -> None:
        pass

    def say(self, **message: Any) -> None:
        structure, handle = self.server.protocol.structure_message, self.server.protocol.handle_message
        handle(json.loads(json.dumps({"jsonrpc": "2.0", **message}), object_hook=structure))


def test_messages_out_of_turn_are_handled() -> None:
    editor = Editor()
    heard: list[object] = []
    editor.server.feature(types.TEXT_DOCUMENT_HOVER)(lambda params: heard.append(params))
    params = {"textDocument": {"uri": "file:///a.py"}, "position": {"line": 0, "character": 0}}
    editor.say(id=1, method="textDocument/hover", params=params)
    assert heard, "pygls refuses what comes before initialize: _check_turn may go"


def test_a_cancelled_command_goes_on() -> None:
    ended: list[str] = []

    async def cancel_a_command() -> None:
        editor = Editor()
        go_on = asyncio.Event()

        @editor.server.command("work")
        async def work(server: LanguageServer) -> None:
            try:
                await go_on.wait()
                ended.append("went on")
            except asyncio.CancelledError:
                ended.append("cancelled")
                raise

        editor.say(id=1, method="workspace/executeCommand", params={"command": "work"})
        await asyncio.sleep(0)
        editor.say(method="$/cancelRequest", params={"id": 1})
        await asyncio.sleep(0)
        go_on.set()
        for _ in range(5):
            await asyncio.sleep(0)

    asyncio.run(cancel_a_command())
    assert ended == ["went on"], "pygls cancels commands: lsp_workspace__execute_command of our protocol may go"


def test_a_cancelled_thread_goes_on() -> None:
    cancelled, ended = threading.Event(), threading.Event()
    outcome: list[str] = []

    async def cancel_a_request() -> None:
        editor = Editor()
        started = asyncio.Event()
        loop = asyncio.get_running_loop()

        @editor.server.feature(types.TEXT_DOCUMENT_HOVER)
        @editor.server.thread()
        def hover(server: LanguageServer, params: types.HoverParams) -> None:
            loop.call_soon_threadsafe(started.set)
            outcome.append("told" if not cancelled.wait(30) else "went on")
            ended.set()

        params = {"textDocument": {"uri": "file:///a.py"}, "position": {"line": 0, "character": 0}}
        editor.say(id=1, method="textDocument/hover", params=params)
        await started.wait()
        editor.say(method="$/cancelRequest", params={"id": 1})
        cancelled.set()
        await asyncio.to_thread(ended.wait, 30)
        editor.server.shutdown()

    asyncio.run(cancel_a_request())
    assert outcome == ["went on"], "pygls stops handlers in threads: bridge may use them"
