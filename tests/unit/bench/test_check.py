import time

import pytest

from specedit.bench.check import run_program


def test_a_program_that_ends_passes():
    assert run_program("assert 1 + 1 == 2").passed


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("assert 1 == 2, 'no'", "AssertionError: no"),
        ("def f(:", "SyntaxError"),
        ("raise SystemExit(0)", "left before its end"),
        ("import os; os._exit(0)", "left before its end"),
        ("import sys; sys.exit(3)", "exit code 3"),
        ("input()", "EOFError"),
        ("x = bytearray(3 << 30)", "MemoryError"),
        ("open('big', 'wb').write(bytes(64 << 20))", "exit code -"),
    ],
)
def test_what_does_not_come_to_its_end_fails_and_says_why(program, reason):
    verdict = run_program(program)
    assert not verdict.passed
    assert reason in verdict.reason or (reason == "exit code -" and "File too large" in verdict.reason)


def test_an_endless_program_and_its_children_are_ended():
    started = time.monotonic()
    program = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'while True: pass'])"
    verdict = run_program(program, timeout_seconds=1)
    assert verdict.reason == "still running after 1 s"
    assert time.monotonic() - started < 10


def test_a_program_sees_neither_our_environment_nor_our_packages_of_the_directory(monkeypatch, tmp_path):
    monkeypatch.setenv("SPECEDIT_SECRET", "1")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "helper.py").write_text("")
    assert run_program("import os\nassert 'SPECEDIT_SECRET' not in os.environ").passed
    assert "No module named 'helper'" in run_program("import helper").reason
