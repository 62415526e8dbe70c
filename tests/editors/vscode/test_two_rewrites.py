"""Two rewrites in one document: what is meant for all changes is done to all of them at once, or to none."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.editors.vscode.harness import VSCode, wait_until
from tests.lsp.scripted_lsp import Script, obeyed

BEFORE = "".join(f"line {number}\n" for number in range(1, 9))
AFTER = BEFORE.replace("line 2", "second").replace("line 7", "seventh")


@pytest.fixture(scope="module")
def window(open_window: Callable[..., VSCode]) -> VSCode:
    return open_window(script=Script(), settings={"specedit.rewrite.preview": "inline"}).ready()


@pytest.fixture
def code(window: VSCode) -> Iterator[VSCode]:
    window.open("a.txt", BEFORE)
    for line, text in ((1, "second\n"), (6, "seventh\n")):
        place = {"start": {"line": line, "character": 0}, "end": {"line": line, "character": 6}}
        window.start("specedit.rewriteSelection", {"instruction": obeyed(text), "range": place})
        wait_until(lambda: window.lenses().count("specedit.acceptChange") == (1 if line == 1 else 2))  # noqa: B023
    yield window
    window.dismiss_notifications()
    window.command("specedit.rejectAllChanges")


def test_all_are_accepted_in_one_step(code: VSCode) -> None:
    code.command("specedit.acceptAllChanges")
    code.until_text(AFTER)
    code.command("undo")
    code.until_text(BEFORE)


def test_none_is_accepted_where_one_does_not_fit(code: VSCode) -> None:
    code.insert(6, 0, "typed ")
    code.command("specedit.acceptAllChanges")
    wait_until(lambda: any("none was made" in message for message in code.notifications()))
    assert code.text() == BEFORE.replace("line 7", "typed line 7")
