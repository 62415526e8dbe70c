"""Finding the servers that run on this machine, and starting one where none does.

A running server leaves a record in the user's runtime directory and holds a lock beside it for as long as it lives. The
kernel drops the lock with the process, so a record is never taken for alive because its pid or port is somebody else's
now, and the token is never shown to a stranger.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

import msgspec
import platformdirs

from specedit import __version__
from specedit.engine.api import CancelToken, GenerateRequest, TextChunk, Usage
from specedit.engine.runtime import private_runtime_dir, read_token, write_privately
from specedit.engine.wire import OWNER
from specedit.errors import ConfigError, EngineError, ShuttingDownError, UnreachableError

if TYPE_CHECKING:
    from filelock import BaseFileLock

    from specedit.engine.remote import RemoteEngine

#: A server that nobody started by hand ends after so long without work.
IDLE_EXIT_MINUTES = 30.0

_PROBE_SECONDS = 3.0
_POLL_SECONDS = 0.05
_LOGS_KEPT = 5
_LOG_LINES_SHOWN = 12


class ServerRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a running server says of itself.

    Attributes:
        url: where it listens, without a path.
        token_file: the file with the token that it asks for.
        model: the name of its model.
        pid: its process.
        version: of specedit.
        started: Unix time in seconds.
        state: "ready" once the model is loaded.
        step: what it does until then.
        percent: how much of that is done, 0 to 100; None where nobody knows.
    """

    url: str
    token_file: str
    model: str
    pid: int
    version: str
    started: float
    state: Literal["loading", "ready"] = "loading"
    step: str = ""
    percent: int | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """What is waited for, in a few words, and how much of it is done: 0 to 100 percent, None where nobody knows."""

    step: str
    percent: int | None = None


def once_a_step(say: Callable[[str], None]) -> Callable[[Progress], None]:
    """Has each step said once, for whoever writes lines."""
    said: list[str] = []

    def on_progress(progress: Progress) -> None:
        if progress.step not in said[-1:]:
            said.append(progress.step)
            say(progress.step)

    return on_progress


@dataclass(frozen=True, slots=True)
class Server:
    """A server that answers, and how to talk to it; `device` is what its model runs on, if it says that."""

    url: str
    token: str = field(repr=False)
    model: str
    pid: int
    token_file: str = ""
    device: str | None = None


# --- records


class Registration:
    """A server's own record, there for as long as the process lives or until `remove`."""

    def __init__(self, directory: Path, record: ServerRecord) -> None:
        """Take the lock and write the record; see `register`."""
        self.record = record
        self._file = directory / f"{record.pid}-{_slug(record.model)}.json"
        self._lock = _lock_of(self._file)
        # A thread may say how far it is while another one ends the process.
        self._writing = threading.Lock()
        self._is_removed = False
        self._lock.acquire(timeout=_PROBE_SECONDS)
        write_privately(self._file, msgspec.json.encode(record))

    def update(self, *, state: Literal["loading", "ready"], step: str = "", percent: int | None = None) -> None:
        """Say how far it is; nothing where the record was removed."""
        with self._writing:
            if self._is_removed:
                return
            self.record = msgspec.structs.replace(self.record, state=state, step=step, percent=percent)
            write_privately(self._file, msgspec.json.encode(self.record))

    def remove(self) -> None:
        """Take the record away; idempotent."""
        with self._writing:
            self._is_removed = True
            self._file.unlink(missing_ok=True)
            self._lock.release()
            Path(self._lock.lock_file).unlink(missing_ok=True)


def register(make: Callable[[], ServerRecord], *, model: str, beside: bool = False) -> Registration | ServerRecord:
    """Register this process as the server of `model`, or get the record of the one that runs already.

    Args:
        make: called once nobody else can become the server of the same model; binds the socket, gives the record.
        model: the model's `served_name`.
        beside: register even where one runs.

    Raises:
        ConfigError: the runtime directory is not private.
        SpecEditError: whatever `make` raises.
    """
    directory = _records_dir(create=True)
    assert directory is not None
    with _file_lock(directory.parent / "lock"):
        others = [] if beside else [record for record in servers() if record.model == model]
        return others[0] if others else Registration(directory, make())


def servers() -> list[ServerRecord]:
    """The records of all servers of this user that are alive, the last started first; what dead ones left is removed.

    Raises:
        ConfigError: the runtime directory is not private.
    """
    directory = _records_dir(create=False)
    if directory is None:
        return []
    found = [record for file in directory.glob("*.json") if (record := _living(file))]
    return sorted(found, key=lambda record: record.started, reverse=True)


def served_name(name: str) -> str:
    """What a model is called between server and client: a path is made absolute, as they may stand elsewhere."""
    path = Path(name).expanduser()
    return str(path.resolve()) if path.exists() else name


def _records_dir(*, create: bool) -> Path | None:
    directory = private_runtime_dir(create=create)
    if directory is None:
        return None
    records = directory / "servers"
    if create:
        records.mkdir(mode=0o700, exist_ok=True)
    return records if records.is_dir() else None


def _living(file: Path) -> ServerRecord | None:
    from filelock import Timeout

    lock = _lock_of(file)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        # Held by the server, or for a moment by somebody who looks, as here.
        with suppress(OSError, msgspec.DecodeError):
            record = msgspec.json.decode(file.read_bytes(), type=ServerRecord)
            os.kill(record.pid, 0)
            return record
        return None
    # Whoever held it is gone.
    file.unlink(missing_ok=True)
    lock.release()
    Path(lock.lock_file).unlink(missing_ok=True)
    return None


def _lock_of(record_file: Path) -> BaseFileLock:
    return _file_lock(record_file.with_suffix(".lock"))


def _file_lock(path: Path) -> BaseFileLock:
    # Imported late, as most commands find no record at all and need no lock.
    from filelock import FileLock

    return FileLock(path, mode=0o600, thread_local=False)


def _slug(model: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", model.lower())[-48:].strip("-.") or "model"


# --- finding


def find_server(
    model: str | None, *, wait_seconds: float = 0.0, on_progress: Callable[[Progress], None] = lambda _: None
) -> Server | None:
    """A server of this user on this machine that answers, has the model loaded, and is of this version.

    Args:
        model: the model as the user names it; None takes whatever was started last.
        wait_seconds: how long to wait for one that is still loading, where none is ready.
        on_progress: told what is waited for whenever that changes.

    Raises:
        ConfigError: the runtime directory is not private.
    """
    deadline = time.monotonic() + wait_seconds
    said: Progress | None = None
    while True:
        fitting = [record for record in servers() if _fits(record, model)]
        for record in fitting:
            if record.state == "ready" and (server := _answering(record)):
                return server
        loading = next((record for record in fitting if record.state == "loading"), None)
        if loading is None or time.monotonic() >= deadline:
            return None
        progress = Progress(f"waiting for the server at {loading.url}: {loading.step}", loading.percent)
        if progress != said:
            said = progress
            on_progress(progress)
        time.sleep(_POLL_SECONDS)


def token_of(url: str) -> str | None:
    """The token of this user's server at an address; None where no living record has that address.

    Raises:
        ConfigError: the runtime directory or the token's file is not private.
    """
    return next((read_token(Path(record.token_file)) for record in servers() if record.url == url), None)


def _fits(record: ServerRecord, model: str | None) -> bool:
    # Servers and clients of different versions may not understand each other's extensions.
    if record.version != __version__ or not _is_local(record.url):
        return False
    return model is None or served_name(model).casefold() == record.model.casefold()


def _is_local(url: str) -> bool:
    """Whether it is plain HTTP over loopback, which needs neither a certificate nor a proxy."""
    parts = urlsplit(url)
    return parts.scheme == "http" and parts.hostname in {"127.0.0.1", "::1", "localhost"}


class _Model(msgspec.Struct):
    id: str
    owned_by: str
    device: str | None = None


class _Models(msgspec.Struct):
    data: list[_Model]


def _answering(record: ServerRecord) -> Server | None:
    """The server, if it takes the token and names the model; asked without any proxy."""
    from http.client import HTTPConnection, HTTPException

    try:
        token = read_token(Path(record.token_file))
        address = urlsplit(record.url)
        with closing(HTTPConnection(address.hostname or "", address.port, timeout=_PROBE_SECONDS)) as connection:
            connection.request("GET", "/v1/models", headers={"Authorization": f"Bearer {token}"})
            response = connection.getresponse()
            models = msgspec.json.decode(response.read(1 << 20), type=_Models).data if response.status == 200 else []
    except (ConfigError, OSError, HTTPException, msgspec.DecodeError, ValueError):
        return None
    for model in models:
        if model.id == record.model and model.owned_by == OWNER:
            return Server(record.url, token, record.model, record.pid, record.token_file, model.device)
    return None


# --- starting


def ensure_server(
    model: str | None,
    *,
    options: Sequence[str] = (),
    idle_exit_minutes: float = IDLE_EXIT_MINUTES,
    on_progress: Callable[[Progress], None] = lambda _: None,
    cancel: CancelToken | None = None,
    timeout_seconds: float = 600.0,
) -> Server:
    """The server of the model: found, or started in the background and waited for.

    Callers that start one at the same time end up with the same one.

    Args:
        model: the model as the user names it; None takes any server, and starts one with the user's or this machine's
            default.
        options: more options of `specedit serve` for one that has to be started.
        idle_exit_minutes: a started one ends after so long without work.
        on_progress: told what is waited for whenever that changes.
        cancel: ends the waiting; the server goes on loading.
        timeout_seconds: the longest wait.

    Raises:
        ConfigError: the runtime directory is not private.
        UnreachableError: none could be started; the message ends with the last lines of its log.
        EngineError: cancelled.
    """
    cancel = cancel or CancelToken()
    deadline = time.monotonic() + timeout_seconds
    started: _Started | None = None
    said: Progress | None = None
    while not cancel.cancelled:
        # Asked before the records are read: one that ends because another one runs is no failure.
        ended = started is not None and started.process.poll() is not None
        living = [record for record in servers() if _fits(record, model)]
        ready = [record for record in living if record.state == "ready"]
        for record in ready:
            if server := _answering(record):
                return server
        if not living and started is None:
            started = _start(model, options, idle_exit_minutes)
        elif not living and started is not None and ended:
            raise started.failure()
        progress = _progress(living, ready)
        if progress != said:
            said = progress
            on_progress(progress)
        if time.monotonic() > deadline:
            raise _too_late(living, started, timeout_seconds)
        time.sleep(_POLL_SECONDS)
    raise EngineError("cancelled while the server was starting")


def _progress(living: Sequence[ServerRecord], ready: Sequence[ServerRecord]) -> Progress:
    if ready:
        return Progress(f"waiting for the server at {ready[0].url}")
    return Progress(living[0].step, living[0].percent) if living else Progress("starting a server")


def _too_late(living: Sequence[ServerRecord], started: _Started | None, seconds: float) -> UnreachableError:
    if started is not None and not living:
        return started.failure(f"did not begin to listen within {seconds:g} seconds")
    record = living[0]
    return UnreachableError(
        f"the server at {record.url} (process {record.pid}) did not get ready within {seconds:g} seconds. "
        f"Wait longer, or end it with: kill {record.pid}"
    )


@dataclass(frozen=True, slots=True)
class _Started:
    process: subprocess.Popen[bytes]
    log: Path

    def failure(self, what: str = "ended before it was ready") -> UnreachableError:
        with self.log.open("rb") as stream:
            lines = deque((line.decode("utf-8", "replace").rstrip() for line in stream), _LOG_LINES_SHOWN)
        shown = "".join(f"\n  {line}" for line in lines) or "\n  (it said nothing)"
        return UnreachableError(
            f"the server that was started for this {what}. Mend what it says, and try again ({self.log}):{shown}"
        )


def _start(model: str | None, options: Sequence[str], idle_exit_minutes: float) -> _Started:
    """Start a server that outlives this process, its terminal and its directory."""
    named = ["--model", served_name(model)] if model is not None else []
    # -P: a file in the working directory must not stand in for a module.
    command = [sys.executable, "-P", "-m", "specedit.cli", "serve", *named, f"--idle-exit={idle_exit_minutes}"]
    try:
        log = _new_log()
        with log.open("wb") as stream:
            process = subprocess.Popen(
                [*command, *options],
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                start_new_session=True,
                close_fds=True,
                cwd="/",
            )
    except OSError as error:
        raise UnreachableError(f"no server could be started: {error}. Start one by hand: specedit serve") from error
    # Waited for, so that it leaves no zombie where this process outlives it.
    threading.Thread(target=process.wait, daemon=True, name="server-reaper").start()
    return _Started(process, log)


def _new_log() -> Path:
    """A file for what a new server says; of the older ones the last few are kept."""
    import secrets

    directory = platformdirs.user_state_path("specedit") / "serve"
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    older = sorted(directory.glob("*.log"))
    for log in older[: -(_LOGS_KEPT - 1)]:
        log.unlink(missing_ok=True)
    return directory / f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}.log"


# --- ending


def end_server(model: str | None, *, drain_seconds: float = 5.0) -> bool:
    """End the server that `ensure_server` would give, and wait until it is gone; whether there was one.

    It is asked to finish the answers under way, then told to end at once, then killed.

    Args:
        model: the model as the user names it; None takes whatever was started last.
        drain_seconds: how long it may finish answers.

    Raises:
        ConfigError: the runtime directory is not private.
        UnreachableError: it does not end.
    """
    fitting = [record for record in servers() if _fits(record, model)]
    if not fitting:
        return False
    record = fitting[0]
    for number, seconds in ((signal.SIGTERM, drain_seconds), (signal.SIGTERM, 1.0), (signal.SIGKILL, 5.0)):
        with suppress(ProcessLookupError):
            os.kill(record.pid, number)
        if _is_gone(record, seconds):
            return True
    raise UnreachableError(f"the server at {record.url} does not end. End it with: kill -9 {record.pid}")


def _is_gone(record: ServerRecord, seconds: float) -> bool:
    """Whether the server's process ends within so many seconds."""
    deadline = time.monotonic() + seconds
    while any(other.pid == record.pid for other in servers()) or _is_running(record.pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        # One that ended stays in the table until its parent has asked how.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except ProcessLookupError:
        return False
    except OSError:
        # There is no such file on this system.
        return sys.platform != "linux"


# --- an engine


class SharedEngine:
    """An engine in a server that all editors and commands of this user share; started when it is needed.

    Each request makes sure that the server is there, so after one was killed the next request starts a new one.

    Attributes:
        warnings: plain lines that a user should see once.
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        options: Sequence[str] = (),
        idle_exit_minutes: float = IDLE_EXIT_MINUTES,
        on_progress: Callable[[Progress], None] = lambda _: None,
        on_ready: Callable[[Server], None] = lambda _: None,
    ) -> None:
        """Make an engine; no server is looked for yet. Arguments as in `ensure_server`.

        `on_ready` is told the server whenever it was found, before it is asked.
        """
        self._model = model
        self._ensure = partial(
            ensure_server, options=options, idle_exit_minutes=idle_exit_minutes, on_progress=on_progress
        )
        self._on_ready = on_ready
        self._connecting = CancelToken()
        self._lock = threading.Lock()
        self._server: Server | None = None
        self._remotes: dict[Server, RemoteEngine] = {}
        self.warnings: list[str] = []

    @property
    def model_name(self) -> str:
        """The server's model, as soon as there is one."""
        return self._server.model if self._server else self._model or "the default model"

    @property
    def device(self) -> str | None:
        """What the server's model runs on; finds or starts the server, see `connect`."""
        return self.connect().device

    def connect(self, cancel: CancelToken | None = None) -> Server:
        """The server, found or started and waited for, so that the first request need not wait.

        `cancel` ends the waiting; without it `close` does.

        Raises:
            ConfigError: the runtime directory is not private.
            UnreachableError: none could be started.
            EngineError: cancelled or closed meanwhile.
        """
        self._ensured(cancel or self._connecting)
        assert self._server is not None
        return self._server

    def generate(self, request: GenerateRequest) -> Iterator[TextChunk]:
        """Stream the answer; see `Engine.generate`.

        Raises:
            UnreachableError: no server could be started, or it was gone in mid-answer.
        """
        return self._stream(request, plain=False)

    def generate_plain(self, request: GenerateRequest) -> Iterator[TextChunk]:
        """Stream the answer by plain decoding: the same text, one token a forward, to compare with."""
        return self._stream(request, plain=True)

    def end(self) -> bool:
        """End the server that the next request would ask; see `end_server`. Whoever asks then starts a new one."""
        return end_server(self._server.model if self._server else self._model)

    def close(self) -> None:
        """Drop the connections; the server goes on."""
        self._connecting.cancel()
        with self._lock:
            remotes, self._remotes = self._remotes, {}
        for remote in remotes.values():
            remote.close()

    def _stream(self, request: GenerateRequest, *, plain: bool) -> Iterator[TextChunk]:
        begun = False
        try:
            remote = self._ensured(request.cancel)
            try:
                with closing(_answer(remote, request, plain=plain)) as chunks:
                    for chunk in chunks:
                        begun = True
                        yield chunk
            except (ShuttingDownError, UnreachableError):
                # It may have ended itself after it was found and before it was asked.
                if begun or find_server(self.model_name) is not None:
                    raise
                yield from _answer(self._ensured(request.cancel), request, plain=plain)
        except EngineError:
            if begun or not request.cancel.cancelled:
                raise
            yield TextChunk("", Usage(), "cancelled")

    def _ensured(self, cancel: CancelToken) -> RemoteEngine:
        from specedit.engine.remote import RemoteEngine

        # Once there was a server its model stays, whatever else is started meanwhile.
        model = self._server.model if self._server else self._model
        server = self._ensure(model, cancel=cancel)
        self._on_ready(server)
        with self._lock:
            self._server = server
            if server not in self._remotes:
                self._remotes[server] = RemoteEngine(server.url, model=server.model, api_key=server.token)
            self.warnings = self._remotes[server].warnings
            return self._remotes[server]


def _answer(remote: RemoteEngine, request: GenerateRequest, *, plain: bool) -> Generator[TextChunk, None, None]:
    yield from remote.generate_plain(request) if plain else remote.generate(request)
