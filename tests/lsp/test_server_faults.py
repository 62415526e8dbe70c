"""What becomes of the server, and of what it says, when the editor, the engine or the text is not as it should be."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from lsprotocol import types

from specedit.engine.discovery import ServerRecord
from specedit.errors import EngineError
from tests.faults import serving as faults
from tests.lsp.buffers import Buffers
from tests.lsp.harness import ROOT, Editor, environment, recorded, running, scripted
from tests.lsp.scripted_lsp import obeyed
from tests.tiny_model import save_tiny_model

QUICK = {"inline": {"debounceMs": 0}, "nextEdit": {"enabled": False}}
SOON_SECONDS = 15.0


def still_answers(editor: Editor, word: str = "completed") -> None:
    uri = f"untitled:check-{editor.send('specedit/nothing')}"
    editor.open(uri, "x = \n")
    assert [item["insertText"] for item in editor.complete_at(uri, 0, 4)] == [word]


def said(place: Path) -> str:
    """All that the server wrote to its log file and to stderr."""
    files = [*place.glob("*.stderr"), *(place / "state").rglob("*.log*")]
    return "".join(file.read_text() for file in files)


def rewriting(buffers: Buffers, uri: str, instruction: str = "in capitals", **given: Any) -> str:
    arguments = {"textDocument": {"uri": uri}, "range": buffers.range(uri), "instruction": instruction, **given}
    session: str = buffers.editor.command("specedit.rewrite", arguments)["session"]
    return session


def end_of(editor: Editor, session: str) -> Any:
    ends = editor.until(lambda: [end for end in editor.told("specedit/rewriteEnd") if end["session"] == session])
    return ends[0]


# --- an editor that sends what it should not


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("garbage")


@pytest.fixture(scope="module")
def editor(place: Path) -> Iterator[Editor]:
    with scripted(place, completions=["completed"]) as editor:
        editor.initialize(place, options=QUICK)
        yield editor
    assert "Traceback" not in said(place)


def message(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(random.Random(0).randbytes(5000) + b"\r\n\r\n", id="random bytes"),
        pytest.param(b"Content-Length: -5\r\n\r\n", id="negative length"),
        pytest.param(b"Content-Length: many\r\n\r\n", id="a length in words"),
        pytest.param(b"Content-Length: " + b"9" * 40 + b"\r\n\r\n", id="a length beyond all measure"),
        pytest.param(b"Content-Length: 300000000\r\n\r\n" + bytes(300_000_000), id="a message too long"),
        pytest.param(message(b""), id="empty"),
        pytest.param(message(b'{"jsonrpc": "2.0", "id": 1, "meth'), id="broken JSON"),
        pytest.param(message(b"\xff\xfe{}"), id="not UTF-8"),
        pytest.param(message(b"[" * 100_000), id="nested without end"),
        pytest.param(message(b'{"jsonrpc": "2.0", "id": ' + b"9" * 5000 + b"}"), id="a number beyond all measure"),
        pytest.param(message(b"null"), id="null"),
        pytest.param(message(b"[]"), id="a list"),
    ],
)
def test_what_is_no_message_is_skipped(editor: Editor, data: bytes) -> None:
    editor.raw(data)
    still_answers(editor)


@pytest.mark.parametrize(
    "fields",
    [
        {"id": [1], "method": "textDocument/inlineCompletion"},
        {"id": None, "method": "shutdown"},
        {"id": {}, "result": 5},
        {"id": "nobody asked", "result": 5},
        {"id": "nobody asked", "error": 5},
        {"method": 5},
        {"method": ["shutdown"], "id": 5},
        {"method": "$/cancelRequest", "params": {"id": 123456}},
        {"method": "$/cancelRequest", "params": {"id": []}},
        {"jsonrpc": "1.0", "method": "exit"},
        {"jsonrpc": 2, "method": "exit"},
        {},
    ],
    ids=str,
)
def test_messages_that_mean_nothing_are_skipped(editor: Editor, fields: dict[str, Any]) -> None:
    editor.raw(message(json.dumps({"jsonrpc": "2.0", **fields}).encode()))
    still_answers(editor)


WRONG_PARAMETERS: list[Any] = [
    None,
    5,
    "text",
    [],
    {},
    {"textDocument": 5},
    {"textDocument": {"uri": 5}},
    {"textDocument": {"uri": "file:///no/such"}, "position": {"line": -1, "character": 1e300}, "context": {}},
    {"item": 5},
    {"item": {"command": {"arguments": [[]]}}, "acceptedLength": "all"},
    {"token": []},
    {"settings": {"specedit": 5}},
    {"event": {"added": [{"uri": "::", "name": ""}], "removed": [{"uri": "%", "name": ""}]}},
]
OURS = ["textDocument/didShowCompletion", "textDocument/didPartiallyAcceptCompletion", "textDocument/didFocus"]
LIFECYCLE = {"initialize", "initialized", "shutdown", "exit"}


def test_wrong_parameters_of_every_method_are_answered(editor: Editor) -> None:
    requests = []
    for method in sorted({*types.METHOD_TO_TYPES, *OURS, "no/such", "$/such"} - LIFECYCLE):
        for params in WRONG_PARAMETERS:
            requests.append(editor.send(method, params))
            editor.notify(method, params)
    for request in requests:
        response = editor.response(request)
        assert "result" in response or response["error"]["message"]
        assert "Traceback" not in str(response)
        assert ".py" not in str(response), "where it went wrong is for the log"
    still_answers(editor)


def test_wrong_arguments_of_every_command_are_refused_with_a_fix(editor: Editor) -> None:
    place = {"line": 0, "character": 0}
    document = {"textDocument": {"uri": "file:///no/such"}, "position": place}
    wrong: list[list[Any]] = [[], [5], [None], [[]], [{}], [{}, {}], [{"session": "99", "id": 1}], [document]]
    for name in (
        "rewrite",
        "acceptHunk",
        "rejectHunk",
        "acceptAll",
        "rejectAll",
        "regenerate",
        "cancelRewrite",
        "nextEdit",
    ):
        for arguments in wrong:
            with pytest.raises(EngineError, match=r"Update the plugin or specedit|Ask for a new one|Open it"):
                editor.command(f"specedit.{name}", *arguments)
    still_answers(editor)


def test_requests_out_of_turn_are_refused(tmp_path: Path) -> None:
    with scripted(tmp_path, completions=["completed"]) as editor:

        def code(method: str, params: Any = None) -> int:
            found: int = editor.response(editor.send(method, params))["error"]["code"]
            return found

        editor.open("untitled:early", "x")
        assert code("textDocument/inlineCompletion", {}) == types.ErrorCodes.ServerNotInitialized
        assert code("shutdown") == types.ErrorCodes.ServerNotInitialized
        assert code("initialize", {"capabilities": 5}) == types.ErrorCodes.InvalidParams
        editor.initialize(tmp_path, options=QUICK)
        assert code("initialize", {"capabilities": {}, "processId": None, "rootUri": None}) == (
            types.ErrorCodes.InvalidRequest
        )
        assert code("initialized", {}) == types.ErrorCodes.InvalidRequest
        still_answers(editor)
        assert editor.request("shutdown") is None
        assert code("specedit/nothing") == types.ErrorCodes.InvalidRequest
        editor.notify("exit")
        assert editor.process.wait(SOON_SECONDS) == 0


@pytest.mark.parametrize("is_initialized", [True, False])
def test_to_exit_without_shutdown_is_an_error(tmp_path: Path, is_initialized: bool) -> None:
    with scripted(tmp_path) as editor:
        if is_initialized:
            editor.initialize(tmp_path)
        editor.notify("exit")
        assert editor.process.wait(SOON_SECONDS) == 1
    assert said(tmp_path) == ""


def test_an_editor_that_refuses_what_it_said_it_can_do_is_served(tmp_path: Path) -> None:
    with scripted(tmp_path, completions=["completed"]) as editor:
        for method in ("client/registerCapability", "workspace/configuration", "window/workDoneProgress/create"):
            editor.answers[method] = EngineError("not here")
        editor.initialize(tmp_path, options=QUICK)
        editor.until(lambda: [status for status in editor.told("specedit/status") if status["state"] == "ready"])
        still_answers(editor)
        buffers = Buffers(editor)
        for answer, why in ((EngineError("not here"), "not here"), (None, "an answer"), ("yes", "an answer")):
            editor.answers["workspace/applyEdit"] = answer
            uri = buffers.open("alpha\n")
            shown = len(editor.messages)
            assert end_of(editor, rewriting(buffers, uri))["outcome"] == "ready"
            editor.until(lambda shown=shown, why=why: any(why in said for said in editor.messages[shown:]))
        assert editor.shutdown() == 0


# --- an editor that is gone


def test_the_end_of_stdin_ends_the_server_while_the_model_is_stuck(tmp_path: Path) -> None:
    with scripted(tmp_path, seconds_per_chunk=60.0) as editor:
        editor.initialize(tmp_path, options=QUICK)
        buffers = Buffers(editor)
        uri = buffers.open("alpha\n")
        rewriting(buffers, uri)
        position = {"line": 0, "character": 5}
        params = {"textDocument": {"uri": uri}, "position": position, "context": {"triggerKind": 2}}
        request = editor.send("textDocument/inlineCompletion", params)
        editor.until(lambda: len(recorded(tmp_path)) == 2)
        assert editor.command("specedit.statistics", patience=SOON_SECONDS)
        buffers.type(uri, "x", 0)
        editor.send("textDocument/inlineCompletion", params)
        assert editor.response(request, patience=SOON_SECONDS)["result"] == {"items": []}
        assert editor.process.stdin
        editor.process.stdin.close()
        assert editor.process.wait(SOON_SECONDS) == 0
    assert said(tmp_path).count("\n") <= 3


EDITOR = """
import json, os, subprocess, sys, time
server = subprocess.Popen(
    [sys.executable, "-m", "tests.lsp.scripted_lsp", sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE
)
held = subprocess.Popen(["sleep", "100"], pass_fds=[server.stdin.fileno()]) if sys.argv[2] == "held" else None
params = {"processId": os.getpid(), "rootUri": None, "capabilities": {}}
body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).encode()
server.stdin.write(b"Content-Length: %d\\r\\n\\r\\n" % len(body) + body)
server.stdin.flush()
assert server.stdout.readline()
print(server.pid, held.pid if held else 0, flush=True)
time.sleep(100)
"""


@pytest.mark.parametrize("stdin", ["closed", "held"])
def test_the_server_ends_with_an_editor_that_is_killed(tmp_path: Path, stdin: str) -> None:
    script = tmp_path / "script.json"
    script.write_text("{}")
    editor = subprocess.Popen(
        [sys.executable, "-c", EDITOR, script, stdin],
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env=environment(tmp_path),
        text=True,
    )
    assert editor.stdout
    server, held = map(int, editor.stdout.readline().split())
    assert is_running(server)
    editor.kill()
    editor.wait()
    try:
        faults.until(lambda: not is_running(server))
    finally:
        if held:
            os.kill(held, signal.SIGKILL)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# --- texts that are hard to bear


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("x = \0\n" * 5, "it is binary", id="NULs"),
        pytest.param("value = 1\n" * 520_000, "more than 5,000,000 bytes", id="5 MB"),
    ],
)
def test_what_no_model_is_shown_is_said_once(editor: Editor, text: str, why: str) -> None:
    buffers = Buffers(editor)
    uri = buffers.open(text, f"untitled:{why.replace(' ', '-')}")
    for count in range(3):
        buffers.type(uri, "x", 0)
        assert editor.complete_at(uri, 0, 1 + count) == []
    with pytest.raises(EngineError, match=why):
        rewriting(buffers, uri, range=buffers.range(uri, 0, 5))
    logged = [line["message"] for line in editor.told("window/logMessage") if why in line["message"]]
    assert len(logged) == 1
    buffers.close(uri)
    still_answers(editor)


def test_half_a_character_is_borne(editor: Editor) -> None:
    buffers = Buffers(editor)
    uri = buffers.open("s = '\ud83d'\nx = \n", "untitled:half")
    assert editor.complete_at(uri, 1, 4)
    end = end_of(editor, rewriting(buffers, uri))
    assert (end["outcome"], bool(end["reason"]), bool(end["fix"])) == ("refused", True, True)
    buffers.type(uri, "\ude0b", len("s = '\ud83d"))
    editor.answers["workspace/configuration"] = lambda params: [None for _ in params["items"]]
    still_answers(editor)


def test_the_empty_text_is_rewritten(editor: Editor) -> None:
    buffers = Buffers(editor)
    uri = buffers.open("", "untitled:empty")
    assert end_of(editor, rewriting(buffers, uri, obeyed("new\n")))["outcome"] == "ready"
    editor.until(lambda: buffers.version(uri) > 1)
    assert buffers[uri].rstrip("\n") == "new"


# --- an engine that fails


def test_an_engine_that_is_not_there(tmp_path: Path) -> None:
    with running(tmp_path) as editor:
        editor.initialize(tmp_path, options={**QUICK, "engine": "http://127.0.0.1:9/v1"})
        status = editor.until(lambda: [each for each in editor.told("specedit/status") if each["state"] == "error"])[0]
        assert "127.0.0.1:9" in status["message"]
        assert status["fix"]
        buffers = Buffers(editor)
        uri = buffers.open("x = \n")
        assert editor.complete_at(uri, 0, 4) == []
        end = end_of(editor, rewriting(buffers, uri))
        assert (end["outcome"], "127.0.0.1:9" in end["reason"]) == ("refused", True)
        editor.until(lambda: any("127.0.0.1:9" in message for message in editor.messages))
        assert editor.told("specedit/status")[-1]["state"] in ("error", "loading", "busy")
        with pytest.raises(EngineError, match=r"127\.0\.0\.1:9"):
            editor.command("specedit.restartEngine")
        assert editor.command("specedit.statistics")
        assert editor.shutdown() == 0


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_model(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name, value in faults.environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    yield tmp_path
    faults.end_all()


def forwards(record: ServerRecord) -> float:
    found = httpx2.get(f"{record.url}/metrics", headers=faults.authorization(), trust_env=False).text
    return sum(
        float(line.split()[-1])
        for line in found.splitlines()
        if line.startswith(("specedit_forwards_total", "specedit_prefill_forwards_total"))
    )


def streaming(buffers: Buffers, uri: str) -> str:
    """A rewrite that the model has begun to write."""
    before = len(buffers.editor.told("$/progress"))
    session = rewriting(buffers, uri)
    buffers.editor.until(
        lambda: [each for each in buffers.editor.told("$/progress")[before:] if each["value"]["kind"] == "report"]
    )
    return session


def test_a_real_engine_that_is_cancelled_stops_and_one_that_is_killed_is_started_anew(
    served: Path, model: Path
) -> None:
    options = {**QUICK, "model": str(model), "warmUp": False, "rewrite": {"maxNewTokens": 1700}}
    with faults.serving(served, "--model", model) as server, running(served) as editor:
        editor.initialize(served, options=options)
        buffers = Buffers(editor)
        record = server.wait_for("ready")

        session = streaming(buffers, buffers.open("alpha\n" * 5))
        assert editor.command("specedit.cancelRewrite", {"session": session})["outcome"] == "cancelled"
        faults.until(lambda: "cancelled" in server.said)
        spent = forwards(record)
        assert spent < 600, "the model stopped long before its answer's 1700 tokens"
        assert editor.command("specedit.statistics")
        assert forwards(record) == spent

        session = streaming(buffers, buffers.open("beta\n" * 5))
        os.kill(server.popen.pid, signal.SIGKILL)
        end = end_of(editor, session)
        assert (end["outcome"], "broke off" in end["reason"]) == ("refused", True)
        editor.until(lambda: any("broke off" in message for message in editor.messages))
        failed = editor.until(lambda: [each for each in editor.told("specedit/status") if each["state"] == "error"])
        assert failed[-1]["fix"]

        uri = buffers.open("x = \n")
        editor.complete_at(uri, 0, 4)
        editor.until(lambda: editor.told("specedit/status")[-1]["state"] == "ready")
        assert editor.command("specedit.statistics")["inline"]["answers"] == 1

        streaming(buffers, buffers.open("gamma\n" * 5))
        assert editor.process.stdin
        editor.process.stdin.close()
        assert editor.process.wait(SOON_SECONDS) == 0
    assert "Traceback" not in said(served)


# --- what is logged

WORD = "xylophone"


def use_everything(editor: Editor, place: Path) -> None:
    """Have a word in all that is sent, and make everything go wrong that can."""
    buffers = Buffers(editor)
    uri = buffers.open(f"{WORD} = 1\n0\n0\nprint({WORD})\n", language="python")
    editor.complete_at(uri, 1, 1)
    editor.complete_at(uri, 1, 1, invoked=True)
    buffers.replace(uri, 0, 1, "y")
    end_of(editor, rewriting(buffers, uri, f"make {WORD} large"))
    end_of(editor, rewriting(buffers, uri, obeyed(f"{WORD} (((\n# ... rest of {WORD} unchanged ...\n"), apply="review"))
    end_of(editor, rewriting(buffers, uri, obeyed(WORD), apply="client"))
    problem = {"range": buffers.range(uri), "message": f"{WORD} is unknown", "code": WORD}
    params = {"textDocument": {"uri": uri}, "range": buffers.range(uri), "context": {"diagnostics": [problem]}}
    assert editor.request("textDocument/codeAction", params)
    editor.answers["workspace/applyEdit"] = WORD
    end_of(editor, rewriting(buffers, uri))
    for params in (WORD, {WORD: WORD}, {"textDocument": WORD}, {"textDocument": {"uri": uri}, "position": WORD}):
        for method in ("textDocument/inlineCompletion", "textDocument/didChange", *OURS, "workspace/executeCommand"):
            editor.response(editor.send(method, params))
            editor.notify(method, params)
    for name in ("rewrite", "acceptHunk", "nextEdit", "didAcceptCompletion", "statistics"):
        editor.response(editor.send("workspace/executeCommand", {"command": f"specedit.{name}", "arguments": [WORD]}))
    editor.raw(message(f'{{"jsonrpc": "2.0", "method": "{WORD}'.encode()))
    editor.raw(message(f'{{"jsonrpc": "3.0", "method": "x", "params": "{WORD}"}}'.encode()))
    editor.raw(f"{WORD}\r\n\r\n".encode())
    buffers.type(uri, "\ud800")
    end_of(editor, rewriting(buffers, uri))
    editor.complete_at(uri, 4, 0)
    still_answers(editor, f"{WORD}")
    assert editor.shutdown() == 0


@pytest.mark.parametrize("log_file", ["log/debug.log", "script.json/not-a-folder.log"])
def test_no_code_is_logged(tmp_path: Path, log_file: str) -> None:
    with scripted(tmp_path, completions=[WORD]) as editor:
        options = {"inline": {"debounceMs": 0}, "logLevel": "debug", "logFile": str(tmp_path / log_file)}
        editor.initialize(tmp_path, options=options)
        use_everything(editor, tmp_path)
        logged = [line["message"] for line in editor.told("window/logMessage")]
    written = "".join(path.read_text() for path in tmp_path.rglob("*") if path.suffix in (".log", ".stderr"))
    assert logged
    assert WORD not in written
    assert not any(WORD in line for line in logged)


def test_without_a_log_file_no_code_goes_to_stderr(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with running(tmp_path, "--log-file", tmp_path / "file" / "lsp.log") as editor:
        editor.raw(message(f'{{"jsonrpc": "1.0", "method": "exit", "params": "{WORD}"}}'.encode()))
        wrong = {"capabilities": 5, "initializationOptions": WORD}
        assert "error" in editor.response(editor.send("initialize", wrong))
        editor.initialize(tmp_path, options={"warmUp": False})
        assert editor.shutdown() == 0
    assert "can't be written" in said(tmp_path)
    assert WORD not in said(tmp_path)


def test_a_model_that_fails_with_code_in_its_words_is_told_and_not_written_down(tmp_path: Path) -> None:
    with scripted(tmp_path, error="the model fell over. Start it again") as editor:
        editor.initialize(tmp_path, options=QUICK)
        buffers = Buffers(editor)
        uri = buffers.open(f"{WORD} = \n")
        assert editor.complete_at(uri, 0, len(f"{WORD} = ")) == []
        end = end_of(editor, rewriting(buffers, uri))
        assert (end["outcome"], end["reason"]) == ("refused", "the model fell over. Start it again")
        editor.until(lambda: editor.told("specedit/status")[-1]["state"] == "error")
        status = editor.told("specedit/status")[-1]
        assert (status["message"], status["fix"]) == ("the model fell over", "Start it again")
        assert editor.shutdown() == 0
    assert WORD not in said(tmp_path)
