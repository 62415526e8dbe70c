from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from specedit.engine.api import Fim, GenerateRequest, Message
from specedit.engine.discovery import servers
from specedit.errors import ConfigError, SpecEditError, UnreachableError
from specedit_lsp.backend import Backend, Status
from specedit_lsp.bridge import in_thread
from specedit_lsp.options import OptionsStore
from tests.fakes import ScriptedEngine
from tests.faults.serving import PATIENCE_SECONDS, end_all, environment, long_request
from tests.scripted_server import DONE, ScriptedServer, chat, completion, models, stream, stream_start
from tests.tiny_model import save_tiny_model

CHAT, COMPLETIONS, MODELS = "/v1/chat/completions", "/v1/completions", "/v1/models"
HELLO = stream(chat("hello"), chat(None, "stop"), DONE)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    yield tmp_path
    end_all()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_model(tmp_path_factory.mktemp("model") / "tiny")


@dataclass
class Desk:
    """A backend, and what it told; `begun` is set once an answer has."""

    backend: Backend
    told: list[Status] = field(default_factory=list)
    begun: threading.Event = field(default_factory=threading.Event)

    async def ask(self, request: GenerateRequest | None = None) -> str:
        request = request or GenerateRequest(messages=(Message("user", "go on"),))
        engine = self.backend.engine()

        def work() -> str:
            text = ""
            for chunk in engine.generate(request):
                text += chunk.text
                self.begun.set()
            return text

        with self.backend.busy("rewrite"):
            return await in_thread(work, request.cancel)

    async def reached(self, state: str) -> Status:
        """The status, once it is that one."""
        deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
        while not self.told or self.told[-1].state != state:
            assert asyncio.get_running_loop().time() < deadline, self.told
            await asyncio.sleep(0.02)
        return self.told[-1]

    @property
    def states(self) -> list[str]:
        """Those that were told, one after the other."""
        found = [status.state for status in self.told]
        return [state for index, state in enumerate(found) if index == 0 or found[index - 1] != state]


def scene(options: dict[str, object], act: Callable[[Desk], Awaitable[None]], **given) -> Desk:
    """Run `act` with a backend of those options."""
    store = OptionsStore()
    assert store.initialize(options, []) == []
    desk = Desk(Backend(store, lambda status: desk.told.append(status), **given))

    async def run() -> None:
        try:
            await act(desk)
        finally:
            desk.backend.close()

    asyncio.run(run())
    return desk


# --- at an address


def test_nothing_at_the_address_is_an_error_with_a_fix_until_something_is_there(place: Path):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    address = f"http://127.0.0.1:{port}"

    async def act(desk: Desk) -> None:
        with pytest.raises(UnreachableError):
            await desk.ask()
        error = await desk.reached("error")
        assert address in error.message
        assert error.fix
        with ScriptedServer({MODELS: [models("m")], CHAT: [HELLO]}, port=port):
            assert await desk.ask() == "hello"
        assert await desk.reached("ready") == Status("ready", model="m")

    assert scene({"engine": address}, act).states == ["busy", "error", "busy", "ready"]


def test_warming_up_asks_the_address_before_anybody_does(place: Path):
    async def act(desk: Desk) -> None:
        desk.backend.warm_up()
        assert (await desk.reached("ready")).model == "m"
        assert server.asked(MODELS)
        assert not server.asked(CHAT)

    with ScriptedServer({MODELS: [models("m")], CHAT: [HELLO]}) as server:
        assert scene({"engine": server.url}, act).states == ["loading", "ready"]


def test_who_wants_no_warming_up_has_none(place: Path):
    async def act(desk: Desk) -> None:
        desk.backend.warm_up()
        await asyncio.sleep(0.05)

    with ScriptedServer({MODELS: [models("m")]}) as server:
        assert scene({"engine": server.url, "warmUp": False}, act).told == []
        assert server.requests == []


def test_a_slow_server_is_busy_and_can_be_cancelled(place: Path):
    async def act(desk: Desk) -> None:
        request = GenerateRequest(messages=(Message("user", "go on"),))
        task = asyncio.ensure_future(desk.ask(request))
        await desk.reached("busy")
        while not server.asked(CHAT):
            await asyncio.sleep(0.02)
        task.cancel()
        assert (await desk.reached("ready")).message == ""
        assert await asyncio.to_thread(server.closed.wait, PATIENCE_SECONDS), "the server was told to stop"

    with ScriptedServer({MODELS: [models("m")]}) as server:
        server.replies = {**server.replies, CHAT: [server.held(stream_start())]}
        assert "error" not in scene({"engine": server.url}, act).states


def test_a_server_that_breaks_off_is_an_error_and_the_next_answer_clears_it(place: Path):
    async def act(desk: Desk) -> None:
        with pytest.raises(SpecEditError, match="broke off"):
            await desk.ask()
        assert "broke off" in (await desk.reached("error")).message
        assert await desk.ask() == "hello"
        await desk.reached("ready")

    with ScriptedServer({MODELS: [models("m")], CHAT: [stream(chat("he")), HELLO]}) as server:
        scene({"engine": server.url}, act)


def test_restarting_asks_the_address_anew(place: Path):
    async def act(desk: Desk) -> None:
        assert await desk.ask() == "hello"
        await desk.backend.restart()
        assert (await desk.reached("ready")).model == "other"
        assert await desk.ask() == "hello"
        assert server.body(CHAT)["model"] == "other"

    with ScriptedServer({MODELS: [models("m"), models("other")], CHAT: [HELLO]}) as server:
        scene({"engine": server.url}, act)


@pytest.mark.parametrize("name", ["Qwen/Qwen2.5-Coder-32B-Instruct", "qwen2.5-coder-3b-q8_0.gguf"])
def test_a_server_that_needs_the_models_markers_is_given_them(place: Path, name: str):
    async def act(desk: Desk) -> None:
        request = GenerateRequest(fim=Fim("def f(", "):"), priority="inline")
        assert await desk.ask(request) == "x"
        assert server.body(COMPLETIONS)["prompt"] == "<|fim_prefix|>def f(<|fim_suffix|>):<|fim_middle|>"

    refused = b"HTTP/1.1 400 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    written = stream(completion("x"), completion("", "stop"), DONE)
    with ScriptedServer({MODELS: [models(name)], COMPLETIONS: [refused, written]}) as server:
        scene({"engine": server.url}, act)


def test_an_address_and_a_model_in_the_options_go_before_the_users_settings(place: Path, monkeypatch):
    monkeypatch.setenv("SPECEDIT_ENGINE", "http://127.0.0.1:9")
    monkeypatch.setenv("SPECEDIT_MODEL", "none of these")

    async def act(desk: Desk) -> None:
        assert await desk.ask() == "hello"
        assert server.body(CHAT)["model"] == "b"

    with ScriptedServer({MODELS: [models("a", "b")], CHAT: [HELLO]}) as server:
        scene({"engine": server.url, "model": "b"}, act)


# --- the server that all editors share


def test_a_server_is_started_loaded_and_used(place: Path, model: Path):
    async def act(desk: Desk) -> None:
        desk.backend.warm_up()
        ready = await desk.reached("ready")
        assert ready.model == str(model)
        assert len(await desk.ask(long_request(20))) > 0

    desk = scene({"model": str(model)}, act)
    assert desk.states[:2] == ["loading", "ready"]
    percents = [status.percent for status in desk.told if status.percent is not None]
    assert percents == sorted(percents)
    assert len(set(percents)) > 1
    assert any("loading" in status.message for status in desk.told)
    assert len(servers()) == 1, "it outlives the editor"


def test_a_server_that_is_killed_in_mid_answer_is_told_and_replaced(place: Path, model: Path):
    async def act(desk: Desk) -> None:
        await desk.ask(long_request(5))
        [record] = servers()
        desk.begun.clear()
        answer = asyncio.ensure_future(desk.ask(long_request()))
        await asyncio.to_thread(desk.begun.wait, PATIENCE_SECONDS)
        os.kill(record.pid, signal.SIGKILL)
        with pytest.raises(UnreachableError):
            await answer
        error = await desk.reached("error")
        assert record.url in error.message
        assert error.fix
        assert len(await desk.ask(long_request(20))) > 0
        await desk.reached("ready")
        [new] = servers()
        assert new.pid != record.pid

    scene({"model": str(model)}, act)


def test_restarting_ends_the_server_and_starts_a_new_one(place: Path, model: Path):
    async def act(desk: Desk) -> None:
        await desk.ask(long_request(5))
        [old] = servers()
        await desk.backend.restart()
        [new] = servers()
        assert new.pid != old.pid
        assert (await desk.reached("ready")).model == str(model)
        assert len(await desk.ask(long_request(5))) > 0

    desk = scene({"model": str(model)}, act)
    assert "ending the server" in [status.message for status in desk.told]
    assert "error" not in desk.states


def test_a_model_that_is_not_there_is_told_with_the_way_to_get_it(place: Path, monkeypatch):
    monkeypatch.setenv("SPECEDIT_CACHE", str(place / "cache"))

    async def act(desk: Desk) -> None:
        desk.backend.warm_up()
        error = await desk.reached("error")
        assert "specedit models pull smollm2-135m" in error.message + error.fix

    scene({"model": "smollm2-135m"}, act)


def test_closing_waits_for_nobody(place: Path, model: Path):
    async def act(desk: Desk) -> None:
        desk.backend.warm_up()
        await desk.reached("loading")

    desk = scene({"model": str(model)}, act)
    assert desk.states == ["loading"]


# --- without any server


def test_asking_for_the_engine_loads_nothing():
    code = """
import asyncio, sys
from specedit_lsp.backend import Backend
from specedit_lsp.options import OptionsStore
async def act():
    backend = Backend(OptionsStore(), print)
    backend.engine()
asyncio.run(act())
print([name for name in ("httpx2", "torch", "numpy", "rich", "http.client") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_engine_may_stand_in(place: Path):
    async def act(desk: Desk) -> None:
        assert await desk.ask() == "hello"
        assert (await desk.reached("ready")).model == "scripted"

    scene({}, act, make_engine=lambda *_: ScriptedEngine(["hello"]))


def test_what_is_under_way_is_said(place: Path):
    async def act(desk: Desk) -> None:
        with desk.backend.busy("inline"), desk.backend.busy("nextEdit"):
            assert desk.backend.status.message == "completing, looking for the next edit"
        assert desk.backend.status == Status("ready")

    scene({}, act)


# --- settings


@contextmanager
def settings(place: Path, text: str = "") -> Iterator[Backend]:
    file = place / "none" / "specedit" / "config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    yield Backend(OptionsStore(), lambda _: None)


def test_a_file_has_the_settings_of_its_project_and_they_may_change(place: Path):
    project = place / "project"
    (project / ".git").mkdir(parents=True)
    (project / "sub").mkdir()
    with settings(place, "max_file_bytes = 7") as backend:
        assert backend.settings_for(project / "sub" / "a.py").max_new_tokens is None
        (project / "specedit.toml").write_text("max_new_tokens = 5")
        found = backend.settings_for(project / "sub" / "a.py")
        assert (found.max_new_tokens, found.max_file_bytes) == (5, 7)
        assert backend.settings_for(None).max_new_tokens is None
        (project / "specedit.toml").unlink()
        assert backend.settings_for(project / "sub" / "a.py").max_new_tokens is None


def test_a_project_with_wrong_settings_sets_nothing_and_is_told(place: Path, caplog: pytest.LogCaptureFixture):
    (place / ".git").mkdir()
    (place / "specedit.toml").write_text("secret_patterns = []\nmax_new_tokens = 5")
    with settings(place, 'secret_patterns = ["*.pem2"]') as backend:
        for _ in range(3):
            found = backend.settings_for(place / "a.py")
    assert found.secret_patterns == ("*.pem2",)
    assert found.max_new_tokens is None
    assert len([record for record in caplog.records if "specedit.toml" in record.getMessage()]) == 1


def test_wrong_settings_of_the_user_are_an_error(place: Path):
    with settings(place, "max_file_byte = 7") as backend, pytest.raises(ConfigError, match="max_file_bytes"):
        backend.settings_for(place / "a.py")


def test_wrong_settings_of_the_user_are_told_as_a_status(place: Path):
    async def act(desk: Desk) -> None:
        with settings(place, "modell = 7"), pytest.raises(ConfigError):
            await desk.ask()
        assert "modell" in (await desk.reached("error")).message

    scene({}, act)
