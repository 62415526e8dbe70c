"""JSON-RPC as pygls speaks it, where it must differ: our own documents, plain parameters, errors that say the fix.

pygls keeps the text of open documents itself, and wrongly (see `documents`); here it never sees them. Messages that are
not LSP's own reach their handlers as plain JSON, which these check. A request that can't be understood is answered.
"""

from __future__ import annotations

import enum
import inspect
import json
import logging
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any, cast

from attrs import fields
from cattrs import Converter
from lsprotocol import types
from lsprotocol.converters import get_converter
from pygls.exceptions import (
    FeatureNotificationError,
    FeatureRequestError,
    JsonRpcException,
    JsonRpcInternalError,
    JsonRpcInvalidParams,
    JsonRpcInvalidRequest,
    JsonRpcServerNotInitialized,
)
from pygls.protocol import (
    JsonRPCNotification,
    JsonRPCRequestMessage,
    JsonRPCResponseMessage,
    LanguageServerProtocol,
    lsp_method,
)

from specedit.errors import SpecEditError
from specedit_lsp.convert import register_lenient_hooks

_log = logging.getLogger(__name__)

#: LSP's code for a request that was understood and failed.
REQUEST_FAILED = -32803


class RequestFailed(JsonRpcException):
    """A request that failed for a reason that the user can do something about; it is the message."""

    CODE = REQUEST_FAILED
    MESSAGE = "the request failed"

    def __init__(self, message: str) -> None:
        """Fail with `message`."""
        super().__init__(message, REQUEST_FAILED)


def _wrong_arguments(command: Callable[..., Any], params: types.ExecuteCommandParams, error: TypeError) -> Exception:
    """A refusal where the number of arguments is what is wrong, else the error itself."""
    try:
        inspect.signature(command).bind(*(params.arguments or ()))
    except TypeError:
        return RequestFailed(f"{params.command} takes other arguments than these. Update the plugin or specedit.")
    return error


def _name(method: Any) -> str:
    """A method's name as it may stand in the log, whatever was sent in its place."""
    return method[:60] if isinstance(method, str) else "an answer"


def make_converter() -> Converter:
    """LSP's types; the parameters of other messages stay what they are in JSON."""
    converter = get_converter()
    for message_type in (JsonRPCRequestMessage, JsonRPCResponseMessage, JsonRPCNotification):
        converter.register_structure_hook(message_type, _as_it_is)
    for kind in vars(types).values():
        if isinstance(kind, type) and issubclass(kind, enum.Enum):
            converter.register_structure_hook(kind, _value_of)
            converter.register_unstructure_hook(kind, lambda value: getattr(value, "value", value))
    register_lenient_hooks(converter)
    return converter


def _value_of(value: Any, kind: type[Any]) -> Any:
    """The value of an enumeration; one that only a newer LSP has stays what it is in JSON.

    An editor that lists all that it knows would be refused altogether.
    """
    try:
        return kind(value)
    except ValueError:
        return value


def _as_it_is(message: dict[str, Any], message_type: type[Any]) -> Any:
    return message_type(**{field.name: message.get(field.name) for field in fields(message_type)})


class Protocol(LanguageServerProtocol):
    """What goes over the connection; the features' handlers are registered with the server."""

    def handle_body(self, body: bytes) -> None:
        """Take a message from the editor; whatever is wrong with it is answered or logged, never raised."""
        try:
            message = json.loads(body)
        except (ValueError, RecursionError):
            _log.warning("the editor sent a message that is no JSON")
            return
        if not isinstance(message, dict) or not isinstance(message.get("id", 0), int | str):
            _log.warning("the editor sent JSON that is no message")
            return
        try:
            self._check_turn(message.get("method"))
            structured = self.structure_message(message)
            if "id" in message and hasattr(structured, "method") and not hasattr(structured, "id"):
                raise JsonRpcInvalidRequest(f"{_name(message['method'])} is a notification: it has no id")
        except Exception as error:  # noqa: BLE001 (whatever the converter finds wrong)
            self._refuse(message, error)
            return
        if not hasattr(structured, "jsonrpc"):
            _log.warning("the editor sent JSON that is no message")
            return
        try:
            self.handle_message(structured)
        except Exception as error:  # noqa: BLE001 (its message may hold the user's code)
            _log.error("a message could not be handled: %s", type(error).__name__)

    def notify_plainly(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification whose parameters are JSON already."""
        self._send_data(JsonRPCNotification(method=method, jsonrpc=self.VERSION, params=dict(params)))

    def _check_turn(self, method: Any) -> None:
        """Whether LSP lets a message of that method come now; a response, which has none, always.

        Raises:
            JsonRpcException: it does not.
        """
        if method in (None, types.EXIT):
            return
        is_initialized = self._workspace is not None
        if self._shutdown:
            raise JsonRpcInvalidRequest(f"{_name(method)} came after shutdown")
        if method == types.INITIALIZE and is_initialized:
            raise JsonRpcInvalidRequest("initialize came a second time")
        if method != types.INITIALIZE and not is_initialized:
            raise JsonRpcServerNotInitialized(f"{_name(method)} came before initialize")

    def _refuse(self, message: dict[str, Any], error: Exception) -> None:
        method, message_id = message.get("method"), message.get("id")
        if not isinstance(error, JsonRpcInvalidRequest | JsonRpcServerNotInitialized):
            error = JsonRpcInvalidParams(f"the parameters of {_name(method)} are not what LSP says they are")
        _log.warning("the editor sent what can't be taken: %s", error.message)
        if message_id is None:
            return
        if isinstance(method, str):
            self._send_response(message_id, error=error.to_response_error())
        elif message_id in self._request_futures:
            # Whoever waits for the answer would wait for ever.
            self._handle_response(message_id, error=error.to_response_error())

    def _handle_response(self, msg_id: Any, result: Any = None, error: types.ResponseError | None = None) -> None:
        # Nobody waits any more for what was cancelled meanwhile.
        with suppress(InvalidStateError, RuntimeError):
            super()._handle_response(msg_id, result, error)

    def _check_handler_result(self, future: Future[Any]) -> None:
        # pygls would report an error of its own, which says neither what failed nor where.
        if not future.cancelled() and (error := future.exception()) is not None:
            self._server.report_server_error(cast(Exception, error), FeatureNotificationError)

    def _send_handler_result(self, future: Future[Any], *, msg_id: Any) -> None:
        error = None if future.cancelled() else future.exception()
        if error is None:
            super()._send_handler_result(future, msg_id=msg_id)
            return
        self._request_futures.pop(msg_id, None)
        if isinstance(error, RequestFailed):
            _log.info("a request was refused, and the user told why")
        else:
            self._server.report_server_error(cast(Exception, error), FeatureRequestError)
        if not isinstance(error, JsonRpcException):
            # What it says may hold the user's code, which editors write to their logs.
            error = JsonRpcInternalError(f"specedit itself failed ({type(error).__name__}); its log says more")
        self._send_response(msg_id, error=error.to_response_error())

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: types.DidOpenTextDocumentParams) -> Generator[Any, Any, None]:
        """Only our own handler keeps documents."""
        yield from self._to_handler(types.TEXT_DOCUMENT_DID_OPEN, params)

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> Generator[Any, Any, None]:
        """Only our own handler keeps documents."""
        yield from self._to_handler(types.TEXT_DOCUMENT_DID_CHANGE, params)

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> Generator[Any, Any, None]:
        """Only our own handler keeps documents."""
        yield from self._to_handler(types.TEXT_DOCUMENT_DID_CLOSE, params)

    @lsp_method(types.WORKSPACE_EXECUTE_COMMAND)
    async def lsp_workspace__execute_command(  # type: ignore[override]  # a generator's work could not be cancelled
        self, params: types.ExecuteCommandParams
    ) -> Any:
        """Run a command with its arguments as they are; cancelling the request cancels the command."""
        command: Callable[..., Any] | None = self.fm.commands.get(params.command)
        if command is None:
            raise RequestFailed(f"there is no command {params.command}. Update the plugin or specedit.")
        try:
            result = command(*(params.arguments or ()))
            return await result if inspect.isawaitable(result) else result
        except SpecEditError as error:
            raise RequestFailed(str(error)) from None
        except TypeError as error:
            raise _wrong_arguments(command, params, error) from error

    def _to_handler(self, method: str, params: Any) -> Generator[Any, Any, None]:
        if (handler := self.fm.features.get(method)) is not None:
            yield handler, (params,), None
