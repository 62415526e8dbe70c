"""A home of its own for a Neovim under test: its directories, its configuration, and a `specedit` on its PATH."""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from tests.lsp import harness as server
from tests.lsp.scripted_lsp import Script

ROOT = Path(__file__).parents[3]
PLUGIN = ROOT / "editors/nvim"
_INSTALLED = ROOT / ".venv/editors/bin"
_VARIABLES = {"0.12": "SPECEDIT_TEST_NVIM", "0.11": "SPECEDIT_TEST_NVIM_011", "tmux": "SPECEDIT_TEST_TMUX"}
_INSTALLED_AS = {"0.12": "nvim-0.12", "0.11": "nvim-0.11", "tmux": "tmux"}


def binary(name: str) -> Path | None:
    """Neovim by its version, or tmux: what the environment names, else what `make test-nvim` installs."""
    if named := os.environ.get(_VARIABLES[name]):
        return Path(named)
    installed = _INSTALLED / _INSTALLED_AS[name]
    if installed.exists():
        return installed
    on_path = shutil.which("tmux") if name == "tmux" else None
    return Path(on_path) if on_path else None


def why_missing(name: str) -> str:
    """What to do where `binary` gives nothing."""
    return f"no {_INSTALLED_AS[name]}: `make test-nvim` installs it, or set {_VARIABLES[name]}"


class Home:
    """Where one Neovim lives; everything that it starts is found by this directory, and ended with it.

    Attributes:
        place: the directory.
        work: where the files that are edited are; the editor's working directory.
        init: the configuration.
    """

    def __init__(self, place: Path, config: str, script: Script | None) -> None:
        """Write the configuration, and a `specedit` whose model follows the script; the real one without a script."""
        self.place, self.work, self.init = place, place / "work", place / "init.lua"
        self._record = place / "record.jsonl"
        for directory in (self.work, place / "bin", place / "run"):
            # The server takes no runtime directory that others may use.
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.init.write_text(f"vim.opt.rtp:prepend({json.dumps(str(PLUGIN))})\n{config}\n")
        self._put_on_path(script)

    def _put_on_path(self, script: Script | None) -> None:
        if script is None:
            # Models are pulled into the user's own cache.
            cache = os.environ.get("XDG_CACHE_HOME", "")
            start = f'XDG_CACHE_HOME={shlex.quote(cache)} exec {shlex.quote(sys.executable)} -m specedit.cli "$@"'
        else:
            file = self.place / "script.json"
            record = script.record or str(self._record)
            file.write_text(json.dumps(dataclasses.asdict(script) | {"record": record}))
            start = f"exec {shlex.join([sys.executable, '-m', 'tests.lsp.scripted_lsp', str(file)])}"
        program = self.place / "bin/specedit"
        program.write_text(f"#!/bin/sh\n{start}\n")
        program.chmod(0o755)

    def file(self, name: str, text: str | bytes) -> Path:
        """A file to edit."""
        path = self.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def environment(self) -> dict[str, str]:
        """Variables that keep the editor and the server apart from the user's."""
        own = server.environment(self.place)
        for name in ("VIM", "VIMRUNTIME", "NVIM", "NVIM_APPNAME", "TMUX"):
            own.pop(name, None)
        return own | {
            "PATH": f"{self.place / 'bin'}{os.pathsep}{own['PATH']}",
            "LANG": "C.UTF-8",
            "LC_ALL": "C.UTF-8",
            **{f"XDG_{name}_HOME": str(self.place / name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")},
            "XDG_RUNTIME_DIR": str(self.place / "run"),
        }

    def asked(self, event: str = "asked") -> list[dict[str, Any]]:
        """What the scripted model was asked, or with `ended` how its answers ended."""
        lines = self._record.read_text().splitlines() if self._record.exists() else []
        return [line for line in map(json.loads, lines) if line["event"] == event]

    def processes(self, part_of_command: str) -> list[psutil.Process]:
        """What runs here, by a part of its command line."""
        return [process for process in self._all() if part_of_command in " ".join(process.cmdline())]

    def _all(self) -> Iterator[psutil.Process]:
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.environ().get("SPECEDIT_RUNTIME") == str(self.place / "run") and process.pid != os.getpid():
                    yield process

    def logs(self, lines: int = 30) -> str:
        """The ends of all logs: the editor's, the client's, the server's."""
        files = sorted(self.place.rglob("*.log"))
        return "\n".join(f"--- {file}\n" + "\n".join(_tail(file, lines)) for file in files)

    def close(self) -> None:
        """End whatever was started here, in whatever group it put itself."""
        for process in self._all():
            with suppress(psutil.Error):
                process.kill()


def _tail(file: Path, lines: int) -> list[str]:
    return file.read_text(errors="replace").splitlines()[-lines:]
