from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from specedit.errors import (
    EngineError,
    MarkerTextError,
    ModelNotFoundError,
    SpecEditError,
    UnreachableError,
    UsageError,
)
from specedit_lsp.troubles import loggable
from tests.lsp.buffers import Buffers
from tests.lsp.harness import running


@pytest.mark.parametrize(
    ("error", "logged"),
    [
        (UnreachableError("nothing answers there"), "nothing answers there"),
        (ModelNotFoundError("not pulled yet"), "not pulled yet"),
        (MarkerTextError("line 3 holds <|im_end|>: xylophone"), "MarkerTextError"),
        (EngineError("it refused the request (400) and says: xylophone"), "EngineError"),
        (UsageError("it refused the request: xylophone"), "UsageError"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_may_quote_the_text_is_logged_by_its_kind(error: SpecEditError, logged: str) -> None:
    assert loggable(error) == logged


class Quoting(BaseHTTPRequestHandler):
    """A server that refuses each request and gives it back in its refusal, as some do."""

    def do_GET(self) -> None:
        self._answer(200, {"object": "list", "data": [{"id": "model", "object": "model"}]})

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self._answer(400, {"error": {"message": f"can't take {asked}", "type": "invalid_request_error"}})

    def _answer(self, status: int, content: object) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_given: object) -> None:
        """Nothing."""


@pytest.fixture
def quoting() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Quoting)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


def test_a_server_that_quotes_the_prompt_is_shown_and_not_logged(tmp_path: Path, quoting: str) -> None:
    with running(tmp_path) as editor:
        options = {"engine": quoting, "model": "model", "inline": {"debounceMs": 0}, "nextEdit": {"enabled": False}}
        editor.initialize(tmp_path, options=options)
        buffers = Buffers(editor)
        uri = buffers.open("xylophone = \n", language="python")
        assert editor.complete_at(uri, 0, len("xylophone = ")) == []
        shown = editor.until(lambda: editor.messages)
        assert "can't take" in shown[0]
        editor.shutdown()
        logged = [line["message"] for line in editor.told("window/logMessage")]
    written = "".join(file.read_text() for file in (tmp_path / "state").rglob("*.log"))
    assert "inline completion" in written
    assert "xylophone" not in written
    assert not any("xylophone" in line for line in logged)
