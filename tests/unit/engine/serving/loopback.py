"""A real server on loopback, for tests."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette

TOKEN = "the-token"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}


@contextmanager
def serving(app: Starlette) -> Iterator[int]:
    """Run an application; gives its port on 127.0.0.1."""
    server = uvicorn.Server(
        uvicorn.Config(app, port=0, http="h11", ws="none", log_config=None, timeout_graceful_shutdown=2)
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the server did not start"
            time.sleep(0.005)
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()
