"""Small real things to pull from: a package index of tiny wheels, a hub, and a converter that needs no torch."""

from __future__ import annotations

import hashlib
import http.server
import json
import struct
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from specedit.models.registry import ModelEntry
from specedit.models.sources import WheelPart, WheelParts

PARTS = (b"GGUF first half, " * 200, b"second half" * 100)
GGUF = b"".join(PARTS)


def safetensors(payload: bytes = b"\0\0\0\0") -> bytes:
    header = {"weight": {"dtype": "U8", "shape": [len(payload)], "data_offsets": [0, len(payload)]}}
    encoded = json.dumps(header).encode()
    return struct.pack("<Q", len(encoded)) + encoded + payload


def convert(gguf: Path, out: Path) -> None:
    """Puts the GGUF file's bytes into the weights, so that a test can see what was converted."""
    (out / "config.json").write_text("{}")
    (out / "model.safetensors").write_bytes(safetensors(gguf.read_bytes()))


def add_wheel(folder: Path, number: int, payload: bytes) -> Path:
    name, info = f"tiny_part{number}", f"tiny_part{number}-1.0.dist-info"
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{name}/part.bin", payload)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return wheel


def wheel_entry(sha256: str | None = None) -> ModelEntry:
    parts = tuple(WheelPart(f"tiny-part{n}==1.0", f"tiny_part{n}/part.bin") for n in (1, 2))
    pinned = sha256 or hashlib.sha256(GGUF).hexdigest()
    return ModelEntry("tiny", (WheelParts(parts, pinned, 6_000, len(GGUF), 6_000),))


Respond = Callable[[http.server.BaseHTTPRequestHandler], None]


@contextmanager
def serving(respond: Respond) -> Iterator[str]:
    """A server on this machine; yields its address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            respond(self)

        do_HEAD = do_GET

        def log_message(self, *args: object) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


class FakeHub:
    """One repository with commits; `main` is the newest. Files are served by commit, the large ones with their hash."""

    def __init__(self, repo_id: str, files: dict[str, bytes]) -> None:
        self.repo_id = repo_id
        self.commits: dict[str, dict[str, bytes]] = {}
        self.stated_sha256: dict[str, str] = {}
        self.gated = False
        self.downloads: list[str] = []
        self.push(files)

    def push(self, files: dict[str, bytes]) -> str:
        commit = hashlib.sha1(str(len(self.commits)).encode()).hexdigest()
        self.commits[commit] = files
        return commit

    def respond(self, request: http.server.BaseHTTPRequestHandler) -> None:
        path = request.path.split("?")[0]
        if self.gated:
            return self._send(request, 403, b"", {"X-Error-Code": "GatedRepo"})
        if path.startswith(f"/api/models/{self.repo_id}"):
            revision = path.partition("/revision/")[2]
            commit = revision if revision in self.commits else list(self.commits)[-1]
            siblings = [self._describe(name, data) for name, data in self.commits[commit].items()]
            body = json.dumps({"id": self.repo_id, "sha": commit, "siblings": siblings}).encode()
            return self._send(request, 200, body, {"Content-Type": "application/json"})
        if path.startswith(f"/{self.repo_id}/resolve/"):
            commit, _, name = path.removeprefix(f"/{self.repo_id}/resolve/").partition("/")
            if data := self.commits.get(commit, {}).get(name):
                if request.command == "GET":
                    self.downloads.append(name)
                etag = self._sha256(name, data)
                return self._send(request, 200, data, {"X-Repo-Commit": commit, "ETag": f'"{etag}"'})
        return self._send(request, 404, b"", {"X-Error-Code": "RepoNotFound"})

    def _sha256(self, name: str, data: bytes) -> str:
        return self.stated_sha256.get(name, hashlib.sha256(data).hexdigest())

    def _describe(self, name: str, data: bytes) -> dict[str, object]:
        described: dict[str, object] = {"rfilename": name, "size": len(data)}
        if name.endswith((".safetensors", ".gguf", ".bin")):
            described["lfs"] = {"size": len(data), "sha256": self._sha256(name, data), "pointerSize": 100}
        return described

    @staticmethod
    def _send(request: http.server.BaseHTTPRequestHandler, status: int, body: bytes, headers: dict[str, str]) -> None:
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        if request.command == "GET":
            request.wfile.write(body)
