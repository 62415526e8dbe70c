"""Each capability once with a real model: a person at a terminal, and the engine that the editor starts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.editors.nvim.conftest import person_config
from tests.editors.nvim.home import ROOT, Home, binary, why_missing
from tests.editors.nvim.terminal import Terminal
from tests.editors.nvim.test_person_inline import is_marked

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

PATIENCE_SECONDS = 300.0
SHAPES = (ROOT / "specedit/bench/edits/small/shapes.py").read_text()
UNION = SHAPES[SHAPES.index("def union") : SHAPES.index("def scaled")]
RENAME = "Rename the variable res to bounds."

NAMES = ("street", "city", "country", "phone", "email", "website", "language", "currency")
#: Long enough to be in the middle of for a while, what is changed far enough apart to be seen early.
LONG = (
    f"def found({', '.join(NAMES)}):\n    texts = []\n    other = None\n"
    + "".join(
        f"""\
    if {name} is None:
        other = "{name} is missing"
    elif isinstance({name}, str):
        texts.append({name})
"""
        for name in NAMES
    )
    + "    return texts, other\n"
)
RENAME_TEXTS = "Rename the variable texts to words."

FILES = {
    "area.py": "def area(width, height):\n\n\nassert area(2, 3) == 6\n",
    "shapes.py": SHAPES,
    "cancelled.py": LONG,
    "killed.py": LONG,
    "double.py": "def double(value):\n\n\nassert double(2) == 4\n",
    "label.py": "def label(colour):\n    if not colour:\n        return None\n    return colour.lower()\n",
}


@pytest.fixture(scope="module", params=["0.12", "0.11"])
def terminal(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    """One Neovim, with the model's server that it started."""
    program, tmux = binary(request.param), binary("tmux")
    if program is None or tmux is None:
        pytest.skip(why_missing("tmux" if program else request.param))
    config = person_config("{ engine = 'shared', model = 'qwen2.5-coder-0.5b' }")
    home = Home(tmp_path_factory.mktemp("real"), config, None)
    for name, text in FILES.items():
        home.file(name, text)
    terminal = Terminal(tmux, program, request.param, home, home.file("first.py", ""))
    try:
        terminal.until("attached")
        yield terminal
    finally:
        terminal.close()


@pytest.fixture
def opened(terminal: Terminal) -> list[Any]:
    """What is shown where a test fails."""
    return [terminal]


def edit(nvim: Terminal, name: str) -> None:
    nvim.type("<Esc>")
    nvim.edit(name)


def run(code: bytes) -> dict[str, Any]:
    """What the code defines."""
    defined: dict[str, Any] = {}
    exec(code, defined)
    return defined


def test_ghost_text_is_shown_and_taken(terminal: Terminal, opened: object):
    edit(terminal, "area.py")
    terminal.type("oreturn ")
    terminal.until("    return width * height", PATIENCE_SECONDS)
    terminal.type("<Tab><Esc>")
    assert run(terminal.save())["area"](4, 5) == 20


def test_a_rewrite_is_previewed_and_taken_but_for_one_change(terminal: Terminal, opened: object):
    edit(terminal, "shapes.py")
    terminal.type(f"/def union<CR>zt/res = None<CR>:SpecEdit {RENAME}<CR>")
    terminal.until("bounds = None", PATIENCE_SECONDS)
    assert terminal.file.read_text() == SHAPES
    terminal.until("changes", PATIENCE_SECONDS)
    terminal.type("/res = None<CR>gr")
    terminal.until_gone("bounds = None")
    terminal.type("gA")
    terminal.until_gone("return res")
    renamed = SHAPES.replace(UNION, UNION.replace("res", "bounds"))
    accepted = renamed.replace("bounds = None", "res = None")
    assert terminal.save().decode() == accepted
    terminal.type("u")
    terminal.until("return res")
    assert terminal.save().decode() == SHAPES
    terminal.type("<C-r>")
    terminal.until_gone("return res")
    assert terminal.save().decode() == accepted


def test_a_rewrite_is_cancelled(terminal: Terminal, opened: object):
    edit(terminal, "cancelled.py")
    terminal.type(f":%SpecEdit {RENAME_TEXTS}<CR>")
    terminal.until("words = []", PATIENCE_SECONDS)
    terminal.type("gc")
    terminal.until_gone("words = []")
    terminal.until("ancelled")
    assert terminal.save().decode() == LONG


def test_the_next_edit_repeats_ones_own(terminal: Terminal, opened: object):
    edit(terminal, "label.py")
    terminal.type("fcciwcolor<Esc>")
    terminal.until(lambda: is_marked(terminal, "colour:"))
    terminal.type("gn")
    terminal.until(" 2:")
    terminal.type("gn")
    terminal.until(lambda: is_marked(terminal, "colour.lower"))
    terminal.type("gn")
    terminal.until(" 4:")
    terminal.type("gn")
    terminal.until_gone("colour")
    assert terminal.save().decode() == FILES["label.py"].replace("colour", "color")


def test_the_model_is_killed_while_it_writes_and_comes_back(terminal: Terminal, opened: object):
    edit(terminal, "killed.py")
    terminal.type(f":%SpecEdit {RENAME_TEXTS}<CR>")
    terminal.until("words = []", PATIENCE_SECONDS)
    (engine,) = terminal.home.processes(" serve")
    engine.kill()
    terminal.until("not rewritten")
    assert "Press ENTER" not in terminal.screen()
    terminal.until_gone("words = []")
    terminal.type("ggO# still here<Esc>")
    assert terminal.save().decode() == "# still here\n" + LONG

    terminal.type(":SpecEditRestart<CR>")
    terminal.until(lambda: terminal.home.processes(" serve"), PATIENCE_SECONDS)
    edit(terminal, "double.py")
    terminal.type("oreturn ")
    terminal.until(lambda: re.search(r"return .*value", terminal.screen()), PATIENCE_SECONDS)
    terminal.type("<Tab><Esc>")
    assert run(terminal.save())["double"](4) == 8
