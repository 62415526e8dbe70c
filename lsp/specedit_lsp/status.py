"""How the engine is: what loads, what is under way, what went wrong last."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from specedit_lsp.bridge import post
from specedit_lsp.statistics import Kind

if TYPE_CHECKING:
    from specedit.engine.discovery import Progress

State = Literal["loading", "ready", "busy", "error"]

_WORK: dict[Kind, str] = {"inline": "completing", "rewrite": "rewriting", "nextEdit": "looking for the next edit"}
_MAX_CHARS = 300


@dataclass(frozen=True, slots=True)
class Status:
    """How the engine is, as `specedit/status` tells it.

    Attributes:
        state: what it is.
        message: what it waits for, does or suffers from; empty where there is nothing to say.
        percent: of loading, 0 to 100, where that is known.
        fix: what to do about an error.
        model: the model, once it is known.
    """

    state: State
    message: str = ""
    percent: int | None = None
    fix: str = ""
    model: str = ""

    def to_json(self) -> dict[str, Any]:
        """All by name."""
        return asdict(self)


class StatusBoard:
    """What is known of the engine, from any thread; tells the event loop whenever the status has changed."""

    def __init__(self, on_status: Callable[[Status], None]) -> None:
        """`on_status` is called on the loop of `listen`, never twice with the same status."""
        self._on_status = on_status
        self._loop: asyncio.AbstractEventLoop | None = None
        self._told: Status | None = None
        self._lock = threading.Lock()
        self._loading: dict[int, Progress] = {}
        self._work: Counter[Kind] = Counter()
        self._error: tuple[str, str] | None = None
        self._model = ""

    def listen(self) -> None:
        """Tell the event loop that runs now."""
        self._loop = asyncio.get_running_loop()

    def mute(self) -> None:
        """Tell nobody any more."""
        self._loop = None

    @property
    def status(self) -> Status:
        """The status now: loading goes before being busy, and that before what went wrong earlier."""
        with self._lock:
            if self._loading:
                progress = list(self._loading.values())[-1]
                return Status("loading", progress.step, progress.percent, model=self._model)
            if kinds := [kind for kind, count in self._work.items() if count > 0]:
                return Status("busy", ", ".join(_WORK[kind] for kind in kinds), model=self._model)
            if self._error is not None:
                message, fix = self._error
                return Status("error", message, fix=fix, model=self._model)
            return Status("ready", model=self._model)

    def loading(self, progress: Progress) -> None:
        """The thread that calls this waits for that."""
        with self._lock:
            self._loading[threading.get_ident()] = progress
        self._changed()

    def found(self, model: str) -> None:
        """What the thread that calls this waited for is there: a server with that model."""
        with self._lock:
            self._loading.pop(threading.get_ident(), None)
            self._error, self._model = None, model
        self._changed()

    def loaded(self) -> None:
        """The thread that calls this waits no more."""
        with self._lock:
            is_new = self._loading.pop(threading.get_ident(), None) is not None
        if is_new:
            self._changed()

    def count(self, kind: Kind, change: int) -> None:
        """So much more, or less, of that kind is under way."""
        with self._lock:
            self._work[kind] += change
        self._changed()

    def failed(self, said: str) -> None:
        """The engine can't be had; `said` is what happened and what to do."""
        with self._lock:
            self._error = told_apart(said)
        self._changed()

    def succeeded(self, model: str) -> None:
        """The engine answers, by that model."""
        with self._lock:
            self._error, self._model = None, model
        self._changed()

    def _changed(self) -> None:
        if self._loop is not None:
            post(self._loop, self._tell)

    def _tell(self) -> None:
        status = self.status
        if status != self._told and self._loop is not None:
            self._told = status
            self._on_status(status)


def told_apart(said: str) -> tuple[str, str]:
    """What happened and what to do about it, of an error's message; each on one line.

    Of a log that follows, the last line belongs to what happened. `told_apart("nothing answers there. Start it")` is
    `("nothing answers there", "Start it")`.
    """
    first, *log = [line.strip() for line in said.strip().splitlines()] or [""]
    message, found, fix = first.partition(". ")
    if not found and ": " in first:
        message, _, fix = first.rpartition(": ")
    return _cut(f"{message} ({log[-1]})" if log else message), _cut(fix.removesuffix(":"))


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_CHARS else text[: _MAX_CHARS - 3] + "..."
