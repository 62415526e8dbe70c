"""A language server in a process of its own, and an editor at the other end that does what editors do."""

from __future__ import annotations

import itertools
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PATIENCE_SECONDS = 60.0
ROOT = Path(__file__).parents[2]

#: What an editor says it can do, unless a test says otherwise.
CAPABILITIES: dict[str, Any] = {
    "general": {"positionEncodings": ["utf-16"]},
    "window": {"workDoneProgress": True, "showMessage": {}},
    "workspace": {
        "applyEdit": True,
        "configuration": True,
        "workspaceFolders": True,
        "didChangeConfiguration": {"dynamicRegistration": True},
        "workspaceEdit": {"documentChanges": True, "changeAnnotationSupport": {}},
    },
    "textDocument": {
        "inlineCompletion": {},
        "codeAction": {
            "codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["quickfix", "refactor", "refactor.rewrite"]}},
            "tagSupport": {"valueSet": [1]},
        },
    },
}


def environment(place: Path) -> dict[str, str]:
    """Variables that keep a server, and the one it may start, apart from the user's."""
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("SPECEDIT_")},
        "SPECEDIT_RUNTIME": str(place / "run"),
        "XDG_STATE_HOME": str(place / "state"),
        "XDG_CONFIG_HOME": str(place / "none"),
        "SPECEDIT_DEVICE": "cpu",
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(ROOT),
    }


class Answer(dict[str, Any]):
    """A response; `result` or the error that it raises."""

    @property
    def result(self) -> Any:
        assert "error" not in self, self["error"]
        return self.get("result")


@dataclass
class Editor:
    """An editor: sends requests and notifications, answers the server's requests, keeps everything it was told.

    Attributes:
        process: the server.
        notifications: what the server sent, (method, params), in order.
        requests: what the server asked, (method, params), in order.
        answers: how the server's requests are answered; a callable is given the parameters.
    """

    process: subprocess.Popen[bytes]
    notifications: list[tuple[str, Any]] = field(default_factory=list)
    requests: list[tuple[str, Any]] = field(default_factory=list)
    answers: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._last_id = 0
        self._arrived = threading.Condition()
        self._responses: dict[int, Answer] = {}
        self.ended = threading.Event()
        self._out: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()
        threading.Thread(target=self._write, daemon=True).start()

    # --- to the server

    def send(self, method: str, params: Any = None) -> int:
        """Send a request and give its id."""
        self._last_id += 1
        self._message(id=self._last_id, method=method, params=params)
        return self._last_id

    def request(self, method: str, params: Any = None, *, patience: float = PATIENCE_SECONDS) -> Any:
        """The result of a request."""
        return self.answer(self.send(method, params), patience=patience).result

    def answer(self, request_id: int, *, patience: float = PATIENCE_SECONDS) -> Answer:
        """The response to a request that was sent."""
        return self.until(lambda: self._responses.get(request_id), patience=patience)

    def notify(self, method: str, params: Any = None) -> None:
        self._message(method=method, params=params)

    def raw(self, data: bytes) -> None:
        """Send bytes as they are."""
        self._out.put(data)

    def command(self, command: str, *arguments: Any, patience: float = PATIENCE_SECONDS) -> Any:
        params = {"command": command, "arguments": list(arguments)}
        return self.request("workspace/executeCommand", params, patience=patience)

    def cancel(self, request_id: int) -> None:
        self.notify("$/cancelRequest", {"id": request_id})

    # --- usual exchanges

    def initialize(
        self,
        *folders: Path,
        options: Mapping[str, Any] | None = None,
        capabilities: Mapping[str, Any] = CAPABILITIES,
    ) -> Any:
        result = self.request(
            "initialize",
            {
                "processId": os.getpid(),
                "rootUri": folders[0].as_uri() if folders else None,
                "workspaceFolders": [{"uri": folder.as_uri(), "name": folder.name} for folder in folders],
                "capabilities": capabilities,
                "initializationOptions": {} if options is None else options,
            },
        )
        self.notify("initialized", {})
        return result

    def open(self, uri: str | Path, text: str, *, language: str = "python", version: int = 1) -> str:
        name = uri.as_uri() if isinstance(uri, Path) else uri
        item = {"uri": name, "languageId": language, "version": version, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": item})
        return name

    def change(self, uri: str, version: int, *changes: Mapping[str, Any]) -> None:
        params = {"textDocument": {"uri": uri, "version": version}, "contentChanges": list(changes)}
        self.notify("textDocument/didChange", params)

    def type(self, uri: str, version: int, line: int, character: int, text: str) -> None:
        self.change(uri, version, {"range": span(line, character, line, character), "text": text})

    def complete_at(self, uri: str, line: int, character: int, *, invoked: bool = False, selected: Any = None) -> Any:
        return self.request("textDocument/inlineCompletion", completion_params(uri, line, character, invoked, selected))

    def shutdown(self) -> int:
        """End the server as an editor does; gives its exit code."""
        self.request("shutdown")
        self.notify("exit")
        return self.process.wait(PATIENCE_SECONDS)

    # --- from the server

    def until(self, condition: Callable[[], Any], *, patience: float = PATIENCE_SECONDS) -> Any:
        """The first true value of `condition`, looked at whenever something arrives."""
        deadline = time.monotonic() + patience
        with self._arrived:
            while not (value := condition()):
                left = deadline - time.monotonic()
                assert left > 0, f"it never came; arrived so far: {self.notifications} {self.requests}"
                assert not self.ended.is_set() or left > patience - 1 or condition(), "the server has ended"
                self._arrived.wait(min(left, 0.2))
        return value

    def told(self, method: str) -> list[Any]:
        """The parameters of all notifications of that method so far."""
        return [params for name, params in list(self.notifications) if name == method]

    def next(self, method: str, after: int = 0, *, patience: float = PATIENCE_SECONDS) -> Any:
        """The parameters of the notification number `after` (from 0) of that method, waited for."""
        return self.until(lambda: self.told(method)[after:] or None, patience=patience)[0]

    def asked(self, method: str) -> list[Any]:
        """The parameters of all requests of that method by the server so far."""
        return [params for name, params in list(self.requests) if name == method]

    @property
    def messages(self) -> list[str]:
        """What was shown to the user."""
        return [params["message"] for params in self.told("window/showMessage")]

    # --- the connection

    def _message(self, **fields: Any) -> None:
        body = json.dumps({"jsonrpc": "2.0", **fields}).encode()
        self.raw(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def _write(self) -> None:
        assert self.process.stdin
        while (data := self._out.get()) is not None:
            try:
                self.process.stdin.write(data)
                self.process.stdin.flush()
            except OSError:
                return

    def _read(self) -> None:
        assert self.process.stdout
        try:
            while header := self.process.stdout.readline():
                assert header.startswith(b"Content-Length: "), f"not a message on stdout: {header!r}"
                while self.process.stdout.readline().strip():
                    pass
                self._take(json.loads(self.process.stdout.read(int(header.split()[1]))))
        finally:
            self.ended.set()
            with self._arrived:
                self._arrived.notify_all()

    def _take(self, message: dict[str, Any]) -> None:
        with self._arrived:
            if "method" not in message:
                self._responses[message["id"]] = Answer(message)
            elif "id" in message:
                self.requests.append((message["method"], message.get("params")))
                self._reply(message)
            else:
                self.notifications.append((message["method"], message.get("params")))
            self._arrived.notify_all()

    def _reply(self, message: dict[str, Any]) -> None:
        answer = self.answers.get(message["method"], _DEFAULT_ANSWERS.get(message["method"]))
        self._message(id=message["id"], result=answer(message.get("params")) if callable(answer) else answer)


_DEFAULT_ANSWERS: dict[str, Any] = {
    "workspace/applyEdit": {"applied": True},
    "workspace/configuration": lambda params: [None for _ in params["items"]],
}


def span(line: int, character: int, end_line: int, end_character: int) -> dict[str, Any]:
    """A range as LSP writes it."""
    return {
        "start": {"line": line, "character": character},
        "end": {"line": end_line, "character": end_character},
    }


def completion_params(uri: str, line: int, character: int, invoked: bool = False, selected: Any = None) -> Any:
    context: dict[str, Any] = {"triggerKind": 1 if invoked else 2}
    if selected is not None:
        context["selectedCompletionInfo"] = selected
    position = {"line": line, "character": character}
    return {"textDocument": {"uri": uri}, "position": position, "context": context}


@contextmanager
def running(
    place: Path, *arguments: str | Path, module: str = "specedit_lsp", env: Mapping[str, str] | None = None
) -> Iterator[Editor]:
    """A server for as long as the block lasts; its stderr goes to a file in `place`."""
    with (place / f"{time.monotonic_ns()}.stderr").open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            cwd=place,
            env={**environment(place), **(env or {})},
        )
    editor = Editor(process)
    try:
        yield editor
    finally:
        process.kill()
        process.wait()
        editor.raw(b"")
        editor._out.put(None)


def applied(text: str, edits: Sequence[Mapping[str, Any]]) -> str:
    """`text` after LSP text edits in UTF-16, written from the specification: all ranges are in `text`."""
    lines = [0]
    position = 0
    while position < len(text):
        if text[position] == "\r" and text[position + 1 : position + 2] == "\n":
            position += 1
        if text[position] in "\r\n":
            lines.append(position + 1)
        position += 1

    def offset(place: Mapping[str, int]) -> int:
        assert place["line"] < len(lines), f"{place} is past the end of the text"
        at, units = lines[place["line"]], 0
        while units < place["character"]:
            assert at < len(text), f"{place} is past the end of the text"
            assert text[at] not in "\r\n", f"{place} is past the end of its line"
            units += 2 if ord(text[at]) > 0xFFFF else 1
            at += 1
        return at

    places = sorted((offset(edit["range"]["start"]), offset(edit["range"]["end"]), edit["newText"]) for edit in edits)
    assert all(one[1] <= other[0] for one, other in itertools.pairwise(places)), "edits overlap"
    for start, end, new_text in reversed(places):
        text = text[:start] + new_text + text[end:]
    return text
