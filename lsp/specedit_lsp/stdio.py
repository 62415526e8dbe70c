"""Messages over stdin and stdout.

pygls reads stdin in the pool of its handler threads, and gives up on a length that it did not expect. Here a thread of
its own reads, what is no message is skipped, and a connection that ends is simply over.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import BinaryIO

from specedit_lsp.bridge import post

#: Longer messages are skipped; the largest documents that are ever edited stay far below.
MAX_MESSAGE_BYTES = 1 << 28

_LENGTH = re.compile(rb"content-length:[ \t]*(\d{1,18})[ \t]*\r?\n", re.IGNORECASE)
_MAX_HEADER_BYTES = 1 << 16
_CHUNK_BYTES = 1 << 20


class Writer:
    """Stdout as pygls wants it: each message is written whole; one that nobody reads any more is dropped."""

    def __init__(self, stdout: BinaryIO) -> None:
        """Write to `stdout`."""
        self._stdout = stdout
        self.broken = False

    def write(self, data: bytes) -> None:
        """Write a message."""
        if self.broken:
            return
        try:
            self._stdout.write(data)
            self._stdout.flush()
        except (OSError, ValueError):
            self.broken = True

    def close(self) -> None:
        """Close stdout."""
        with suppress(OSError, ValueError):
            self._stdout.close()


def bodies(stdin: BinaryIO, on_problem: Callable[[str], None]) -> Iterator[bytes]:
    """The body of each message in `stdin`; `on_problem` is told what was skipped, once until the next message."""
    is_told = False
    while line := stdin.readline(_MAX_HEADER_BYTES):
        match = _LENGTH.fullmatch(line)
        if match is None:
            if not is_told and line.strip() and b":" not in line:
                on_problem("what the editor sent is no message: a header was expected")
                is_told = True
            continue
        is_told = False
        length = int(match[1])
        while (line := stdin.readline(_MAX_HEADER_BYTES)).strip():
            pass
        if length > MAX_MESSAGE_BYTES:
            on_problem(f"a message of {length:,} bytes was skipped: the most is {MAX_MESSAGE_BYTES:,}")
            _skip(stdin, length)
            continue
        body = stdin.read(length)
        if len(body) < length:
            return
        yield body


async def serve(stdin: BinaryIO, handle: Callable[[bytes], None], on_problem: Callable[[str], None]) -> None:
    """Give each message to `handle`, on the loop and in order, until stdin ends."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()

    def read() -> None:
        try:
            for body in bodies(stdin, lambda problem: post(loop, on_problem, problem)):
                post(loop, handle, body)
        finally:
            post(loop, ended.set)

    threading.Thread(target=read, daemon=True, name="specedit-stdin").start()
    await ended.wait()


def _skip(stdin: BinaryIO, length: int) -> None:
    while length > 0 and (chunk := stdin.read(min(length, _CHUNK_BYTES))):
        length -= len(chunk)
