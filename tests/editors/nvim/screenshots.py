"""The pictures of the plugin's page, taken of the real thing: python -m tests.editors.nvim.screenshots

Needs what `make test-nvim` installs. The model follows a script, so that they are the same each time. A picture is what
the terminal shows, as SVG.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import StringIO
from itertools import takewhile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from tests.editors.nvim.conftest import person_config
from tests.editors.nvim.home import PLUGIN, Home, binary, why_missing
from tests.editors.nvim.terminal import COLUMNS, Terminal
from tests.editors.pictured import CART, LABEL, changed
from tests.fakes import fenced
from tests.lsp.scripted_lsp import Script

IMAGES = PLUGIN / "images"
#: What Neovim's own dark scheme has for what it gives no colour.
_THEME = TerminalTheme((20, 22, 27), (224, 226, 234), [(7, 8, 13)] * 8, [(79, 82, 88)] * 8)

FIRST = '''\
def first(lines):
    """The first of the lines, if there is one."""
'''


@contextmanager
def _neovim(text: str, script: Script, setup: str = "{ next_edit = { model = false } }") -> Iterator[Terminal]:
    tmux, program = binary("tmux"), binary("0.12")
    if tmux is None or program is None:
        sys.exit(why_missing("0.12" if tmux else "tmux"))
    config = f"vim.o.termguicolors = true\nvim.o.number = true\n{person_config(setup)}"
    with tempfile.TemporaryDirectory() as place:
        home = Home(Path(place), config, script)
        terminal = Terminal(tmux, program, "0.12", home, home.file("cart.py", text))
        try:
            terminal.until("attached")
            yield terminal
        finally:
            terminal.close()


def rewrite() -> str:
    """Changes in their places, once the model is done."""
    with _neovim(CART, Script(answers=[fenced(changed(CART))])) as nvim:
        nvim.type(":%SpecEdit add type hints, and refuse rates that are none<CR>")
        nvim.until("is no discount")
        nvim.until("5 changes")
        nvim.type("gg<C-n>")
        nvim.until("accept ga")
        return nvim.colours()


def completion() -> str:
    """A completion of several lines at the cursor."""
    with _neovim(FIRST, Script(completions=["    if not lines:\n        return None\n    return lines[0]"])) as nvim:
        nvim.type("Go")
        nvim.until("return lines[0]")
        return nvim.colours()


def next_edit() -> str:
    """An edit of the user's is proposed where it belongs, too."""
    with _neovim(LABEL, Script(completions=[""])) as nvim:
        nvim.type("fcciwshade<Esc>")
        nvim.until(lambda: nvim.screen().count("shade") == 2)
        return nvim.colours()


PICTURES: dict[str, Callable[[], str]] = {"rewrite": rewrite, "completion": completion, "next-edit": next_edit}


def svg(name: str, screen: str) -> str:
    """The text on a screen, with its colours, as a picture."""
    lines = list(takewhile(lambda line: Text.from_ansi(line).plain.rstrip() != "~", screen.split("\n")))
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True, color_system="truecolor")
    for line in lines:
        console.print(Text.from_ansi(line), no_wrap=True, crop=True)
    picture = console.export_svg(title="cart.py - Neovim", theme=_THEME, unique_id=f"specedit-{name}")
    # Whoever looks at a picture fetches no font for it.
    return re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)


def main(names: list[str]) -> None:
    """Take the pictures of those names, or all."""
    IMAGES.mkdir(exist_ok=True)
    for name in names or PICTURES:
        (IMAGES / f"{name}.svg").write_text(svg(name, PICTURES[name]()))


if __name__ == "__main__":
    main(sys.argv[1:])
