"""How many generations may be under way: one a document, few in all, and only the newest of the others waits."""

from __future__ import annotations

import asyncio

MOST_AT_ONCE = 2


class Turns:
    """Who may generate. A turn lasts until the model has really stopped, so that cancelled work can't pile up."""

    def __init__(self, most: int = MOST_AT_ONCE) -> None:
        """Let `most` generate at once."""
        self._most = most
        self._taken: set[str] = set()
        self._waiting: tuple[str, asyncio.Future[None]] | None = None

    def __len__(self) -> int:
        """How many are taken."""
        return len(self._taken)

    async def take(self, key: str) -> None:
        """Wait until this document may generate, and take the turn; `give_back` ends it.

        Raises:
            asyncio.CancelledError: another one came that has to wait.
        """
        if self._is_free(key):
            self._taken.add(key)
            return
        if self._waiting is not None:
            self._waiting[1].cancel()
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting = (key, waiting)
        try:
            await waiting
        except asyncio.CancelledError:
            if self._waiting is not None and self._waiting[1] is waiting:
                self._waiting = None
            if not waiting.cancelled():
                self.give_back(key)
            raise

    def give_back(self, key: str) -> None:
        """End a turn; who waits for it has it from now on."""
        self._taken.discard(key)
        if self._waiting is not None and self._is_free(self._waiting[0]):
            (key, waiting), self._waiting = self._waiting, None
            if not waiting.done():
                self._taken.add(key)
                waiting.set_result(None)

    def _is_free(self, key: str) -> bool:
        return key not in self._taken and len(self._taken) < self._most
