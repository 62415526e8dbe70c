"""Neovim as a person has it: in a terminal, by its keys and its screen alone."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from tests.editors.nvim.home import Home

PATIENCE_SECONDS = 60.0
COLUMNS, LINES = 100, 36

#: Nobody types on sooner; a terminal can't tell an Escape that is followed at once from an Alt key.
_PAUSE_SECONDS = 0.15

#: Keys by the names that Neovim has for them -> those of tmux.
_NAMES = {
    "Esc": "Escape",
    "CR": "Enter",
    "Tab": "Tab",
    "S-Tab": "BTab",
    "BS": "BSpace",
    "Space": "Space",
    **{name: name for name in ("Up", "Down", "Left", "Right", "End", "Home")},
}
_KEY = re.compile(r"<(lt|Esc|CR|S-Tab|Tab|BS|Space|Up|Down|Left|Right|End|Home|[CM]-.)>")


class Terminal:
    """One Neovim in tmux, which has a socket of its own and reads no configuration.

    Attributes:
        home: where it lives.
        file: the file that was opened.
        version: "0.12" or "0.11".
    """

    def __init__(self, tmux: Path, program: Path, version: str, home: Home, file: Path) -> None:
        """Start it with `file` open."""
        self.home, self.file, self.version = home, file, version
        self._tmux = [str(tmux), "-S", str(home.place / "tmux"), "-f", "/dev/null"]
        self._environment = home.environment() | {"TERM": "xterm-256color"}
        size = ["-x", str(COLUMNS), "-y", str(LINES)]
        argv = [str(program), *self._flags(), str(file)]
        self._run("new-session", "-d", "-c", str(home.work), *size, "--", *argv)

    def _flags(self) -> list[str]:
        return ["--clean", "-u", str(self.home.init), "-n"]

    def _run(self, *command: str) -> str:
        argv = [*self._tmux, *command]
        return subprocess.run(argv, env=self._environment, check=True, capture_output=True, text=True).stdout

    def type(self, keys: str) -> None:
        """Type; special keys as Neovim names them: `oreturn 1<Esc>:w<CR>`."""
        place = 0
        for key in _KEY.finditer(keys):
            self._type_text(keys[place : key.start()])
            place = key.end()
            if key[1] == "lt":
                self._type_text("<")
            else:
                self._run("send-keys", _NAMES.get(key[1], key[1]))
            if key[1] == "Esc":
                time.sleep(_PAUSE_SECONDS)
        self._type_text(keys[place:])

    def _type_text(self, text: str) -> None:
        if text:
            # A semicolon at its end would end the command for tmux.
            self._run("send-keys", "-l", "--", text[:-1] + r"\;" if text.endswith(";") else text)

    def paste(self, text: str) -> None:
        """Paste, which the terminal tells from typing."""
        self._run("set-buffer", "--", text)
        self._run("paste-buffer", "-p")

    def screen(self) -> str:
        """What is to be seen."""
        lines = [line.rstrip() for line in self._run("capture-pane", "-p").splitlines()]
        return "\n".join(line for line in lines if line != "~")

    def colours(self) -> str:
        """What is to be seen, with the escape sequences for its colours."""
        return self._run("capture-pane", "-p", "-e")

    def until(self, shown: str | Callable[[], object], seconds: float = PATIENCE_SECONDS) -> str:
        """Wait for a text on the screen, or for a condition; gives the screen."""
        deadline = time.monotonic() + seconds
        while not (shown in self.screen() if isinstance(shown, str) else shown()):
            assert time.monotonic() < deadline, f"it never came to pass: {shown}"
            time.sleep(0.05)
        return self.screen()

    def until_gone(self, text: str, seconds: float = PATIENCE_SECONDS) -> str:
        """Wait until a text is nowhere on the screen; gives the screen."""
        return self.until(lambda: text not in self.screen(), seconds)

    def edit(self, name: str) -> None:
        """Open another file of the home."""
        self.file = self.home.work / name
        self.type(f":edit {name}<CR>")
        self.until(lambda: name in self.screen().splitlines()[-2])

    def save(self) -> bytes:
        """What is on the disk after `:w` in normal mode."""
        written = self.file.stat().st_mtime_ns
        self.type(":w<CR>")
        self.until(lambda: self.file.stat().st_mtime_ns != written)
        self.until(" written")
        return self.file.read_bytes()

    def report(self) -> str:
        """What helps to understand a test that failed."""
        try:
            screen = self.screen()
        except subprocess.CalledProcessError as error:
            screen = f"tmux is gone: {error.stderr}"
        return f"--- screen\n{screen}\n{self.home.logs()}"

    def close(self) -> None:
        """End it, and all that it started."""
        subprocess.run([*self._tmux, "kill-server"], env=self._environment, check=False, capture_output=True)
        self.home.close()
