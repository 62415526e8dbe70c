"""What goes wrong while somebody types: always logged, seldom shown."""

from __future__ import annotations

import time
from collections.abc import Callable

from lsprotocol.types import MessageType

from specedit.errors import ConfigError, ModelError, SpecEditError, UnreachableError
from specedit_lsp.client import Client

SECONDS_BETWEEN_MESSAGES = 60.0


# The messages of others may quote the text, or a server that quotes it.
_IN_OUR_WORDS = (ConfigError, ModelError, UnreachableError)


def loggable(error: SpecEditError) -> str:
    """What a log may say of an error: its message where all of it is ours, else its kind."""
    return str(error) if isinstance(error, _IN_OUR_WORDS) else type(error).__name__


class Troubles:
    """The failures of one feature. The same one is shown again only after something went well."""

    def __init__(self, client: Client, feature: str, clock: Callable[[], float] = time.monotonic) -> None:
        """Tell `client`; `feature` is what failed, for the log. The clock gives seconds that don't go back."""
        self._client = client
        self._feature = feature
        self._clock = clock
        self._shown = ""
        self._shown_at = -SECONDS_BETWEEN_MESSAGES

    def tell(self, error: SpecEditError, *, at_once: bool = False) -> None:
        """Log an error, and show it if the last message is a minute old or this one must be seen."""
        message, now = str(error), self._clock()
        self._client.log(f"{self._feature}: {loggable(error)}", MessageType.Warning)
        is_due = message != self._shown and now - self._shown_at >= SECONDS_BETWEEN_MESSAGES
        if is_due or at_once:
            self._shown, self._shown_at = message, now
            self._client.show(message, MessageType.Warning)

    def over(self) -> None:
        """Something went well."""
        self._shown = ""
