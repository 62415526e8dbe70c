"""Neovims for tests: each of them is run by both versions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.editors.nvim.harness import ATTACH_SECONDS, Editor
from tests.editors.nvim.home import Home, binary, why_missing
from tests.editors.nvim.terminal import Terminal
from tests.lsp.scripted_lsp import Script

_HANGS_SECONDS = 180


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent) and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(_HANGS_SECONDS))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """What the editors showed stands with a test that failed, for which they must not be closed yet."""
    report = yield
    if report.when == "call" and report.failed:
        for number, editor in enumerate(getattr(item, "funcargs", {}).get("opened", [])):
            report.sections.append((f"editor {number}", editor.report()))
    return report


@pytest.fixture(params=["0.12", "0.11"])
def version(request: pytest.FixtureRequest) -> str:
    """The version of Neovim, which is there."""
    if binary(request.param) is None:
        pytest.skip(why_missing(request.param))
    return str(request.param)


@pytest.fixture
def opened() -> Iterator[list[Any]]:
    """Editors that end with the test, and are shown where it fails."""
    editors: list[Any] = []
    yield editors
    for editor in editors:
        editor.close()


@pytest.fixture
def neovim(version: str, tmp_path: Path, opened: list[Any]) -> Callable[..., Editor]:
    """Start a Neovim with a file open.

    Arguments: the file's text, its name, what the model writes, the Lua table for `setup` (None: no `setup` at all),
    more configuration in Lua before that, other files by name, and whether to wait until the server is attached.
    """

    def start(
        text: str | bytes = "",
        name: str = "a.py",
        script: Script | None = Script(),  # noqa: B008  never changed
        setup: str | None = "{}",
        config: str = "",
        files: Mapping[str, str | bytes] = {},
        attach: bool = True,
    ) -> Editor:
        if setup is not None:
            config += f"\nrequire('specedit').setup({setup})"
        home = Home(tmp_path / f"home{len(opened)}", config, script)
        for other, content in files.items():
            home.file(other, content)
        editor = Editor(binary(version), version, home, home.file(name, text))
        opened.append(editor)
        if attach:
            editor.until(editor.attached, ATTACH_SECONDS)
        return editor

    return start


#: Says in the status line that the server is there.
ATTACHED = """
vim.o.laststatus = 2
vim.o.statusline = '%f %m%{&fileformat} %l:%c %{get(g:, "attached", "")}'
vim.api.nvim_create_autocmd('LspAttach', { command = 'let g:attached = "attached" | redrawstatus' })
"""

#: Keys as a person maps them.
KEYS = """
local map = vim.keymap.set
map({ 'n', 'x' }, 'gs', '<Plug>(specedit-rewrite)')
map('n', '<C-n>', '<Plug>(specedit-next)')
map('n', '<C-p>', '<Plug>(specedit-previous)')
map('n', 'ga', '<Plug>(specedit-accept)')
map('n', 'gr', '<Plug>(specedit-reject)', { nowait = true })
map('n', 'gA', '<Plug>(specedit-accept-all)')
map('n', 'gR', '<Plug>(specedit-reject-all)')
map('n', 'gc', '<Plug>(specedit-cancel)', { nowait = true })
map('n', 'gn', '<Plug>(specedit-next-edit)')
map('i', '<C-l>', '<Plug>(specedit-inline-accept-line)')
map('i', '<C-e>', '<Plug>(specedit-inline-accept-word)')
map('i', '<Tab>', function()
  if not require('specedit.inline').accept() then
    vim.api.nvim_feedkeys(vim.keycode('<Tab>'), 'in', false)
  end
end)
"""


def person_config(setup: str) -> str:
    """A whole configuration around the Lua table for `setup`."""
    return f"{ATTACHED}\nrequire('specedit').setup({setup})\n{KEYS}"


@pytest.fixture
def person(version: str, tmp_path: Path, opened: list[Any]) -> Callable[..., Terminal]:
    """Start a Neovim in a terminal with a file open.

    Arguments: the file's text, its name, what the model writes, other files by name, and the Lua table for
    `setup`, by default one in which the model is asked for rewrites and completions alone;
    or the whole configuration.
    """

    def start(
        text: str | bytes,
        name: str = "a.py",
        script: Script | None = Script(),  # noqa: B008  never changed
        files: Mapping[str, str | bytes] = {},
        setup: str = "{ next_edit = { model = false } }",
        config: str | None = None,
    ) -> Terminal:
        tmux = binary("tmux")
        if tmux is None:
            pytest.skip(why_missing("tmux"))
        home = Home(tmp_path / f"home{len(opened)}", config or person_config(setup), script)
        for other, content in files.items():
            home.file(other, content)
        terminal = Terminal(tmux, binary(version), version, home, home.file(name, text))
        opened.append(terminal)
        terminal.until("attached")
        return terminal

    return start
