"""Setting specedit up in Neovim: with `setup` and without, and what is said where something is wrong."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from tests.editors.nvim.harness import ATTACH_SECONDS, Editor
from tests.lsp.scripted_lsp import Script

Neovim = Callable[..., Editor]

CLIENTS = "vim.lsp.get_clients({ name = 'specedit' })"


def refusal(editor: Editor, options: str) -> str:
    return str(editor.lua(f"return select(2, pcall(require('specedit').setup, {options}))"))


def holds(editor: Editor, text: str) -> bool:
    return editor.text() == text


def test_it_works_without_setup(neovim: Neovim) -> None:
    editor = neovim("x = 1\n", setup=None, config="vim.lsp.enable('specedit')")
    editor.command("SpecEdit make it so")
    editor.told("1 change")
    editor.command("SpecEditAcceptAll")
    assert editor.text() == "X = 1\n"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("{ modle = 'x' }", "modle is no option. Did you mean model?"),
        ("{ inline = { debounce = 1 } }", "inline.debounce is no option. Did you mean inline.debounce_ms?"),
        ("{ nextEdit = {} }", "nextEdit is no option. Did you mean next_edit?"),
        ("{ rewrite = { zzzzzzzz = 1 } }", "It may be one of: allow_deletions, "),
        ("{ warm_up = 'yes' }", 'warm_up is "yes"; it must be true or false.'),
        ("{ inline = { max_new_tokens = 1.5 } }", "inline.max_new_tokens is 1.5; it must be a whole number from 0 on."),
        ("{ inline = true }", "inline is true; it must be a table."),
        ("{ cmd = 'specedit lsp' }", 'cmd is "specedit lsp"; it must be a list of texts'),
        ("{ log_level = 'loud' }", "it must be one of: debug, info, warning, error."),
        ("'fast'", "setup takes a table of options, not string."),
    ],
)
def test_a_wrong_option_is_refused_with_what_is_right(neovim: Neovim, options: str, words: str) -> None:
    editor = neovim("", setup=None, attach=False)
    assert words in refusal(editor, options)
    assert not editor.lua("return vim.lsp.is_enabled('specedit')")


def test_all_that_is_wrong_is_said_at_once(neovim: Neovim) -> None:
    editor = neovim("", setup=None, attach=False)
    said = refusal(editor, "{ modle = 'x', warm_up = 1 }")
    assert "modle" in said
    assert "warm_up" in said


def test_options_reach_the_server_in_its_own_spelling(neovim: Neovim) -> None:
    options = (
        "{ warm_up = false, inline = { debounce_ms = 5 }, next_edit = { model = false }, preview = { hints = false } }"
    )
    editor = neovim("x = 1\n", setup=options)
    told: Any = editor.lua(f"return {CLIENTS}[1].config.init_options")
    assert told == {
        "warmUp": False,
        "inline": {"debounceMs": 5},
        "rewrite": {},
        "nextEdit": {"model": False},
    }
    assert editor.messages() == []


def test_setup_twice_leaves_one_client_and_the_last_options(neovim: Neovim) -> None:
    config = "require('specedit').setup({ preview = { hints = false } })"
    editor = neovim("x = 1\n", config=config, setup="{ preview = { sign = '>' } }")
    assert editor.lua(f"return #{CLIENTS}") == 1
    preview = editor.lua("return require('specedit.config').options.preview")
    assert preview == {"sign": ">", "hints": True, "syntax": True}


def test_a_program_that_is_not_found_is_told_with_how_to_get_it(neovim: Neovim) -> None:
    editor = neovim("x = 1\n", setup="{ cmd = { 'no-such-program', 'lsp' } }", attach=False)
    message = editor.told("'no-such-program' was not found")
    assert "pip install" in message
    assert "cmd =" in message
    editor.lua("_G.notified = {}")
    editor.command("SpecEdit x")
    editor.told("was not found")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("vim.cmd('help')", "this buffer is no file"),
        ("vim.cmd('enew')", "no file type"),
        ("vim.lsp.config('specedit', { filetypes = { 'lua' } }) vim.cmd('edit other.py')", "not among 'filetypes'"),
        ("vim.lsp.enable('specedit', false) vim.cmd('edit other.py')", "not switched on"),
    ],
)
def test_where_there_is_no_server_it_says_why(neovim: Neovim, code: str, words: str) -> None:
    editor = neovim("x = 1\n", setup="{}", attach=False)
    editor.lua(code)
    editor.command("SpecEdit x")
    editor.told(words)


def test_files_of_two_projects_are_served(neovim: Neovim) -> None:
    files = {"one/.git/HEAD": "", "one/a.py": "x = 1\n", "two/.git/HEAD": "", "two/b.py": "y = 1\n"}
    editor = neovim("z = 1\n", files=files)
    for name, text in (("one/a.py", "X = 1\n"), ("two/b.py", "Y = 1\n")):
        editor.command(f"edit {name}")
        editor.until(editor.attached, ATTACH_SECONDS)
        editor.command("%SpecEdit! make it so")
        editor.until(functools.partial(holds, editor, text))
    roots = editor.lua(f"return vim.tbl_map(function(client) return client.root_dir or '' end, {CLIENTS})")
    assert {root.rpartition("/")[2] for root in roots} == {"", "one", "two"}


def test_statistics_and_the_log_can_be_looked_at(neovim: Neovim) -> None:
    editor = neovim("x = 1\n", script=Script())
    editor.command("%SpecEdit! make it so")
    editor.until(lambda: editor.text() == "X = 1\n")
    editor.command("SpecEditStatistics")
    editor.told("rewrite")
    editor.command("SpecEditLog")
    assert any("specedit_lsp" in line for line in editor.nvim.current.buffer[:])


def test_no_key_is_taken(neovim: Neovim) -> None:
    editor = neovim("x = 1\n", attach=False)
    keys = editor.lua(
        """local found = {}
        for _, mode in ipairs({ 'n', 'i', 'x', 'o', 'c' }) do
          for _, map in ipairs(vim.api.nvim_get_keymap(mode)) do
            if not map.lhs:find('^<Plug>') and (map.rhs or ''):find('specedit') then table.insert(found, map.lhs) end
          end
        end
        return found"""
    )
    assert keys == []


def test_colours_follow_the_background_and_leave_the_users_own(neovim: Neovim) -> None:
    editor = neovim("x = 1\n", attach=False)

    def behind(name: str) -> int | None:
        group: dict[str, int] = editor.lua("return vim.api.nvim_get_hl(0, { name = ... })", name)
        return group.get("bg")

    dark = behind("SpecEditAdded")
    editor.lua("vim.api.nvim_set_hl(0, 'SpecEditRemoved', { bg = '#123456' })")
    editor.command("set background=light")
    light = behind("SpecEditAdded")
    assert dark is not None
    assert light is not None
    assert light > dark
    assert behind("SpecEditRemoved") == 0x123456
