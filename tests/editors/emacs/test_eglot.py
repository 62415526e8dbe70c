"""Emacs' own client, set up as the language server's page says."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.editors.emacs.harness import EmacsHome, EmacsTerminal, emacs
from tests.editors.nvim.home import binary, why_missing
from tests.fakes import fenced
from tests.lsp.scripted_lsp import Script, obeyed

CODE = "def total(items):\n    return sum(items)\n\n\ndef other():\n    return 1\n"
TOTAL = 'def total(items):\n    """Add up all 📦 items."""\n    return sum(items)\n'
EDITED = CODE.replace("def total(items):\n    return sum(items)\n", TOTAL)

AT_ONCE = "(setq eglot-confirm-server-initiated-edits nil eglot-confirm-server-edits nil)"
#: Emacs 30 does not ask by itself about a file that is open.
ASKING = "(setq eglot-confirm-server-edits 'summary)"
QUICK = Script(answers=[fenced(TOTAL)])
SLOW = Script(answers=[fenced(TOTAL)], seconds_per_chunk=0.15)
#: Long enough for what is shown meanwhile to be seen on a busy machine.
SLOWER = Script(answers=[fenced(TOTAL)], seconds_per_chunk=0.5)

#: A model on a busy CPU takes its time, to load and to write.
MODEL_SECONDS = 240

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def program() -> str:
    """An Emacs with Eglot."""
    found = emacs()
    if found is None:
        pytest.skip("no Emacs with Eglot: tests/editors/install_emacs.sh installs it, or set SPECEDIT_TEST_EMACS")
    return found


@pytest.fixture
def told(program: str, tmp_path: Path) -> Iterator[Callable[..., list[Any]]]:
    """Run Lisp in an Emacs that has `file` open; gives what it tells."""
    homes: list[EmacsHome] = []

    def run(
        lisp: str, script: Script = QUICK, text: bytes = CODE.encode(), name: str = "a.py", more: str = AT_ONCE
    ) -> list[Any]:
        home = EmacsHome(tmp_path, script, more=more)
        homes.append(home)
        return home.run(program, f'(drive-open "{home.file(name, text)}") {lisp}')

    yield run
    for home in homes:
        home.close()


@pytest.fixture
def terminal(program: str, tmp_path: Path) -> Iterator[Callable[..., EmacsTerminal]]:
    """Start an Emacs in a terminal, and wait for the server."""
    tmux = binary("tmux")
    if tmux is None:
        pytest.skip(why_missing("tmux"))
    terminals: list[EmacsTerminal] = []

    def start(script: Script | None = QUICK, text: str = CODE, seconds: float = 60, **given: Any) -> EmacsTerminal:
        home = EmacsHome(tmp_path, script, more=ASKING, **given)
        terminal = EmacsTerminal(tmux, Path(program), "", home, home.file("a.py", text))
        terminals.append(terminal)
        terminal.until("specedit: ready", seconds)
        return terminal

    yield start
    for each in terminals:
        each.close()


def test_actions_are_listed_and_one_is_made_and_undone_in_one_step(told):
    first, edited, undone = told(
        """
        (drive-tell (drive-titles (eglot-code-actions (point) (point))))
        (drive-choose "Add a docstring to function total" (point) (point))
        (drive-changed)
        (drive-tell (drive-text))
        (drive-undo)
        (drive-tell (drive-text))
        """
    )
    assert first == [
        "Add a docstring to function total",
        "Add type hints to function total",
        "Simplify function total",
    ]
    assert edited == EDITED
    assert undone == CODE


def test_the_expression_at_point_stands_for_the_function(told):
    """Eglot asks for that where no region is active."""
    (titles,) = told(
        """
        (search-forward "return su")
        (let ((word (bounds-of-thing-at-point 'sexp)))
          (drive-tell (drive-titles (eglot-code-actions (car word) (cdr word)))))
        """
    )
    assert titles[-1] == "Simplify function total"


@pytest.mark.parametrize(
    ("before", "region", "after"),
    [
        (b"a = 1\r\nb = 2\r\n", b"b = 3\r\n", b"a = 1\r\nb = 3\r\n"),
        (b"a = 1\nb = 2", b"b = 3\n", b"a = 1\nb = 3"),
        (b"if a:\n\tb = 2  \n", b"\tb = 3  \n", b"if a:\n\tb = 3  \n"),
        ("a = '😀é'\nb = '😀'  # 😀\n".encode(), "b = '😀!'  # 😀\n".encode(), "a = '😀é'\nb = '😀!'  # 😀\n".encode()),
    ],
    ids=["CRLF", "no final newline", "tabs and blanks", "emoji"],
)
def test_a_region_is_rewritten_and_saved_byte_by_byte(told, tmp_path, before, region, after):
    instruction = obeyed(region.decode().replace("\r\n", "\n")).replace("\\", "\\\\").replace('"', '\\"')
    told(
        f"""
        (setq require-final-newline nil)
        (forward-line 1)
        (push-mark (point) t t)
        (goto-char (point-max))
        (setq transient-mark-mode t)
        (specedit-rewrite "{instruction}")
        (drive-changed)
        (save-buffer)
        """,
        text=before,
    )
    assert (tmp_path / "work/a.py").read_bytes() == after


def test_what_is_typed_elsewhere_meanwhile_is_kept_and_is_a_step_of_its_own(told):
    both, undone = told(
        """
        (specedit-rewrite "Add a docstring.")
        (goto-char (point-max))
        (drive-type "# mine\n")
        (drive-changed)
        (drive-tell (drive-text))
        (drive-undo)
        (drive-tell (drive-text))
        """,
        SLOW,
    )
    assert both == EDITED + "# mine\n"
    assert undone == CODE + "# mine\n"


def test_a_change_of_the_part_ends_the_rewrite_and_says_so(told):
    message, text = told(
        """
        (specedit-rewrite "Add a docstring.")
        (search-forward "sum(")
        (drive-type "my_")
        (drive-tell (drive-shown "was not rewritten"))
        (drive-tell (drive-text))
        """,
        SLOW,
    )
    assert message.startswith("function total was not rewritten: the text was changed while the model wrote")
    assert text == CODE.replace("sum(", "sum(my_")


def test_an_edit_that_comes_for_an_older_text_is_refused_and_nothing_is_lost(told):
    """Eglot sends what is typed a little later: an edit may be under way by then."""
    message, text = told(
        """
        (let ((drive-is-idle nil))
          (specedit-rewrite "Add a docstring.")
          (search-forward "sum(")
          (drive-type "my_")
          (drive-tell (drive-shown "did not apply"))
          (drive-tell (drive-text)))
        """,
        SLOW,
    )
    assert "require version 0, you have 1. Ask again" in message
    assert text == CODE.replace("sum(", "sum(my_")


def test_an_edit_that_is_declined_is_not_made(told):
    question, message, text = told(
        """
        (cl-letf (((symbol-function 'y-or-n-p) (lambda (prompt) (drive-tell prompt) nil)))
          (specedit-rewrite "Add a docstring.")
          (drive-tell (drive-shown "the edit")))
        (drive-tell (drive-text))
        """,
        more=ASKING,
    )
    assert "a.py" in question
    assert "declined" in message or "cancelled" in message
    assert text == CODE


def test_a_person_rewrites_a_function_by_an_action_and_takes_it_back(terminal):
    editor = terminal(SLOWER)
    editor.command("eglot-code-actions")
    editor.until("Pick an action")
    editor.type("<Tab>")
    editor.until("Simplify function total")
    editor.type("<CR>")
    editor.until("specedit: rewriting")
    editor.until("(y or n)")
    editor.type("y")
    editor.until("Add up all")
    assert editor.save().decode() == EDITED
    editor.type("<C-x>u")
    editor.until_gone("Add up all")
    assert editor.save().decode() == CODE


def test_a_person_gives_an_instruction(terminal):
    editor = terminal()
    editor.command("specedit-rewrite")
    editor.until("Rewrite:")
    editor.type(f"{obeyed(TOTAL)}<CR>")
    editor.until("(y or n)")
    editor.type("y")
    editor.until("Add up all")
    assert editor.save().decode() == EDITED


@pytest.mark.real
def test_a_real_model_rewrites_a_function(terminal, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache"))
    editor = terminal(None, seconds=MODEL_SECONDS, model="qwen2.5-coder-0.5b")
    editor.command("eglot-code-actions")
    editor.until("Pick an action")
    editor.type("<CR>")
    editor.until("(y or n)", MODEL_SECONDS)
    editor.type("y")
    editor.until('"""')
    assert editor.save().decode().endswith(CODE.partition("\n\n")[2])
    editor.type("<C-x>u")
    editor.until_gone('"""')
    assert editor.save().decode() == CODE
