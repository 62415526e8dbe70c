"""Where the server's own lines go: to a private file and to the editor. Never to stdout, and never with code in them.

Libraries log what they were given: pygls whole messages, also with its errors. So of their lines only warnings and
worse are kept, in the file alone, and without what was filled into them. Of any exception its type and its place are
kept; the message may hold code.
"""

from __future__ import annotations

import asyncio
import logging
import os
import stat
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import platformdirs
from lsprotocol.types import MessageType

from specedit_lsp.bridge import post

_OURS = ("specedit", "specedit_lsp")
_MAX_BYTES = 1_000_000
_FILES_KEPT = 2
_FORMAT = "%(asctime)s [%(process)d] %(levelname)s %(name)s: %(message)s"

_log = logging.getLogger(__name__)


def take_stdout() -> BinaryIO:
    """Stdout for the protocol alone: whatever else is written there, by any library or child, goes to stderr."""
    try:
        os.fstat(2)
    except OSError:
        # Some editors give no stderr.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        if nowhere != 2:
            os.close(nowhere)
    taken = os.dup(1)
    os.dup2(2, 1)
    if sys.stderr is not None:
        sys.stdout = sys.stderr
    return os.fdopen(taken, "wb")


def default_file() -> Path:
    """The log file in the user's log directory; it need not exist."""
    return platformdirs.user_log_path("specedit") / "lsp.log"


class Log:
    """Where the lines go, from `open` on until `close`.

    Attributes:
        file: the log file; None where none could be written.
    """

    def __init__(self) -> None:
        """Nowhere yet."""
        self.file: Path | None = None
        self._handlers: dict[str, logging.Handler] = {}

    def open(self, file: Path | None = None, level: str = "info") -> None:
        """Log to `file`, else to the default one, from `level` on; a file that was open is closed.

        Where the file can't be written the server goes on without one, and says so to the editor and on stderr.

        Args:
            file: rotates at a megabyte, two older ones are kept.
            level: "debug", "info", "warning" or "error"; for our own lines.
        """
        for name in _OURS:
            logging.getLogger(name).setLevel(level.upper())
        wanted = file or default_file()
        if wanted == self.file:
            return
        self._remove("file")
        self.file = None
        try:
            wanted.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handler = _PrivateFile(wanted)
        except (OSError, ValueError) as error:
            # Without any handler, logging itself would write to stderr, code and all.
            self._add("file", _to_stderr())
            reason = getattr(error, "strerror", None) or error
            _log.warning(
                "there is no log file: %s can't be written (%s). Name another one (logFile, --log-file).",
                wanted,
                reason,
            )
            return
        handler.setFormatter(_Formatter(_FORMAT))
        self.file = wanted
        self._add("file", handler)

    def to_editor(self, send: Callable[[str, MessageType], None]) -> None:
        """Send our own lines to the editor too; called on the event loop, as `send` is."""
        self._remove("editor")
        self._add("editor", _ToEditor(send, asyncio.get_running_loop()))

    def close(self) -> None:
        """Log nowhere any more."""
        for name in list(self._handlers):
            self._remove(name)
        self.file = None

    def _add(self, name: str, handler: logging.Handler) -> None:
        self._handlers[name] = handler
        handler.addFilter(_is_wanted)
        logging.getLogger().addHandler(handler)

    def _remove(self, name: str) -> None:
        if handler := self._handlers.pop(name, None):
            logging.getLogger().removeHandler(handler)
            with suppress(OSError):
                handler.close()


def _to_stderr() -> logging.Handler:
    handler = logging.StreamHandler()
    handler.setLevel(logging.WARNING)
    handler.setFormatter(_Formatter("%(message)s"))
    return handler


def _is_ours(record: logging.LogRecord) -> bool:
    return record.name.partition(".")[0] in _OURS


def _is_wanted(record: logging.LogRecord) -> bool:
    return _is_ours(record) or record.levelno >= logging.WARNING


class _Formatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        # Another formatter may have left there what it made of the exception.
        changed: dict[str, object] = {"exc_text": None}
        if not _is_ours(record):
            # What is filled in, and what asyncio writes on further lines, may be code.
            changed |= {"msg": str(record.msg).partition("\n")[0], "args": None}
        return super().format(logging.makeLogRecord({**record.__dict__, **changed}))

    def formatException(  # noqa: N802
        self, ei: tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
    ) -> str:
        error = ei[1]
        parts: list[str] = []
        while error is not None:
            where = "".join(traceback.format_tb(error.__traceback__))
            parts.append(f"{where}{type(error).__module__}.{type(error).__qualname__}")
            error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        return "\nwhich came of:\n".join(parts)


class _PrivateFile(RotatingFileHandler):
    """A file that only this user may read, from its first byte on."""

    def __init__(self, file: Path) -> None:
        super().__init__(
            file, maxBytes=_MAX_BYTES, backupCount=_FILES_KEPT, encoding="utf-8", errors="backslashreplace"
        )

    def _open(self) -> TextIOWrapper:
        def private(path: str, flags: int) -> int:
            descriptor = os.open(path, flags, 0o600)
            status = os.fstat(descriptor)
            if stat.S_ISREG(status.st_mode) and status.st_mode & 0o077:
                with suppress(OSError):
                    os.fchmod(descriptor, 0o600)
            return descriptor

        stream = open(  # noqa: SIM115 (the handler closes it)
            self.baseFilename, self.mode, encoding=self.encoding, errors=self.errors, opener=private
        )
        assert isinstance(stream, TextIOWrapper)
        return stream

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """A full disk is no reason to stop, and stderr is no place for what was logged."""


_KINDS = {logging.DEBUG: MessageType.Log, logging.INFO: MessageType.Info, logging.WARNING: MessageType.Warning}


class _ToEditor(logging.Handler):
    """Sends our own lines."""

    def __init__(self, send: Callable[[str, MessageType], None], loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._send = send
        self._loop = loop
        self.setFormatter(_Formatter("%(message)s"))
        self.addFilter(_is_ours)

    def emit(self, record: logging.LogRecord) -> None:
        kind = _KINDS.get(record.levelno, MessageType.Error)
        post(self._loop, self._send, self.format(record), kind)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """As above."""
