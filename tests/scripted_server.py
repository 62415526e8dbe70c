"""A small web server on loopback that answers as it is told, also as no well-kept server would."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

Reply = bytes | Callable[[socket.socket], None]
"""The bytes of a whole HTTP answer, or what to do with the connection."""

DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True)
class Asked:
    """A request as it came."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any


@dataclass
class ScriptedServer:
    """Answers each path with the next of its replies; the last one repeats. A path without replies gets a 404.

    Use it as a context manager. `closed` is set when a client hangs up while `held` waits for that.
    """

    replies: Mapping[str, Sequence[Reply]]
    requests: list[Asked] = field(default_factory=list)
    closed: threading.Event = field(default_factory=threading.Event)
    port: int = 0

    def __enter__(self) -> ScriptedServer:
        self._socket = socket.create_server(("127.0.0.1", self.port))
        self.port = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def asked(self, path: str) -> list[Asked]:
        """The requests for a path so far."""
        return [request for request in self.requests if request.path == path]

    def body(self, path: str) -> Any:
        """The body of the last request for a path."""
        return self.asked(path)[-1].body

    def held(self, start: bytes) -> Reply:
        """Send `start` and then nothing, until the client hangs up."""

        def hold(connection: socket.socket) -> None:
            connection.sendall(start)
            with suppress(OSError):
                while connection.recv(1024):
                    pass
            self.closed.set()

        return hold

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            request = _read(connection)
            if request is None:
                return
            self.requests.append(request)
            replies = self.replies.get(request.path) or [as_json(404, {"error": {"message": "File Not Found"}})]
            reply = replies[min(len(self.asked(request.path)), len(replies)) - 1]
            if isinstance(reply, bytes):
                connection.sendall(reply)
                connection.shutdown(socket.SHUT_WR)
                connection.recv(1)
            else:
                reply(connection)


def as_json(status: int, body: object, **headers: str) -> bytes:
    """An answer with JSON."""
    return answer(status, json.dumps(body).encode(), "application/json", **headers)


def answer(status: int, body: bytes, content_type: str, **headers: str) -> bytes:
    """Any answer; `retry_after="3"` becomes a header."""
    lines = [f"HTTP/1.1 {status} Said", f"Content-Type: {content_type}", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    lines += [f"Content-Length: {len(body)}"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def stream_start(content_type: str = "text/event-stream") -> bytes:
    """The head of a streamed answer, which ends with the connection."""
    return f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nConnection: close\r\n\r\n".encode()


def event(data: object) -> bytes:
    """One server-sent event."""
    text = data if isinstance(data, str) else json.dumps(data)
    return f"data: {text}\n\n".encode()


def chat(text: str | None = None, finish: str | None = None, **beside: object) -> bytes:
    """An event of a streamed chat."""
    return event({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}], **beside})


def completion(text: str, finish: str | None = None, **beside: object) -> bytes:
    """An event of a streamed completion."""
    return event({"choices": [{"index": 0, "text": text, "finish_reason": finish}], **beside})


def usage(**counts: object) -> bytes:
    """The event that tells what an answer cost."""
    return event({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3, **counts}})


def stream(*events: bytes) -> bytes:
    """A whole streamed answer."""
    return stream_start() + b"".join(events)


def models(*ids: str, owned_by: str = "vllm", **beside: object) -> bytes:
    """An answer to `/v1/models`."""
    listed = [{"id": name, "object": "model", "owned_by": owned_by, **beside} for name in ids]
    return as_json(200, {"object": "list", "data": listed})


def _read(connection: socket.socket) -> Asked | None:
    data = b""
    while b"\r\n\r\n" not in data:
        if not (more := connection.recv(65536)):
            return None
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while len(body) < int(headers.get("content-length", 0)):
        body += connection.recv(65536)
    return Asked(method, path, headers, json.loads(body) if body else None)
