"""What SIGINT and SIGTERM do to a command that writes files."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from specedit.engine.api import CancelToken


class Interrupt:
    """Both signals raise KeyboardInterrupt, except that within `cancelling` the first one only sets `cancel`.

    So the model stops at its next step and a file that is being written is finished; whoever can't wait asks twice.
    """

    def __init__(self) -> None:
        self.cancel = CancelToken()
        self._only_cancels = False

    @contextmanager
    def caught(self) -> Iterator[None]:
        """Handle the signals within; afterwards they do what they did before."""
        before = {number: signal.signal(number, self._handle) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def cancelling(self) -> Iterator[None]:
        """Let the first signal within only set `cancel`."""
        self._only_cancels = True
        try:
            yield
        finally:
            self._only_cancels = False

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        only_cancels = self._only_cancels and not self.cancel.cancelled
        self.cancel.cancel()
        if not only_cancels:
            raise KeyboardInterrupt
