"""What was offered at the cursor, and what became of it: shown, accepted, in part or whole, or left.

Editors report it as Copilot's language server has it: `textDocument/didShowCompletion`,
`textDocument/didPartiallyAcceptCompletion`, and the item's command where it was accepted whole.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

from lsprotocol.types import Command

if TYPE_CHECKING:
    from specedit_lsp.statistics import Kind, Statistics

ACCEPTED = "specedit.didAcceptCompletion"

_MAX_OFFERS = 256


@dataclass(slots=True)
class _Fate:
    """What becomes of a suggestion; it may be offered several times, each time what is left of it."""

    key: str
    kind: Kind
    is_shown: bool = False
    is_settled: bool = False
    taken_chars: int = 0


@dataclass(slots=True)
class _Offer:
    fate: _Fate
    text: str
    taken_chars: int
    """Of the text; what stood in the document before counts as taken."""


class Offers:
    """The last offers, each known by the id in its command.

    A suggestion counts as accepted or rejected when it is settled: taken whole, followed by another one on the screen,
    or gone with its document. So one that is taken word by word counts once.
    """

    def __init__(self, statistics: Statistics) -> None:
        """Count in `statistics`."""
        self._statistics = statistics
        self._ids = count(1)
        self._offers: OrderedDict[str, _Offer] = OrderedDict()
        self._fates: OrderedDict[int, _Fate] = OrderedDict()
        self._current: dict[str, _Fate] = {}

    def new(self, key: str, kind: Kind, text: str, standing_chars: int, origin: int) -> Command:
        """The command of an item that is about to be offered.

        Args:
            key: of the document.
            kind: what it is counted as.
            text: what the item inserts.
            standing_chars: how many characters at the beginning of `text` stand in the document already.
            origin: the suggestion that it is, or is the rest of.
        """
        fate = self._fates.setdefault(origin, _Fate(key, kind))
        self._fates.move_to_end(origin)
        current = self._current.get(key)
        if current and current is not fate and current.taken_chars:
            self._settle(current)
        offer_id = str(next(self._ids))
        self._offers[offer_id] = _Offer(fate, text, standing_chars)
        for kept in (self._offers, self._fates):
            while len(kept) > _MAX_OFFERS:
                kept.popitem(last=False)
        return Command(title="Completion accepted", command=ACCEPTED, arguments=[{"id": offer_id}])

    def did_show(self, params: Any) -> None:
        """An item is on the screen."""
        if offer := self._named(params):
            self._show(offer.fate)

    def did_accept(self, argument: Any) -> None:
        """An item was inserted whole; `argument` is that of its command."""
        if offer := self._named({"arguments": [argument]}):
            self._take(offer, len(offer.text))
            self._settle(offer.fate)

    def did_partially_accept(self, params: Any) -> None:
        """So many UTF-16 units of an item were inserted, counted from its beginning."""
        offer = self._named(params)
        length = params.get("acceptedLength") if isinstance(params, Mapping) else None
        if offer and isinstance(length, int) and length > 0:
            self._take(offer, _chars(offer.text, length))

    def forget(self, key: str) -> None:
        """A document was closed."""
        if fate := self._current.pop(key, None):
            self._settle(fate)

    def _take(self, offer: _Offer, chars: int) -> None:
        self._show(offer.fate)
        offer.fate.taken_chars += max(chars - offer.taken_chars, 0)
        offer.taken_chars = max(chars, offer.taken_chars)

    def _show(self, fate: _Fate) -> None:
        # Only now is the one before settled: an editor may ask for the next before it says that this was accepted.
        current = self._current.get(fate.key)
        if current and current is not fate:
            self._settle(current)
        self._current[fate.key] = fate
        if not fate.is_shown:
            fate.is_shown = True
            self._statistics.shown(fate.kind)

    def _settle(self, fate: _Fate) -> None:
        if fate.is_settled:
            return
        fate.is_settled = True
        if fate.taken_chars:
            self._statistics.accepted(fate.kind, fate.taken_chars)
        else:
            self._statistics.rejected(fate.kind)

    def _named(self, params: Any) -> _Offer | None:
        """The offer that an item or its command names; None where it names none that is known."""
        found = params
        for step in ("item", "command", "arguments", 0, "id"):
            if isinstance(found, Mapping) and step in found:
                found = found[step]
            elif isinstance(found, list) and step == 0 and found:
                found = found[0]
        return self._offers.get(found) if isinstance(found, str) else None


def _chars(text: str, utf16_units: int) -> int:
    """How many whole characters of `text` so many UTF-16 units are."""
    return len(text.encode("utf-16-le", "surrogatepass")[: 2 * utf16_units].decode("utf-16-le", "ignore"))
