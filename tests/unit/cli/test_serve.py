"""The command line of `specedit serve`: what is refused before anything is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from specedit.cli import main
from specedit.engine.discovery import Registration, register
from tests.unit.engine.registered_server import answering, record


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPECEDIT_RUNTIME", str(tmp_path / "run"))
    monkeypatch.setenv("SPECEDIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def serve(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["serve", *map(str, arguments)])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--host", "0.0.0.0"], "--token-file"),
        (["--host", "192.168.1.5"], "--token-file"),
        (["--host", "gpu.example"], "at least 16 characters"),
        (["--host", "0.0.0.0", "--token-file", "token"], "--allowed-host"),
        (["--host", "::", "--token-file", "token"], "--allowed-host"),
        (["--ssl-certfile", "cert.pem"], "go together"),
        (["--ensure", "--port", "8765"], "--ensure"),
        (["--ensure", "--allowed-host", "gpu.example"], "--ensure"),
        (["--port", "65536"], "--port"),
        (["--idle-exit", "0"], "--idle-exit"),
    ],
)
def test_a_command_line_that_can_not_be_meant_is_refused_with_what_to_do(
    arguments: list[str], said: str, place: Path
) -> None:
    result = serve(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert list(place.iterdir()) == []


def test_a_token_file_is_checked(place: Path) -> None:
    token = place / "token"
    token.write_text("too short")
    token.chmod(0o600)
    arguments = ["--host", "192.168.1.5", "--token-file", token]
    short = serve(*arguments)
    assert short.exit_code == 2
    assert "at least 16" in short.stderr
    token.write_text("x" * 20)
    token.chmod(0o640)
    readable = serve(*arguments)
    assert readable.exit_code == 2
    assert f"chmod 600 {token}" in readable.stderr
    assert "xxxx" not in readable.stderr


def test_a_model_that_is_not_there_exits_4_with_the_command_to_run(place: Path) -> None:
    result = serve("--model", "smollm2-135m")
    assert (result.exit_code, result.stdout) == (4, "")
    assert "specedit models pull smollm2-135m" in result.stderr
    assert not (place / "run" / "servers").exists()


def test_a_project_can_not_choose_what_is_served(place: Path) -> None:
    (place / "specedit.toml").write_text('model = "theirs"\n')
    assert "theirs" not in serve("--model", "smollm2-135m").stderr


def test_a_server_of_another_version_is_named_with_how_to_end_it(place: Path) -> None:
    weights = place / "tiny"
    weights.mkdir()
    (weights / "config.json").write_text("{}")
    (weights / "model.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
    with answering(str(weights)) as server:
        old = record(server, str(weights), version="0.0.1")
        registration = register(lambda: old, model=str(weights))
        assert isinstance(registration, Registration)
        result = serve("--model", "tiny")
        registration.remove()
    assert result.exit_code == 2
    assert "specedit 0.0.1" in result.stderr
    assert f"kill {old.pid}" in result.stderr


def test_help_names_what_keeps_a_server_private() -> None:
    shown = serve("--help").stdout
    for option in ("--token-file", "--allowed-host", "--ssl-certfile", "--log-prompts", "--idle-exit", "--ensure"):
        assert option in shown
