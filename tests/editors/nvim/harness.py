"""Neovim without a terminal, driven over its API; the language server's model follows a script."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pynvim

from tests.editors.nvim.home import Home

ATTACH_SECONDS = 60.0
PATIENCE_SECONDS = 30.0
COLUMNS, LINES = 100, 40

Value = TypeVar("Value")

#: All that is told by `vim.notify` is kept: a message of several lines would wait for a key else.
_KEEP_MESSAGES = """\
_G.notified = {}
vim.notify = function(message, level) table.insert(_G.notified, { tostring(message), level or 2 }) end
"""


@dataclass(frozen=True)
class Extmark:
    """A mark of the plugin's in the buffer, with what it draws."""

    row: int
    column: int
    details: dict[str, Any]


class Editor:
    """One Neovim.

    Attributes:
        nvim: the API client.
        home: where it lives.
        file: the file that was opened.
        version: "0.12" or "0.11".
    """

    def __init__(self, program: Path, version: str, home: Home, file: Path) -> None:
        """Start it with `file` open."""
        self.home, self.file, self.version = home, file, version
        keep = home.place / "messages.lua"
        keep.write_text(_KEEP_MESSAGES)
        variables = [f"{name}={value}" for name, value in home.environment().items()]
        flags = ["--clean", "-u", str(home.init), "--cmd", f"luafile {keep}", "-n", "--embed", "--headless"]
        argv = ["env", "-i", "-C", str(home.work), *variables, str(program), *flags, str(file)]
        self.nvim = pynvim.attach("child", argv=argv)
        self.nvim.ui_attach(COLUMNS, LINES, rgb=True)

    def lua(self, code: str, *arguments: Any) -> Any:
        """What a chunk of Lua returns; `...` are the arguments."""
        return self.nvim.exec_lua(code, *arguments)

    def keys(self, keys: str) -> None:
        """Type, and wait until all of it is taken, or the editor waits for more."""
        self.nvim.input(keys)
        self.until(self._rests)

    def _rests(self) -> bool:
        return bool(self.nvim.api.get_mode()["blocking"]) or self.lua("return vim.fn.getchar(1) == 0")

    def command(self, command: str) -> str:
        """What an Ex command prints; one that fails raises."""
        return str(self.nvim.api.exec2(command, {"output": True})["output"])

    def text(self) -> str:
        """The buffer's text, lines ending with `\\n`."""
        end = "\n" if self.nvim.current.buffer.options["endofline"] else ""
        return "\n".join(self.nvim.current.buffer[:]) + end

    def saved(self) -> bytes:
        """What is on the disk after `:write`."""
        self.command("silent write")
        return self.file.read_bytes()

    def cursor(self) -> tuple[int, int]:
        """Where it is: a line from 1 and a byte from 0."""
        line, column = self.nvim.current.window.cursor
        return line, column

    def attached(self) -> bool:
        """Whether the server is ready for the current buffer."""
        clients = "vim.lsp.get_clients({ name = 'specedit', bufnr = 0 })"
        return self.lua(f"local client = {clients}[1] return client and client.initialized") is True

    def until(self, condition: Callable[[], Value], seconds: float = PATIENCE_SECONDS) -> Value:
        """The first true value of `condition`."""
        deadline = time.monotonic() + seconds
        while not (value := condition()):
            assert time.monotonic() < deadline, "it never came to pass"
            time.sleep(0.02)
        return value

    def messages(self) -> list[str]:
        """All that was told: by `vim.notify`, then the lines of `:messages`."""
        told = [message for message, _level in self.lua("return _G.notified")]
        return [*told, *self.command("messages").splitlines()]

    def told(self, part: str, seconds: float = PATIENCE_SECONDS) -> str:
        """The first message with `part` in it, waited for."""
        return self.until(lambda: next((one for one in self.messages() if part in one), ""), seconds)

    def extmarks(self, namespace_part: str = "specedit") -> list[Extmark]:
        """Marks in the current buffer, of the namespaces with that in their name, by their place."""
        marks = []
        for name, number in self.nvim.api.get_namespaces().items():
            if namespace_part in name:
                found = self.nvim.api.buf_get_extmarks(0, number, 0, -1, {"details": True})
                marks += [Extmark(row, column, details) for _id, row, column, details in found]
        return sorted(marks, key=lambda mark: (mark.row, mark.column))

    def ghost_text(self) -> str:
        """What is drawn at the cursor as a completion, its lines joined; empty where none is shown."""
        lines: list[str] = []
        for mark in [*self.extmarks("inline_completion"), *self.extmarks("specedit.inline")]:
            first = "".join(text for text, *_ in mark.details.get("virt_text", ()))
            rest = ["".join(text for text, *_ in line) for line in mark.details.get("virt_lines", ())]
            lines += [first, *rest]
        return "\n".join(lines)

    def screen(self) -> str:
        """What a person would see."""
        code = """
        vim.cmd.redraw()
        local lines = {}
        for row = 1, vim.o.lines do
          local cells = {}
          for column = 1, vim.o.columns do cells[column] = vim.fn.screenstring(row, column) end
          lines[row] = table.concat(cells):gsub('%s+$', '')
        end
        return lines
        """
        return "\n".join(line for line in self.lua(code) if line != "~")

    def asked(self, event: str = "asked") -> list[dict[str, Any]]:
        """What the scripted model was asked, or with `ended` how its answers ended."""
        return self.home.asked(event)

    def report(self) -> str:
        """What helps to understand a test that failed."""
        try:
            if self.nvim.api.get_mode()["blocking"]:
                return f"Neovim waits for a key\n{self.home.logs()}"
            messages, screen = "\n".join(self.messages()), self.screen()
        except (OSError, EOFError, pynvim.NvimError) as error:
            return f"Neovim is gone: {error!r}\n{self.home.logs()}"
        return f"--- messages\n{messages}\n--- screen\n{screen}\n{self.home.logs()}"

    def close(self) -> None:
        """End it, and all that it started."""
        with suppress(OSError, EOFError):
            self.nvim.close()
        self.home.close()
