"""Which servers are found: those that live, answer, take the token and name the model; nobody else sees the token."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from specedit.engine import discovery, runtime
from specedit.engine.discovery import (
    Progress,
    Registration,
    ensure_server,
    find_server,
    once_a_step,
    register,
    servers,
)
from specedit.errors import ConfigError
from tests.unit.engine.registered_server import answering, record

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPECEDIT_RUNTIME", str(tmp_path / "run"))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    return tmp_path / "run"


@contextmanager
def serving(model: str, *, beside: bool = False, told: dict[str, Any] | None = None, **answer: Any) -> Iterator[Any]:
    """A registered server in this process; `told` changes its record, `answer` what it answers."""
    with answering(model, **answer) as server:
        registration = register(lambda: record(server, model, **(told or {})), model=model, beside=beside)
        assert isinstance(registration, Registration)
        try:
            yield server
        finally:
            registration.remove()


def start(model: str, seconds: float = 0) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.unit.engine.registered_server", model, str(seconds)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_where_nothing_runs_nothing_is_found_or_made(directory: Path) -> None:
    assert find_server(None) is None
    assert find_server("tiny") is None
    assert not directory.exists()


def test_a_server_is_found_by_its_model_or_by_none() -> None:
    with serving("tiny") as server:
        found = find_server("tiny")
        assert found == find_server(None) == find_server("TINY")
        assert found is not None
        assert found.url == f"http://127.0.0.1:{server.server_address[1]}"
        assert (found.model, found.pid, found.device) == ("tiny", os.getpid(), "cpu")
        assert found.token == runtime.read_token(runtime.token_file())
        assert found.token not in repr(found)
        assert find_server("other") is None
    assert servers() == []


def test_a_model_given_as_a_path_is_found_from_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "models" / "mine").mkdir(parents=True)
    with serving(str(tmp_path / "models" / "mine")):
        monkeypatch.chdir(tmp_path / "models")
        assert find_server("./mine") == find_server("mine") == find_server(None) is not None


def test_the_token_of_a_server_at_an_address_is_known_while_it_lives() -> None:
    with serving("tiny") as server:
        url = f"http://127.0.0.1:{server.server_address[1]}"
        assert discovery.token_of(url) == server.token
        assert discovery.token_of("http://127.0.0.1:1") is None
    assert discovery.token_of(url) is None


def test_a_server_that_loads_is_waited_for_where_that_is_wanted() -> None:
    said: list[Progress] = []
    with answering("tiny") as server:
        told = {"state": "loading", "step": "loading tiny", "percent": 40}
        registration = register(lambda: record(server, "tiny", **told), model="tiny")
        assert isinstance(registration, Registration)
        try:
            assert find_server("tiny") is None

            def ready(progress: Progress) -> None:
                said.append(progress)
                registration.update(state="ready")

            found = find_server("tiny", wait_seconds=30, on_progress=ready)
        finally:
            registration.remove()
    assert found is not None
    assert found.model == "tiny"
    [progress] = said
    assert "loading tiny" in progress.step
    assert progress.percent == 40


def test_a_server_that_ends_while_it_loads_is_not_waited_for() -> None:
    with answering("tiny") as server:
        registration = register(lambda: record(server, "tiny", state="loading", step="x"), model="tiny")
        assert isinstance(registration, Registration)
        assert find_server("tiny", wait_seconds=30, on_progress=lambda _: registration.remove()) is None


def test_the_last_started_comes_first() -> None:
    with serving("old", told={"started": 1.0}), serving("new", told={"started": 2.0}):
        assert [found.model for found in servers()] == ["new", "old"]
        assert find_server(None) == find_server("new")
        assert find_server("old") is not None


@pytest.mark.parametrize(
    ("told", "answer"),
    [
        ({"state": "loading"}, {}),
        ({"version": "0.0.1"}, {}),
        ({}, {"token": "the token of somebody else"}),
        ({}, {"owner": "vllm"}),
    ],
    ids=["loading", "another version", "wants another token", "another kind of server"],
)
def test_a_server_that_can_not_be_used_is_not_found(told: dict[str, Any], answer: dict[str, Any]) -> None:
    with serving("tiny", told=told, **answer):
        assert find_server("tiny") is None
        assert len(servers()) == 1, "it is alive all the same"


@pytest.mark.parametrize("url", ["http://192.0.2.1:80", "https://127.0.0.1:{port}", "http://localhost.example:{port}"])
def test_only_plain_loopback_is_shown_the_token(url: str) -> None:
    with answering("tiny") as server:
        told = record(server, "tiny", url=url.format(port=server.server_address[1]))
        registration = register(lambda: told, model="tiny")
        assert isinstance(registration, Registration)
        assert find_server("tiny") is None
        registration.remove()
        assert server.seen == []


def test_a_server_of_another_model_on_the_port_is_no_server() -> None:
    with answering("tiny") as server:
        registration = register(lambda: record(server, "big"), model="big")
        assert isinstance(registration, Registration)
        assert find_server("big") is None
        assert find_server(None) is None
        registration.remove()


def test_what_a_killed_server_left_is_removed_and_a_stranger_on_its_port_sees_no_token(directory: Path) -> None:
    process = start("tiny", 60)
    assert process.stdout
    assert process.stdout.readline() == "first\n"
    found = find_server("tiny")
    assert found is not None
    assert found.pid == process.pid
    process.kill()
    process.communicate()
    assert list((directory / "servers").glob("*.json")) != []
    with answering("tiny", port=int(found.url.rpartition(":")[2])) as stranger:
        assert find_server("tiny") is None
        assert stranger.seen == []
    assert list((directory / "servers").iterdir()) == []


def test_a_record_of_a_running_process_without_the_lock_is_stale(directory: Path) -> None:
    with serving("tiny") as server:
        forged = record(server, "tiny", pid=os.getppid())
        runtime.write_privately(directory / "servers" / f"{forged.pid}-tiny.json", msgspec.json.encode(forged))
        assert [found.pid for found in servers()] == [os.getpid()]


def test_a_broken_record_hurts_nobody(directory: Path) -> None:
    with serving("tiny"):
        for name, text in (("1-x.json", "{"), ("2-x.json", "[]"), ("3-x.json", ""), ("notes.txt", "x")):
            (directory / "servers" / name).write_text(text)
        assert len(servers()) == 1
        assert find_server("tiny") is not None


def test_records_are_private(directory: Path) -> None:
    with serving("tiny"):
        files = list((directory / "servers").iterdir())
        assert files
        assert all(file.stat().st_mode & 0o077 == 0 for file in [directory, directory / "servers", *files])
        token = runtime.read_token(runtime.token_file())
        assert not any(token in file.read_text() for file in files)


def test_an_open_directory_is_refused(directory: Path) -> None:
    with serving("tiny"):
        directory.chmod(0o777)
        with pytest.raises(ConfigError, match="chmod 700"):
            find_server("tiny")
        directory.chmod(0o700)


def test_the_second_server_of_a_model_learns_of_the_first() -> None:
    with serving("tiny") as server:
        second = register(lambda: pytest.fail("nothing is bound"), model="tiny")
        assert isinstance(second, discovery.ServerRecord)
        assert second.url.endswith(str(server.server_address[1]))
        with serving("big"):
            assert len(servers()) == 2


def test_of_processes_that_register_at_once_one_becomes_the_server() -> None:
    processes = [start("tiny", 3) for _ in range(4)]
    said = [process.communicate(timeout=60)[0].strip() for process in processes]
    assert said.count("first") == 1
    [url] = {line for line in said if line != "first"}
    assert url.startswith("http://127.0.0.1:")


def test_an_update_is_seen_at_once() -> None:
    with answering("tiny") as server:
        registration = register(lambda: record(server, "tiny", state="loading", step="loading"), model="tiny")
        assert isinstance(registration, Registration)
        assert [(found.state, found.step) for found in servers()] == [("loading", "loading")]
        registration.update(state="ready")
        assert find_server("tiny") is not None
        registration.remove()
        registration.remove()
        assert find_server("tiny") is None


def test_how_far_the_loading_is_is_told_whenever_that_changes() -> None:
    said: list[Progress] = []
    with answering("tiny") as server:
        registration = register(lambda: record(server, "tiny", state="loading", step="loading"), model="tiny")
        assert isinstance(registration, Registration)

        def go_on(progress: Progress) -> None:
            said.append(progress)
            if progress.percent == 60:
                registration.update(state="ready")
            else:
                registration.update(state="loading", step="loading", percent=(progress.percent or 0) + 30)

        assert ensure_server("tiny", on_progress=go_on, timeout_seconds=30).model == "tiny"
        registration.remove()
    assert [progress.percent for progress in said] == [None, 30, 60]
    assert {progress.step for progress in said} == {"loading"}


def test_lines_are_said_once_a_step() -> None:
    said: list[str] = []
    on_progress = once_a_step(said.append)
    for progress in (Progress("a"), Progress("a", 1), Progress("a", 2), Progress("b", 2), Progress("a", 3)):
        on_progress(progress)
    assert said == ["a", "b", "a"]


def test_a_record_that_was_removed_stays_away() -> None:
    with answering("tiny") as server:
        registration = register(lambda: record(server, "tiny", state="loading"), model="tiny")
        assert isinstance(registration, Registration)
        registration.remove()
        registration.update(state="ready", percent=50)
        assert servers() == []
        assert list((runtime.runtime_dir() / "servers").iterdir()) == []


def test_looking_loads_nothing_heavy() -> None:
    code = (
        "import sys; from specedit.engine.discovery import find_server; assert find_server(None) is None; "
        "print([name for name in ('torch', 'numpy', 'httpx2', 'http.client', 'filelock') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
