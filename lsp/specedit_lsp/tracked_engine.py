"""The engine as the features see it: made when it is asked, watched while it answers."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Protocol, runtime_checkable

from specedit.engine.api import CancelToken, Engine, GenerateRequest, TextChunk
from specedit.errors import (
    ContextOverflowError,
    FimUnsupportedError,
    MarkerTextError,
    OutOfMemoryError,
    SpecEditError,
    UnsupportedModelError,
    UsageError,
)
from specedit_lsp.status import StatusBoard

_log = logging.getLogger(__name__)

#: What is wrong with a request, not with the engine.
_OF_THE_REQUEST = (
    ContextOverflowError,
    FimUnsupportedError,
    MarkerTextError,
    OutOfMemoryError,
    UnsupportedModelError,
    UsageError,
)
_LONGEST_PAUSE_SECONDS = 60.0


@runtime_checkable
class ServerEngine(Engine, Protocol):
    """An engine behind a connection."""

    def connect(self) -> object:
        """Get ready for requests."""
        ...

    def close(self) -> None:
        """Stop what is under way and drop the connections."""
        ...


@runtime_checkable
class OwnServerEngine(ServerEngine, Protocol):
    """An engine in a server of this user, which it finds or starts whenever it is asked."""

    def connect(self, cancel: CancelToken | None = None) -> object:
        """Get ready for requests, unless `cancel` is set meanwhile."""
        ...

    def end(self) -> bool:
        """End the server; the next request starts one."""
        ...


class TrackedEngine:
    """An engine that can always be asked, from any thread; how it is goes to a board.

    After an error the next request tries again. Where that goes wrong too, completions that the user did not ask for
    are refused for a while, longer each time: a server that can't start would be started at every keystroke.
    """

    def __init__(
        self, make: Callable[[], Engine], board: StatusBoard, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Ask the engine that `make` gives; called again once there is need of another one.

        Args:
            make: called in the thread of a request; may raise SpecEditError.
            board: told what is found out.
            clock: seconds that don't go back.
        """
        self._make = make
        self._board = board
        self._clock = clock
        self._making = threading.Lock()
        # Guards what follows.
        self._lock = threading.Lock()
        self._engine: Engine | None = None
        self._placed: tuple[Engine, str | None] | None = None
        self._answers = 0
        self._failures = 0
        self._failure: SpecEditError | None = None
        self._failed_at = 0.0
        self._said: set[str] = set()

    @property
    def model_name(self) -> str:
        """The model, once it is known; else nothing."""
        return self._board.status.model

    def generate(self, request: GenerateRequest) -> Iterator[TextChunk]:
        """Stream the answer; see `Engine.generate`.

        Raises:
            ConfigError: the settings are wrong.
        """
        if request.priority == "inline" and (failure := self._lasting_failure()):
            raise failure
        with self._told(), self._watched(request.cancel) as engine:
            chunks = engine.generate(request)
            is_known = False
            try:
                for chunk in chunks:
                    if not is_known and chunk.finish_reason != "cancelled":
                        self._succeeded(engine)
                        is_known = True
                    yield chunk
            finally:
                if isinstance(chunks, Generator):
                    chunks.close()

    def connect(self) -> None:
        """Get the engine ready, so that the first request need not wait.

        Raises:
            SpecEditError: it can't be had.
        """
        with self._told("looking for the model"), self._watched(CancelToken()) as engine:
            self._placed_at(engine)
            self._succeeded(engine)

    def device(self, cancel: CancelToken) -> str | None:
        """What the model runs on, as torch calls it; None where nobody says.

        Once that is known it is given at once. Before, and after an error, it waits until the engine is there, or
        `cancel` is set.

        Raises:
            SpecEditError: the engine can't be had.
        """
        with self._lock:
            placed, engine = self._placed, self._engine
        if placed is not None and placed[0] is engine:
            return placed[1]
        if failure := self._lasting_failure():
            raise failure
        with self._told(), self._watched(cancel) as engine:
            return self._placed_at(engine, cancel)

    def restart(self) -> None:
        """Drop the connections, end the server if it is this user's own, and connect anew.

        Raises:
            SpecEditError: it does not end, or no other one can be had.
        """
        with self._told("ending the server"):
            with self._watched(CancelToken()) as engine:
                self.close()
                if isinstance(engine, OwnServerEngine):
                    engine.end()
            self.connect()

    def close(self) -> None:
        """Stop what is under way and drop the connections; whoever asks then gets another engine."""
        with self._lock:
            engine, self._engine, self._placed = self._engine, None, None
            self._failures = 0
        if isinstance(engine, ServerEngine):
            engine.close()

    @contextmanager
    def _told(self, step: str = "") -> Iterator[None]:
        """Tell the board that this is waited for, and at the end that nothing is any more."""
        from specedit.engine.discovery import Progress

        if step:
            self._board.loading(Progress(step))
        try:
            yield
        finally:
            self._board.loaded()

    @contextmanager
    def _watched(self, cancel: CancelToken) -> Iterator[Engine]:
        """The engine; what goes wrong with it meanwhile is told to the board, unless `cancel` was set."""
        engine: Engine | None = None
        failure: SpecEditError | None = None
        try:
            engine = self._taken()
            yield engine
        except SpecEditError as error:
            if not cancel.cancelled and _is_of_the_engine(error):
                failure = error
            raise
        finally:
            self._given_back(engine, failure)

    def _taken(self) -> Engine:
        while True:
            with self._making:
                engine = self._engine
                if engine is None:
                    engine = self._make()
                    with self._lock:
                        self._engine = engine
            with self._lock:
                if self._engine is engine:
                    self._answers += 1
                    return engine

    def _given_back(self, engine: Engine | None, failure: SpecEditError | None) -> None:
        is_left = False
        with self._lock:
            if engine is not None:
                self._answers -= 1
            # One that was closed meanwhile fails for that.
            if failure is not None and (engine is None or engine is self._engine):
                self._failures += 1
                self._failure, self._failed_at = failure, self._clock()
                self._placed = None
                self._board.failed(str(failure))
                # At an address something else may answer soon; a server of this user's own is looked for anyway.
                is_left = engine is not None and not self._answers and not isinstance(engine, OwnServerEngine)
                self._engine = None if is_left else self._engine
        if is_left and isinstance(engine, ServerEngine):
            engine.close()

    def _placed_at(self, engine: Engine, cancel: CancelToken | None = None) -> str | None:
        """Get the engine ready, and remember what its model runs on."""
        found: object = engine
        if isinstance(engine, OwnServerEngine):
            found = engine.connect(cancel)
        elif isinstance(engine, ServerEngine):
            found = engine.connect()
        device = getattr(found, "device", None)
        with self._lock:
            self._placed = engine, device
        return device

    def _succeeded(self, engine: Engine) -> None:
        with self._lock:
            self._failures = 0
            said = getattr(engine, "warnings", [])
            new, self._said = [warning for warning in said if warning not in self._said], self._said.union(said)
        self._board.succeeded(getattr(engine, "model_name", ""))
        for warning in new:
            _log.warning("%s", warning)

    def _lasting_failure(self) -> SpecEditError | None:
        """What went wrong twice or more, until it is time to try again."""
        with self._lock:
            pause = min(2.5 * 2.0 ** min(self._failures - 1, 10), _LONGEST_PAUSE_SECONDS) if self._failures > 1 else 0.0
            return self._failure if self._clock() - self._failed_at < pause else None


def _is_of_the_engine(error: SpecEditError) -> bool:
    return not isinstance(error, _OF_THE_REQUEST)
