"""What a person sees and types while a part is rewritten."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.editors.nvim.conftest import ATTACHED
from tests.editors.nvim.home import PLUGIN
from tests.editors.nvim.terminal import Terminal
from tests.fakes import fenced
from tests.lsp.scripted_lsp import Script

BEFORE = """\
import math


def area(shape):
    width = shape.width
    height = shape.height
    check(width)
    check(height)
    scale = shape.scale
    mark(width)
    mark(height)
    unit = shape.unit
    note(width)
    note(height)
    return width * height


print(area)
"""
#: Old and new lines, two lines between them, so that each is a change of its own.
CHANGES = {
    "    height = shape.height\n": "    height = float(shape.height)\n",
    "    scale = shape.scale\n": "    scale = shape.scale or 1.0\n",
    "    unit = shape.unit\n": "    unit = shape.unit or default_unit\n",
    "    return width * height\n": "    return math.prod([width, height, scale])\n",
}


def changed(text: str, *numbers: int) -> str:
    """`text` with those of the changes."""
    for number, (old, new) in enumerate(CHANGES.items(), start=1):
        if number in numbers:
            text = text.replace(old, new)
    return text


FUNCTION = BEFORE[BEFORE.index("def") : BEFORE.index("\n\nprint")]
ANSWERS = [fenced(changed(FUNCTION, 1, 2, 3, 4))]
AT_ONCE = Script(answers=ANSWERS)
SLOWLY = Script(answers=ANSWERS, seconds_per_chunk=0.12)
NEW_LINES = [new.strip() for new in CHANGES.values()]


def previewed(nvim: Terminal) -> str:
    """The screen once all changes are shown."""
    return nvim.until(lambda: all(line in nvim.screen() for line in NEW_LINES) and "4 changes" in nvim.screen())


def select_and_ask(nvim: Terminal) -> None:
    nvim.type("/def<CR>V/return<CR>:SpecEdit Use floats<CR>")


def test_one_change_rejected_the_rest_accepted_undone_redone_saved(person: Callable[..., Terminal]):
    nvim = person(BEFORE, script=AT_ONCE)
    select_and_ask(nvim)
    screen = previewed(nvim)
    assert all(old.strip() in screen for old in CHANGES), "what is there is still shown"
    assert nvim.file.read_text() == BEFORE

    nvim.type("gg<C-n>")
    nvim.until(" 6:")
    nvim.type("<C-n><C-n>")
    nvim.until(" 12:")
    nvim.type("gr")
    nvim.until_gone(NEW_LINES[2])
    nvim.type("gA")
    nvim.until_gone("height = shape.height")
    nvim.until_gone("return width * height")
    nvim.type("u")
    nvim.until("height = shape.height")
    assert nvim.save().decode() == BEFORE, "one step took back all that was accepted"
    nvim.type("<C-r>")
    nvim.until(NEW_LINES[0])
    assert nvim.save().decode() == changed(BEFORE, 1, 2, 4)


def test_changes_are_taken_one_by_one_in_any_order(person: Callable[..., Terminal]):
    nvim = person(BEFORE, script=AT_ONCE)
    select_and_ask(nvim)
    previewed(nvim)
    nvim.type("gg<C-p>")
    nvim.until(" 15:")
    nvim.type("ga")
    nvim.until_gone("return width * height")
    nvim.type("gg<C-n>ga")
    nvim.until_gone("height = shape.height")
    nvim.type("gR")
    nvim.until_gone(NEW_LINES[1])
    assert nvim.save().decode() == changed(BEFORE, 1, 4)
    nvim.type("u")
    nvim.until("height = shape.height")
    assert nvim.save().decode() == changed(BEFORE, 4), "one step takes back one change"


def test_the_prompt_keeps_what_was_asked(person: Callable[..., Terminal]):
    nvim = person(BEFORE, script=AT_ONCE)
    nvim.type("/width<CR>gs")
    nvim.until("area")
    nvim.type("Use floats, 長さ too<CR>")
    previewed(nvim)
    nvim.type("gR")
    nvim.until_gone(NEW_LINES[0])
    nvim.type("gs<Up>")
    nvim.until("Use floats, 長さ too")
    nvim.type("!<CR>")
    previewed(nvim)
    first, second = (asked["prompt"][-1] for asked in nvim.home.asked())
    assert "Use floats, 長さ too" in first
    assert "Use floats, 長さ too!" in second
    nvim.type("gA")
    nvim.until_gone("height = shape.height")
    assert nvim.save().decode() == changed(BEFORE, 1, 2, 3, 4)


def test_the_prompt_can_be_left(person: Callable[..., Terminal]):
    nvim = person(BEFORE, script=AT_ONCE)
    nvim.type("/width<CR>gs")
    nvim.until("area")
    nvim.type("Use<Esc>")
    nvim.type("<Esc>")
    nvim.until_gone("Use")
    assert nvim.save().decode() == BEFORE
    assert not nvim.home.asked()


def test_a_selection_is_asked_for_by_the_prompt(person: Callable[..., Terminal]):
    nvim = person(BEFORE, script=AT_ONCE)
    nvim.type("4GV15Ggs")
    nvim.until("4")
    nvim.type("Use floats<CR>")
    previewed(nvim)
    nvim.type("gA")
    nvim.until_gone("height = shape.height")
    assert nvim.save().decode() == changed(BEFORE, 1, 2, 3, 4)


def test_the_keys_that_the_page_proposes(person: Callable[..., Terminal]):
    page = (PLUGIN / "README.md").read_text()
    keys = re.search(r"```lua\n(require\('specedit'\)\.setup\(\{.*?map\(.*?)```", page, re.DOTALL)
    script = Script(answers=ANSWERS, completions=["weight"])
    nvim = person(BEFORE, script=script, config=ATTACHED + keys[1])
    nvim.type("Goshape = ")
    nvim.until("shape = weight")
    nvim.type("<Tab><Esc>")
    assert nvim.save().decode() == BEFORE + "shape = weight\n"

    nvim.type(r"4GV15G\rr")
    nvim.until("4-15")
    nvim.type("Use floats<CR>")
    previewed(nvim)
    nvim.type(r"gg]r]r[r\rx")
    nvim.until_gone(NEW_LINES[0])
    nvim.type(r"\ra")
    nvim.until_gone("scale = shape.scale\n")
    nvim.type(r"\rA")
    nvim.until_gone(NEW_LINES[0])
    nvim.until_gone("return width * height")
    assert nvim.save().decode() == changed(BEFORE, 2, 3, 4) + "shape = weight\n"


def first_change_is_shown(nvim: Terminal) -> None:
    nvim.until(NEW_LINES[0])
    assert NEW_LINES[-1] not in nvim.screen(), "the model still writes"


def test_typing_above_while_the_model_writes(person: Callable[..., Terminal]):
    nvim = person(BEFORE, script=SLOWLY)
    select_and_ask(nvim)
    first_change_is_shown(nvim)
    nvim.type("ggO# one<CR># two<Esc>")
    previewed(nvim)
    nvim.type("gg<C-n>")
    nvim.until(" 8:")
    nvim.type("gA")
    nvim.until_gone("height = shape.height")
    assert nvim.save().decode() == "# one\n# two\n" + changed(BEFORE, 1, 2, 3, 4)


def test_typing_inside_while_the_model_writes_ends_it_and_loses_nothing(person: Callable[..., Terminal]):
    nvim = person(BEFORE, script=SLOWLY)
    select_and_ask(nvim)
    first_change_is_shown(nvim)
    nvim.type("9GAs<Esc>")
    nvim.until("the text was changed")
    nvim.until_gone(NEW_LINES[0])
    assert "Press ENTER" not in nvim.screen(), "nobody who types is held up"
    assert nvim.save().decode() == BEFORE.replace("shape.scale", "shape.scales")


@pytest.mark.parametrize("keys", ["gc", ":SpecEditCancel<CR>"])
def test_a_rewrite_is_cancelled(person: Callable[..., Terminal], keys: str):
    nvim = person(BEFORE, script=SLOWLY)
    select_and_ask(nvim)
    first_change_is_shown(nvim)
    nvim.type(keys)
    nvim.until_gone(NEW_LINES[0])
    nvim.until("ancelled")
    nvim.until(lambda: nvim.home.asked("ended"))
    assert nvim.home.asked("ended")[0]["finish"] == "cancelled", "the model is stopped"
    assert nvim.save().decode() == BEFORE


def test_what_the_guard_refuses_is_told(person: Callable[..., Terminal]):
    nvim = person(BEFORE, script=Script(answers=[fenced("def area(shape):\n    return ((\n")]))
    select_and_ask(nvim)
    nvim.until("no longer parse")
    nvim.until_gone("rewriting")
    assert "Press ENTER" not in nvim.screen()
    nvim.type(":messages<CR>")
    nvim.until(lambda: nvim.screen().count("no longer parse") == 2)
    nvim.type("<CR>")
    assert nvim.save().decode() == BEFORE
