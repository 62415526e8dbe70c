"""Whether a program runs to its end: a separate Python process with limits, in a directory of its own.

This runs code that a model wrote. Covered: time, memory, size of files, standard input, environment variables, and the
current directory. Not covered: the network, reading files elsewhere, and processes that detach themselves. Whoever does
not trust the model runs the benchmark in a container. Unix only.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

TIMEOUT_SECONDS = 20
MEMORY_BYTES = 1 << 30
_FILE_BYTES = 16 << 20

_PROGRAM, _FINISHED, _ERRORS = "program.py", "finished", "errors.txt"

#: Sets the limits in the process itself, and leaves a mark where the program came to its end: leaving early with exit
#: code 0 is no pass.
_RUNNER = f"""\
import resource, runpy, sys
for limit, value in ((resource.RLIMIT_AS, {MEMORY_BYTES}), (resource.RLIMIT_FSIZE, {_FILE_BYTES}),
                     (resource.RLIMIT_CORE, 0)):
    resource.setrlimit(limit, (value, value))
runpy.run_path({_PROGRAM!r}, run_name="__main__")
open({_FINISHED!r}, "x").close()
"""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether something passed; `reason` says what went wrong, in one line."""

    passed: bool
    reason: str = ""


def run_program(program: str, *, timeout_seconds: float = TIMEOUT_SECONDS) -> Verdict:
    """Run a Python program and tell whether it came to its end without an exception, in time and within memory."""
    with tempfile.TemporaryDirectory(prefix="specedit-check-", ignore_cleanup_errors=True) as name:
        place = Path(name)
        (place / _PROGRAM).write_text(program, encoding="utf-8", errors="surrogateescape", newline="")
        with (place / _ERRORS).open("wb") as errors:
            process = subprocess.Popen(
                [sys.executable, "-I", "-c", _RUNNER],
                cwd=place,
                env={"PATH": os.defpath, "HOME": name, "TMPDIR": name},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )
            try:
                code = process.wait(timeout_seconds)
            except subprocess.TimeoutExpired:
                return Verdict(False, f"still running after {timeout_seconds:g} s")
            finally:
                _end(process)
        if code == 0 and (place / _FINISHED).exists():
            return Verdict(True)
        last = (place / _ERRORS).read_text(encoding="utf-8", errors="replace").strip().split("\n")[-1]
        return Verdict(False, last or (f"exit code {code}" if code else "left before its end"))


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill whatever is left of the process and its children."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
