"""Completions at the cursor: shown, taken whole or in part, chosen among, typed along, put away."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.editors.nvim.harness import Editor
from tests.lsp.scripted_lsp import Script

Neovim = Callable[..., Editor]

TAB = """
vim.keymap.set('i', '<Tab>', function()
  if not require('specedit.inline').accept() then return '<Tab>' end
end, { expr = true })
vim.keymap.set('i', '<C-l>', '<Plug>(specedit-inline-accept-word)')
vim.keymap.set('i', '<C-j>', '<Plug>(specedit-inline-accept-line)')
vim.keymap.set('i', '<C-n>', '<Plug>(specedit-inline-next)')
vim.keymap.set('i', '<C-p>', '<Plug>(specedit-inline-previous)')
vim.keymap.set('i', '<C-]>', '<Plug>(specedit-inline-dismiss)')
vim.keymap.set('i', '<C-t>', '<Plug>(specedit-inline-trigger)')
"""


def shown(editor: Editor, text: str) -> None:
    """Wait until exactly this is drawn."""
    try:
        editor.until(lambda: editor.ghost_text() == text, 10)
    except AssertionError:
        raise AssertionError(f"{editor.ghost_text()!r} is shown, not {text!r}") from None


def call(editor: Editor, name: str) -> bool:
    """What the function of the module gives."""
    return editor.lua(f"return require('specedit.inline').{name}()") is True


def counted(editor: Editor, name: str) -> int:
    """What the server counted of completions."""
    code = """
    local answer = vim.lsp.get_clients({ name = 'specedit' })[1]
      :request_sync('workspace/executeCommand', { command = 'specedit.statistics' }, 10000, 0)
    return answer.result.inline[...]
    """
    return int(editor.lua(code, name))


def test_one_that_comes_by_itself_is_taken_with_tab(neovim: Neovim) -> None:
    editor = neovim("x = 1\n", script=Script(completions=["return total"]), config=TAB)
    editor.keys("o    ")
    shown(editor, "return total")
    assert editor.text() == "x = 1\n    \n"
    editor.keys("<Tab>")
    editor.until(lambda: editor.text() == "x = 1\n    return total\n")
    assert editor.cursor() == (2, 16)
    assert editor.ghost_text() == ""
    editor.until(lambda: counted(editor, "accepted") == 1)
    assert counted(editor, "acceptedChars") == len("return total")


def test_tab_is_a_tab_where_nothing_is_shown(neovim: Neovim) -> None:
    editor = neovim("", name="a.go", setup="{ inline = { enabled = false } }", config=TAB)
    editor.keys("ix<Tab>y")
    assert editor.text() == "x\ty\n"
    for name in ("accept", "accept_word", "accept_line", "next", "previous", "dismiss", "is_visible"):
        assert not call(editor, name), name


def test_a_key_pressed_right_after_comes_after(neovim: Neovim) -> None:
    editor = neovim("", script=Script(completions=["one()"]), config=TAB.replace("expr = true", "expr = false"))
    editor.keys("ix = ")
    shown(editor, "one()")
    editor.keys("<Tab>!")
    editor.until(lambda: editor.text() == "x = one()!\n")


def test_word_by_word(neovim: Neovim) -> None:
    editor = neovim("", script=Script(completions=["größe = a.b(c)"]), config=TAB)
    editor.keys("iif x: ")
    shown(editor, "größe = a.b(c)")
    for word, left in [("größe", " = a.b(c)"), (" =", " a.b(c)"), (" a", ".b(c)"), (".", "b(c)"), ("b", "(c)")]:
        before = editor.text().rstrip("\n")
        editor.keys("<C-l>")
        editor.until(lambda before=before, word=word: editor.text() == before + word + "\n")
        shown(editor, left)
    assert len(editor.asked()) == 1, "what is left needs no model"
    editor.keys("<C-l><C-l><C-l>")
    editor.until(lambda: editor.text() == "if x: größe = a.b(c)\n")
    editor.until(lambda: counted(editor, "accepted") == 1)
    assert counted(editor, "acceptedChars") == len("größe = a.b(c)")


def test_what_is_left_is_on_the_screen_at_once(neovim: Neovim) -> None:
    editor = neovim("", script=Script(completions=["alpha beta"]))
    editor.keys("ix = ")
    shown(editor, "alpha beta")
    code = "local inline = require('specedit.inline') inline.accept_word() return inline.is_visible()"
    assert editor.lua(code) is True
    assert editor.ghost_text() == " beta"


def test_line_by_line(neovim: Neovim) -> None:
    body = "if a:\n        b = 1\n        return b"
    editor = neovim("def f(a):\n", script=Script(completions=[body]), config=TAB)
    editor.keys("o")
    shown(editor, body)
    editor.keys("<C-j>")
    editor.until(lambda: editor.text() == "def f(a):\n    if a:\n\n")
    assert editor.cursor() == (3, 0)
    shown(editor, "        b = 1\n        return b")
    editor.keys("<C-j><C-j>")
    editor.until(lambda: editor.text() == "def f(a):\n    " + body + "\n")
    assert editor.cursor() == (4, 16)


def test_wide_characters_and_what_stands_behind(neovim: Neovim) -> None:
    editor = neovim("π = größe('😀', )\n", script=Script(completions=["'漢字 😀'"]), config=TAB)
    editor.keys("f)i")
    shown(editor, "'漢字 😀'")
    assert "π = größe('😀', '漢字 😀')" in editor.screen()
    editor.keys("<Tab>")
    editor.until(lambda: editor.text() == "π = größe('😀', '漢字 😀')\n")


def test_closing_brackets_that_the_editor_sets_are_not_doubled(neovim: Neovim) -> None:
    pairs = "vim.keymap.set('i', '(', '()<C-g>U<Left>')"
    editor = neovim("", script=Script(completions=["f(a, b) + c"]), config=TAB + pairs)
    editor.keys("ix = ")
    shown(editor, "f(a, b) + c")
    editor.keys("f(")
    assert editor.text() == "x = f()\n"
    editor.until(lambda: editor.screen().splitlines()[0] == "x = f(a, b) + c")
    editor.keys("<Tab>")
    editor.until(lambda: editor.text() == "x = f(a, b) + c\n")


def test_typing_along_keeps_it_and_typing_elsewhere_takes_it_away(neovim: Neovim) -> None:
    editor = neovim("", script=Script(completions=["total", "other"]), config=TAB)
    editor.keys("ix = ")
    shown(editor, "total")
    for key, left in [("t", "otal"), ("o", "tal")]:
        editor.keys(key)
        # At once, and it stays.
        assert editor.lua("return require('specedit.inline').is_visible()")
        shown(editor, left)
    assert len(editor.asked()) == 1
    editor.keys("<Tab>")
    editor.until(lambda: editor.text() == "x = total\n")
    editor.keys("<C-u>y = q")
    assert not editor.ghost_text().startswith("ot")
    shown(editor, "other")


def test_one_taken_faster_than_the_server_is_asked_again_fits_the_text(neovim: Neovim) -> None:
    editor = neovim("", script=Script(completions=["total"]))
    editor.keys("ix = ")
    shown(editor, "total")
    editor.nvim.input("to")
    editor.until(lambda: editor.text() == "x = to\n")
    if editor.version == "0.12":
        editor.lua("vim.lsp.inline_completion.get()")
    else:
        call(editor, "accept")
    editor.until(lambda: editor.text() == "x = total\n")


def test_what_no_longer_fits_is_not_drawn_for_a_moment(neovim: Neovim) -> None:
    editor = neovim("", script=Script(completions=["total"]))
    editor.keys("ix = ")
    shown(editor, "total")
    drawn = """
      vim.api.nvim_buf_set_text(0, 0, 4, 0, 4, { 'z' })
      vim.api.nvim_win_set_cursor(0, { 1, 5 })
      vim.api.nvim_exec_autocmds('CursorMovedI', { buffer = 0 })
      vim.wait(10)
      return require('specedit.inline').is_visible()
    """
    assert editor.lua(drawn) is False
    if editor.version == "0.12":
        assert editor.lua("return vim.lsp.inline_completion.get()") is False
    assert "otal" not in editor.ghost_text()


def test_text_behind_it_that_goes_takes_it_away(neovim: Neovim) -> None:
    editor = neovim("f(, 1)\n", script=Script(completions=["total", ""]))
    editor.keys("f,i")
    shown(editor, "total")
    editor.keys("<Del>")
    shown(editor, "")
    assert editor.text() == "f( 1)\n"


def test_next_asks_for_others_and_goes_round(neovim: Neovim) -> None:
    editor = neovim("", script=Script(completions=["one()", "two()", "three()"]), config=TAB)
    editor.keys("ix = ")
    shown(editor, "one()")
    editor.keys("<C-n>")
    editor.until(lambda: "(2/" in editor.ghost_text())
    second = editor.ghost_text().split(" (")[0]
    assert second != "one()"
    editor.keys("<C-p>")
    editor.until(lambda: editor.ghost_text().startswith("one() (1/"))
    editor.keys("<C-n>")
    editor.until(lambda: editor.ghost_text().startswith(second))
    editor.keys("<Tab>")
    editor.until(lambda: editor.text() == f"x = {second}\n")


def test_asked_for(neovim: Neovim) -> None:
    editor = neovim("", script=Script(completions=["one()", "two()"]), config=TAB)
    assert not call(editor, "trigger"), "outside of insert mode"
    editor.keys("ix = ")
    shown(editor, "one()")
    editor.keys("<C-]>")
    shown(editor, "")
    editor.keys("<C-t>")
    editor.until(lambda: editor.ghost_text().startswith("one()"))
    assert editor.text() == "x = \n"


def test_put_away_until_more_is_typed(neovim: Neovim) -> None:
    editor = neovim("", script=Script(completions=["total"]), config=TAB)
    editor.keys("ix = ")
    shown(editor, "total")
    editor.keys("<C-]>")
    assert editor.ghost_text() == ""
    assert not call(editor, "accept")
    editor.keys("t")
    shown(editor, "otal")


def test_it_goes_with_insert_mode(neovim: Neovim) -> None:
    editor = neovim("", script=Script(completions=["total"]))
    editor.keys("ix = ")
    shown(editor, "total")
    editor.keys("<Esc>")
    editor.until(lambda: editor.ghost_text() == "")
    assert editor.text() == "x = \n"


def test_an_accepted_one_is_one_step_to_undo(neovim: Neovim) -> None:
    editor = neovim("", script=Script(completions=["a(\n    b,\n)"]), config=TAB)
    editor.keys("ix = ")
    shown(editor, "a(\n    b,\n)")
    editor.keys("<Tab>")
    editor.until(lambda: editor.text() == "x = a(\n    b,\n)\n")
    editor.keys("  # why<Esc>u")
    assert editor.text() == "x = a(\n    b,\n)\n"
    editor.keys("u")
    assert editor.text() == "x = \n"
    editor.keys("<C-r>")
    assert editor.text() == "x = a(\n    b,\n)\n"


def test_the_editors_own_list_goes_first(neovim: Neovim) -> None:
    editor = neovim("total = 1\ntoday = 2\n", script=Script(completions=["tal + 1"]), config=TAB)
    editor.keys("Gox = to")
    shown(editor, "tal + 1")
    editor.keys("<C-x><C-n>")
    editor.until(lambda: editor.lua("return vim.fn.pumvisible()") == 1)
    editor.until(lambda: editor.ghost_text() == "")
    assert not call(editor, "accept")


def test_windows_line_ends(neovim: Neovim) -> None:
    editor = neovim(b"a = 1\r\nb = 2\r\n", script=Script(completions=["f(\n    b,\n)"]), config=TAB)
    editor.keys("oc = ")
    shown(editor, "f(\n    b,\n)")
    editor.keys("<Tab>")
    editor.until(lambda: "b," in editor.text())
    editor.keys("<Esc>")
    assert editor.saved() == b"a = 1\r\nc = f(\r\n    b,\r\n)\r\nb = 2\r\n"


def test_tabs_are_drawn_as_wide_as_they_will_be(neovim: Neovim) -> None:
    body = "if a {\n\t\treturn\n\t}"
    editor = neovim("func f() {\n}\n", name="a.go", script=Script(completions=[body]), config="vim.o.tabstop = 4")
    editor.keys("o\t")
    editor.until(lambda: editor.ghost_text() != "")
    drawn = editor.screen()
    call(editor, "accept")
    editor.until(lambda: editor.ghost_text() == "")
    for line in editor.text().expandtabs(4).splitlines():
        assert line.rstrip() in drawn, drawn


def test_switched_off_and_on(neovim: Neovim) -> None:
    editor = neovim("", script=Script(completions=["total"]))
    editor.keys("ix = ")
    shown(editor, "total")
    editor.command("SpecEditToggle")
    editor.told("is off. :SpecEditToggle switches it on.")
    shown(editor, "")
    asked = len(editor.asked())
    editor.keys("y")
    assert not call(editor, "trigger")
    editor.command("SpecEditToggle")
    editor.keys(" ")
    shown(editor, "total")
    assert len(editor.asked()) == asked + 1


def test_switched_off_by_an_option_and_on_by_the_command(neovim: Neovim) -> None:
    editor = neovim("", script=Script(completions=["total"]), setup="{ inline = { enabled = false } }")
    editor.keys("ix =")
    editor.command("SpecEditToggle")
    editor.keys(" ")
    shown(editor, "total")


def test_no_setup_is_needed(neovim: Neovim) -> None:
    editor = neovim("", script=Script(completions=["total"]), setup=None, config="vim.lsp.enable('specedit')")
    editor.keys("ix = ")
    shown(editor, "total")


@pytest.mark.parametrize("kind", ["nofile", "prompt"])
def test_not_in_what_is_no_file(neovim: Neovim, kind: str) -> None:
    editor = neovim("x\n", script=Script(completions=["total"]))
    editor.lua(
        """
        local client = vim.lsp.get_clients({ name = 'specedit' })[1]
        vim.cmd.enew()
        vim.bo.buftype = ...
        vim.lsp.buf_attach_client(0, client.id)
        """,
        kind,
    )
    editor.keys("iabc")
    editor.command("stopinsert")
    assert editor.lua("return require('specedit.inline').trigger()") is False
    assert editor.asked() == []


def test_a_server_that_ends_leaves_nothing_behind(neovim: Neovim) -> None:
    editor = neovim("", script=Script(completions=["total"]))
    editor.keys("ix = ")
    shown(editor, "total")
    editor.lua("vim.lsp.get_clients({ name = 'specedit' })[1]:stop(true)")
    editor.until(lambda: not editor.attached())
    shown(editor, "")
    editor.keys("to")
    assert editor.lua("return vim.v.errmsg") == ""
