"""The private directory: who may use it, and the one token in it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from specedit.engine import runtime
from specedit.errors import ConfigError


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPECEDIT_RUNTIME", str(tmp_path / "new" / "run"))
    return tmp_path / "new" / "run"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_directory_is_made_for_this_user_alone(directory: Path) -> None:
    assert runtime.private_runtime_dir(create=False) is None
    assert not directory.exists()
    assert runtime.private_runtime_dir() == directory
    assert (mode(directory), mode(directory.parent)) == (0o700, 0o700)


@pytest.mark.parametrize("wrong", [0o755, 0o770, 0o701, 0o1777, 0o500])
def test_a_directory_of_another_mode_is_refused_with_the_command_that_mends_it(directory: Path, wrong: int) -> None:
    directory.mkdir(parents=True)
    directory.chmod(wrong)
    with pytest.raises(ConfigError, match=f"chmod 700 {directory}"):
        runtime.private_runtime_dir()
    with pytest.raises(ConfigError, match="SPECEDIT_RUNTIME"):
        runtime.private_runtime_dir(create=False)
    directory.chmod(0o700)
    assert runtime.private_runtime_dir() == directory


def test_links_and_files_are_refused(directory: Path, tmp_path: Path) -> None:
    (tmp_path / "private").mkdir(mode=0o700)
    directory.parent.mkdir()
    directory.symlink_to(tmp_path / "private")
    with pytest.raises(ConfigError, match="is a link"):
        runtime.private_runtime_dir()
    directory.unlink()
    directory.write_text("")
    with pytest.raises(ConfigError, match="no directory"):
        runtime.private_runtime_dir()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_what_belongs_to_another_user_is_refused(directory: Path, tmp_path: Path) -> None:
    directory.mkdir(parents=True, mode=0o700)
    os.chown(directory, 12345, 12345)
    with pytest.raises(ConfigError, match="another user"):
        runtime.private_runtime_dir()
    token = tmp_path / "token"
    token.write_text("x" * 32)
    token.chmod(0o600)
    os.chown(token, 12345, 12345)
    with pytest.raises(ConfigError, match="not a regular file of yours"):
        runtime.read_token(token)


def test_without_a_private_place_of_the_platform_the_cache_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPECEDIT_RUNTIME")
    monkeypatch.setenv("SPECEDIT_CACHE", str(tmp_path / "cache"))
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    monkeypatch.setattr("platformdirs.user_runtime_path", lambda _: open_to_all / "specedit")
    assert runtime.runtime_dir().parent == tmp_path / "cache"
    open_to_all.chmod(0o700)
    assert runtime.runtime_dir() == open_to_all / "specedit"
    assert runtime.runtime_dir({"SPECEDIT_RUNTIME": "/chosen"}) == Path("/chosen")


def test_the_token_is_made_once_and_only_this_user_reads_it(directory: Path) -> None:
    file = runtime.token_file()
    token = runtime.read_token(file)
    assert len(token) >= 32
    assert mode(file) == 0o600
    assert runtime.read_token(runtime.token_file()) == token
    assert [child.name for child in directory.iterdir()] == ["token"]


def test_processes_that_make_the_token_at_once_get_the_same(directory: Path) -> None:
    code = "from specedit.engine.runtime import *; input(); print(read_token(token_file()))"
    processes = [
        subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    for process in processes:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
    tokens = {process.communicate(timeout=60)[0].strip() for process in processes}
    assert len(tokens) == 1
    assert tokens == {runtime.read_token(directory / "token")}


@pytest.mark.parametrize("wrong", [0o644, 0o640, 0o602])
def test_a_token_that_others_can_read_is_refused(tmp_path: Path, wrong: int) -> None:
    file = tmp_path / "token"
    file.write_text("a-secret-of-thirty-two-characters")
    file.chmod(wrong)
    with pytest.raises(ConfigError, match=f"chmod 600 {file}") as refused:
        runtime.read_token(file)
    assert "a-secret" not in str(refused.value)


@pytest.mark.parametrize("text", ["", "short", "x" * 15, "with blanks within the token", "größer-als-sechzehn-zeichen"])
def test_what_is_no_token_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "token"
    file.write_text(text)
    file.chmod(0o600)
    with pytest.raises(ConfigError, match="at least 16"):
        runtime.read_token(file)


def test_a_token_file_is_neither_a_link_nor_a_pipe(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("x" * 32)
    file.chmod(0o600)
    (tmp_path / "link").symlink_to(file)
    os.mkfifo(tmp_path / "pipe", 0o600)
    for name in ("link", "pipe", "missing"):
        with pytest.raises(ConfigError):
            runtime.read_token(tmp_path / name)
    assert runtime.read_token(file) == "x" * 32
