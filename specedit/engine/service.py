"""Service: the life of a server's process. It listens, loads the model, serves, drains and ends."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from specedit.engine.api import CancelToken
from specedit.engine.scheduler import QueueState
from specedit.engine.server import shut_down
from specedit.errors import ConfigError, UsageError

_log = logging.getLogger(__name__)

_KEEP_ALIVE_SECONDS = 15
#: To finish the head of a request, between once and twice as long.
_HEAD_SECONDS = 20.0
#: For what was answered to reach its clients, once nothing is generated any more.
_FLUSH_SECONDS = 5
_BACKLOG = 128
_UNREAD_MS = 60_000
_POLL_SECONDS = 0.25


class Drainable(Protocol):
    """What a service needs of a scheduler."""

    def state(self) -> QueueState:
        """What there is to do now."""
        ...

    def close(self, drain_seconds: float = 0.0) -> None:
        """Take no more requests, finish those there are within `drain_seconds`, end the rest with an error."""
        ...


@dataclass(frozen=True, slots=True)
class Loaded:
    """What is there once the model is loaded."""

    app: Starlette
    answers: Drainable


@dataclass(frozen=True, slots=True)
class Tls:
    """The files of a certificate and its key, in PEM."""

    certificate: Path
    key: Path


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens there; connections wait in it until they are served.

    Raises:
        UsageError: the port is in use, or the host is not of this machine.
    """
    try:
        [family, *_], *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        listener = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise UsageError(f"{host} can't be listened on: {error.strerror or error}. Check --host.") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            # What was written to a client that never reads would keep its connection open for ever.
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNREAD_MS)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except (OSError, OverflowError) as error:
        listener.close()
        raise UsageError(
            f"{host} port {port} can't be listened on: {getattr(error, 'strerror', None) or error}. "
            "Choose another one with --port; 0 takes any free one."
        ) from error
    return listener


async def loading(scope: Scope, receive: Receive, send: Send) -> None:
    """The app that answers while the model is loaded: come again soon."""
    body: dict[str, object] = {"status": "loading"}
    if scope["path"] != "/health":
        said = "the model is being loaded: try again in a moment"
        body = {"error": {"message": said, "type": "server_error", "param": None, "code": "loading"}}
    response = JSONResponse(body, status_code=503, headers={"Retry-After": "1"})
    await response(scope, receive, send)


class Service:
    """Serves from the moment it runs until a signal, or until nothing was asked of it for long enough."""

    def __init__(
        self,
        listener: socket.socket,
        load: Callable[[], Loaded],
        *,
        before: ASGIApp,
        on_ready: Callable[[], None] = lambda: None,
        on_stop: Callable[[], None] = lambda: None,
        tls: Tls | None = None,
        drain_seconds: float = 30.0,
        idle_exit_seconds: float | None = None,
        cancel: CancelToken | None = None,
    ) -> None:
        """Make a service.

        Args:
            listener: listens already; closed at the end.
            load: loads the model; runs in a thread of its own.
            before: answers until that is done; see `loading`.
            on_ready: called when the model is loaded.
            on_stop: called once, before anything is shut down.
            tls: serve HTTPS.
            drain_seconds: answers under way are finished within this time, then cut off with an error.
            idle_exit_seconds: end after so long without work; None never ends.
            cancel: set where a signal came before `run` took them over: then it ends at once.

        Raises:
            ConfigError: the certificate or its key can't be used.
        """
        self._listener = listener
        self._load = load
        self._app: ASGIApp = before
        self._on_ready = on_ready
        self._on_stop = on_stop
        self._drain_seconds = drain_seconds
        self._idle_exit_seconds = idle_exit_seconds
        self._cancel = cancel or CancelToken()
        self._loaded: Loaded | None = None
        self._stop = asyncio.Event()
        config = uvicorn.Config(
            self._serve,
            interface="asgi3",
            http=_Connection,
            loop="asyncio",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=_FLUSH_SECONDS,
            ssl_certfile=tls.certificate if tls else None,
            ssl_keyfile=tls.key if tls else None,
        )
        try:
            config.load()
        except OSError as error:
            raise ConfigError(f"the certificate and its key can't be used: {error}. Give both as PEM.") from error
        self._server = _Server(config)

    @property
    def is_loading(self) -> bool:
        """Whether the model is still being loaded, also where the service has ended before it was."""
        return self._loaded is None

    def run(self) -> None:
        """Serve until the end. The first SIGTERM or SIGINT drains, a second one ends the process at once.

        Raises:
            SpecEditError: what `load` raises.
        """
        asyncio.run(self._run())

    async def _run(self) -> None:
        with self._signals():
            if self._cancel.cancelled:
                self._stop.set()
            serving = asyncio.create_task(self._server.serve(sockets=[self._listener]))
            watching = asyncio.create_task(self._watch())
            stopping = asyncio.create_task(self._stop.wait())
            await asyncio.wait((serving, watching, stopping), return_when=asyncio.FIRST_COMPLETED)
            self._stop.set()
            self._on_stop()
            if self._loaded is not None:
                shut_down(self._loaded.app)
                await asyncio.to_thread(self._loaded.answers.close, self._drain_seconds)
            self._server.should_exit = True
            await serving
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching

    async def _watch(self) -> None:
        """Load, then wait until there has been nothing to do for long enough."""
        loaded = await _in_daemon_thread(self._load)
        async with loaded.app.router.lifespan_context(loaded.app):
            self._app, self._loaded = loaded.app, loaded
            self._on_ready()
            await self._idle(loaded.answers)
            # The application ends when all its answers have.
            await asyncio.Event().wait()

    async def _idle(self, answers: Drainable) -> None:
        """Return when there has been nothing to do for long enough."""
        last_steps, since = -1, time.monotonic()
        while self._idle_exit_seconds is None or time.monotonic() - since < self._idle_exit_seconds:
            await asyncio.sleep(_POLL_SECONDS)
            state = answers.state()
            if state.running or state.paused or any(state.waiting.values()) or state.steps != last_steps:
                last_steps, since = state.steps, time.monotonic()
        _log.info("nothing was asked for %g seconds: ending", self._idle_exit_seconds)
        self._stop.set()

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal, number)
        try:
            yield
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)

    def _on_signal(self, number: int) -> None:
        if self._stop.is_set():
            self._on_stop()
            _log.warning("ended at once: answers under way are lost")
            os._exit(128 + number)
        _log.info("shutting down: a second signal ends at once")
        self._stop.set()


class _Server(uvicorn.Server):
    """uvicorn, without hands on the signals: they drain first, and only then does it shut down."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Connection(H11Protocol):
    """A connection that is closed where its client never ends the head of a request: uvicorn would wait for ever."""

    _awaited: object = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.loop.call_later(_HEAD_SECONDS, self._look)

    def _look(self) -> None:
        if self.transport.is_closing():
            return
        cycle: Any = self.cycle
        if cycle is not None and not (cycle.response_complete and self.timeout_keep_alive_task is None):
            self._awaited = None
        elif self._awaited is (awaited := cycle or self):
            self.transport.close()
            return
        else:
            self._awaited = awaited
        self.loop.call_later(_HEAD_SECONDS, self._look)


async def _in_daemon_thread(work: Callable[[], Loaded]) -> Loaded:
    """As `asyncio.to_thread`, but nobody waits for the thread when the loop ends before it."""
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[Loaded] = loop.create_future()

    def settle(result: Loaded | None, error: BaseException | None) -> None:
        if outcome.done():
            return
        if error is not None:
            outcome.set_exception(error)
        else:
            assert result is not None
            outcome.set_result(result)

    def run() -> None:
        result, failure = None, None
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001
            failure = error
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=run, daemon=True, name="specedit-loading").start()
    return await outcome
