"""Emacs for tests: without a terminal, and as a person has it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from tests.editors.documented import blocks
from tests.editors.nvim.home import Home
from tests.editors.nvim.terminal import Terminal
from tests.lsp.scripted_lsp import Script

DRIVE = Path(__file__).with_name("drive.el")
MODEL = "qwen2.5-coder-1.5b"
_TOLD = "told: "
_HANGS_SECONDS = 150
#: How the mode line begins where there is nothing to save.
_UNCHANGED = ":---"

#: What is compiled at its first use is compiled again in every new home, and told about. The mode line must fit.
_OURS = "(setq native-comp-deferred-compilation nil native-comp-jit-compilation nil mode-line-position nil)\n"


def emacs() -> str | None:
    """The one that the environment names, else the one on the PATH, if it has Eglot."""
    found = os.environ.get("SPECEDIT_TEST_EMACS") or shutil.which("emacs")
    try_eglot = ["-q", "--batch", "--eval", "(require 'eglot)"]
    if found and subprocess.run([found, *try_eglot], capture_output=True, check=False).returncode == 0:
        return found
    return None


class EmacsHome(Home):
    """Where one Emacs lives; its configuration is what the page shows."""

    def __init__(self, place: Path, script: Script | None, model: str = MODEL, more: str = "") -> None:
        """The model of the page gives way to `model`; `more` is further Lisp."""
        super().__init__(place, "", script)
        (shown,) = blocks("### Emacs", "elisp")
        assert MODEL in shown
        self.init = place / "init.el"
        self.init.write_text(f"{_OURS}{shown.replace(MODEL, model)}\n{more}\n")

    def environment(self) -> dict[str, str]:
        """Variables that keep the editor and the server apart from the user's."""
        return super().environment() | {"HOME": str(self.place)}

    def run(self, program: str, lisp: str) -> list[Any]:
        """What `lisp` tells with `drive-tell`, run without a terminal."""
        argv = [program, "-q", "--batch", "-l", str(self.init), "-l", str(DRIVE), "--eval", f"(progn {lisp})"]
        done = subprocess.run(
            argv,
            cwd=self.work,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_HANGS_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n{self.logs()}"
        return [json.loads(line[len(_TOLD) :]) for line in done.stdout.splitlines() if line.startswith(_TOLD)]


class EmacsTerminal(Terminal):
    """Emacs as a person has it."""

    def _flags(self) -> list[str]:
        return ["-nw", "-q", "-l", str(self.home.init)]

    def command(self, name: str) -> None:
        """Run a command by its name."""
        self.type(f"<M-x>{name}<CR>")

    def save(self) -> bytes:
        """What is on the disk after changes were saved."""
        self.type("<C-x><C-s>")
        self.until(_UNCHANGED)
        return self.file.read_bytes()
