"""What becomes of a server and its clients when something ends, in real processes."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from specedit.engine.api import CancelToken, GenerateRequest, Message
from specedit.engine.discovery import Progress, SharedEngine, end_server, ensure_server, find_server, servers
from specedit.errors import EngineError, UnreachableError
from tests.faults.serving import (
    PATIENCE_SECONDS,
    end_all,
    environment,
    events,
    get,
    long_request,
    serving,
    streaming,
    until,
)
from tests.tiny_model import save_tiny_model


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_model(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    yield tmp_path
    end_all()


def test_a_server_says_what_it_does_from_loading_to_the_end_of_the_last_answer(place: Path, model: Path) -> None:
    with serving(place, "--model", model) as server:
        loading = server.wait_for("any")
        assert loading.state == "loading"
        early = get(loading)
        assert (early.status_code, early.headers["retry-after"]) == (503, "1")
        assert early.json()["error"]["code"] == "loading"
        assert httpx2.get(f"{loading.url}/v1/models", trust_env=False).status_code == 401
        assert get(loading, Origin="https://page.example").status_code == 403
        assert find_server(None) is None

        record = server.wait_for("ready")
        found = find_server(str(model))
        assert found is not None
        assert (found.url, found.model, found.pid) == (record.url, str(model), server.popen.pid)
        health = httpx2.get(f"{record.url}/health", trust_env=False)
        assert (health.status_code, health.json()) == (200, {"status": "ok"})
        assert "server" not in health.headers
        assert found.token not in server.said
        assert f"the token lies in {record.token_file}" in server.said
        assert record.url in server.said

        with serving(place, "--model", os.path.relpath(model, place)) as second:
            assert second.popen.wait(PATIENCE_SECONDS) == 0
            assert f"served already at {record.url}" in second.said

        with streaming(record) as lines:
            begun = [next(lines), next(lines)]
            server.popen.send_signal(signal.SIGTERM)
            until(lambda: not servers())
            refused = get(record, "/v1/completions")
            assert refused.status_code in (405, 503)
            assert get(record, "/health").status_code == 503
            rest = events(lines)
        assert len(begun) == 2
        assert rest[-1]["choices"][0]["finish_reason"] == "length"
        assert sum(len(event["choices"]) for event in rest) > 1000
        assert server.popen.wait(PATIENCE_SECONDS) == 0
        stdout = server.popen.stdout
        assert stdout
        assert stdout.read() == ""
        assert "1500 output tokens" in server.said
        assert "go on" not in server.said, "nothing of a prompt is logged"
    assert list((place / "run" / "servers").iterdir()) == []


def test_what_does_not_end_in_time_is_cut_with_an_error(place: Path, model: Path) -> None:
    with serving(place, "--model", model, "--drain-seconds", "0.2") as server:
        record = server.wait_for("ready")
        with streaming(record) as lines:
            next(lines)
            server.popen.send_signal(signal.SIGINT)
            last = events(lines)[-1]
        assert "shut down" in last["error"]["message"]
        assert server.popen.wait(PATIENCE_SECONDS) == 0


def test_a_second_signal_ends_at_once(place: Path, model: Path) -> None:
    with serving(place, "--model", model) as server:
        record = server.wait_for("ready")
        with streaming(record) as lines:
            next(lines)
            server.popen.send_signal(signal.SIGTERM)
            until(lambda: not servers())
            assert server.end(signal.SIGTERM) == 128 + signal.SIGTERM
            with pytest.raises(httpx2.TransportError):
                list(lines)


def test_of_two_that_ensure_at_once_both_get_one_server_and_the_next_request_survives_its_death(
    place: Path, model: Path
) -> None:
    command = [sys.executable, "-m", "specedit.cli", "serve", "--ensure", "--model", "tiny"]
    both = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=model.parent)
        for _ in range(2)
    ]
    outputs = [process.communicate(timeout=PATIENCE_SECONDS) for process in both]
    assert [process.returncode for process in both] == [0, 0], outputs
    told = [json.loads(stdout) for stdout, _ in outputs]
    assert told[0] == told[1]
    [record] = servers()
    assert told[0] == {"url": record.url, "token_file": record.token_file, "model": str(model), "pid": record.pid}
    assert os.getsid(record.pid) == record.pid, "it outlives the terminal"
    assert Path(f"/proc/{record.pid}/cwd").resolve() == Path("/")

    engine = SharedEngine(str(model))
    chunks = engine.generate_plain(long_request())
    assert next(chunks).finish_reason is None
    assert engine.model_name == str(model)
    os.kill(record.pid, signal.SIGKILL)
    with pytest.raises(UnreachableError) as gone:
        list(chunks)
    assert record.url in str(gone.value)

    again = "".join(chunk.text for chunk in engine.generate(long_request(20)))
    assert len(again) > 0
    [new] = servers()
    assert new.pid != record.pid
    engine.close()


def test_a_server_that_is_killed_while_it_loads_is_told_and_replaced(place: Path, model: Path) -> None:
    with ThreadPoolExecutor(1) as aside:
        steps: list[Progress] = []
        ensured = aside.submit(ensure_server, str(model), on_progress=steps.append)
        [loading] = until(servers)
        os.kill(loading.pid, signal.SIGKILL)
        with pytest.raises(UnreachableError, match="ended before it was ready") as failed:
            ensured.result(PATIENCE_SECONDS)
    assert "loading" in str(failed.value), "the last lines of its log are shown"
    assert steps[0].step == "starting a server"
    assert servers() == []


def test_a_server_says_how_much_is_loaded(place: Path, model: Path) -> None:
    told: list[Progress] = []
    server = ensure_server(str(model), on_progress=told.append)
    percents = [progress.percent for progress in told if progress.percent is not None]
    assert percents == sorted(set(percents)), "it never goes back"
    assert percents[0] == 0
    assert percents[-1] < 100
    [record] = servers()
    assert (record.pid, record.state, record.percent) == (server.pid, "ready", None)


def test_ending_a_server_waits_until_it_is_gone(place: Path, model: Path) -> None:
    assert not end_server(None)
    with serving(place, "--model", model) as server:
        record = server.wait_for("ready")
        with streaming(record) as lines:
            next(lines)
            assert not end_server("another model")
            assert end_server(str(model), drain_seconds=0.1)
        assert servers() == []
        assert server.popen.wait(1) is not None


def test_a_server_that_hangs_is_ended_too(place: Path, model: Path) -> None:
    with serving(place, "--model", model) as server:
        server.wait_for("ready")
        os.kill(server.popen.pid, signal.SIGSTOP)
        assert end_server(None, drain_seconds=0.1)
        assert server.popen.wait(PATIENCE_SECONDS) == -signal.SIGKILL


def test_a_server_that_can_not_start_says_why(place: Path) -> None:
    (place / "no model").mkdir()
    with pytest.raises(UnreachableError, match=r"config\.json"):
        ensure_server(str(place / "no model"))


def test_waiting_for_a_server_can_be_cancelled(place: Path, model: Path) -> None:
    cancel = CancelToken()
    request = GenerateRequest(messages=(Message("user", "hi"),), cancel=cancel)
    engine = SharedEngine(str(model), on_progress=lambda _: cancel.cancel())
    [chunk] = engine.generate(request)
    assert chunk.finish_reason == "cancelled"
    with pytest.raises(EngineError, match="cancelled"):
        ensure_server(str(model), cancel=cancel)
    until(servers)


def test_a_signal_while_loading_ends_cleanly(place: Path, model: Path) -> None:
    with serving(place, "--model", model) as server:
        server.wait_for("loading")
        assert server.end(signal.SIGTERM) == 0
        assert servers() == []
        assert "Traceback" not in server.said


def test_a_server_ends_itself_once_it_has_no_work(place: Path, model: Path) -> None:
    with serving(place, "--model", model, "--idle-exit", "0.01") as server:
        record = server.wait_for("ready")
        with streaming(record) as lines:
            assert events(lines)[-1]["choices"][0]["finish_reason"] == "length"
        assert server.popen.wait(PATIENCE_SECONDS) == 0
        assert servers() == []


def test_a_server_for_other_machines_needs_its_own_token_and_warns(place: Path, model: Path) -> None:
    token = place / "token"
    token.write_text("0123456789abcdef")
    token.chmod(0o600)
    arguments = ["--host", "0.0.0.0", "--port", "0", "--allowed-host", "gpu.example", "--token-file", token]
    with serving(place, "--model", model, *arguments) as server:
        record = server.wait_for("any")
        assert record.url.startswith("http://127.0.0.1:")
        assert record.token_file == str(token)
        until(lambda: "--ssl-certfile" in server.said)

        def status(host: str) -> int:
            headers = {"Authorization": "Bearer 0123456789abcdef", "Host": host}
            return httpx2.get(f"{record.url}/v1/models", headers=headers, trust_env=False).status_code

        assert status("gpu.example") == status("gpu.example:443") != 421
        assert status("other.example") == 421
        assert not (place / "run" / "token").exists()


def test_a_port_in_use_is_told_before_the_model_is_loaded(place: Path, model: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with serving(place, "--model", model, "--port", str(port)) as server:
            assert server.popen.wait(PATIENCE_SECONDS) == 2
            assert f"127.0.0.1 port {port} can't be listened on" in server.said
            assert "--port" in server.said
            assert "loading" not in server.said


def test_an_open_runtime_directory_is_refused(place: Path, model: Path) -> None:
    (place / "run").mkdir(mode=0o755)
    with serving(place, "--model", model) as server:
        assert server.popen.wait(PATIENCE_SECONDS) == 2
        assert f"chmod 700 {place / 'run'}" in server.said


def test_a_token_that_others_can_read_is_refused(place: Path, model: Path) -> None:
    (place / "run").mkdir(mode=0o700)
    token = place / "run" / "token"
    token.write_text("x" * 43)
    token.chmod(0o644)
    with serving(place, "--model", model) as server:
        assert server.popen.wait(PATIENCE_SECONDS) == 2
        assert f"chmod 600 {token}" in server.said
