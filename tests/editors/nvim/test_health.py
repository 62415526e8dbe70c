""":checkhealth specedit says what works, and what mends what doesn't."""

from __future__ import annotations

from collections.abc import Callable

from tests.editors.nvim.harness import Editor
from tests.lsp.scripted_lsp import Script

Neovim = Callable[..., Editor]

# The program answers as `specedit` does; the scripted one is a server alone.
PROGRAM = """
local real = vim.system
vim.system = function(command, options)
  if vim.list_contains(command, '--version') then command = { 'echo', 'specedit, version 7.8.9' } end
  if vim.list_contains(command, '--help') then command = { VERDICT } end
  return real(command, options)
end
"""


def report(editor: Editor) -> str:
    """What it shows."""
    editor.command("checkhealth specedit")
    editor.until(lambda: editor.lua("return vim.bo.filetype") == "checkhealth")
    return "\n".join(editor.nvim.current.buffer[:])


def test_all_is_well(neovim: Neovim) -> None:
    editor = neovim("x = 1\n", config=PROGRAM.replace("VERDICT", "'true'"))
    editor.keys("ix")
    editor.until(lambda: editor.asked())
    editor.keys("<Esc>")
    editor.until(lambda: editor.lua("return require('specedit.status').current().state") == "ready")
    said = report(editor)
    assert "ERROR" not in said
    assert "WARNING" not in said
    assert ("vim.lsp.inline_completion" in said) == (editor.version == "0.12")
    assert "specedit, version 7.8.9" in said
    assert "attached to a.py" in said
    assert "it is ready; model scripted" in said


def test_a_program_that_is_not_there(neovim: Neovim) -> None:
    editor = neovim(setup="{ cmd = { 'nosuchprogram', 'lsp' } }", attach=False)
    said = report(editor)
    assert "ERROR" in said
    assert "'nosuchprogram' was not found" in said
    assert "setup({ cmd = " in said


def test_a_program_that_is_too_old(neovim: Neovim) -> None:
    editor = neovim(config=PROGRAM.replace("VERDICT", "'false'"))
    assert "Update it" in report(editor)


def test_not_switched_on(neovim: Neovim) -> None:
    editor = neovim(setup=None, attach=False)
    said = report(editor)
    assert "Put require('specedit').setup()" in said or editor.version == "0.11"
    assert "it runs for no buffer" in said or "not switched on" in said


def test_an_engine_in_trouble(neovim: Neovim) -> None:
    editor = neovim("x = 1\n", script=Script(error="the model is gone. Run specedit serve"))
    editor.keys("ix = ")
    editor.until(lambda: editor.asked())
    editor.keys("<Esc>")
    status = {"state": "error", "message": "nothing answers", "fix": "Start specedit serve"}
    editor.lua("require('specedit.status').on_status(..., {})", status)
    said = report(editor)
    assert "it is in trouble: nothing answers." in said
    assert "Start specedit serve" in said
    assert ":SpecEditRestart" in said


def test_another_plugin_that_completes(neovim: Neovim) -> None:
    editor = neovim(config="vim.g.loaded_copilot = 1")
    said = report(editor)
    assert "copilot.vim draws completions at the cursor too" in said
    assert "enabled = false" in said
