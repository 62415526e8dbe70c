"""Completions at the cursor: shown, taken whole or in part, chosen among, typed along, put away."""

from __future__ import annotations

from collections.abc import Callable

from tests.editors.nvim.harness import Editor
from tests.lsp.scripted_lsp import Script

Neovim = Callable[..., Editor]

PART = "local inline = require('specedit.inline') return inline.{}()"


def shown(editor: Editor, text: str) -> None:
    """Wait until exactly this is drawn."""
    editor.until(lambda: editor.ghost_text() == text)


def call(editor: Editor, name: str) -> bool:
    return editor.lua(PART.format(name)) is True


def test_a_completion_is_shown_and_taken_whole(neovim: Neovim) -> None:
    editor = neovim("x = 1\n", script=Script(completions=["return total"]))
    editor.keys("o    ")
    shown(editor, "return total")
    assert editor.text() == "x = 1\n    \n"
    assert call(editor, "accept")
    editor.until(lambda: editor.text() == "x = 1\n    return total\n")
    assert editor.cursor() == (2, 16)
