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
    """What became of a suggestion; it may be offered several times, each time what is left of it."""

    shown: bool = False
    accepted: bool = False


@dataclass(slots=True)
class _Offer:
    key: str
    kind: Kind
    text: str
    standing_chars: int
    fate: _Fate
    accepted_chars: int = 0


class Offers:
    """The last offers, each known by the id in its command."""

    def __init__(self, statistics: Statistics) -> None:
        """Count in `statistics`."""
        self._statistics = statistics
        self._ids = count(1)
        self._offers: OrderedDict[str, _Offer] = OrderedDict()
        self._fates: OrderedDict[int, _Fate] = OrderedDict()
        self._on_screen: dict[str, _Offer] = {}

    def new(self, key: str, kind: Kind, text: str, standing_chars: int, origin: int) -> Command:
        """The command of an item that is about to be offered.

        Args:
            key: of the document.
            kind: what it is counted as.
            text: what the item inserts.
            standing_chars: how many characters at the beginning of `text` stand in the document already.
            origin: the suggestion that it is, or is the rest of.
        """
        fate = self._fates.setdefault(origin, _Fate())
        self._fates.move_to_end(origin)
        offer_id = str(next(self._ids))
        self._offers[offer_id] = _Offer(key, kind, text, standing_chars, fate)
        for kept in (self._offers, self._fates):
            while len(kept) > _MAX_OFFERS:
                kept.popitem(last=False)
        return Command(title="Completion accepted", command=ACCEPTED, arguments=[{"id": offer_id}])

    def did_show(self, params: Any) -> None:
        """An item is on the screen; one that was there before and not accepted was rejected."""
        offer = self._named(params)
        if offer is None:
            return
        self._left(offer.key, offer.fate)
        self._on_screen[offer.key] = offer
        self._show(offer)

    def did_accept(self, argument: Any) -> None:
        """An item was inserted whole; `argument` is that of its command."""
        if offer := self._named({"arguments": [argument]}):
            self._accept(offer, len(offer.text))

    def did_partially_accept(self, params: Any) -> None:
        """So many UTF-16 units of an item were inserted, counted from its beginning."""
        offer = self._named(params)
        length = params.get("acceptedLength") if isinstance(params, Mapping) else None
        if offer and isinstance(length, int) and length > 0:
            self._accept(offer, _chars(offer.text, length))

    def forget(self, key: str) -> None:
        """A document was closed; what was on its screen was rejected."""
        self._left(key)

    def _accept(self, offer: _Offer, chars: int) -> None:
        self._show(offer)
        chars = max(chars - offer.standing_chars, 0)
        more, offer.accepted_chars = chars - offer.accepted_chars, max(chars, offer.accepted_chars)
        if not offer.fate.accepted or more > 0:
            self._statistics.accepted(offer.kind, max(more, 0))
        offer.fate.accepted = True

    def _show(self, offer: _Offer) -> None:
        if not offer.fate.shown:
            offer.fate.shown = True
            self._statistics.shown(offer.kind)

    def _left(self, key: str, but: _Fate | None = None) -> None:
        # Told late, as an editor may ask for the next suggestion before it reports that the last was accepted.
        offer = self._on_screen.pop(key, None)
        if offer and offer.fate is not but and not offer.fate.accepted:
            self._statistics.rejected(offer.kind)

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
    """How many characters of `text` begin within so many UTF-16 units."""
    return len(text.encode("utf-16-le", "surrogatepass")[: 2 * utf16_units].decode("utf-16-le", "ignore"))
