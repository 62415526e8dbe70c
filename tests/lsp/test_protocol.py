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
