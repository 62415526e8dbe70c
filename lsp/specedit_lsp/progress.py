"""How far work is, told to the editor as `$/progress`."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count

from lsprotocol.types import WINDOW_WORK_DONE_PROGRESS_CREATE, WorkDoneProgressCreateParams
from pygls.exceptions import JsonRpcException

from specedit_lsp.client import Client

Token = int | str

#: Work that is not done is never shown as done.
MOST_PERCENT = 99
SECONDS_BETWEEN_REPORTS = 0.1

_numbers = count(1)


class Progress:
    """One piece of work that the editor shows and can cancel. Without a token from either side nothing is told.

    Attributes:
        token: by which editor and server know it; None until `begin` has one.
    """

    def __init__(
        self, client: Client, title: str, token: Token | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Tell `client` about the work called `title`.

        Args:
            client: the editor.
            title: what it shows.
            token: the one that the editor gave with its request; else one is asked for, if the editor can.
            clock: seconds that don't go back.
        """
        self.token = token
        self._client = client
        self._title = title
        self._clock = clock
        self._has_begun = False
        self._has_ended = False
        self._reported_at = 0.0
        self._percent = 0

    async def begin(self) -> None:
        """Show the work, unless it ends before the editor has answered."""
        if self.token is None and not await self._create():
            return
        if not self._has_ended:
            self._has_begun = True
            self._tell(kind="begin", title=self._title, cancellable=True, percentage=0)

    def report(self, percent: int, message: str = "") -> None:
        """Tell how much is done, at most ten times a second; it never goes back."""
        now = self._clock()
        if not self._has_begun or self._has_ended or now - self._reported_at < SECONDS_BETWEEN_REPORTS:
            return
        self._reported_at = now
        self._percent = max(self._percent, min(percent, MOST_PERCENT))
        self._tell(kind="report", percentage=self._percent, **({"message": message} if message else {}))

    def end(self, message: str = "") -> None:
        """Take it off the screen; once is enough."""
        if self._has_begun and not self._has_ended:
            self._tell(kind="end", **({"message": message} if message else {}))
        self._has_ended = True

    async def _create(self) -> bool:
        window = self._client.capabilities.window
        if not (window and window.work_done_progress):
            return False
        token = f"specedit/{next(_numbers)}"
        self.token = token
        try:
            await self._client.request(WINDOW_WORK_DONE_PROGRESS_CREATE, WorkDoneProgressCreateParams(token))
        except JsonRpcException:
            return False
        return True

    def _tell(self, **value: object) -> None:
        self._client.notify("$/progress", {"token": self.token, "value": value})
