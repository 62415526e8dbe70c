"""The editor's process: where it ends, so does the server, though its end of stdin may live on in a child of it."""

from __future__ import annotations

import asyncio
import os
import sys

POLL_SECONDS = 3.0


async def has_ended(process_id: int | None, poll_seconds: float = POLL_SECONDS) -> None:
    """Return once the editor's process has ended; never where it can't be seen, such as from within a container.

    Args:
        process_id: as the editor said; None where it did not.
        poll_seconds: how often to look.
    """
    while _is_running(process_id):
        await asyncio.sleep(poll_seconds)
        if not _is_running(process_id):
            return
    await asyncio.Event().wait()


def _is_running(process_id: int | None) -> bool:
    # On Windows such a signal would end it.
    if process_id is None or process_id <= 0 or sys.platform == "win32":
        return False
    try:
        os.kill(process_id, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True
