"""Helix, set up as the language server's page says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.editors.helix.harness import HelixHome, HelixTerminal, helix
from tests.editors.nvim.home import binary, why_missing
from tests.fakes import fenced
from tests.lsp.scripted_lsp import Script

CODE = "def total(items):\n    return sum(items)\n\n\ndef other():\n    return 1\n"
TOTAL = 'def total(items):\n    """Add up all 📦 items."""\n    return sum(items)\n'
EDITED = CODE.replace("def total(items):\n    return sum(items)\n", TOTAL)

QUICK = Script(answers=[fenced(TOTAL)])
SLOW = Script(answers=[fenced(TOTAL)], seconds_per_chunk=0.5)
#: Never done before a person on a busy machine has typed.
ENDLESS = Script(answers=[fenced(TOTAL)], seconds_per_chunk=10)

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Callable[..., HelixTerminal]]:
    """Start a Helix in a terminal, and wait for the server."""
    program, tmux = helix(), binary("tmux")
    if program is None:
        pytest.skip("no Helix: `make test-editors` installs it, or set SPECEDIT_TEST_HELIX")
    if tmux is None:
        pytest.skip(why_missing("tmux"))
    terminals: list[HelixTerminal] = []

    def start(script: Script = QUICK, text: str | bytes = CODE) -> HelixTerminal:
        home = HelixHome(tmp_path / f"home{len(terminals)}", script)
        terminal = HelixTerminal(tmux, program, "", home, home.file("a.py", text))
        terminals.append(terminal)
        terminal.until(" NOR ")
        return terminal

    yield start
    for each in terminals:
        each.close()


def offered(editor: HelixTerminal, title: str) -> None:
    """Open the menu of code actions, as soon as the server is there to fill it."""

    def shown() -> bool:
        if title not in editor.screen():
            editor.type("<Esc><Space>a")
        return title in editor.screen()

    editor.until(shown)


def test_a_person_rewrites_a_function_by_an_action_and_takes_it_back(terminal):
    editor = terminal(SLOW)
    editor.type("jw")
    offered(editor, "Add a docstring to function total")
    editor.type("<CR>")
    editor.until("Rewriting function total")
    editor.until("Add up all")
    assert editor.save().decode() == EDITED
    editor.type("u")
    editor.until_gone("Add up all")
    assert editor.save().decode() == CODE


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a = 1\r\nb = 2\r\n", b"a = 1\r\nb = 3\r\n"),
        (b"a = 1\nb = 2", b"a = 1\nb = 3"),
        (b"if a:\n\tb = 2  \n", b"if a:\n\tb = 3  \n"),
        ("a = 'é😀'\nb = '😀' + 2\n".encode(), "a = 'é😀'\nb = '😀' + 3\n".encode()),
    ],
    ids=["CRLF", "no final newline", "tabs and blanks", "emoji"],
)
def test_selected_lines_are_rewritten_as_told_and_saved_byte_by_byte(terminal, before, after):
    line = after.decode().splitlines()[1]
    editor = terminal(Script(answers=[fenced(f"{line}\n")]), before)
    offered(editor, "Simplify")
    editor.type("<Esc>jx")
    editor.type("<Space>I")
    editor.until("Open workspace command picker")
    editor.type('Say \\"3\\", 100%% surely<CR>')
    editor.until(line.split()[-1])
    assert editor.save() == after
    (asked,) = editor.home.asked()
    assert 'Say "3", 100% surely' in asked["prompt"][-1]


def test_an_instruction_is_for_the_function_at_the_cursor(terminal):
    editor = terminal()
    offered(editor, "function total")
    editor.type("<Esc>j<Space>i")
    editor.until("Open workspace command picker")
    editor.type("Say what it does<CR>")
    editor.until("Add up all")
    assert editor.save().decode() == EDITED
    (asked,) = editor.home.asked()
    assert "function total" in asked["prompt"][-1]
    assert "Say what it does" in asked["prompt"][-1]


def test_what_is_typed_elsewhere_meanwhile_is_kept(terminal):
    editor = terminal(SLOW)
    offered(editor, "Add a docstring to function total")
    editor.type("<CR>")
    editor.until("Rewriting function total")
    editor.type("geo# mine<Esc>")
    editor.until("Add up all")
    assert editor.save().decode() == EDITED + "    # mine\n"
    editor.type("u")
    editor.until_gone("Add up all")
    assert editor.save().decode() == CODE + "    # mine\n"


def test_a_change_of_the_part_ends_the_rewrite_and_says_so(terminal):
    editor = terminal(ENDLESS)
    offered(editor, "Add a docstring to function total")
    editor.type("<CR>")
    editor.until("Rewriting function total")
    editor.type("jA  # mine<Esc>")
    editor.until("function total was not rewritten: the text was changed while the model wrote")
    assert editor.save().decode() == CODE.replace("sum(items)", "sum(items)  # mine")
