"""The gate: who may reach the server, and how much they may send.

A server on loopback can be reached by every program of this machine, and by every web page that its browser shows: a
page may post anywhere, and with a name that it rebinds to 127.0.0.1 it may even read. So the name that was asked for
must be one of this server's, nothing that a browser sends on behalf of a page is let in, and whoever asks must know the
token. All of that is decided from the headers, before a byte of the body is read.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import re
from collections.abc import Collection, Iterable

import msgspec
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from specedit.engine.serving.openai_api import RequestError, failure
from specedit.errors import UsageError

#: Open without a token, so that whoever starts a server can wait for it.
_OPEN_PATH = "/health"

#: How long a refused client may go on sending: one that hears of its refusal only after that would take it for a fault
#: of the network.
_LINGER_SECONDS = 2.0

_HOST = re.compile(r"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9._-]+))(?::[0-9]{1,5})?", re.ASCII)
_BEARER = re.compile(rb"bearer +(?P<token>[!-~]+)", re.IGNORECASE)


class Gate:
    """ASGI middleware that lets a request through with its whole body, or answers it with the reason.

    Refused are: names of other hosts (421), web pages (403), those without the token (401), bodies that are too large
    (413) or don't arrive (408). WebSockets are closed.
    """

    def __init__(
        self, app: ASGIApp, *, token: bytes, allowed_hosts: Collection[str], max_body_bytes: int, body_seconds: float
    ) -> None:
        """Make the gate.

        Args:
            app: what stands behind it.
            token: what a client must send as `Authorization: Bearer`; see `checked_token`.
            allowed_hosts: names and addresses, without port, under which the server may be asked for besides those of
                the loopback interface.
            max_body_bytes: the largest body.
            body_seconds: how long a body may take.
        """
        self._app = app
        self._token = token
        self._allowed_hosts = frozenset(host.strip("[]").lower() for host in allowed_hosts)
        self._max_body_bytes = max_body_bytes
        self._body_seconds = body_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        try:
            self._check(scope)
            body = await self._body(receive)
        except RequestError as error:
            await _refuse(error, receive, send)
            return
        if body is not None:
            await self._app(scope, _replayed(body, receive), send)

    def _check(self, scope: Scope) -> None:
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        self._check_host(_values(headers, b"host"))
        if _values(headers, b"origin") or set(_values(headers, b"sec-fetch-site")) - {b"none", b"same-origin"}:
            raise RequestError(
                "web pages may not use this server: call it from a program, without an Origin header",
                status=403,
                code="web_page",
                kind="permission_error",
            )
        if scope["path"] != _OPEN_PATH:
            self._check_token(_values(headers, b"authorization"))
        declared = _values(headers, b"content-length")
        if declared and declared[0].isdigit() and int(declared[0]) > self._max_body_bytes:
            raise self._too_large()

    def _check_host(self, values: list[bytes]) -> None:
        host = _HOST.fullmatch(values[0].decode("latin-1")) if len(values) == 1 else None
        name = (host["ipv6"] or host["name"]).lower() if host else ""
        if not (name == "localhost" or name in self._allowed_hosts or _is_loopback(name)):
            raise RequestError(
                "this server doesn't go by the name in the Host header: use localhost, or start the server with "
                "--allowed-host NAME",
                status=421,
                code="unknown_host",
                kind="permission_error",
            )

    def _check_token(self, values: list[bytes]) -> None:
        bearer = _BEARER.fullmatch(values[0]) if len(values) == 1 else None
        if bearer is None or not hmac.compare_digest(bearer["token"], self._token):
            told = "needs its token" if bearer is None else "has another token"
            raise RequestError(
                f"this server {told}: send the one that `specedit serve` made as Authorization: Bearer TOKEN",
                status=401,
                code="invalid_api_key",
                kind="authentication_error",
            )

    async def _body(self, receive: Receive) -> bytes | None:
        """The whole body; None where the client is gone."""
        body = bytearray()
        try:
            async with asyncio.timeout(self._body_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    body += message.get("body", b"")
                    if len(body) > self._max_body_bytes:
                        raise self._too_large()
                    if not message.get("more_body", False):
                        return bytes(body)
        except TimeoutError:
            raise RequestError(
                f"the body did not arrive within {self._body_seconds:g} seconds: send it again",
                status=408,
                code="body_timeout",
            ) from None

    def _too_large(self) -> RequestError:
        return RequestError(
            f"the body is larger than {self._max_body_bytes} bytes: send less context",
            status=413,
            code="body_too_large",
        )


def checked_token(token: str) -> bytes:
    """A token as it stands in a header.

    Raises:
        UsageError: it is empty or can't be sent there.
    """
    if not re.fullmatch("[!-~]+", token):
        raise UsageError("the server needs a token of printable ASCII without blanks: it is never open to everyone")
    return token.encode()


def error_response(error: Exception) -> Response:
    """The response that tells of an error in OpenAI's form."""
    status, body = failure(error)
    extra = {401: {"WWW-Authenticate": "Bearer"}, 429: {"Retry-After": "1"}}
    return Response(msgspec.json.encode(body), status, extra.get(status), media_type="application/json")


async def _refuse(error: RequestError, receive: Receive, send: Send) -> None:
    """Answer at once and close, but read on a little: closing on unread bytes would take the answer back."""
    response = error_response(error)
    response.headers["Connection"] = "close"
    await send({"type": "http.response.start", "status": response.status_code, "headers": response.raw_headers})
    await send({"type": "http.response.body", "body": response.body, "more_body": True})
    try:
        async with asyncio.timeout(_LINGER_SECONDS):
            while (await receive()).get("more_body", False):
                pass
    except TimeoutError:
        pass
    await send({"type": "http.response.body", "body": b"", "more_body": False})


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Gives the body, then whatever comes next: that the client is gone."""
    read = False

    async def replay() -> Message:
        nonlocal read
        if read:
            return await receive()
        read = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _values(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> list[bytes]:
    return [value for key, value in headers if key.lower() == name]


def _is_loopback(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
