"""Real `specedit serve` processes with a tiny model, and clients that ask them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import psutil

from specedit.engine import discovery, runtime
from specedit.engine.api import GenerateRequest, Message, Sampling
from specedit.engine.discovery import ServerRecord
from tests.tiny_model import EOS_ID

PATIENCE_SECONDS = 90.0


def environment(place: Path) -> dict[str, str]:
    """Variables that keep servers and what they write apart from the user's, and quick to load."""
    return {
        "SPECEDIT_RUNTIME": str(place / "run"),
        "XDG_STATE_HOME": str(place / "state"),
        "XDG_CONFIG_HOME": str(place / "none"),
        "SPECEDIT_DEVICE": "cpu",
        "SPECEDIT_DRAFT_BUDGET": "0",
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }


class Process:
    """A `specedit serve`; its stderr goes to a file."""

    def __init__(self, place: Path, *arguments: str | Path) -> None:
        self.log = place / f"{time.monotonic_ns()}.log"
        with self.log.open("wb") as stderr:
            self.popen = subprocess.Popen(
                [sys.executable, "-m", "specedit.cli", "serve", *map(str, arguments)],
                stdout=subprocess.PIPE,
                stderr=stderr,
                cwd=place,
                text=True,
            )

    @property
    def said(self) -> str:
        return self.log.read_text()

    def record(self) -> ServerRecord | None:
        return next((record for record in discovery.servers() if record.pid == self.popen.pid), None)

    def wait_for(self, state: str) -> ServerRecord:
        def reached() -> ServerRecord | None:
            assert self.popen.poll() is None, self.said
            record = self.record()
            return record if record is not None and (state in (record.state, "any")) else None

        return until(reached)

    def end(self, number: int = signal.SIGTERM) -> int:
        self.popen.send_signal(number)
        return self.popen.wait(PATIENCE_SECONDS)


@contextmanager
def serving(place: Path, *arguments: str | Path) -> Iterator[Process]:
    """A server for as long as the block lasts, if it lasts so long."""
    process = Process(place, *arguments)
    try:
        yield process
    finally:
        process.popen.kill()
        process.popen.communicate()


def until(condition: Callable[[], Any]) -> Any:
    """The first true value of `condition`."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (value := condition()):
        assert time.monotonic() < deadline, "it never came to pass"
        time.sleep(0.02)
    return value


def end_all() -> None:
    """End the servers that were started in the background with this runtime directory, those without a record too."""
    own = os.environ["SPECEDIT_RUNTIME"]
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("SPECEDIT_RUNTIME") == own and "serve" in process.cmdline():
                process.kill()


def authorization() -> dict[str, str]:
    return {"Authorization": f"Bearer {runtime.read_token(runtime.token_file())}"}


def get(record: ServerRecord, path: str = "/v1/models", **headers: str) -> httpx2.Response:
    return httpx2.get(record.url + path, headers=authorization() | headers, trust_env=False, timeout=10)


def long_request(tokens: int = 1500) -> GenerateRequest:
    """An answer of so many tokens, which takes seconds when it is decoded plainly."""
    sampling = Sampling(logit_bias={EOS_ID: -100.0})
    return GenerateRequest(messages=(Message("user", "go on"),), sampling=sampling, max_new_tokens=tokens)


@contextmanager
def streaming(record: ServerRecord, tokens: int = 1500) -> Iterator[Iterator[str]]:
    """The lines of a long answer's stream."""
    body = {
        "model": record.model,
        "messages": [{"role": "user", "content": "go on"}],
        "max_tokens": tokens,
        "logit_bias": {str(EOS_ID): -100},
        "temperature": 0,
        "stream": True,
        "specedit": {"plain": True},
    }
    address = f"{record.url}/v1/chat/completions"
    with (
        httpx2.Client(trust_env=False, timeout=60) as client,
        client.stream("POST", address, json=body, headers=authorization()) as response,
    ):
        assert response.status_code == 200
        yield (line for line in response.iter_lines() if line.startswith("data:"))


def events(lines: Iterator[str]) -> list[dict[str, Any]]:
    """The events of a stream up to its end, without the one that says that it ends."""
    data = [line.removeprefix("data:").strip() for line in lines]
    return [json.loads(line) for line in data if line != "[DONE]"]
