"""A server's process: what it answers while it loads, when it ends, and what it doesn't wait for."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from specedit.engine import service
from specedit.engine.api import CancelToken
from specedit.engine.scheduler import QueueState
from specedit.engine.service import Loaded, Service, Tls, bound, loading
from specedit.errors import ConfigError, ModelError, UsageError


class Answers:
    """Has `busy` looks of work left, then none."""

    def __init__(self, busy: int = 0) -> None:
        self.busy = busy
        self.drained: list[float] = []

    def state(self) -> QueueState:
        self.busy -= 1
        return QueueState({"inline": int(self.busy > 0)}, 0, 0, 0, 0)

    def close(self, drain_seconds: float = 0.0) -> None:
        self.drained.append(drain_seconds)


async def _home(_: Request) -> PlainTextResponse:
    return PlainTextResponse("ready")


def loaded(answers: Answers | None = None) -> Loaded:
    return Loaded(Starlette(routes=[Route("/", _home)]), answers or Answers())


def run(client: Callable[[str], Any], load: Callable[[], Loaded] = loaded, **options: Any) -> Any:
    """Run a service until `client`, which gets its address in a thread of its own, is done; gives what that gave."""
    listener = bound("127.0.0.1", 0)
    scheme = "https" if options.get("tls") else "http"
    address = f"{scheme}://127.0.0.1:{listener.getsockname()[1]}"
    running = Service(listener, load, before=loading, **options)
    with ThreadPoolExecutor(1) as aside:
        asked = aside.submit(client, address)
        asked.add_done_callback(lambda _: os.kill(os.getpid(), signal.SIGTERM))
        running.run()
        return asked.result()


def get(address: str, **options: Any) -> httpx2.Response:
    return httpx2.get(address, trust_env=False, timeout=20, **options)


def test_it_answers_from_the_beginning() -> None:
    asked = threading.Event()
    ready = threading.Event()

    def load() -> Loaded:
        assert asked.wait(20)
        return loaded()

    def client(address: str) -> tuple[httpx2.Response, ...]:
        early = get(f"{address}/v1/models"), get(f"{address}/health")
        asked.set()
        assert ready.wait(20)
        return (*early, get(address))

    refused, health, answered = run(client, load, on_ready=ready.set)
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "loading")
    assert (health.status_code, health.json(), health.headers["retry-after"]) == (503, {"status": "loading"}, "1")
    assert (answered.status_code, answered.text) == (200, "ready")
    assert "server" not in answered.headers


def test_it_is_told_to_stop_before_it_drains() -> None:
    answers = Answers()
    ready = threading.Event()
    seen: list[list[float]] = []
    run(
        lambda _: ready.wait(20),
        lambda: loaded(answers),
        on_ready=ready.set,
        on_stop=lambda: seen.append(list(answers.drained)),
        drain_seconds=7.0,
    )
    assert seen == [[]]
    assert answers.drained == [7.0]


def test_a_model_that_can_not_be_loaded_ends_it_with_the_error() -> None:
    def load() -> Loaded:
        raise ModelError("no such weights")

    stopped: list[bool] = []
    running = Service(bound("127.0.0.1", 0), load, before=loading, on_stop=lambda: stopped.append(True))
    with pytest.raises(ModelError, match="no such weights"):
        running.run()
    assert stopped == [True]
    assert running.is_loading


def test_a_signal_that_came_before_it_ran_ends_it_at_once() -> None:
    cancel = CancelToken()
    cancel.cancel()
    stopped: list[bool] = []
    forever = threading.Event()

    def load() -> Loaded:
        forever.wait(60)
        return loaded()

    Service(
        bound("127.0.0.1", 0),
        load,
        before=loading,
        on_stop=lambda: stopped.append(True),
        cancel=cancel,
    ).run()
    assert stopped == [True]
    forever.set()


def test_it_ends_by_itself_after_the_last_work() -> None:
    answers = Answers(busy=3)
    listener = bound("127.0.0.1", 0)
    Service(listener, lambda: loaded(answers), before=loading, idle_exit_seconds=0.4).run()
    assert answers.busy < 0
    assert answers.drained == [30.0]


@pytest.mark.parametrize("begun", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: localhost\r\n"])
@pytest.mark.parametrize("answered_before", [0, 1])
def test_a_half_open_connection_is_closed(monkeypatch: pytest.MonkeyPatch, begun: bytes, answered_before: int) -> None:
    monkeypatch.setattr(service, "_HEAD_SECONDS", 0.1)
    monkeypatch.setattr(service, "_KEEP_ALIVE_SECONDS", 1)

    def client(address: str) -> bytes:
        with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])), timeout=20) as connection:
            for _ in range(answered_before):
                connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert connection.recv(65536).startswith(b"HTTP/1.1 ")
            connection.sendall(begun)
            while connection.recv(65536):
                pass
        return b"closed"

    assert run(client) == b"closed"


def test_a_slow_answer_is_no_half_open_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio

    monkeypatch.setattr(service, "_HEAD_SECONDS", 0.05)

    async def slow(_: Request) -> PlainTextResponse:
        await asyncio.sleep(0.5)
        return PlainTextResponse("late")

    ready = threading.Event()

    def client(address: str) -> str:
        assert ready.wait(20)
        return get(address).text

    load = lambda: Loaded(Starlette(routes=[Route("/", slow)]), Answers())  # noqa: E731
    assert run(client, load, on_ready=ready.set) == "late"


def test_where_nobody_can_listen_is_told_with_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(UsageError, match="--port"):
        bound("127.0.0.1", taken.getsockname()[1])
    with pytest.raises(UsageError, match="192"):
        bound("192.0.2.1", 0)
    with pytest.raises(UsageError, match="--host"):
        bound("no.such.host.invalid", 0)


def test_two_never_get_the_same_port() -> None:
    with bound("127.0.0.1", 0) as first, pytest.raises(UsageError):
        bound("127.0.0.1", first.getsockname()[1])


def test_a_certificate_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.pem").write_text("nothing")
    for certificate in (tmp_path / "x.pem", tmp_path / "missing.pem"):
        with bound("127.0.0.1", 0) as listener, pytest.raises(ConfigError, match="PEM"):
            Service(listener, loaded, before=loading, tls=Tls(certificate, tmp_path / "x.pem"))


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
def test_it_serves_https(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject]
    subprocess.run([*made, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    trusting = ssl.create_default_context(cafile=certificate)
    ready = threading.Event()

    def client(address: str) -> str:
        assert ready.wait(20)
        return get(address, verify=trusting).text

    assert run(client, on_ready=ready.set, tls=Tls(certificate, key)) == "ready"
