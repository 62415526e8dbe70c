"""The engine that all features ask: found, started, watched, and started anew.

Nothing is looked for, connected to or started before the first request or `warm_up`, and then in a thread: whoever
takes the engine never waits. What went wrong is over with the next request that goes well.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from specedit.config import Settings, load_settings, user_config_file
from specedit.edit.files import project_root
from specedit.engine.api import CancelToken, Engine
from specedit.errors import ConfigError, SpecEditError
from specedit_lsp.bridge import in_thread
from specedit_lsp.options import Options, OptionsStore
from specedit_lsp.statistics import Kind
from specedit_lsp.status import Status, StatusBoard
from specedit_lsp.tracked_engine import TrackedEngine

__all__ = ["Backend", "MakeEngine", "Status", "server_engine"]

MakeEngine = Callable[[Settings, Options, StatusBoard], Engine]
"""Makes the engine that settings and options name, in a thread; it may wait. It tells the board what it loads later."""

_log = logging.getLogger(__name__)

_SETTINGS_KEPT = 64


def server_engine(settings: Settings, options: Options, board: StatusBoard) -> Engine:
    """The server at the address that is set, else the one that all editors share, found or started when it is asked.

    Raises:
        ConfigError: the address can't be used.
    """
    if settings.engine in (None, "local", "shared"):
        from specedit.engine.discovery import SharedEngine

        if settings.engine == "local":
            _log.warning('the setting engine is "local", which is for the command line: a server of yours is shared')
        return SharedEngine(
            settings.model,
            idle_exit_minutes=options.idle_exit_minutes,
            on_progress=board.loading,
            on_ready=lambda server: board.found(server.model),
        )
    from specedit.engine.choice import server_of
    from specedit.models.registry import fim_markers_of

    engine = server_of(settings, fim_markers=fim_markers_of)
    assert engine is not None, "an address is set"
    return engine


class Backend:
    """The engine behind all features. Methods are called on the event loop, except where they say otherwise."""

    def __init__(
        self, options: OptionsStore, on_status: Callable[[Status], None], *, make_engine: MakeEngine | None = None
    ) -> None:
        """Take the engine that options and settings name, not yet.

        Args:
            options: the user's own of them say which engine.
            on_status: told on the event loop whenever the status has changed.
            make_engine: stands in for the choice among real engines.
        """
        self._options = options
        self._make_engine = make_engine or server_engine
        self._board = StatusBoard(on_status)
        self._tracked = TrackedEngine(self._made, self._board)
        self._warming: asyncio.Task[None] | None = None
        self._settings: dict[Path, tuple[object, Settings]] = {}

    def engine(self) -> TrackedEngine:
        """The engine, at once; it is looked for or started when it is asked."""
        self._board.listen()
        return self._tracked

    def device(self, cancel: CancelToken) -> str | None:
        """What the model runs on; from any thread but the loop's, see `TrackedEngine.device`.

        Raises:
            SpecEditError: there is no engine.
        """
        return self._tracked.device(cancel)

    @contextmanager
    def busy(self, kind: Kind) -> Iterator[None]:
        """Work is under way for as long as the block lasts."""
        self._board.listen()
        self._board.count(kind, 1)
        try:
            yield
        finally:
            self._board.count(kind, -1)

    @property
    def status(self) -> Status:
        """How the engine is now; from any thread."""
        return self._board.status

    def settings_for(self, path: Path | None) -> Settings:
        """The settings for a file, or for text without one; from any thread. What changes on disk counts at once.

        A project whose settings are wrong is told in the log, and sets nothing.

        Raises:
            ConfigError: the user's own settings are wrong.
        """
        root = project_root(path) if path is not None else _no_project()
        state = (self._options.own, *map(_state_of, (user_config_file(), *_project_files(root))))
        known = self._settings.get(root)
        if known is None or known[0] != state:
            if len(self._settings) >= _SETTINGS_KEPT:
                self._settings.clear()
            known = self._settings[root] = (state, self._read_settings(root))
        return known[1]

    def warm_up(self) -> None:
        """Get the engine ready in the background, where the user's options want that."""
        if self._options.own.warm_up:
            self._board.listen()
            self._warming = asyncio.get_running_loop().create_task(self._warmed_up())

    async def restart(self) -> None:
        """End the server that this user shares, or drop the connections to another one, and connect anew.

        Raises:
            SpecEditError: it can't be had.
        """
        self._board.listen()
        self._stop_warming()
        _log.info("the engine is restarted")
        await in_thread(self._tracked.restart, CancelToken())

    def close(self) -> None:
        """Stop what is under way and drop the connections; nothing is told any more. Idempotent."""
        self._board.mute()
        self._stop_warming()
        self._tracked.close()

    def _made(self) -> Engine:
        own = self._options.own
        return self._make_engine(load_settings(_no_project(), flags=_flags(own)), own, self._board)

    def _stop_warming(self) -> None:
        if self._warming is not None:
            self._warming.cancel()
            self._warming = None

    async def _warmed_up(self) -> None:
        # The board has it.
        with suppress(SpecEditError):
            await in_thread(self._tracked.connect, CancelToken())

    def _read_settings(self, root: Path) -> Settings:
        flags = _flags(self._options.own)
        without_project = load_settings(_no_project(), flags=flags)
        try:
            return load_settings(root, flags=flags)
        except ConfigError as error:
            _log.warning("the settings of the project %s are left out: %s", root, error)
            return without_project


def _flags(own: Options) -> dict[str, str | None]:
    """What the user's own options say where the settings would."""
    return {"engine": own.engine, "model": own.model}


def _no_project() -> Path:
    return Path(Path.cwd().anchor)


def _project_files(root: Path) -> tuple[Path, ...]:
    return root / "specedit.toml", root / "pyproject.toml"


def _state_of(file: Path) -> tuple[int, int, int] | None:
    """What is another one when the file is."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
