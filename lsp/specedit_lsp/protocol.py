"""JSON-RPC as pygls speaks it, where it must differ: our own documents, plain parameters, errors that say the fix.

pygls keeps the text of open documents itself, and wrongly (see `documents`); here it never sees them. Messages that are
not LSP's own reach their handlers as plain JSON, which these check. A request that can't be understood is answered.
"""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import Callable, Generator, Mapping
from typing import Any

from attrs import fields
from cattrs import Converter
from lsprotocol import types
from lsprotocol.converters import get_converter
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams
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


def make_converter() -> Converter:
    """LSP's types; the parameters of other messages stay what they are in JSON."""
    converter = get_converter()
    for message_type in (JsonRPCRequestMessage, JsonRPCResponseMessage, JsonRPCNotification):
        converter.register_structure_hook(message_type, _as_it_is)
    register_lenient_hooks(converter)
    return converter


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
        if not isinstance(message, dict):
            _log.warning("the editor sent JSON that is no message")
            return
        try:
            structured = self.structure_message(message)
        except Exception as error:  # noqa: BLE001 (whatever the converter finds wrong)
            self._refuse(message, error)
            return
        if not hasattr(structured, "jsonrpc"):
            _log.warning("the editor sent JSON that is no message")
            return
        self.handle_message(structured)

    def notify_plainly(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification whose parameters are JSON already."""
        self._send_data(JsonRPCNotification(method=method, jsonrpc=self.VERSION, params=dict(params)))

    def _refuse(self, message: dict[str, Any], error: Exception) -> None:
        method, message_id = message.get("method"), message.get("id")
        _log.warning("the editor sent a message that can't be understood: %s", method)
        if isinstance(method, str) and isinstance(message_id, int | str):
            known = error if isinstance(error, JsonRpcException) else JsonRpcInvalidParams()
            known.message = f"the parameters of {method} are not what LSP says they are"
            self._send_response(message_id, error=known.to_response_error())

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
