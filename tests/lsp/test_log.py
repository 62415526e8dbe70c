from __future__ import annotations

import asyncio
import logging
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import platformdirs
import pytest
from lsprotocol.types import MessageType

from specedit_lsp.log import Log, default_file

CODE = "password = 'hunter2'"


@pytest.fixture
def log() -> Iterator[Log]:
    opened = Log()
    yield opened
    opened.close()
    for name in ("specedit", "specedit_lsp"):
        logging.getLogger(name).setLevel(logging.NOTSET)


def ours(name: str = "specedit_lsp.x") -> logging.Logger:
    return logging.getLogger(name)


def test_our_lines_are_in_a_private_file(log: Log, tmp_path: Path):
    file = tmp_path / "made" / "a.log"
    log.open(file)
    ours().info("told %s", "you")
    ours("specedit.engine.remote").warning("mind it")
    ours().debug("too much")
    text = file.read_text()
    assert "INFO specedit_lsp.x: told you\n" in text
    assert "WARNING specedit.engine.remote: mind it\n" in text
    assert "too much" not in text
    assert f"[{os.getpid()}]" in text
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_file_that_others_may_read_is_made_private(log: Log, tmp_path: Path):
    file = tmp_path / "a.log"
    file.write_text("old\n")
    file.chmod(0o644)
    log.open(file)
    ours().info("new")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text().startswith("old\n")


def test_what_is_no_file_keeps_its_mode(log: Log):
    before = Path(os.devnull).stat().st_mode
    log.open(Path(os.devnull))
    ours().info("new")
    assert Path(os.devnull).stat().st_mode == before


def test_the_level_may_change_and_the_file_too(log: Log, tmp_path: Path):
    log.open(tmp_path / "a.log", "debug")
    ours().debug("one")
    log.open(tmp_path / "b.log", "error")
    ours().warning("two")
    ours().error("three")
    assert "one" in (tmp_path / "a.log").read_text()
    assert "three" not in (tmp_path / "a.log").read_text()
    assert "two" not in (tmp_path / "b.log").read_text()
    assert "three" in (tmp_path / "b.log").read_text()


def test_the_default_is_in_the_users_log_directory(log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(platformdirs, "user_log_path", lambda name: tmp_path / name / "log")
    log.open()
    assert log.file == default_file() == tmp_path / "specedit" / "log" / "lsp.log"
    assert log.file.exists()


def test_it_grows_to_a_few_megabytes_and_no_more(log: Log, tmp_path: Path):
    log.open(tmp_path / "a.log")
    for _ in range(60):
        ours().info("x" * 100_000)
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["a.log", "a.log.1", "a.log.2"]
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 and file.stat().st_size < 1_100_000 for file in files)


@pytest.mark.parametrize("place", ["in/the/way", "a\0b"])
def test_a_file_that_cannot_be_written_is_told_and_no_crash(log: Log, tmp_path: Path, place: str, caplog):
    (tmp_path / "in").write_text("a file where a directory should be")
    log.open(tmp_path / place / "a.log")
    ours().info("goes nowhere")
    assert log.file is None
    assert "logFile" in caplog.text


def test_a_file_that_goes_away_is_no_crash(log: Log, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    log.open(Path("/dev/full"))
    ours().info(CODE)
    assert "hunter2" not in "".join(capsys.readouterr())


def test_code_in_messages_that_pygls_handles_reaches_no_log(log: Log, tmp_path: Path):
    log.open(tmp_path / "a.log", "debug")
    pygls = logging.getLogger("pygls.protocol.json_rpc")
    pygls.info("Sending data: %s", CODE)
    pygls.warning('Unknown message "%s"', CODE)
    try:
        raise ValueError(CODE)
    except ValueError:
        pygls.exception("Failed to handle notification %r: %s", "textDocument/didChange", CODE, exc_info=True)
    logging.getLogger("asyncio").error(f"Task exception was never retrieved\nfuture: ValueError({CODE!r})")
    text = (tmp_path / "a.log").read_text()
    assert "hunter2" not in text
    assert "Sending data" not in text
    assert "Failed to handle notification" in text
    assert "Task exception was never retrieved" in text
    assert "builtins.ValueError" in text


def test_an_exception_is_logged_by_type_and_place(log: Log, tmp_path: Path):
    log.open(tmp_path / "a.log")
    try:
        try:
            {}[CODE]
        except KeyError as error:
            raise RuntimeError(CODE) from error
    except RuntimeError:
        ours().exception("it failed")
    text = (tmp_path / "a.log").read_text()
    assert "builtins.RuntimeError" in text
    assert "builtins.KeyError" in text
    assert 'test_log.py", line' in text
    assert "hunter2" not in text


def test_the_editor_gets_our_lines_in_order_also_from_threads(log: Log, tmp_path: Path):
    sent: list[tuple[str, MessageType]] = []

    async def scenario() -> None:
        log.open(tmp_path / "a.log")
        log.to_editor(lambda message, kind: sent.append((message, kind)))
        ours().info("one")
        thread = threading.Thread(target=lambda: ours().warning("two"))
        thread.start()
        thread.join()
        ours().error("three")
        ours().debug("nothing")
        logging.getLogger("pygls").error("not ours")
        await asyncio.sleep(0)

    asyncio.run(scenario())
    assert sent == [("one", MessageType.Info), ("two", MessageType.Warning), ("three", MessageType.Error)]
    ours().info("after the loop has ended")
    assert "after the loop" in (tmp_path / "a.log").read_text()


def run(code: str, **how) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, timeout=60, check=True, **how)


STRAY = """
import os, subprocess, sys
from specedit_lsp.log import take_stdout
stream = take_stdout()
print("stray", flush=True)
os.write(1, b"stray\\n")
subprocess.run(["echo", "stray"], check=True)
stream.write(b"message")
stream.flush()
"""


def test_a_stray_print_never_reaches_the_protocol():
    done = run(STRAY, stderr=subprocess.PIPE)
    assert done.stdout == b"message"
    assert done.stderr.count(b"stray") == 3


def test_an_editor_without_stderr_changes_nothing():
    script = f"import os, sys; os.close(2); sys.argv = ['x']; exec({STRAY!r})"
    assert run(script).stdout == b"message"
