import json
import os
import pty
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FILES = 40
OLD = "".join(f"line {n}\n" for n in range(100))
NEW = OLD.upper()


def _start(directory, *arguments, seconds=0.002, **options):
    names = [f"file{n:02}.txt" for n in range(FILES)]
    for name in names:
        if not (directory / name).exists():
            (directory / name).write_text(OLD)
    command = [sys.executable, "-m", "tests.unit.cli.scripted_specedit", str(seconds)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CONFIG_HOME": str(directory / "none")}
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | options
    return subprocess.Popen(
        [*command, "edit", *names, "-m", "capitals", "--write", *arguments],
        cwd=directory,
        env=environment,
        **options,
    )


def _wait_until_some_are_written(directory, count):
    deadline = time.monotonic() + 30
    while sum(path.read_text() == NEW for path in directory.glob("*.txt")) < count:
        assert time.monotonic() < deadline, "the batch does not get on"
        time.sleep(0.001)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_each_file_is_wholly_old_or_wholly_new(tmp_path, number, seed):
    chance = random.Random(seed)
    process = _start(tmp_path)
    _wait_until_some_are_written(tmp_path, chance.randint(1, FILES // 2))
    time.sleep(chance.random() * 0.02)
    process.send_signal(number)
    _, said = process.communicate(timeout=30)
    texts = {path.name: path.read_text() for path in tmp_path.glob("*.txt")}
    assert len(texts) == FILES
    assert set(texts.values()) == {OLD, NEW}, "neither all nor none were done"
    if number == signal.SIGKILL:
        assert process.returncode == -signal.SIGKILL
    else:
        assert process.returncode == 130
        assert {path.name for path in tmp_path.iterdir()} == texts.keys(), "a temporary file stayed"
        done, left = re.search(r"Done: (.*)\. Not done: (.*)\.\n", said).groups()
        assert set(done.split(", ")) == {name for name, text in texts.items() if text == NEW}
        assert set(left.split(", ")) == {name for name, text in texts.items() if text == OLD}


def test_running_again_finishes_the_rest(tmp_path):
    process = _start(tmp_path)
    _wait_until_some_are_written(tmp_path, 3)
    process.kill()
    process.communicate()
    again = _start(tmp_path, "--json", seconds=0)
    results, _ = again.communicate(timeout=60)
    statuses = [json.loads(line)["status"] for line in results.splitlines()]
    assert again.returncode == 0
    assert set(statuses) == {"changed", "unchanged"}
    assert {path.read_text() for path in tmp_path.glob("*.txt")} == {NEW}
    assert len(list(tmp_path.iterdir())) == FILES


def test_the_model_is_stopped_at_once(tmp_path):
    process = _start(tmp_path, seconds=0.5)
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    asked = time.monotonic()
    process.communicate(timeout=30)
    assert process.returncode == 130
    assert time.monotonic() - asked < 2


def test_an_interrupted_batch_still_gives_an_object_a_file(tmp_path):
    process = _start(tmp_path, "--json")
    _wait_until_some_are_written(tmp_path, 2)
    process.send_signal(signal.SIGINT)
    results, _ = process.communicate(timeout=30)
    objects = [json.loads(line) for line in results.splitlines()]
    assert len(objects) == FILES
    assert objects[-1]["status"] == "failed"
    assert "interrupted" in objects[-1]["reason"]


@pytest.mark.parametrize("no_color", [False, True])
def test_a_file_can_not_drive_the_terminal(tmp_path, no_color):
    path = tmp_path / "evil.txt"
    path.write_text("a\x1b]0;owned\x07\nb\u202e\n")
    ours, theirs = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "XDG_CONFIG_HOME": str(tmp_path / "none")}
    environment.pop("NO_COLOR", None)
    if no_color:
        environment["NO_COLOR"] = "1"
    command = [sys.executable, "-m", "tests.unit.cli.scripted_specedit", "0", "edit", str(path), "-m", "x"]
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=theirs, stderr=subprocess.PIPE)
    os.close(theirs)
    shown = b""
    try:
        while data := os.read(ours, 65536):
            shown += data
    except OSError:
        pass
    process.communicate(timeout=30)
    assert b"\x1b]0;" not in shown
    assert b"\x07" not in shown
    assert rb"A\x1b]0;OWNED\x07" in shown
    assert "\u202e".encode() not in shown
    assert (b"\x1b[32m" in shown) is not no_color
