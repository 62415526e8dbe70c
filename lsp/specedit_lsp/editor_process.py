"""The editor's process: where it ends, so does the server, though its end of stdin may live on in a child of it."""

from __future__ import annotations

import asyncio
import os
import sys

POLL_SECONDS = 3.0


async def ended(process_id: int) -> None:
    """Return once a process that was seen to run has ended."""
    while can_be_seen(process_id):
        await asyncio.sleep(POLL_SECONDS)


def can_be_seen(process_id: int) -> bool:
    """Whether such a process runs; none can be seen on Windows, and an editor's not from within a container.

    Args:
        process_id: as the editor said.
    """
    # On Windows such a signal would end it.
    if process_id <= 0 or sys.platform == "win32":
        return False
    try:
        os.kill(process_id, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True
