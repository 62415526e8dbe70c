"""One server over HTTP: an async client on a private loop thread, asked from any other thread.

What is asked waits in a queue that Ctrl-C gets through, and can be stopped from any thread, also from a signal's
handler. An attempt is repeated only while nothing of an answer has come, so that nothing is ever read twice.
"""

from __future__ import annotations

import asyncio
import ipaddress
import queue
import socket
import ssl
import threading
import urllib.request
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Mapping
from concurrent.futures import Future
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import urlsplit

import httpx2

from specedit import __version__
from specedit.config import server_url
from specedit.engine.api import CancelToken
from specedit.errors import ConfigError, EngineError, UnreachableError

#: Answers with these are worth another try: too many requests, a gateway without its server, not ready yet.
_PASSING = frozenset({429, 502, 503, 504})
_LONGEST_PAUSE_SECONDS = 5.0
_MAX_REPLY_BYTES = 4 << 20
_MAX_REFUSAL_BYTES = 64 << 10
_MAX_EVENT_BYTES = 4 << 20
_MAX_STREAM_BYTES = 256 << 20
# Shorter than what servers keep an idle connection for, so that none is used that they are about to close.
_KEEP_ALIVE_SECONDS = 2.0
# A wait without end can't be interrupted by Ctrl-C on every system.
_WAKE_SECONDS = 0.5

_Piece = TypeVar("_Piece")
_Error = TypeVar("_Error", bound=BaseException)


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long to wait for a server.

    Attributes:
        connect_seconds: for a connection.
        read_seconds: between two pieces of an answer, also for the first one.
        pause_seconds: before each further attempt; as many attempts as there are pauses.
    """

    connect_seconds: float = 10.0
    read_seconds: float = 600.0
    pause_seconds: tuple[float, ...] = (0.25, 1.0)


@dataclass(frozen=True, slots=True)
class Event:
    """A server-sent event: its kind, "message" if it has none, and its data as the server sent it."""

    kind: str
    data: bytes


class RefusedError(Exception):
    """The server answered, but not with what was asked for.

    Attributes:
        status: the HTTP status.
        headers: of the answer; their names in any case.
        body: its first 64 KiB.
    """

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def content_type(self) -> str:
        """What the body is said to be, without parameters: `text/html`."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


def is_loopback(url: str) -> bool:
    """Whether a URL's host is this machine by its very name or number."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass
class Transport:
    """Speaks with the server at `url`, which has no `/v1`; the key goes along as a bearer token.

    Proxies are taken from the environment, but never for loopback. Redirects are not followed: the key and the file
    would go where nobody said they should.

    Raises:
        ConfigError: the URL is none, or the environment names a proxy that can't be used.
    """

    url: str
    api_key: str | None = field(default=None, repr=False)
    timeouts: Timeouts = field(default_factory=Timeouts)

    def __post_init__(self) -> None:
        self.url = server_url(self.url)
        self._client = self._new_client()
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    def get(self, path: str) -> bytes:
        """The body of a JSON answer.

        Raises:
            RefusedError: the status is not 200 or it is no JSON.
            EngineError: the server can't be reached, or what it sends breaks off or is too much.
        """
        [body] = self._asked(self._get(path), CancelToken())
        return body

    def events(self, path: str, body: bytes, cancel: CancelToken) -> Generator[Event, None, None]:
        """Post JSON and give the server-sent events that come back, until the server ends them or `cancel` is set.

        Closing the iterator closes the stream.

        Raises:
            RefusedError: the status is not 200 or no events come.
            EngineError: as `get`.
        """
        return self._asked(self._post(path, body), cancel)

    def close(self) -> None:
        """Stop everything that is under way; idempotent."""
        with self._lock:
            loop, self._loop, self._closed = self._loop, None, True
        if loop is not None:
            asyncio.run_coroutine_threadsafe(self._stopped(), loop).result()
            loop.call_soon_threadsafe(loop.stop)

    # --- in the thread that asks

    def _asked(self, answer: AsyncGenerator[_Piece, None], cancel: CancelToken) -> Generator[_Piece, None, None]:
        pieces: queue.SimpleQueue[_Piece | Future[None]] = queue.SimpleQueue()
        loop = self._running_loop()
        under_way = asyncio.run_coroutine_threadsafe(self._handed_on(answer, pieces), loop)
        under_way.add_done_callback(pieces.put)

        def stop() -> None:
            under_way.cancel()

        cancel.on_cancel(stop)
        try:
            while not isinstance(piece := _next(pieces), Future):
                yield piece
            if not under_way.cancelled():
                under_way.result()
        finally:
            stop()

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._closed:
                raise EngineError(f"the connection to {self.url} was closed: make a new engine")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="specedit-http", daemon=True).start()
            return self._loop

    # --- in the loop's thread

    async def _handed_on(
        self, answer: AsyncGenerator[_Piece, None], pieces: queue.SimpleQueue[_Piece | Future[None]]
    ) -> None:
        has_begun = False
        try:
            async with aclosing(answer):
                async for piece in answer:
                    has_begun = True
                    pieces.put(piece)
        except httpx2.HTTPError as error:
            raise self._explained(error, has_begun=has_begun) from error

    async def _get(self, path: str) -> AsyncGenerator[bytes, None]:
        async with self._answered("GET", path, None, "application/json") as response:
            body = await _read(response, _MAX_REPLY_BYTES)
        if len(body) > _MAX_REPLY_BYTES:
            raise EngineError(f"{self.url}{path} sent more than {_MAX_REPLY_BYTES >> 20} MiB: is it the right server?")
        yield body

    async def _post(self, path: str, body: bytes) -> AsyncGenerator[Event, None]:
        async with self._answered("POST", path, body, "text/event-stream") as response:
            # Read as bytes, so that what is no UTF-8 is found out and not replaced.
            response.encoding = "latin-1"
            total_bytes = 0
            async for event in httpx2.EventSource(response, _MAX_EVENT_BYTES):
                total_bytes += len(event.data)
                if total_bytes > _MAX_STREAM_BYTES:
                    raise EngineError(f"the answer of {self.url} has no end: it passed {_MAX_STREAM_BYTES >> 20} MiB")
                yield Event(event.event, event.data.encode("latin-1"))

    @asynccontextmanager
    async def _answered(
        self, method: str, path: str, body: bytes | None, content_type: str
    ) -> AsyncIterator[httpx2.Response]:
        """The answer with its body still to be read, if it is one that was asked for."""
        response = await self._sent(method, path, body)
        try:
            refused = RefusedError(response.status_code, response.headers, b"")
            if response.status_code != 200 or refused.content_type != content_type:
                refused.body = (await _read(response, _MAX_REFUSAL_BYTES))[:_MAX_REFUSAL_BYTES]
                raise refused
            yield response
        finally:
            await response.aclose()

    async def _sent(self, method: str, path: str, body: bytes | None) -> httpx2.Response:
        """The answer's status and headers; what passes by is tried again."""
        headers = {"Content-Type": "application/json"} if body is not None else {}
        for pause_seconds in (*self.timeouts.pause_seconds, None):
            request = self._client.build_request(method, f"{self.url}{path}", content=body, headers=headers)
            try:
                response = await self._client.send(request, stream=True)
            except httpx2.ConnectError as error:
                if pause_seconds is None or _cause(error, ConnectionRefusedError) is None:
                    raise
            else:
                pause_seconds = _pause_before_again(response, pause_seconds)
                if pause_seconds is None:
                    return response
                await response.aclose()
            await asyncio.sleep(pause_seconds)
        raise AssertionError("the last attempt returns or raises")

    async def _stopped(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._client.aclose()

    # --- what it is made of, and what can go wrong

    def _new_client(self) -> httpx2.AsyncClient:
        headers = {"User-Agent": f"specedit/{__version__}", "Accept-Encoding": "identity"}
        if self.api_key:
            headers["Authorization"] = f"Bearer {self.api_key}"
        near = is_loopback(self.url)
        try:
            return httpx2.AsyncClient(
                headers=headers,
                # Trusts nobody, and takes no time to make: nothing near that is plain HTTP uses it.
                verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
                if near and self.url.startswith("http:")
                else httpx2.create_ssl_context(),
                timeout=httpx2.Timeout(self.timeouts.read_seconds, connect=self.timeouts.connect_seconds, pool=None),
                limits=httpx2.Limits(keepalive_expiry=_KEEP_ALIVE_SECONDS),
                trust_env=not near,
            )
        except (ImportError, ValueError, httpx2.InvalidURL) as error:
            raise ConfigError(
                f"the proxy that the environment names can't be used: {error}. Correct HTTP_PROXY, HTTPS_PROXY or "
                f"ALL_PROXY, or add {urlsplit(self.url).hostname} to NO_PROXY."
            ) from error
        except OSError as error:
            raise ConfigError(
                f"the certificates that SSL_CERT_FILE or SSL_CERT_DIR names can't be read: {error}. Correct it."
            ) from error

    def _explained(self, error: httpx2.HTTPError, *, has_begun: bool) -> EngineError:
        parts = urlsplit(self.url)
        through = " (through the proxy that the environment names)" if self._is_proxied else ""
        seconds = f"{self.timeouts.read_seconds:g} s"
        match error:
            case httpx2.ConnectTimeout():
                problem = f"{self.url} can't be reached within {self.timeouts.connect_seconds:g} s{through}"
                fix = "check that the machine is on, and the address: its port, and whether it is http:// or https://"
            case httpx2.ProxyError():
                problem, fix = (
                    f"the proxy on the way to {self.url} refuses: {error}",
                    f"or add {parts.hostname} to NO_PROXY",
                )
                fix = f"correct HTTP_PROXY, HTTPS_PROXY or ALL_PROXY, {fix}"
            case httpx2.ConnectError():
                problem, fix = self._unconnected(error, through)
            case httpx2.TimeoutException():
                problem = f"{self.url} sent nothing for {seconds}"
                fix = "see whether the server is busy, or wait longer with SPECEDIT_ENGINE_TIMEOUT_SECONDS"
            case httpx2.SSEError():
                return EngineError(f"{self.url} sent a piece of an answer that is too large: {error}. Is it a server?")
            case _ if has_begun:
                problem, fix = f"the answer of {self.url} broke off", "see whether the server still runs, and ask again"
            case httpx2.NetworkError() | httpx2.RemoteProtocolError() if "illegal" not in str(error):
                problem = f"{self.url} closed the connection before it answered{through}"
                fix = "see whether the server still runs, or wants https://, and ask again"
            case _:
                problem = f"{self.url} does not answer as a web server does ({error}){through}"
                fix = "check the address and its port, and whether it is http:// or https://"
        return UnreachableError(f"{problem}: {fix}")

    def _unconnected(self, error: httpx2.ConnectError, through: str) -> tuple[str, str]:
        """What stood in the way of a connection, and what to do."""
        host = urlsplit(self.url).hostname
        if certificate := _cause(error, ssl.SSLCertVerificationError):
            return (
                f"the certificate of {self.url} is not trusted: {certificate.verify_message}",
                "name a file with your own authority's certificates in SSL_CERT_FILE",
            )
        if tls := _cause(error, ssl.SSLError):
            return f"{self.url} does not speak TLS ({tls.reason})", "is it an http:// server?"
        if _cause(error, socket.gaierror):
            return f"there is no host {host}, or its name can't be looked up{through}", "check the address"
        if _cause(error, ConnectionRefusedError):
            return f"nothing answers at {self.url}: the connection was refused{through}", "start the server there"
        return f"{self.url} can't be reached ({error}){through}", "check the address and the network"

    @property
    def _is_proxied(self) -> bool:
        parts = urlsplit(self.url)
        proxies = urllib.request.getproxies()
        proxied = bool(proxies.get(parts.scheme) or proxies.get("all")) and not is_loopback(self.url)
        return proxied and not urllib.request.proxy_bypass(parts.hostname or "")


def _next(pieces: queue.SimpleQueue[_Piece]) -> _Piece:
    while True:
        with suppress(queue.Empty):
            return pieces.get(timeout=_WAKE_SECONDS)


async def _read(response: httpx2.Response, most_bytes: int) -> bytes:
    """The body; of a larger one a little more than `most_bytes`."""
    body = bytearray()
    async for data in response.aiter_bytes():
        body += data
        if len(body) > most_bytes:
            break
    return bytes(body)


def _pause_before_again(response: httpx2.Response, pause_seconds: float | None) -> float | None:
    """How long to wait before the next attempt; None takes the answer as it is."""
    if pause_seconds is None or response.status_code not in _PASSING:
        return None
    asked = response.headers.get("retry-after", "")
    if not asked.isdecimal():
        return pause_seconds
    return float(asked) if float(asked) <= _LONGEST_PAUSE_SECONDS else None


def _cause(error: BaseException | None, kind: type[_Error]) -> _Error | None:
    """The first error of a kind among those that led to this one."""
    while error is not None and not isinstance(error, kind):
        if isinstance(error, BaseExceptionGroup):
            return next((found for inner in error.exceptions if (found := _cause(inner, kind))), None)
        error = error.__cause__ or error.__context__
    return error
