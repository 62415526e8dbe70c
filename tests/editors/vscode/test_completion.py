"""Ghost text, in the extension host: shown where VS Code asks for it, and taken whole, by word and by line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.editors.vscode.harness import VSCode, wait_until
from tests.lsp.scripted_lsp import Script

COMPLETION = "if left > right:\n        left = right\n        print(left)"
SHOP = "def smaller(left, right):\n    \n    return left\n"
CURSOR = [1, 4]
COMPLETED = SHOP.replace("    \n", f"    {COMPLETION}\n")


@pytest.fixture(scope="module")
def code(open_window: Callable[..., VSCode]) -> VSCode:
    return open_window(
        script=Script(completions=[COMPLETION]), settings={"editor.inlineSuggest.minShowDelay": 0}
    ).ready()


def complete(code: VSCode, text: str = SHOP) -> None:
    """Open a file, ask for a completion, and wait until it is on the screen."""
    code.open("shop.py", text)
    code.js("await tools.select(args[0])", CURSOR)
    code.command("editor.action.inlineSuggest.trigger")
    wait_until(lambda: "print(left)" in code.ghost_text())


def test_a_completion_is_taken_whole_and_undone_at_once(code: VSCode) -> None:
    complete(code)
    code.command("editor.action.inlineSuggest.commit")
    code.until_text(COMPLETED)
    code.command("undo")
    assert code.text() == SHOP


def take(code: VSCode, part: str) -> str:
    """Take the next part of a completion, and give what of it is taken by now."""
    before = code.text()
    code.command(f"editor.action.inlineSuggest.{part}")
    wait_until(lambda: code.text() != before)
    return code.text().split("    ", 1)[1].removesuffix("\n    return left\n")


def test_it_is_taken_word_by_word(code: VSCode) -> None:
    complete(code)
    assert take(code, "acceptNextWord") == "if"
    while "left" not in (taken := take(code, "acceptNextWord")):
        assert taken.strip() == "if"
    assert taken.rstrip() == "if left"
    assert "print(left)" in code.ghost_text()


def test_it_is_taken_line_by_line(code: VSCode) -> None:
    complete(code)
    assert take(code, "acceptNextLine").rstrip() == "if left > right:"
    while "print" not in take(code, "acceptNextLine"):
        pass
    assert code.text() == COMPLETED


def test_it_keeps_the_line_ends_of_the_file(code: VSCode) -> None:
    complete(code, SHOP.replace("\n", "\r\n"))
    code.command("editor.action.inlineSuggest.commit")
    code.until_text(COMPLETED.replace("\n", "\r\n"))
    assert code.save() == COMPLETED.replace("\n", "\r\n").encode()


def test_it_comes_by_itself_while_one_types(code: VSCode) -> None:
    code.open("shop.py", SHOP)
    code.js("await tools.select(args[0])", CURSOR)
    code.type("if")
    wait_until(lambda: "left > right:" in code.ghost_text())


def test_what_was_taken_is_counted(code: VSCode) -> None:
    before = code.command("specedit.statistics")["inline"]["accepted"]
    # The same completion of the same text counts once.
    complete(code, SHOP.replace("smaller", "counted"))
    code.command("editor.action.inlineSuggest.commit")
    wait_until(lambda: code.command("specedit.statistics")["inline"]["accepted"] == before + 1)


def test_completions_are_switched_off_and_on(code: VSCode) -> None:
    complete(code)
    code.command("specedit.toggle")
    try:
        code.open("shop.py", SHOP)
        asked = len(code.asked())
        code.js("await tools.select(args[0])", CURSOR)
        code.command("editor.action.inlineSuggest.trigger")
        # What the server is told later is answered later.
        code.command("specedit.statistics")
        assert len(code.asked()) == asked
        assert code.ghost_text() == ""
    finally:
        code.command("specedit.toggle")
    complete(code)
