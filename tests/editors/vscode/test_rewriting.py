"""A rewrite, in the extension host: asked for, looked at change by change, made, undone, saved to the byte."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.editors.vscode.harness import VSCode, wait_until
from tests.fakes import fenced
from tests.lsp.scripted_lsp import Script, obeyed

FUNCTION = """\
def union(a, b):
    low = min(a.low, b.low)
    high = max(a.high, b.high)
    # the lower end
    # stays as it is
    left = low
    # the upper end
    # stays as it is
    right = high
    # both ends
    # are given
    return left, right
"""
CHANGES = [
    ("low = min", "lowest = min"),
    ("left = low", "left = lowest"),
    ("right = high", "top = high"),
    ("t, right", "t, top"),
]


def rewritten(*changes: int) -> str:
    """The function after some of the changes, numbered from 1."""
    text = FUNCTION
    for number in changes:
        text = text.replace(*CHANGES[number - 1])
    return text


@pytest.fixture(scope="module")
def window(open_window: Callable[..., VSCode]) -> VSCode:
    return open_window(
        script=Script(answers=[fenced(rewritten(2, 3))]), settings={"specedit.rewrite.preview": "inline"}
    ).ready()


@pytest.fixture
def code(window: VSCode) -> Iterator[VSCode]:
    yield window
    window.dismiss_notifications()
    window.js("await vscode.commands.executeCommand('specedit.rejectAllChanges').then(undefined, () => {})")


def rewrite(code: VSCode, answer: str, changes: int, command: str = "specedit.rewriteSelection") -> None:
    """Have what is selected rewritten, and wait until so many changes can be decided on."""
    code.start(command, {"instruction": obeyed(answer)})
    until_changes(code, changes)


def until_changes(code: VSCode, changes: int) -> None:
    def are_there() -> bool:
        lenses = code.lenses()
        return lenses.count("specedit.acceptChange") == changes and "specedit.regenerateChanges" in lenses

    wait_until(are_there)


def select_all(code: VSCode) -> None:
    code.command("editor.action.selectAll")


def on_line(code: VSCode, text: str) -> None:
    line = code.text().split("\n").index(next(line for line in code.text().split("\n") if text in line))
    code.js("await tools.select([args[0], 0])", line)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(FUNCTION, rewritten(1, 2, 4), id="plain"),
        pytest.param(FUNCTION.replace("\n", "\r\n"), rewritten(1, 2, 4).replace("\n", "\r\n"), id="crlf"),
        pytest.param(FUNCTION.replace("    ", "\t"), rewritten(1, 2, 4).replace("    ", "\t"), id="tabs"),
        pytest.param(FUNCTION[:-1], rewritten(1, 2, 4)[:-1], id="no final newline"),
        pytest.param(
            f"# 🦊 été\n{FUNCTION}".replace("end", "énd 🦊"),
            f"# 🦊 été\n{rewritten(1, 2, 4)}".replace("end", "énd 🦊"),
            id="emoji",
        ),
    ],
)
def test_one_of_four_changes_is_rejected_and_the_rest_is_one_step_to_undo(
    code: VSCode, before: str, after: str
) -> None:
    answer = before.replace("\r\n", "\n")
    for old, new in CHANGES:
        answer = answer.replace(old, new)
    code.open("union.py", before)
    select_all(code)
    rewrite(code, answer, 4)
    assert code.text() == before
    on_line(code, "right = high")
    code.command("specedit.rejectChange")
    wait_until(lambda: code.lenses().count("specedit.acceptChange") == 3)
    code.command("specedit.acceptAllChanges")
    code.until_text(after)
    assert code.save() == after.encode()
    code.command("undo")
    assert code.text() == before
    code.command("redo")
    assert code.text() == after
    assert code.save() == after.encode()


def test_changes_are_accepted_in_any_order_each_a_step_of_its_own(code: VSCode) -> None:
    code.open("union.py", FUNCTION)
    select_all(code)
    rewrite(code, rewritten(1, 2, 3, 4), 4)
    for line, done in (("return", (4,)), ("low = min", (1, 4)), ("right = high", (1, 3, 4))):
        on_line(code, line)
        code.command("specedit.acceptChange")
        code.until_text(rewritten(*done))
    code.command("undo")
    assert code.text() == rewritten(1, 4)
    code.command("undo")
    assert code.text() == rewritten(4)


def test_the_answer_to_an_empty_selection_is_the_function_at_the_cursor(code: VSCode) -> None:
    other = "def other():\n    return 1\n\n\n"
    code.open("union.py", other + FUNCTION)
    on_line(code, "left = low")
    rewrite(code, rewritten(2), 1, "specedit.rewriteFunction")
    code.command("specedit.acceptAllChanges")
    code.until_text(other + rewritten(2))


def test_an_empty_file_is_filled(code: VSCode) -> None:
    code.open("empty.py", "")
    rewrite(code, "greeting = 'hello'\n", 1)
    code.command("specedit.acceptAllChanges")
    wait_until(lambda: "greeting" in code.text())
    assert code.save() in (b"greeting = 'hello'\n", b"greeting = 'hello'")


def test_all_are_rejected_and_nothing_is_changed(code: VSCode) -> None:
    code.open("union.py", FUNCTION)
    select_all(code)
    rewrite(code, rewritten(1, 2, 3, 4), 4)
    code.command("specedit.rejectAllChanges")
    wait_until(lambda: not code.lenses())
    assert code.text() == FUNCTION
    assert not code.js("return tools.document.isDirty")


def test_what_the_user_writes_meanwhile_stays(code: VSCode) -> None:
    code.open("union.py", FUNCTION)
    select_all(code)
    rewrite(code, rewritten(1, 4), 2)
    code.insert(0, 0, "# mine\n")
    code.command("specedit.acceptAllChanges")
    code.until_text("# mine\n" + rewritten(1, 4))


def test_a_change_whose_lines_are_others_now_is_not_made(code: VSCode) -> None:
    code.open("union.py", FUNCTION)
    select_all(code)
    rewrite(code, rewritten(1, 4), 2)
    code.insert(1, 4, "my")
    mine = FUNCTION.replace("low = min", "mylow = min")
    code.command("specedit.acceptAllChanges")
    wait_until(lambda: any("has changed" in message for message in code.notifications()))
    assert code.text() == mine
    on_line(code, "return")
    code.command("specedit.acceptChange")
    code.until_text(mine.replace(*CHANGES[3]))


def test_a_code_action_is_looked_at_like_any_rewrite(code: VSCode) -> None:
    code.open("union.py", FUNCTION)
    select_all(code)
    titles = code.js(
        """
        const editor = vscode.window.activeTextEditor
        const actions = await tools.until(async () => {
          const all = await vscode.commands.executeCommand(
            'vscode.executeCodeActionProvider', editor.document.uri, editor.selection)
          return all.some((action) => action.title.startsWith('Simplify')) && all
        })
        const { command } = actions.find((action) => action.title.startsWith('Simplify'))
        await vscode.commands.executeCommand(command.command, ...command.arguments)
        return actions.map((action) => action.title)
        """
    )
    assert any("docstring" in title for title in titles)
    until_changes(code, 2)
    assert code.text() == FUNCTION
    code.command("specedit.acceptAllChanges")
    code.until_text(rewritten(2, 3))


def test_it_is_asked_again_with_another_seed(code: VSCode) -> None:
    code.open("union.py", FUNCTION)
    select_all(code)
    rewrite(code, rewritten(1), 1)
    asked = len([event for event in code.asked() if event["event"] == "asked"])
    code.start("specedit.regenerateChanges")
    wait_until(lambda: len([event for event in code.asked() if event["event"] == "asked"]) == asked + 1)
    until_changes(code, 1)
    code.command("specedit.acceptAllChanges")
    code.until_text(rewritten(1))


def test_what_became_of_changes_is_counted(code: VSCode) -> None:
    before = code.command("specedit.statistics")["rewrite"]
    code.open("union.py", FUNCTION)
    select_all(code)
    rewrite(code, rewritten(1, 2, 3), 3)
    on_line(code, "low = min")
    code.command("specedit.rejectChange")
    code.command("specedit.acceptAllChanges")
    wait_until(lambda: code.command("specedit.statistics")["rewrite"]["accepted"] >= before["accepted"] + 2)
    assert code.command("specedit.statistics")["rewrite"]["rejected"] == before["rejected"] + 1
