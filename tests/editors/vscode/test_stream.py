"""While the model writes: the user types, cancels, or loses the server; in the extension host."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator

import pytest

from tests.editors.vscode.harness import VSCode, wait_until
from tests.lsp.scripted_lsp import Script, obeyed

LINES = [f"value_{number} = compute({number})" for number in range(1, 41)]
HEAD = "# values\n# of\n# all\n"
TEXT = "\n".join(LINES) + "\n"
ANSWER = TEXT.replace("value_3 ", "third ").replace("value_12 ", "twelfth ").replace("value_38 ", "last ")


@pytest.fixture(scope="module")
def window(open_window: Callable[..., VSCode]) -> VSCode:
    # About seven seconds for an answer: long enough to do something meanwhile.
    settings = {"specedit.rewrite.preview": "inline", "specedit.nextEdit.enabled": False}
    return open_window(script=Script(seconds_per_chunk=0.04), settings=settings).ready()


@pytest.fixture
def code(window: VSCode) -> Iterator[VSCode]:
    yield window
    for command in ("specedit.cancelChanges", "specedit.rejectAllChanges"):
        window.js("await vscode.commands.executeCommand(args[0]).then(undefined, () => {})", command)
    window.dismiss_notifications()


def begin(code: VSCode) -> None:
    """Have all but the head rewritten, until the model writes."""
    code.open("values.py", HEAD + TEXT)
    code.js("await tools.select([3, 0], [43, 0])")
    asked = len(code.asked())
    code.start("specedit.rewriteSelection", {"instruction": obeyed(ANSWER)})
    wait_until(lambda: len(code.asked()) == asked + 1 and "specedit.cancelChanges" in code.lenses())


def finish(code: VSCode) -> None:
    wait_until(lambda: "specedit.regenerateChanges" in code.lenses())


def test_nothing_is_changed_before_it_is_accepted(code: VSCode) -> None:
    begin(code)
    code.js("await vscode.commands.executeCommand('specedit.acceptAllChanges').then(undefined, () => {})")
    assert code.text() == HEAD + TEXT
    finish(code)
    assert code.text() == HEAD + TEXT
    code.command("specedit.acceptAllChanges")
    code.until_text(HEAD + ANSWER)


def test_lines_written_above_meanwhile_stay(code: VSCode) -> None:
    begin(code)
    for number in range(5):
        code.insert(0, 0, f"# mine {number}\n")
    mine = "".join(f"# mine {number}\n" for number in reversed(range(5)))
    finish(code)
    code.command("specedit.acceptAllChanges")
    code.until_text(mine + HEAD + ANSWER)
    code.command("undo")
    assert code.text() == mine + HEAD + TEXT


def test_where_the_user_writes_into_it_the_rewrite_gives_way(code: VSCode) -> None:
    begin(code)
    code.insert(22, 0, "# mine\n")
    wait_until(lambda: not code.lenses())
    wait_until(lambda: any("was not rewritten" in message for message in code.notifications()))
    assert code.text() == HEAD + "".join(f"{line}\n" for line in [*LINES[:19], "# mine", *LINES[19:]])


def test_a_cancelled_one_stops_the_model(code: VSCode) -> None:
    begin(code)
    code.command("specedit.cancelChanges")
    wait_until(lambda: code.asked()[-1]["event"] == "ended" and code.asked()[-1]["finish"] == "cancelled")
    wait_until(lambda: not code.lenses())
    assert code.text() == HEAD + TEXT


def test_a_killed_server_is_started_again_and_the_rewrite_is_taken_back(code: VSCode) -> None:
    begin(code)
    killed = code.server_pid()
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: code.server_pid() not in (None, killed))
    wait_until(lambda: not code.lenses())
    assert code.text() == HEAD + TEXT
    begin(code)
    finish(code)
    code.command("specedit.acceptAllChanges")
    code.until_text(HEAD + ANSWER)
