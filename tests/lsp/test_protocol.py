"""What goes over the connection otherwise than pygls has it; its faults are in `test_pygls_traps`."""

from __future__ import annotations

import asyncio
import json
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from specedit_lsp.server import SpecEditServer
from specedit_lsp.stdio import Writer
from tests.lsp.harness import scripted


@pytest.mark.parametrize(
    ("in_request", "in_argument", "told"),
    [
        pytest.param("request", None, "request", id="the token of the request"),
        pytest.param(7, "argument", "argument", id="the one in the argument goes before it"),
    ],
)
def test_progress_is_told_by_the_token_that_came_with_a_command(
    tmp_path: Path, in_request: str | int, in_argument: str | None, told: str
) -> None:
    with scripted(tmp_path) as editor:
        editor.initialize()
        uri = editor.open("untitled:one", "x = 1\n")
        argument: dict[str, Any] = {
            "textDocument": {"uri": uri},
            "range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 5}},
            "instruction": "in capitals",
            "apply": "client",
        }
        if in_argument:
            argument["workDoneToken"] = in_argument
        command = {"command": "specedit.rewrite", "arguments": [argument], "workDoneToken": in_request}
        editor.request("workspace/executeCommand", command)
        editor.until(lambda: [one for one in editor.told("$/progress") if one["value"]["kind"] == "end"])
        assert {one["token"] for one in editor.told("$/progress")} == {told}
        assert not editor.asked("window/workDoneProgress/create")


def test_a_token_needs_no_argument(tmp_path: Path) -> None:
    with scripted(tmp_path) as editor:
        editor.initialize()
        command = {"command": "specedit.statistics", "workDoneToken": 1}
        assert editor.request("workspace/executeCommand", command)["total"]["answers"] == 0


def test_a_notification_that_fails_is_logged_with_its_place(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    async def failing() -> None:
        server = SpecEditServer(tmp_path / "log")
        server.protocol.set_writer(Writer(BytesIO()))

        @server.feature("test/fails")
        def fails(_params: Any) -> None:
            raise ZeroDivisionError

        for message in (
            {"id": 1, "method": "initialize", "params": {"processId": None, "rootUri": None, "capabilities": {}}},
            {"method": "test/fails", "params": None},
        ):
            server.protocol.handle_body(json.dumps({"jsonrpc": "2.0", **message}).encode())
        server.log.close()
        server.close()

    asyncio.run(failing())
    (failed,) = (record for record in caplog.records if record.message == "a message could not be handled")
    assert failed.exc_info
    assert failed.exc_info[0] is ZeroDivisionError
    assert failed.exc_info[2] is not None, "where"
