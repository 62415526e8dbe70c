"""Carriage returns within lines: the server takes each for the end of a line, Neovim none of them."""

from __future__ import annotations

import pytest

from tests.editors.nvim.test_rewrite import Neovim, added, ask, ask_and_wait

_LINES = [f"line {number}" for number in range(1, 9)]


def text(*lines: str, end: str = "\n") -> bytes:
    return "".join(line + end for line in lines).encode()


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_rewrite_of_lines_that_are_counted_otherwise_is_refused(neovim: Neovim, end: str) -> None:
    before = text("a\rb", *_LINES, end=end)
    editor = neovim(before, name="a.txt")
    ask(editor, "line 1\nnew\nline 2\n", "2,3")
    assert "take it out" in editor.told("carriage return")
    assert not editor.asked()
    assert editor.saved() == before


def test_once_it_is_taken_out_changes_come_where_they_belong(neovim: Neovim) -> None:
    editor = neovim(text("a\rb", *_LINES), name="a.txt")
    editor.command("1substitute/\\r//")
    ask_and_wait(editor, "line 3\nnew\nline 4\n", "4,5")
    assert added(editor) == ["new"]
    editor.command("SpecEditAcceptAll")
    assert editor.saved() == text("ab", *_LINES[:3], "new", *_LINES[3:])


def test_one_that_came_and_went_before_anything_was_asked_puts_no_change_elsewhere(neovim: Neovim) -> None:
    editor = neovim(text(*_LINES), name="a.txt")
    editor.lua("vim.api.nvim_buf_set_text(0, 0, 0, 0, 0, { 'a\\rb' })")
    editor.command("1substitute/a\\rb//")
    ask_and_wait(editor, "line 3\nnew\nline 4\n", "3,4")
    assert added(editor) == ["new"]
    editor.command("SpecEditAcceptAll")
    assert editor.saved() == text(*_LINES[:3], "new", *_LINES[3:])


def test_a_change_is_not_made_while_one_is_there(neovim: Neovim) -> None:
    editor = neovim(text(*_LINES), name="a.txt")
    ask_and_wait(editor, "line 3\nnew\nline 4\n", "3,4")
    editor.keys("ggA<C-v><C-m>x<Esc>")
    editor.command("SpecEditAccept")
    editor.told("carriage return")
    assert b"new" not in editor.saved()
    editor.command("1substitute/\\rx//")
    editor.command("SpecEditAccept")
    assert editor.saved() == text(*_LINES[:3], "new", *_LINES[3:])
