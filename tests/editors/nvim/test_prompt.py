"""The line that an instruction is typed in."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.editors.nvim.harness import Editor

Neovim = Callable[..., Editor]

CODE = "x = 1\n\n\ndef area(w, h):\n    return w * h\n"


def opened(editor: Editor, lines: str = "") -> None:
    editor.keys(f":{lines}SpecEdit<CR>")
    editor.until(lambda: "Rewrite" in editor.screen())


def is_open(editor: Editor) -> bool:
    return bool(editor.lua("return vim.bo.filetype == 'specedit_prompt'"))


def typed(editor: Editor) -> list[str]:
    return list(editor.nvim.current.buffer[:])


def instruction(editor: Editor, number: int = 0) -> str:
    """What the model was asked to do, after the code."""
    editor.until(lambda: len(editor.asked()) > number)
    return str(editor.asked()[number]["prompt"][-1]).rpartition("```")[2]


def kept(editor: Editor) -> Path:
    return Path(editor.lua("return vim.fn.stdpath('state')")) / "specedit/instructions"


def test_what_is_typed_is_sent_and_the_title_says_what_is_rewritten(neovim: Neovim) -> None:
    editor = neovim(CODE)
    editor.command("5")
    opened(editor)
    editor.until(lambda: "Rewrite function area" in editor.screen())
    editor.keys("swap them 漢<CR>")
    assert "swap them 漢" in instruction(editor)
    assert not is_open(editor)
    assert editor.lua("return vim.fn.mode()") == "n"


def test_the_title_of_a_range_names_its_lines(neovim: Neovim) -> None:
    editor = neovim(CODE)
    opened(editor, "1,3")
    assert "Rewrite lines 1-3" in editor.screen()


@pytest.mark.parametrize("key", ["<Esc>", "<C-c>", "<C-w>p"])
def test_leaving_asks_nothing(neovim: Neovim, key: str) -> None:
    editor = neovim(CODE)
    opened(editor)
    editor.keys("never mind")
    editor.keys(key if key != "<C-w>p" else "<C-o><C-w>p")
    editor.until(lambda: not is_open(editor))
    assert len(editor.lua("return vim.api.nvim_list_wins()")) == 1
    assert editor.text() == CODE
    assert editor.asked() == []


def test_nothing_is_sent_where_nothing_was_typed(neovim: Neovim) -> None:
    editor = neovim(CODE)
    opened(editor)
    editor.keys("  <CR>")
    assert is_open(editor)


def test_earlier_instructions_come_back_and_what_was_typed_is_kept(neovim: Neovim) -> None:
    editor = neovim(CODE)
    for one in ("first", "second", "first", "third"):
        editor.command(f"1SpecEdit {one}")
    opened(editor)
    editor.keys("draft")
    seen = []
    for key in ("<Up>", "<C-p>", "<Up>", "<Up>", "<Down>", "<C-n>", "<Down>"):
        editor.keys(key)
        seen.append(typed(editor)[0])
    assert seen == ["third", "first", "second", "second", "first", "third", "draft"]


def test_instructions_outlast_the_editor_for_the_user_alone(neovim: Neovim) -> None:
    editor = neovim(CODE)
    for number in range(103):
        editor.lua("require('specedit.history').add(...)", f"instruction {number}")
    editor.command("1SpecEdit the last")
    file = kept(editor)
    lines = file.read_text().splitlines()
    assert (len(lines), lines[0], lines[-1]) == (100, "instruction 4", "the last")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [other.name for other in file.parent.iterdir() if other.name.startswith("instructions")] == ["instructions"]


def test_a_history_that_is_not_wanted_is_not_kept(neovim: Neovim) -> None:
    editor = neovim(CODE, setup="{ prompt = { history = false } }")
    editor.command("1SpecEdit secret")
    assert instruction(editor)
    assert not kept(editor).exists()


def test_several_pasted_lines_are_one_instruction(neovim: Neovim) -> None:
    editor = neovim(CODE)
    opened(editor)
    editor.nvim.api.paste("rename a\n  to b\n\nplease\n", True, -1)
    editor.until(lambda: typed(editor) == ["rename a to b please"])
    editor.keys(" now<CR>")
    assert "rename a to b please now" in instruction(editor)


def test_it_fits_a_narrow_window(neovim: Neovim) -> None:
    editor = neovim(CODE, config="vim.o.columns = 30")
    editor.nvim.api.ui_try_resize(30, 12)
    opened(editor)
    editor.keys("a" * 60)
    rows = editor.screen().splitlines()
    assert any("Rewrite" in row for row in rows)
    assert max(map(len, rows)) <= 30
