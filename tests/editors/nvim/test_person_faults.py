"""What a person is told when the server is killed, and how it comes back."""

from __future__ import annotations

from collections.abc import Callable

from tests.editors.nvim.terminal import Terminal
from tests.editors.nvim.test_person_rewrite import (
    AT_ONCE,
    BEFORE,
    NEW_LINES,
    SLOWLY,
    changed,
    first_change_is_shown,
    previewed,
    select_and_ask,
)


def kill_server(nvim: Terminal) -> None:
    """After which a person is told, in words of Neovim's too, which make it wait for a key."""
    (process,) = nvim.home.processes("scripted_lsp")
    process.kill()
    nvim.until("SpecEditRestart")
    if "Press ENTER" in nvim.screen():
        nvim.type("<CR>")
        nvim.until_gone("Press ENTER")


def restart(nvim: Terminal) -> None:
    """By the command; the server is there when it takes a rewrite."""
    nvim.type(":let g:attached = '' | redrawstatus<CR>")
    nvim.until_gone(" attached")
    nvim.type(":SpecEditRestart<CR>")
    nvim.until(" attached")


def test_the_server_is_killed_while_the_model_writes(person: Callable[..., Terminal]):
    nvim = person(BEFORE, script=SLOWLY)
    select_and_ask(nvim)
    first_change_is_shown(nvim)
    kill_server(nvim)
    nvim.until_gone(NEW_LINES[0])
    nvim.type("ggO# still here<Esc>")
    assert nvim.save().decode() == "# still here\n" + BEFORE

    restart(nvim)
    select_and_ask(nvim)
    previewed(nvim)
    nvim.type("gA")
    nvim.until_gone("height = shape.height")
    assert nvim.save().decode() == "# still here\n" + changed(BEFORE, 1, 2, 3, 4)


def test_the_server_is_killed_while_nothing_is_done(person: Callable[..., Terminal]):
    nvim = person(BEFORE, script=AT_ONCE)
    kill_server(nvim)
    nvim.type("ggO# still here<Esc>")
    nvim.until("# still here")
    nvim.type(":SpecEdit Use floats<CR>")
    nvim.until("SpecEditRestart")
    assert nvim.save().decode() == "# still here\n" + BEFORE

    restart(nvim)
    select_and_ask(nvim)
    previewed(nvim)


def test_the_server_is_killed_while_changes_are_open(person: Callable[..., Terminal]):
    nvim = person(BEFORE, script=AT_ONCE)
    select_and_ask(nvim)
    previewed(nvim)
    kill_server(nvim)
    nvim.until_gone(NEW_LINES[0])
    nvim.type("gA")
    assert nvim.save().decode() == BEFORE
