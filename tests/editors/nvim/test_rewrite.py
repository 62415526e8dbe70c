"""Rewriting in Neovim: changes are shown as the model writes them, and made in the text as they are accepted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.editors.nvim.harness import Editor
from tests.lsp.scripted_lsp import Script, obeyed

Neovim = Callable[..., Editor]

BEFORE = "".join(f"line {number}\n" for number in range(1, 21))


def changed(text: str, *numbers: int, to: str = "changed {}") -> str:
    """The text with other lines in the places of those."""
    lines = text.splitlines(keepends=True)
    for number in numbers:
        lines[number - 1] = to.format(number) + "\n"
    return "".join(lines)


def ask(editor: Editor, text: str, lines: str = "%", *, bang: str = "") -> None:
    """Have lines rewritten as `text`."""
    editor.lua("vim.cmd(...)", f"{lines}SpecEdit{bang} {obeyed(text)}")


def ask_and_wait(editor: Editor, text: str, lines: str = "%") -> None:
    ask(editor, text, lines)
    ready(editor)


def ready(editor: Editor) -> None:
    editor.told("change")
    editor.until(lambda: removed(editor) or added(editor))


def removed(editor: Editor) -> list[int]:
    """The lines, from 1, that are shown as going."""
    marks = [mark for mark in editor.extmarks("specedit.preview") if mark.details.get("hl_group") == "SpecEditRemoved"]
    return [mark.row + 1 for mark in marks]


def added(editor: Editor) -> list[str]:
    """The lines that are shown as coming."""
    return [
        "".join(text for text, *_ in line).rstrip()
        for mark in editor.extmarks("specedit.preview")
        for line in mark.details.get("virt_lines", ())
        if "SpecEditAdded" in str(line[-1])
    ]


def test_the_third_change_is_rejected_the_rest_accepted_and_undone_in_one_step(neovim: Neovim) -> None:
    editor = neovim(BEFORE)
    ask_and_wait(editor, changed(BEFORE, 3, 8, 13, 18))
    assert removed(editor) == [3, 8, 13, 18]
    assert added(editor) == ["changed 3", "changed 8", "changed 13", "changed 18"]
    editor.command("normal! 13G")
    editor.command("SpecEditReject")
    editor.command("SpecEditAcceptAll")
    assert editor.saved().decode() == changed(BEFORE, 3, 8, 18)
    assert editor.extmarks("specedit.preview") == []
    editor.command("normal! u")
    assert editor.text() == BEFORE
