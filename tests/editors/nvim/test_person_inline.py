"""What a person sees and types while code is completed at the cursor, and where the next edit is proposed."""

from __future__ import annotations

from collections.abc import Callable

from tests.editors.nvim.terminal import Terminal
from tests.lsp.scripted_lsp import Script

BEFORE = "def area(width, height):\n\n\nprint(area(2, 3))\n"
BODY = "    if width < 0:\n        raise ValueError\n    return width * height\n"
AFTER = "def area(width, height):\n" + BODY + "\n\nprint(area(2, 3))\n"
BLOCK = Script(completions=["if width < 0:\n        raise ValueError\n    return width * height"])


def test_ghost_text_is_taken_with_a_key(person: Callable[..., Terminal]):
    nvim = person("def area(width, height):\n\n\nprint(area(2, 3))\n", script=Script(completions=["width * height"]))
    nvim.type("oreturn ")
    nvim.until("    return width * height")
    nvim.type("<Tab>")
    nvim.type("<Esc>")
    assert nvim.save() == b"def area(width, height):\n    return width * height\n\n\nprint(area(2, 3))\n"
    nvim.type("u")
    nvim.until_gone("width * height")
    assert "return" in nvim.screen(), "what was typed is another step"


def test_ghost_text_of_several_lines_word_by_word_line_by_line(person: Callable[..., Terminal]):
    nvim = person(BEFORE, script=BLOCK)
    nvim.type("o")
    screen = nvim.until("return width * height").splitlines()
    assert screen[:4] == AFTER.splitlines()[:4], "it is shown as it would be"
    nvim.type("<C-e><C-e>")
    nvim.until("2:13")
    assert "return width * height" in nvim.screen(), "the rest is still shown"
    nvim.type("<C-l>")
    nvim.until(" 3:")
    nvim.until("return width * height")
    nvim.type("<Tab><Esc>")
    assert nvim.save().decode() == AFTER


def test_ghost_text_that_is_not_taken_leaves_nothing(person: Callable[..., Terminal]):
    nvim = person(BEFORE, script=BLOCK)
    nvim.type("o")
    nvim.until("return width * height")
    nvim.type("pa")
    nvim.until("    pa")
    nvim.type("ss<Esc>")
    nvim.until_gone("return width * height")
    assert nvim.save() == b"def area(width, height):\n    pass\n\n\nprint(area(2, 3))\n"


def test_typing_along_keeps_ghost_text(person: Callable[..., Terminal]):
    nvim = person(BEFORE, script=BLOCK)
    nvim.type("o")
    nvim.until("return width * height")
    nvim.type("if wid")
    nvim.until("2:11")
    assert nvim.until("return width * height").splitlines()[:4] == AFTER.splitlines()[:4]
    nvim.type("<Tab><Esc>")
    assert nvim.save().decode() == AFTER


def test_tab_is_a_tab_where_nothing_is_shown(person: Callable[..., Terminal]):
    nvim = person("# one\n", script=Script(completions=[""]))
    nvim.type("A<Tab>two<Esc>")
    assert nvim.save() == b"# one   two\n"


def test_completions_can_be_switched_off_and_on(person: Callable[..., Terminal]):
    nvim = person(BEFORE, script=BLOCK)
    nvim.type(":SpecEditToggle<CR>o")
    nvim.until("INSERT")
    nvim.type("re")
    nvim.until("    re")
    nvim.type("<Esc>:SpecEditToggle<CR>")
    assert not nvim.home.asked(), "the model is not asked"
    nvim.type("S")
    nvim.until("return width * height")


def is_marked(nvim: Terminal, text: str) -> bool:
    """Whether a part of the text that is shown has a colour of its own."""
    return text in nvim.screen() and text not in nvim.colours()


def test_the_next_edit_is_gone_to_and_made(person: Callable[..., Terminal]):
    text = "def label(colour):\n    if not colour:\n        return None\n    return colour.lower()\n"
    nvim = person(text)
    nvim.type("fcciwcolor<Esc>")
    nvim.until(lambda: is_marked(nvim, "colour:"))
    nvim.type("gn")
    nvim.until(" 2:")
    nvim.type("gn")
    nvim.until("    if not color:")
    nvim.until(lambda: is_marked(nvim, "colour.lower"))
    nvim.type("gn")
    nvim.until(" 4:")
    nvim.type("gn")
    nvim.until_gone("colour")
    assert nvim.save().decode() == text.replace("colour", "color")
    nvim.type("u")
    nvim.until("    return colour.lower()")
    assert "if not color:" in nvim.screen(), "one step took back one edit"
