"""The next edit, in the extension host: proposed after one's own, gone to, and made."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.editors.vscode.harness import VSCode, wait_until

TEXT = "def label(colour):\n    if not colour:\n        return None\n    return colour.lower()\n"


@pytest.fixture(scope="module")
def code(open_window: Callable[..., VSCode]) -> VSCode:
    return open_window(settings={"specedit.inline.enabled": False, "specedit.nextEdit.model": False}).ready()


def renamed(places: int) -> str:
    return TEXT.replace("colour", "color", places)


def rename(code: VSCode) -> None:
    """Rename a parameter where it is declared."""
    code.open("label.py", TEXT)
    code.js("await tools.select([0, 10], [0, 16])")
    code.command("type", {"text": "color"})
    code.until_text(renamed(places=1))


def go(code: VSCode, line: int) -> None:
    """Go to the next edit, once it is known."""
    wait_until(lambda: code.command("specedit.goToNextEdit") is None and cursor(code) == line)


def cursor(code: VSCode) -> int:
    return code.js("return vscode.window.activeTextEditor.selection.active.line")


def test_it_is_gone_to_then_made_then_the_next_one_is_there(code: VSCode) -> None:
    rename(code)
    go(code, line=1)
    assert code.text() == renamed(places=1)
    code.command("specedit.goToNextEdit")
    code.until_text(renamed(places=2))
    go(code, line=3)
    code.command("specedit.goToNextEdit")
    code.until_text(renamed(places=3))
    code.command("undo")
    assert code.text() == renamed(places=2)


def test_it_is_shown_where_it_would_be_made(code: VSCode) -> None:
    rename(code)
    wait_until(lambda: "color:" in code.drawn("not"))
    assert code.text() == renamed(places=1)


def test_what_no_longer_holds_is_not_made(code: VSCode) -> None:
    rename(code)
    go(code, line=1)
    code.insert(1, 11, "dis")
    code.command("specedit.goToNextEdit")
    assert "not discolour:" in code.text()
