"""The statusline, what is told of an engine in trouble, statistics and the log."""

from __future__ import annotations

from collections.abc import Callable

from tests.editors.nvim.harness import Editor
from tests.lsp.scripted_lsp import Script

Neovim = Callable[..., Editor]


def tell(editor: Editor, **status: object) -> None:
    """Have the server tell how the engine is."""
    editor.lua("require('specedit.status').on_status(..., {})", {"message": "", "fix": "", "model": ""} | status)


def component(editor: Editor) -> str:
    """What stands in the statusline."""
    return str(editor.lua("return require('specedit.status').component()"))


STATUSES = [
    ({"state": "loading", "percent": 42, "message": "reading"}, "specedit 42%"),
    ({"state": "loading"}, "specedit loading"),
    ({"state": "ready", "model": "m"}, "specedit"),
    ({"state": "busy", "message": "rewriting"}, "specedit …"),
    ({"state": "error", "message": "gone"}, "specedit: error"),
]


def test_the_statusline(neovim: Neovim) -> None:
    line = "%{v:lua.require'specedit.status'.component()}|"
    editor = neovim(setup="{ warm_up = false }", config=f'vim.o.statusline = "{line}"')
    for status, said in STATUSES:
        tell(editor, **status)
        assert component(editor) == said
        editor.until(lambda said=said: f"{said}|" in editor.screen())


def test_it_is_drawn_anew_and_told_to_ones_own_configuration(neovim: Neovim) -> None:
    config = """
    _G.states = {}
    vim.api.nvim_create_autocmd('User', {
      pattern = 'SpecEditStatus',
      callback = function(event) table.insert(_G.states, event.data.state) end,
    })
    """
    editor = neovim("", script=Script(completions=["total"]), config=config)
    editor.keys("ix = ")
    editor.until(lambda: {"busy", "ready"} <= set(editor.lua("return _G.states")))
    editor.until(lambda: component(editor) == "specedit")


def test_nothing_where_no_server_runs(neovim: Neovim) -> None:
    editor = neovim()
    tell(editor, state="ready")
    editor.lua("vim.lsp.get_clients({ name = 'specedit' })[1]:stop(true)")
    editor.until(lambda: component(editor) == "")


def test_trouble_is_told_once_with_what_mends_it(neovim: Neovim) -> None:
    editor = neovim(setup="{ warm_up = false }")
    trouble = {"state": "error", "message": "nothing answers", "fix": "Start specedit serve"}
    for _ in range(3):
        tell(editor, **trouble)
        tell(editor, state="busy", message="completing")
    said = [message for message in editor.messages() if "nothing answers" in message]
    assert said == ["specedit: nothing answers. Start specedit serve"]
    tell(editor, state="ready")
    tell(editor, **trouble)
    assert len([message for message in editor.messages() if "nothing answers" in message]) == 2


def test_what_is_no_status_is_left_out(neovim: Neovim) -> None:
    editor = neovim(setup="{ warm_up = false }")
    tell(editor, state="ready", model="m")
    for wrong in (None, "ready", {}, {"state": "asleep"}, {"state": 3}):
        editor.lua("require('specedit.status').on_status(..., {})", wrong)
    assert component(editor) == "specedit"
    tell(editor, state="loading", percent="many", message=7)
    assert component(editor) == "specedit loading"


def test_statistics(neovim: Neovim) -> None:
    editor = neovim("", script=Script(completions=["total"]))
    editor.keys("ix = ")
    editor.until(lambda: editor.ghost_text() == "total")
    editor.command("SpecEditStatistics")
    assert "inline completions: 1 shown" in editor.told("In the last")


def test_a_server_that_has_ended_is_started_anew(neovim: Neovim) -> None:
    editor = neovim("", script=Script(completions=["total"]))
    editor.command("SpecEditRestart")
    editor.told("the engine was started anew")
    editor.lua("vim.lsp.get_clients({ name = 'specedit' })[1]:stop(true)")
    editor.until(lambda: not editor.attached())
    editor.command("SpecEditRestart")
    editor.until(editor.attached, 60)
    editor.keys("ix = ")
    editor.until(lambda: editor.ghost_text() == "total")


def test_the_log(neovim: Neovim) -> None:
    editor = neovim()
    editor.command("SpecEditLog")
    editor.until(lambda: editor.nvim.current.buffer.name.endswith("lsp.log"))
    assert editor.lua("return vim.bo.readonly")
