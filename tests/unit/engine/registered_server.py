"""A process that registers itself as a server and answers `/v1/models`: `registered_server MODEL [SECONDS]`.

It says on stdout what became of it: "first", or the address of the server that runs already.
"""

from __future__ import annotations

import http.server
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

from specedit import __version__
from specedit.engine import discovery, runtime


class Models(http.server.BaseHTTPRequestHandler):
    """Answers as `specedit serve` does; `server.seen` has the tokens it was shown."""

    server: Any

    def do_GET(self) -> None:
        self.server.seen.append(self.headers.get("Authorization"))
        model = {"id": self.server.model, "owned_by": self.server.owner, "device": "cpu"}
        body = json.dumps({"data": [model]}).encode()
        self.send_response(200 if self.headers.get("Authorization") == f"Bearer {self.server.token}" else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def answering(model: str, *, token: str | None = None, owner: str = "specedit", port: int = 0) -> Iterator[Any]:
    """A server in a thread of this process."""
    server: Any = http.server.ThreadingHTTPServer(("127.0.0.1", port), Models)
    server.seen, server.model, server.owner = [], model, owner
    server.token = token or runtime.read_token(runtime.token_file())
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def record(server: Any, model: str, **changes: Any) -> discovery.ServerRecord:
    """What such a server says of itself."""
    known = {
        "url": f"http://127.0.0.1:{server.server_address[1]}",
        "token_file": str(runtime.token_file()),
        "model": model,
        "pid": os.getpid(),
        "version": __version__,
        "started": time.time(),
        "state": "ready",
    }
    return discovery.ServerRecord(**(known | changes))


if __name__ == "__main__":
    with answering(sys.argv[1]) as served:
        outcome = discovery.register(lambda: record(served, sys.argv[1]), model=sys.argv[1])
        sys.stdout.write("first\n" if isinstance(outcome, discovery.Registration) else f"{outcome.url}\n")
        sys.stdout.flush()
        time.sleep(float(sys.argv[2]) if len(sys.argv) > 2 else 0)
        if isinstance(outcome, discovery.Registration):
            outcome.remove()
