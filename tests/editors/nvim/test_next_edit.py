"""The next edit: shown where it is, reached, made, put away."""

from __future__ import annotations

from collections.abc import Callable

from tests.editors.nvim.harness import Editor
from tests.lsp.scripted_lsp import Script

Neovim = Callable[..., Editor]

SETUP = "{ next_edit = { model = false }, inline = { enabled = false } }"
MAP = "vim.keymap.set({ 'n', 'i' }, '<C-g>', '<Plug>(specedit-next-edit)')"
TEXT = "def label(colour):\n    if not colour:\n        return None\n    return colour.lower()\n"


def known(editor: Editor) -> bool:
    return editor.lua("return require('specedit.next_edit').is_known()") is True


def propose(editor: Editor, version: int = 0, **params: object) -> None:
    """Have the server propose something."""
    code = """
    local params = ...
    params.uri = params.uri or vim.uri_from_bufnr(0)
    if params.version == 0 then params.version = vim.lsp.util.buf_versions[vim.api.nvim_get_current_buf()] end
    if params.range == 'none' then params.range = vim.NIL end
    local client = vim.lsp.get_clients({ name = 'specedit' })[1]
    require('specedit.next_edit').on_next_edit(params, { client_id = client.id })
    """
    editor.lua(code, {"version": version, **params})


def lines(first: int, last: int, character: int = 0, end: int = 0) -> dict[str, dict[str, int]]:
    """A range."""
    return {"start": {"line": first, "character": character}, "end": {"line": last, "character": end}}


def drawn(editor: Editor) -> str:
    """What is drawn beside the text."""
    marks = [mark.details for mark in editor.extmarks("specedit.next_edit")]
    parts = [text for mark in marks for text, *_ in mark.get("virt_text", [])]
    return "|".join([*parts, *(text for mark in marks for line in mark.get("virt_lines", []) for text, *_ in line)])


def removed(editor: Editor) -> list[tuple[int, int, int]]:
    """What is marked as going: rows and columns."""
    marks = editor.extmarks("specedit.next_edit")
    return [
        (mark.row, mark.column, mark.details["end_col"])
        for mark in marks
        if mark.details.get("hl_group") == "SpecEditRemoved"
    ]


def test_saving_changes_nothing_of_what_is_proposed(neovim: Neovim) -> None:
    editor = neovim(TEXT, setup=SETUP, config=MAP)
    editor.keys("fcciwcolor<Esc>")
    editor.until(lambda: known(editor))
    editor.command("write")
    editor.keys("<C-g><C-g>")
    editor.until(lambda: "if not color:" in editor.text())
    editor.command("write")
    editor.keys("gg<C-g>")
    editor.until(lambda: editor.cursor()[0] == 4)


def test_ones_own_edit_is_repeated_with_a_key(neovim: Neovim) -> None:
    editor = neovim(TEXT, setup=SETUP, config=MAP)
    editor.keys("fcciwcolor<Esc>")
    editor.until(lambda: known(editor))
    assert removed(editor) == [(1, 15, 16)], "of `colour` only the u goes"
    before = editor.cursor()
    editor.keys("<C-g>")
    editor.until(lambda: editor.cursor()[0] == 2)
    assert "if not colour" in editor.text(), "the first press only goes there"
    editor.keys("<C-o>")
    assert editor.cursor() == before, "where one came from is in the jump list"
    editor.keys("<C-g>")
    editor.keys("<C-g>")
    editor.until(lambda: "if not color:" in editor.text())
    editor.until(lambda: known(editor))
    editor.keys("<C-g><C-g>")
    editor.until(lambda: editor.text() == TEXT.replace("colour", "color"))
    editor.keys("u")
    assert editor.text().count("colour") == 1, "one step takes back one edit"


def test_in_insert_mode_what_was_typed_before_is_another_step(neovim: Neovim) -> None:
    editor = neovim("a\nb\n", setup=SETUP, config=MAP)
    editor.keys("Ax")
    propose(editor, range=lines(0, 0, 2, 2), newText="yz")
    editor.keys("<C-g>!<Esc>")
    assert editor.text() == "axyz!\nb\n"
    editor.keys("uu")
    assert editor.text() == "ax\nb\n"


def test_several_lines_are_shown_whole(neovim: Neovim) -> None:
    editor = neovim("a\nb\nc\n", setup=SETUP, config=MAP)
    propose(editor, range=lines(1, 2), newText="if b:\n    c\n")
    assert "if b:" in drawn(editor)
    assert "    c" in drawn(editor)
    editor.keys("<C-g><C-g>")
    assert editor.text() == "a\nif b:\n    c\nc\n"


def test_at_the_ends_of_the_text(neovim: Neovim) -> None:
    editor = neovim("a\nb\n", setup=SETUP)
    code = "require('specedit.next_edit').go() require('specedit.next_edit').go()"
    propose(editor, range=lines(1, 2), newText="B\n")
    editor.lua(code)
    assert editor.saved() == b"a\nB\n"
    propose(editor, range=lines(2, 2), newText="c\n")
    editor.lua(code)
    assert editor.saved() == b"a\nB\nc\n"
    propose(editor, range=lines(0, 0), newText="# top\n")
    editor.lua(code)
    assert editor.saved() == b"# top\na\nB\nc\n"
    propose(editor, range=lines(3, 4), newText="")
    editor.lua(code)
    assert editor.saved() == b"# top\na\nB\n"


def test_windows_line_ends_and_wide_characters(neovim: Neovim) -> None:
    editor = neovim("x = '😀' + ß\r\ny\r\n".encode(), setup=SETUP)
    encoding = editor.lua("return vim.lsp.get_clients({ name = 'specedit' })[1].offset_encoding")
    before = len("x = '😀' + ".encode("utf-16-le" if encoding == "utf-16" else encoding)) // (
        2 if "16" in encoding else 1
    )
    propose(editor, range=lines(0, 1, before, 1), newText="ä\r\n    z")
    editor.lua("local next_edit = require('specedit.next_edit') next_edit.go() next_edit.go()")
    assert editor.saved().decode() == "x = '😀' + ä\r\n    z\r\n"


def test_off_the_screen_it_is_told_where_one_is(neovim: Neovim) -> None:
    editor = neovim("a\n" * 300, setup=SETUP, config=MAP)
    propose(editor, range=lines(199, 199, 0, 1), newText="b")
    assert "next edit: line 200, <C-G>" in editor.screen()
    editor.keys("j")
    assert editor.screen().splitlines()[1].endswith("next edit: line 200, <C-G>")
    editor.keys("<C-g>")
    editor.until(lambda: editor.cursor()[0] == 200)
    assert "next edit:" not in editor.screen()


def test_a_change_takes_it_away(neovim: Neovim) -> None:
    editor = neovim("a\nb\n", setup=SETUP)
    propose(editor, range=lines(1, 1, 0, 1), newText="c")
    assert known(editor)
    editor.keys("ix")
    editor.until(lambda: not editor.extmarks("specedit.next_edit"))
    assert not known(editor)


def test_for_another_text_it_is_not_shown(neovim: Neovim) -> None:
    editor = neovim("a\nb\n", setup=SETUP)
    version = editor.lua("return vim.api.nvim_buf_get_changedtick(0)")
    for wrong in (version - 1, version + 1):
        propose(editor, version=wrong, range=lines(1, 1, 0, 1), newText="c")
        assert not known(editor)


def test_it_is_taken_back(neovim: Neovim) -> None:
    editor = neovim("a\nb\n", setup=SETUP)
    propose(editor, range=lines(1, 1, 0, 1), newText="c")
    propose(editor, range="none")
    assert not known(editor)
    assert not editor.extmarks("specedit.next_edit")


def test_it_is_put_away(neovim: Neovim) -> None:
    editor = neovim("a\nb\n", setup=SETUP)
    assert editor.lua("return require('specedit.next_edit').dismiss()") is False
    propose(editor, range=lines(1, 1, 0, 1), newText="c")
    assert editor.lua("return require('specedit.next_edit').dismiss()") is True
    assert not known(editor)
    assert editor.text() == "a\nb\n"


def test_where_none_is_known_the_server_is_asked(neovim: Neovim) -> None:
    editor = neovim(TEXT, setup=SETUP, config=MAP)
    editor.keys("<C-g>")
    editor.told("no next edit here. Make one of your own")
    editor.keys("fcciwcolor<Esc>")
    editor.until(lambda: known(editor))
    editor.lua("require('specedit.next_edit').dismiss()")
    editor.keys("<C-g>")
    editor.until(lambda: editor.cursor()[0] == 2)
    editor.keys("<C-g>")
    editor.until(lambda: "if not color:" in editor.text())


def test_at_the_cursor_it_is_drawn_once(neovim: Neovim) -> None:
    setup = "{ next_edit = { enabled = false } }"
    editor = neovim("a = 1\nb = \n", script=Script(completions=["two"]), setup=setup)
    propose(editor, range=lines(1, 1, 4, 4), newText="two")
    assert drawn(editor) == "two"
    editor.keys("jA")
    editor.until(lambda: editor.ghost_text() == "two")
    assert drawn(editor) == ""
    assert editor.screen().splitlines()[1] == "b = two"
    editor.keys("<Esc>")
    editor.until(lambda: drawn(editor) == "two")


def test_what_can_not_be_meant_is_left_out(neovim: Neovim) -> None:
    editor = neovim("a\nb\n", setup=SETUP)
    for wrong in (
        {"range": "all", "newText": "x"},
        {"range": lines(1, 1, 0, 1)},
        {"range": lines(1, 1, 0, 1), "newText": 3},
        {"range": {"start": {"line": 1}}, "newText": "x"},
        {"range": lines(1, 0, 1, 0), "newText": "x"},
        {"range": lines(-1, 0, 0, 1), "newText": "x"},
        {"range": lines(1, 1, 0, 1), "newText": "c", "uri": "file:///nowhere/else.py"},
    ):
        propose(editor, **wrong)
        assert not known(editor), wrong
