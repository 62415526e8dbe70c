"""Messages that are too long for their line: they hold nobody up, and are read to their ends."""

from __future__ import annotations

from collections.abc import Callable

from tests.editors.nvim.conftest import ATTACHED
from tests.editors.nvim.terminal import Terminal

#: Tells two long messages at a key, as they may come while someone types.
TELLING = f"""
{ATTACHED}
require('specedit').setup()
vim.keymap.set('i', '<C-g>', function()
  vim.schedule(function()
    require('specedit.server').notify(('one 語 after '):rep(20) .. 'the other')
    require('specedit.server').notify(('x'):rep(200) .. ' and the second')
  end)
end)
"""


def test_messages_hold_nobody_up(person: Callable[..., Terminal]):
    nvim = person("\n", config=TELLING)
    nvim.type("ione <C-g>")
    screen = nvim.until("and the second")
    assert "the other" in screen, "the first is still shown"
    assert "Press ENTER" not in screen
    nvim.type("two<Esc>")
    assert nvim.save() == b"one two\n"
    nvim.until_gone("the other")
    nvim.until_gone("and the second")
    nvim.type(":messages<CR>")
    screen = nvim.until("Press ENTER")
    assert "the other" in screen
    assert "and the second" in screen


def test_messages_go_where_the_user_has_them_shown(person: Callable[..., Terminal]):
    nvim = person("\n", config=TELLING + "vim.notify = function(message) vim.g.told = 'has ' .. #message end")
    nvim.type("i<C-g>")
    nvim.type("<Esc>:echo g:told<CR>")
    nvim.until("has 225")
