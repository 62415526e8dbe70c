from __future__ import annotations

import http.server
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from specedit.cli.models import command
from specedit.models import fetch
from tests.signals import heeding_ctrl_c
from tests.unit.models import fakes


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPECEDIT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "models"


@pytest.fixture
def pulled(cache: Path, tmp_path: Path) -> Path:
    """A local GGUF file that was converted."""
    gguf = tmp_path / "mine.gguf"
    gguf.write_bytes(fakes.GGUF)
    fetch.resolve_or_convert(str(gguf), fakes.convert)
    return gguf


def run(*arguments: str, answer: str | None = None) -> Result:
    return CliRunner().invoke(command, list(arguments), input=answer)


def test_list_shows_what_is_pulled_and_what_is_not(pulled: Path, cache: Path) -> None:
    rows = {row["name"]: row for row in json.loads(run("list", "--json").stdout)}
    assert rows["smollm2-135m"]["pulled"] is False
    assert rows["smollm2-135m"]["license"] == "Apache-2.0"
    assert rows[str(pulled)]["pulled"] is True
    assert Path(rows[str(pulled)]["path"]).parent == cache
    table = run("list").stdout
    assert rows[str(pulled)]["path"] in table
    assert "988 MB" in table


def test_path_prints_the_path_and_nothing_else(pulled: Path, cache: Path) -> None:
    result = run("path", str(pulled))
    assert result.exit_code == 0
    assert Path(result.stdout.rstrip("\n")).parent == cache


def test_a_model_that_is_not_there_exits_4_with_the_command_to_run(cache: Path) -> None:
    result = run("path", "smollm2-135m")
    assert (result.exit_code, result.stdout) == (4, "")
    assert "specedit models pull smollm2-135m" in result.stderr


def test_wrong_usage_exits_2() -> None:
    assert run("path").exit_code == 2
    assert run("pull", "a", "b").exit_code == 2


def test_remove_asks_first(pulled: Path) -> None:
    assert run("remove", str(pulled), answer="n\n").exit_code == 0
    assert run("path", str(pulled)).exit_code == 0
    assert run("remove", str(pulled), answer="y\n").exit_code == 0
    assert run("path", str(pulled)).exit_code == 4
    assert pulled.read_bytes() == fakes.GGUF


def test_remove_with_yes_does_not_ask(pulled: Path, cache: Path) -> None:
    assert run("remove", str(pulled), "--yes").exit_code == 0
    assert not [path for path in cache.iterdir() if not path.name.startswith(".")]
    assert run("remove", str(pulled), "--yes").exit_code == 4


def test_remove_leaves_a_directory_of_the_users_alone(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "mine").mkdir()
    assert run("remove", str(tmp_path / "mine"), "--yes").exit_code == 2
    assert (tmp_path / "mine").is_dir()


def test_ctrl_c_while_downloading_exits_130_and_leaves_nothing_half_done(cache: Path) -> None:
    asked = threading.Event()

    def stall(request: http.server.BaseHTTPRequestHandler) -> None:
        asked.set()
        threading.Event().wait(30)

    with fakes.serving(stall) as address:
        environment = os.environ | {"HF_HUB_OFFLINE": "1", "PIP_CONFIG_FILE": "/dev/null", "PIP_INDEX_URL": address}
        process = subprocess.Popen(
            [sys.executable, "-c", "from specedit.cli import main; main()", "models", "pull", "smollm2-135m"],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=heeding_ctrl_c,
        )
        assert asked.wait(30)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "interrupted" in said
    assert "Traceback" not in said
    assert not [path for path in cache.rglob("*") if path.is_file() and path.suffix != ".lock"]
