"""A language server in a process of its own, and the editor's end of the connection to it."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from specedit.errors import EngineError

_T = TypeVar("_T")

_REQUEST_FAILED = -32803


class Connection:
    """Sends requests and notifications, answers the server's requests, keeps everything it was told.

    Attributes:
        process: the server.
        notifications: what the server sent, (method, params), in order.
        requests: what the server asked, (method, params), in order.
        answers: how the server's requests are answered; a callable is given the parameters, an error refuses. What is
            not named gets null.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        stderr: int | Any = subprocess.DEVNULL,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Start `command` and connect to its stdin and stdout."""
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, cwd=cwd, env=env
        )
        self.notifications: list[tuple[str, Any]] = []
        self.requests: list[tuple[str, Any]] = []
        self.answers: dict[str, Any] = {"workspace/configuration": lambda params: [None for _ in params["items"]]}
        self.ended = threading.Event()
        self._last_id = 0
        self._arrived = threading.Condition()
        self._responses: dict[int, dict[str, Any]] = {}
        self._out: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()
        threading.Thread(target=self._write, daemon=True).start()

    def close(self) -> None:
        """Kill the server, if it still runs."""
        self.process.kill()
        self.process.wait()
        self._out.put(None)

    # --- to the server

    def send(self, method: str, params: Any = None) -> int:
        """Send a request and give its id."""
        self._last_id += 1
        self._message(id=self._last_id, method=method, params=params)
        return self._last_id

    def notify(self, method: str, params: Any = None) -> None:
        """Send a notification."""
        self._message(method=method, params=params)

    def raw(self, data: bytes) -> None:
        """Send bytes as they are."""
        self._out.put(data)

    def request(self, method: str, params: Any = None, *, patience: float = 60.0) -> Any:
        """The result of a request.

        Raises:
            EngineError: the server answered with an error, or not within `patience` seconds.
        """
        response = self.response(self.send(method, params), patience=patience)
        if "error" in response:
            raise EngineError(f"{method} failed: {response['error']['message']}")
        return response.get("result")

    def response(self, request_id: int, *, patience: float = 60.0) -> dict[str, Any]:
        """The response to a request that was sent, result or error.

        Raises:
            EngineError: it did not come within `patience` seconds, or the server ended.
        """
        return self.until(lambda: self._responses.get(request_id), patience=patience)

    # --- from the server

    def until(self, condition: Callable[[], _T | None], *, patience: float = 60.0) -> _T:
        """The first true value of `condition`, looked at whenever something arrives.

        Raises:
            EngineError: it did not become true within `patience` seconds, or the server ended.
        """
        deadline = time.monotonic() + patience
        with self._arrived:
            while not (value := condition()):
                if self.ended.is_set():
                    raise EngineError(f"the language server has ended; its last words: {self.notifications[-8:]}")
                if (left := deadline - time.monotonic()) <= 0:
                    raise EngineError(f"what was waited for never came; sent last: {self.notifications[-8:]}")
                self._arrived.wait(min(left, 0.2))
        return value

    def told(self, method: str) -> list[Any]:
        """The parameters of all notifications of that method so far."""
        return [params for name, params in list(self.notifications) if name == method]

    def asked(self, method: str) -> list[Any]:
        """The parameters of all requests of that method by the server so far."""
        return [params for name, params in list(self.requests) if name == method]

    # --- the connection

    def _message(self, **fields: Any) -> None:
        body = json.dumps({"jsonrpc": "2.0", **fields}).encode()
        self.raw(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def _write(self) -> None:
        assert self.process.stdin
        with suppress(OSError):
            while (data := self._out.get()) is not None:
                self.process.stdin.write(data)
                self.process.stdin.flush()

    def _read(self) -> None:
        assert self.process.stdout
        try:
            while header := self.process.stdout.readline():
                assert header.startswith(b"Content-Length: "), f"not a message on stdout: {header!r}"
                while self.process.stdout.readline().strip():
                    pass
                self._take(json.loads(self.process.stdout.read(int(header.split()[1]))))
        finally:
            with self._arrived:
                self.ended.set()
                self._arrived.notify_all()

    def _take(self, message: dict[str, Any]) -> None:
        with self._arrived:
            if "method" not in message:
                self._responses[message["id"]] = message
            elif "id" in message:
                self.requests.append((message["method"], message.get("params")))
                answer = self.answers.get(message["method"])
                answer = answer(message.get("params")) if callable(answer) else answer
                if isinstance(answer, EngineError):
                    self._message(id=message["id"], error={"code": _REQUEST_FAILED, "message": str(answer)})
                else:
                    self._message(id=message["id"], result=answer)
            else:
                self.notifications.append((message["method"], message.get("params")))
            self._arrived.notify_all()


def initialize_params(*folders: Path, options: Mapping[str, Any], capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of `initialize` for an editor that has these folders open."""
    return {
        "processId": os.getpid(),
        "rootUri": folders[0].as_uri() if folders else None,
        "workspaceFolders": [{"uri": folder.as_uri(), "name": folder.name} for folder in folders],
        "capabilities": capabilities,
        "initializationOptions": dict(options),
    }


def lsp_range(line: int, character: int, end_line: int, end_character: int) -> dict[str, Any]:
    """A range as LSP writes it."""
    return {
        "start": {"line": line, "character": character},
        "end": {"line": end_line, "character": end_character},
    }


def opening(uri: str, text: str, *, language: str = "python", version: int = 1) -> dict[str, Any]:
    """The parameters of `textDocument/didOpen`."""
    return {"textDocument": {"uri": uri, "languageId": language, "version": version, "text": text}}


def typing(uri: str, version: int, line: int, character: int, text: str) -> dict[str, Any]:
    """The parameters of `textDocument/didChange` for text typed at a place."""
    change = {"range": lsp_range(line, character, line, character), "text": text}
    return {"textDocument": {"uri": uri, "version": version}, "contentChanges": [change]}


def completing(uri: str, line: int, character: int, *, invoked: bool = False, selected: Any = None) -> dict[str, Any]:
    """The parameters of `textDocument/inlineCompletion`."""
    context: dict[str, Any] = {"triggerKind": 1 if invoked else 2}
    if selected is not None:
        context["selectedCompletionInfo"] = selected
    position = {"line": line, "character": character}
    return {"textDocument": {"uri": uri}, "position": position, "context": context}
