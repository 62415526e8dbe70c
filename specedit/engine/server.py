"""The HTTP server: OpenAI's chat completions and completions over a scheduler's answers, as an ASGI application.

Everything asynchronous of the engine is here. The event loop only waits and writes: reading and encoding requests has a
thread of its own, the model another. Who may send what is the gate's matter.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

import msgspec
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from sse_starlette import EventSourceResponse, ServerSentEvent
from sse_starlette.sse import AppStatus
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from specedit.engine.api import CancelToken, FinishReason, Priority, TextChunk
from specedit.engine.scheduler import Answers
from specedit.engine.serving.gate import Gate, checked_token, error_response
from specedit.engine.serving.metrics import Metrics
from specedit.engine.serving.openai_answer import Answer, ChatAnswer, CompletionAnswer, Health, ModelCard, ModelList
from specedit.engine.serving.openai_api import (
    MODEL_ALIAS,
    ChatRequest,
    CompletionRequest,
    RequestError,
    decode_request,
    failure,
    model_not_found,
)
from specedit.engine.serving.openapi import openapi_document
from specedit.engine.wire import OWNER
from specedit.errors import ShuttingDownError, SpecEditError

_logger = logging.getLogger(__name__)

_Outcome = FinishReason | Literal["refused", "error"]
_RequestT = TypeVar("_RequestT", ChatRequest, CompletionRequest)

#: These end a line for some clients, which would take what follows for another event. JSON may escape them.
_LINE_ENDS = {char.encode(): f"\\u{ord(char):04x}".encode() for char in "\u0085\u2028\u2029"}

_STATUS_ADVICE = {
    404: "there is nothing under this path: /openapi.json tells what there is",
    405: "this path doesn't take the method: /openapi.json tells what it takes",
}


@dataclass(frozen=True, slots=True)
class ServedModel:
    """The model behind the server.

    Attributes:
        name: what clients ask for; "default" means it too.
        context_tokens: the most tokens of prompt and answer together.
        created: when the server loaded it, in seconds since 1970.
        device: what it runs on, as torch calls it; None where that is not known.
    """

    name: str
    context_tokens: int
    created: int
    device: str | None = None


def create_app(
    answers: Answers,
    *,
    model: ServedModel,
    token: str,
    allowed_hosts: Collection[str] = (),
    metrics: Metrics | None = None,
    max_body_bytes: int = 10_000_000,
    body_seconds: float = 60.0,
    send_seconds: float = 60.0,
    ping_seconds: float = 10.0,
) -> Starlette:
    """The application.

    Args:
        answers: what answers requests.
        model: what it answers with.
        token: what clients must send; only `/health` is open without it.
        allowed_hosts: names, without port, under which the server may be asked for besides those of loopback.
        metrics: what is counted; give it to the scheduler too, which counts most of it.
        max_body_bytes: the largest body of a request.
        body_seconds: how long a body may take to arrive.
        send_seconds: how long a client may leave what is sent to it unread.
        ping_seconds: a stream that is silent for so long gets a comment, which shows whether its client is there.

    Raises:
        UsageError: the token is empty or can't be sent in a header.
    """
    counted = metrics or Metrics()
    counted.watch(answers.state)
    # One thread, so that requests are encoded and queued in the order in which they came.
    preparing = ThreadPoolExecutor(1, thread_name_prefix="specedit-prepare")
    # The library would cut all streams at a SIGTERM; here answers end first, and it never sees their text.
    AppStatus.disable_automatic_graceful_drain()  # type: ignore[no-untyped-call]
    logging.getLogger("sse_starlette").setLevel(logging.INFO)

    def generation(path: str, request: type[_RequestT], answer: Callable[[_RequestT, str], Answer]) -> Route:
        endpoint = _Generation(answers, model.name, request, answer, counted, preparing, ping_seconds)
        return Route(path, endpoint, methods=["POST"], name=path)

    app = Starlette(
        routes=[
            generation("/v1/chat/completions", ChatRequest, ChatAnswer),
            generation("/v1/completions", CompletionRequest, CompletionAnswer),
            *_information(model, counted),
        ],
        middleware=[
            Middleware(_Backstop, send_seconds=send_seconds),
            Middleware(
                Gate,
                token=checked_token(token),
                allowed_hosts=allowed_hosts,
                max_body_bytes=max_body_bytes,
                body_seconds=body_seconds,
            ),
        ],
        exception_handlers={HTTPException: _http_error, RequestError: _request_error},
    )
    app.router.redirect_slashes = False
    app.state.shutting_down = False
    return app


def shut_down(app: Starlette) -> None:
    """From now on no request is taken and `/health` says so; answers that were begun go on."""
    app.state.shutting_down = True


class _ClientGoneError(Exception):
    """Nobody is left to answer."""


class _Inbox:
    """The chunks of one answer, on their way from the scheduler's thread to the event loop.

    It holds as much as is written before it is read, so that a client that reads slowly holds up nobody.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._items: deque[TextChunk | SpecEditError] = deque()
        self._changed = asyncio.Event()
        self._closed = asyncio.Event()

    def deliver(self, item: TextChunk | SpecEditError) -> None:
        """Put in a chunk, or the error that ends the answer; from any thread."""
        # A loop that is closed has no client left.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._put, item)

    def close(self) -> None:
        """The client is gone."""
        self._closed.set()
        self._changed.set()

    async def receive(self) -> Message:
        """What ASGI tells of a client that is gone, once it is."""
        await self._closed.wait()
        return {"type": "http.disconnect"}

    async def begin(self, within: float) -> None:
        """Wait for the first chunk for so many seconds; raises what came in its place."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._changed.wait()
        if self._items and isinstance(self._items[0], SpecEditError):
            raise self._items[0]

    async def chunks(self) -> AsyncIterator[TextChunk]:
        """The chunks to the last; raises the error that came in its place, or _ClientGoneError."""
        while True:
            await self._changed.wait()
            if self._closed.is_set():
                raise _ClientGoneError
            self._changed.clear()
            while self._items:
                item = self._items.popleft()
                if isinstance(item, SpecEditError):
                    raise item
                yield item
                if item.finish_reason is not None:
                    return

    def _put(self, item: TextChunk | SpecEditError) -> None:
        self._items.append(item)
        self._changed.set()


@dataclass(slots=True)
class _Exchange:
    """One request on its way: what it carries along, and what became of it."""

    inbox: _Inbox
    cancel: CancelToken
    priority: Priority | None = None
    outcome: _Outcome = "cancelled"

    def failed(self, error: SpecEditError) -> None:
        """Note that an error ends it."""
        self.outcome = "refused" if failure(error)[0] < 500 else "error"

    @asynccontextmanager
    async def watched(self, receive: Receive) -> AsyncIterator[None]:
        """Cancel as soon as the client is gone, and in any case when the body of the `with` is left."""

        async def watch() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            self.cancel.cancel()
            self.inbox.close()

        watcher = asyncio.create_task(watch())
        try:
            yield
        finally:
            watcher.cancel()
            self.cancel.cancel()


class _Generation(Generic[_RequestT]):
    """The endpoint of one kind of request."""

    def __init__(
        self,
        answers: Answers,
        model: str,
        kind: type[_RequestT],
        answer: Callable[[_RequestT, str], Answer],
        metrics: Metrics,
        preparing: Executor,
        ping_seconds: float,
    ) -> None:
        self._answers = answers
        self._model = model
        self._kind: type[_RequestT] = kind
        self._answer: Callable[[_RequestT, str], Answer] = answer
        self._metrics = metrics
        self._preparing = preparing
        self._ping_seconds = ping_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, and stop working for it whatever happens."""
        exchange = _Exchange(_Inbox(), CancelToken())
        try:
            request = Request(scope, receive)
            body = await request.body()
            async with exchange.watched(receive):
                try:
                    _check_request(request)
                    response = await self._response(body, exchange)
                except SpecEditError as error:
                    exchange.failed(error)
                    response = error_response(error)
                await response(scope, exchange.inbox.receive, send)
        except _ClientGoneError:
            pass
        except Exception:
            exchange.outcome = "error"
            raise
        finally:
            self._metrics.requested(scope["path"], exchange.priority, exchange.outcome)

    async def _response(self, body: bytes, exchange: _Exchange) -> Response:
        loop = asyncio.get_running_loop()
        request = await loop.run_in_executor(self._preparing, self._submit, body, exchange)
        answer = self._answer(request, self._model)
        if not request.stream:
            chunks = [chunk async for chunk in exchange.inbox.chunks()]
            whole = answer.whole(chunks)
            exchange.outcome = chunks[-1].finish_reason or "error"
            return Response(whole, media_type="application/json")
        # An error that comes soon still has its status; a stream that waits for its turn shows that it is alive.
        await exchange.inbox.begin(self._ping_seconds)
        return EventSourceResponse(
            self._events(answer, exchange),
            sep="\n",
            ping=self._ping_seconds,
            ping_message_factory=lambda: ServerSentEvent(comment="waiting", sep="\n"),
        )

    def _submit(self, body: bytes, exchange: _Exchange) -> _RequestT:
        """Read and encode the request and put it into its queue; in the thread for that."""
        if exchange.cancel.cancelled:
            raise _ClientGoneError
        request = decode_request(body, self._kind, self._model)
        generate = request.generate_request(exchange.cancel)
        exchange.priority = generate.priority
        self._answers.submit(generate, exchange.inbox.deliver, plain=request.extension.plain)
        return request

    async def _events(self, answer: Answer, exchange: _Exchange) -> AsyncIterator[bytes]:
        try:
            async for chunk in exchange.inbox.chunks():
                if (data := answer.chunk(chunk)) is not None:
                    yield _event(data)
            exchange.outcome = chunk.finish_reason or "error"
            if (data := answer.last(chunk.usage)) is not None:
                yield _event(data)
            yield _event(b"[DONE]")
        except SpecEditError as error:
            exchange.failed(error)
            yield _event(msgspec.json.encode(failure(error)[1]))
        except _ClientGoneError:
            pass


def _check_request(request: Request) -> None:
    if request.app.state.shutting_down:
        raise ShuttingDownError("the server is shutting down: ask again when it is back")
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json" or request.headers.get("content-encoding", "identity") != "identity":
        raise RequestError(
            "the body must be JSON, not compressed: send it with Content-Type: application/json",
            status=415,
            code="unsupported_media_type",
        )


def _event(data: bytes) -> bytes:
    for line_end, escaped in _LINE_ENDS.items():
        data = data.replace(line_end, escaped)
    return b"data: " + data + b"\n\n"


def _information(model: ServedModel, metrics: Metrics) -> list[Route]:
    """The routes that tell of the server."""
    card = ModelCard(
        id=model.name,
        created=model.created,
        owned_by=OWNER,
        max_model_len=model.context_tokens,
        device=model.device,
    )
    document = msgspec.json.encode(openapi_document(model.name))

    async def health(request: Request) -> Response:
        if request.app.state.shutting_down:
            return _json_response(Health("shutting down"), 503)
        return _json_response(Health("ok"))

    async def models(_: Request) -> Response:
        return _json_response(ModelList(data=[card]))

    async def one_model(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in (model.name, MODEL_ALIAS):
            raise model_not_found(name, model.name)
        return _json_response(card)

    async def read_metrics(_: Request) -> Response:
        return Response(metrics.text(), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    async def openapi(_: Request) -> Response:
        return Response(document, media_type="application/json")

    return [
        Route("/health", health),
        Route("/v1/models", models),
        # The name of a model may hold slashes.
        Route("/v1/models/{name:path}", one_model),
        Route("/metrics", read_metrics),
        Route("/openapi.json", openapi),
    ]


def _json_response(told: msgspec.Struct, status: int = 200) -> Response:
    return Response(msgspec.json.encode(told), status, media_type="application/json")


def _http_error(_: Request, error: Exception) -> Response:
    """What the router raises, in OpenAI's form."""
    assert isinstance(error, HTTPException)
    advice = _STATUS_ADVICE.get(error.status_code, error.detail)
    response = error_response(RequestError(advice, status=error.status_code))
    response.headers.update(error.headers or {})
    return response


def _request_error(_: Request, error: Exception) -> Response:
    return error_response(error)


class _ReadingTooSlowlyError(Exception):
    """The client leaves what is sent to it unread."""


class _Backstop:
    """ASGI middleware that lets no send wait for ever, and no exception out: its text may hold code, and is logged."""

    def __init__(self, app: ASGIApp, *, send_seconds: float) -> None:
        self._app = app
        self._send_seconds = send_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def bounded_send(message: Message) -> None:
            nonlocal started
            started = True
            try:
                async with asyncio.timeout(self._send_seconds):
                    await send(message)
            except TimeoutError:
                raise _ReadingTooSlowlyError from None

        try:
            await self._app(scope, receive, bounded_send)
        except _ReadingTooSlowlyError:
            # Returning from an answer that isn't complete has the connection closed.
            return
        except Exception as error:  # noqa: BLE001 - whatever it is, the others' requests go on
            place = traceback.extract_tb(error.__traceback__)[-1]
            _logger.error("a request failed: %s in %s:%s", type(error).__name__, place.filename, place.lineno)
            if not started:
                await error_response(error)(scope, receive, bounded_send)
