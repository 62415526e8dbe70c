"""Edits of ours, until they are in the editor's text."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from specedit.edit.document import Document, TextEdit
from specedit.errors import UsageError
from specedit_lsp.convert import canonical
from specedit_lsp.workspace_edit import workspace_edit

if TYPE_CHECKING:
    from specedit_lsp.client import Client
    from specedit_lsp.documents import OpenDocument

ARRIVAL_SECONDS = 5.0
"""How long an editor may take to send the text that it says it has changed."""


class Applier:
    """Has the editor make edits, one after the other in each document. All methods are called on the event loop."""

    def __init__(self, client: Client, arrival_seconds: float = ARRIVAL_SECONDS) -> None:
        """Ask `client`."""
        self._client = client
        self._arrival_seconds = arrival_seconds
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._under_way: set[str] = set()
        self._arrived = asyncio.Event()

    async def apply(
        self, document: OpenDocument, edits_now: Callable[[], Sequence[TextEdit]], label: str, *, confirm: bool = False
    ) -> None:
        """Have edits made as one step, and wait until the editor has sent the text with them.

        Some editors drop an edit that came late, and say that they applied it.

        Args:
            document: where.
            edits_now: gives the edits for its text as it is when its turn has come.
            label: how the editor calls them.
            confirm: have it ask the user first, if it can.

        Raises:
            UsageError: they were not made, or can't be any more.
        """
        key = canonical(document.uri)
        # An edit is for one text: the next one is made for what the one before left.
        async with self._turns[key]:
            edits, version = edits_now(), document.version
            expected = Document(document.text).apply(edits).text
            params = workspace_edit(document, edits, label, self._client.capabilities, confirm=confirm)
            self._under_way.add(key)
            try:
                answer = await self._client.apply_edit(params)
                if not answer.applied:
                    because = f": {answer.failure_reason}" if answer.failure_reason else ""
                    or_declined = " unless you declined it" if confirm and not because else ""
                    raise UsageError(
                        f"the editor did not apply the edit{because}. Ask again for the text as it is now{or_declined}."
                    )
                if not await self._arrives(document, expected) and document.version == version:
                    raise UsageError(
                        "the editor says that it applied the edit, but its text is the same as before. Unless you "
                        "declined it, or it is shown to you first, ask again, and don't type until the edit is there."
                    )
            finally:
                self._under_way.discard(key)

    def document_changed(self) -> None:
        """A document has another text."""
        self._arrived.set()

    def document_closed(self, uri: str) -> None:
        """A document was closed."""
        turn = self._turns.get(key := canonical(uri))
        if turn is not None and not turn.locked():
            del self._turns[key]

    def is_applying(self, uri: str) -> bool:
        """Whether a change of the document may be an edit of ours that the editor makes."""
        return canonical(uri) in self._under_way

    async def _arrives(self, document: OpenDocument, expected: str) -> bool:
        async def expected_text() -> None:
            while document.text != expected:
                self._arrived.clear()
                await self._arrived.wait()

        try:
            await asyncio.wait_for(expected_text(), self._arrival_seconds)
        except TimeoutError:
            return False
        return True
