"""The next edit, in the extension host: proposed after one's own, gone to, and made."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.editors.vscode.harness import VSCode, wait_until

NAMES = ("apple", "pear", "plum", "fig")
CALLS = "".join(f"    total += price({name}, {name}_count)\n" for name in NAMES)


@pytest.fixture(scope="module")
def code(open_window: Callable[..., VSCode]) -> VSCode:
    return open_window().ready()


def calls(renamed: int) -> str:
    """The calls, so many of them by another name."""
    return CALLS.replace("price", "cost", renamed)


def rename_two(code: VSCode) -> None:
    """Do the same twice, in the first and the second line."""
    code.open("shop.py", CALLS)
    for line in range(2):
        code.js("tools.select([args[0], 13], [args[0], 18])", line)
        code.command("type", {"text": "cost"})
    code.until_text(calls(renamed=2))


def go(code: VSCode) -> None:
    """Go to the next edit, once it is known."""
    wait_until(lambda: code.command("specedit.goToNextEdit") is None and cursor(code) == 2)


def cursor(code: VSCode) -> int:
    return code.js("return vscode.window.activeTextEditor.selection.active.line")


def test_it_is_gone_to_then_made_then_the_next_one_is_there(code: VSCode) -> None:
    rename_two(code)
    go(code)
    assert code.text() == calls(renamed=2)
    code.command("specedit.goToNextEdit")
    code.until_text(calls(renamed=3))
    wait_until(lambda: code.command("specedit.goToNextEdit") is None and cursor(code) == 3)
    wait_until(lambda: code.command("specedit.goToNextEdit") is None and code.text() == calls(renamed=4))
    code.command("undo")
    assert code.text() == calls(renamed=3)


def test_it_is_shown_where_it_would_be_made(code: VSCode) -> None:
    rename_two(code)
    drawn = code.page.locator(".view-line").filter(has_text="plum")
    wait_until(lambda: "cost" in drawn.first.evaluate(SEEN))
    assert code.text() == calls(renamed=2)


#: What a line shows, what decorations draw after it among that.
SEEN = """line => line.innerText + [...line.querySelectorAll('*')].map(
    (each) => getComputedStyle(each, '::after').content + getComputedStyle(each, '::before').content).join(' ')"""
