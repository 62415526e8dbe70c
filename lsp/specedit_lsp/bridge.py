"""From the engine's synchronous stream to the event loop: work in a thread that a cancelled task stops.

pygls runs `@thread` handlers in the pool that also reads stdin, and can't stop them; so nothing here uses that pool.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar, cast

from specedit.engine.api import CancelToken

_T = TypeVar("_T")


async def in_thread(work: Callable[[], _T], cancel: CancelToken) -> _T:
    """The result of `work`, which runs in a thread of its own.

    Where the task that awaits this is cancelled, `cancel` is set, which ends an engine's answer within one step, and
    the task ends at once. The thread is a daemon: an engine that hangs can't keep the process alive.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_T] = loop.create_future()

    def settle(result: _T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(cast(_T, result))

    def run() -> None:
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 (it belongs to whoever awaits)
            post(loop, settle, None, error)
        else:
            post(loop, settle, result, None)

    threading.Thread(target=run, daemon=True, name="specedit-work").start()
    try:
        return await future
    except asyncio.CancelledError:
        cancel.cancel()
        raise


def on_loop(callback: Callable[..., None]) -> Callable[..., None]:
    """`callback`, made safe to call from `work`: it runs on the loop that is running now, in the order of the calls."""
    loop = asyncio.get_running_loop()
    return lambda *given: post(loop, callback, *given)


def post(loop: asyncio.AbstractEventLoop, callback: Callable[..., object], *given: object) -> None:
    """Have `callback` called on the loop, from any thread; nothing where the server has ended meanwhile."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(callback, *given)
