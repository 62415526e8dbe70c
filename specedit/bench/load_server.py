"""A `specedit serve` that is put under load: where it listens, what it counts, and what it takes of the machine."""

from __future__ import annotations

import os
import re
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

import httpx2
import msgspec
import psutil
from prometheus_client.parser import text_string_to_metric_families

from specedit.engine.api import Priority
from specedit.errors import EngineError

_HOST = "127.0.0.1"
_START_SECONDS = 600.0
_STOP_SECONDS = 60.0
_POLL_SECONDS = 0.2
_SHOWN_CHARS = 4000
_ALARM = re.compile(r"^\S+ \S+ ERROR .*|^Traceback .*", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Address:
    """How a server is reached.

    Attributes:
        url: without a path.
        token: what it asks for.
        pid: its process; None where it isn't known, and then nothing is known of its memory.
    """

    url: str
    token: str = field(repr=False)
    pid: int | None

    @property
    def place(self) -> tuple[str, int]:
        """Host and port."""
        url = httpx2.URL(self.url)
        return url.host, url.port or 80

    @property
    def headers(self) -> dict[str, str]:
        """What each request carries."""
        return {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}


class OwnServer:
    """A server of our own.

    Attributes:
        address: where it is.
    """

    def __init__(self, process: subprocess.Popen[bytes], address: Address, log: Path) -> None:
        """Belongs to `running`."""
        self._process = process
        self._log = log
        self.address = address

    @property
    def is_alive(self) -> bool:
        """Whether its process still runs."""
        return self._process.poll() is None

    def said(self) -> str:
        """The end of its log."""
        return self._log.read_text("utf-8", "replace")[-_SHOWN_CHARS:]

    def alarms(self) -> list[str]:
        """Lines of its log that tell of a fault of its own."""
        return _ALARM.findall(self._log.read_text("utf-8", "replace"))

    def stop(self) -> int | None:
        """Have it drain and end; its exit code, None where it had to be killed. Idempotent."""
        self._process.terminate()
        try:
            return self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            return None


@contextmanager
def running(model: str, *, kv_cache_mb: float) -> Iterator[OwnServer]:
    """Start `specedit serve` where no editor finds it, wait until it is ready, and stop it at the end.

    Args:
        model: name, hub id or path.
        kv_cache_mb: what the keys and values that it keeps may take.

    Raises:
        EngineError: it does not start; the message ends with what it said last.
    """
    with tempfile.TemporaryDirectory(prefix="specedit-load-") as directory:
        runtime = Path(directory)
        log, token_file, port = runtime / "log", runtime / "token", _free_port()
        token = secrets.token_urlsafe(32)
        token_file.touch(mode=0o600)
        token_file.write_text(token)
        options = {"--model": model, "--port": port, "--token-file": token_file, "--kv-cache-mb": kv_cache_mb}
        # -P: a file in the working directory must not stand in for a module.
        command = [sys.executable, "-P", "-m", "specedit.cli", "serve"]
        command += [f"{name}={value}" for name, value in options.items()]
        with log.open("wb") as stream:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                env=os.environ | {"SPECEDIT_RUNTIME": directory},
            )
        server = OwnServer(process, Address(f"http://{_HOST}:{port}", token, process.pid), log)
        try:
            _await(server)
            yield server
        finally:
            server.stop()


def _await(server: OwnServer) -> None:
    give_up = time.monotonic() + _START_SECONDS
    with httpx2.Client(base_url=server.address.url, trust_env=False) as client:
        while server.is_alive and time.monotonic() < give_up:
            try:
                if client.get("/health").status_code == httpx2.codes.OK:
                    return
            except httpx2.TransportError:
                pass
            time.sleep(_POLL_SECONDS)
    raise EngineError(f"the server did not start. Mend what it says, and try again:\n{server.said()}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        return int(probe.getsockname()[1])


# --- what it counts


class Counted:
    """What `/metrics` told at one moment."""

    def __init__(self, text: str) -> None:
        """Read Prometheus' text format."""
        self._samples = [
            (sample.name, sample.labels, sample.value)
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        ]

    def total(self, name: str, **labels: str) -> float:
        """The sum of all samples of that name with these labels."""
        return sum(
            value
            for found, having, value in self._samples
            if found == name and all(having.get(label) == wanted for label, wanted in labels.items())
        )

    def buckets(self, name: str, **labels: str) -> dict[float, int]:
        """Of a histogram: by upper bound, how many values are at most so large."""
        bounds = {having["le"] for found, having, _ in self._samples if found == f"{name}_bucket"}
        return {
            float(bound): int(self.total(f"{name}_bucket", le=bound, **labels)) for bound in sorted(bounds, key=float)
        }

    def queue(self) -> Queue:
        """What there is to do."""
        return Queue(
            waiting=int(self.total("specedit_waiting")),
            paused=int(self.total("specedit_paused")),
            running=int(self.total("specedit_running")),
        )


class Queue(msgspec.Struct, frozen=True):
    """Requests that had no step yet, that were begun and wait, and that are worked on."""

    waiting: int
    paused: int
    running: int

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not (self.waiting or self.paused or self.running)


def steps_before_start(before: Counted, after: Counted) -> dict[Priority, dict[float, int]]:
    """By priority, how many requests began after at most so many steps of lower priorities, between two moments."""
    name = "specedit_lower_steps"
    found = {}
    for priority in get_args(Priority):
        earlier = before.buckets(name, priority=priority)
        later = after.buckets(name, priority=priority)
        found[priority] = {bound: count - earlier.get(bound, 0) for bound, count in later.items()}
    return found


# --- what it takes


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """A server at one moment.

    Attributes:
        seconds: since the load began.
        rss_bytes: memory of the process; 0 where nothing is known of the process, as the next two.
        fds: open file descriptors.
        threads: of the process.
        kv_bytes: of keys and values that are kept.
        queue: what there is to do.
    """

    seconds: float
    rss_bytes: int
    fds: int
    threads: int
    kv_bytes: int
    queue: Queue


def sampled(address: Address, counted: Counted, seconds: float) -> Sample:
    """The server now."""
    rss, fds, threads = 0, 0, 0
    if address.pid is not None:
        try:
            process = psutil.Process(address.pid)
            rss, fds, threads = process.memory_info().rss, process.num_fds(), process.num_threads()
        except psutil.Error:
            # It is gone, or somebody else's: what the load finds out otherwise.
            pass
    return Sample(
        seconds=seconds,
        rss_bytes=rss,
        fds=fds,
        threads=threads,
        kv_bytes=int(counted.total("specedit_kv_bytes")),
        queue=counted.queue(),
    )
