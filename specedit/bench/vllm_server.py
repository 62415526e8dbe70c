"""VllmServer: a vLLM that runs for a while on loopback, and what it counts."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from specedit.engine.api import GenerateRequest
from specedit.errors import EngineError

#: What a small vLLM on a CPU needs; what the environment says goes first.
_ENVIRONMENT = {
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_NO_USAGE_STATS": "1",
}
_START_SECONDS = 600.0
_ANSWER_SECONDS = 600.0
_STOP_SECONDS = 20.0
#: How much of a server's last words is told: the cause stands some way before the end.
_TOLD_CHARS = 16_000
_COUNTER = re.compile(r"^vllm:(?P<name>\w+?)(?:\{[^}]*\})? (?P<value>\S+)$", re.MULTILINE)
#: vLLM's names for the fields of `Counters`, in their order.
_COUNTED = (
    "generation_tokens_total",
    "iteration_tokens_total_count",
    "spec_decode_num_drafts_total",
    "spec_decode_num_draft_tokens_total",
    "spec_decode_num_accepted_tokens_total",
    "num_preemptions_total",
)


@dataclass(frozen=True)
class Counters:
    """What a server has counted since it started.

    Attributes:
        output_tokens: tokens generated.
        steps: forwards, those that only read prompts among them.
        drafts: drafts that were verified: one for each request and step that had one.
        drafted: their tokens.
        accepted: those of them that were accepted.
        preemptions: how often a request lost its KV cache.
    """

    output_tokens: int = 0
    steps: int = 0
    drafts: int = 0
    drafted: int = 0
    accepted: int = 0
    preemptions: int = 0

    def since(self, earlier: Counters) -> Counters:
        """What was counted after `earlier`."""
        return Counters(
            self.output_tokens - earlier.output_tokens,
            self.steps - earlier.steps,
            self.drafts - earlier.drafts,
            self.drafted - earlier.drafted,
            self.accepted - earlier.accepted,
            self.preemptions - earlier.preemptions,
        )

    @property
    def mean_accepted_length(self) -> float:
        """Tokens of a step that had a draft, the next token counted, as vLLM reports it."""
        return 1 + self.accepted / self.drafts if self.drafts else 1.0

    @property
    def tokens_per_step(self) -> float:
        """Output tokens a forward, with and without drafts; for one request at a time."""
        return self.output_tokens / self.steps if self.steps else 0.0


class VllmServer:
    """A running server, asked for whole answers.

    Attributes:
        url: where it is.
    """

    def __init__(self, port: int) -> None:
        """Talk to the server at this port of loopback."""
        self.url = f"http://127.0.0.1:{port}"
        # The server is on this machine: no proxy of the environment stands between.
        self._client = httpx2.Client(base_url=self.url, timeout=_ANSWER_SECONDS, trust_env=False)

    def healthy(self) -> bool:
        """Whether it answers yet."""
        try:
            return self._client.get("/health").status_code == httpx2.codes.OK
        except httpx2.TransportError:
            return False

    def answer(self, request: GenerateRequest, max_new_tokens: int) -> str:
        """The text of the answer, greedily decoded.

        Raises:
            EngineError: the server refuses.
        """
        body: dict[str, Any] = {
            "messages": [{"role": message.role, "content": message.content} for message in request.messages],
            "temperature": 0,
            "max_tokens": max_new_tokens,
        }
        response = self._client.post("/v1/chat/completions", json=body)
        if response.status_code != httpx2.codes.OK:
            raise EngineError(f"vLLM answered {response.status_code}: {response.text[:500]}")
        return str(response.json()["choices"][0]["message"]["content"])

    def counters(self) -> Counters:
        """What it has counted so far."""
        found: dict[str, float] = {}
        for match in _COUNTER.finditer(self._client.get("/metrics").text):
            found[match["name"]] = found.get(match["name"], 0.0) + float(match["value"])
        return Counters(*(int(found.get(name, 0)) for name in _COUNTED))


@contextmanager
def running(
    vllm: Path,
    model: Path,
    *,
    speculative: Mapping[str, Any] | None = None,
    arguments: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> Iterator[VllmServer]:
    """Start `vllm serve` and stop it at the end.

    Args:
        vllm: the command.
        model: a directory of safetensors.
        speculative: its `--speculative-config`.
        arguments: more of its arguments.
        environment: variables on top of this process's.

    Raises:
        EngineError: it does not start; the message ends with what it said last.
    """
    port = _free_port()
    command: list[str | Path] = [vllm, "serve", model, "--host", "127.0.0.1", "--port", str(port), *arguments]
    if speculative is not None:
        command += ["--speculative-config", json.dumps(speculative)]
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            command,
            stdout=log,
            stderr=log,
            env={**_ENVIRONMENT, **os.environ, **(environment or {})},
            start_new_session=True,
        )
        try:
            server = VllmServer(port)
            give_up = time.monotonic() + _START_SECONDS
            while not server.healthy():
                if process.poll() is not None or time.monotonic() > give_up:
                    log.seek(0)
                    raise EngineError(f"{vllm} did not start:\n{log.read()[-_TOLD_CHARS:]}")
                time.sleep(0.5)
            yield server
        finally:
            _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_STOP_SECONDS)
    # Its workers are processes of their own, and outlive it when it is killed.
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
