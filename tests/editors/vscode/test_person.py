"""VS Code as a person has it: keys, clicks, and what is on the screen."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from tests.editors.vscode.harness import STATUS, VSCode, wait_until
from tests.lsp.scripted_lsp import Script, obeyed

CART = """\
class Cart:
    def __init__(self):
        self.items = []

    def total(self):
        result = 0
        # what is in it
        # is added up
        for price in self.items:
            result += price
        # nothing else
        # is counted
        return result
"""
RENAMED = CART.replace("result", "total")


@pytest.fixture(scope="module")
def window(open_window: Callable[..., VSCode]) -> VSCode:
    return open_window(
        script=Script(completions=["urn self.items[0]"]), settings={"specedit.nextEdit.enabled": False}
    ).ready()


@pytest.fixture
def code(window: VSCode) -> Iterator[VSCode]:
    yield window
    window.keys("Escape")
    window.js("await vscode.commands.executeCommand('specedit.rejectAllChanges').then(undefined, () => {})")
    window.dismiss_notifications()


def open_total(code: VSCode) -> None:
    """A method, selected."""
    code.open("cart.py", CART)
    code.js("await tools.select([4, 0], [13, 0])")


def lens(code: VSCode, text: str, nth: int = 0) -> None:
    """Click what stands above a line."""
    code.page.locator(".codelens-decoration a").get_by_text(text, exact=True).nth(nth).click()


def ask(code: VSCode, instruction: str) -> None:
    code.palette("SpecEdit: Rewrite Selection")
    wait_until(lambda: "Rewrite" in code.page.locator(".quick-input-title").inner_text())
    code.answer(instruction)
    code.keys("Enter")


def test_a_rewrite_is_asked_for_in_the_palette_and_decided_on_by_clicks(code: VSCode) -> None:
    open_total(code)
    ask(code, obeyed(RENAMED[CART.index("    def total") :]))
    wait_until(lambda: "3 changes" in code.page.locator(".codelens-decoration").first.inner_text())
    assert code.text() == CART
    lens(code, "Reject", nth=2)
    wait_until(lambda: code.lenses().count("specedit.acceptChange") == 2)
    lens(code, "Accept All")
    halfway = CART.replace("result", "total", 2)
    code.until_text(halfway)
    code.keys("Control+z")
    code.until_text(CART)
    code.keys("Control+y")
    code.until_text(halfway)
    code.keys("Control+s")
    wait_until(lambda: (code.folder / "cart.py").read_text() == halfway)


def test_an_earlier_instruction_is_offered_and_taken(code: VSCode) -> None:
    answer = RENAMED[CART.index("    def total") :]
    open_total(code)
    ask(code, obeyed(answer))
    wait_until(lambda: "specedit.regenerateChanges" in code.lenses())
    code.command("specedit.rejectAllChanges")
    open_total(code)
    code.palette("SpecEdit: Rewrite Selection")
    code.page.locator(".quick-input-list .monaco-list-row").filter(has_text="answer").first.click()
    wait_until(lambda: "specedit.regenerateChanges" in code.lenses())


def test_ghost_text_comes_while_one_types_and_tab_takes_it(code: VSCode) -> None:
    code.open("first.py", f"{CART}\n    def first(self):\n        \n")
    code.js("await tools.select([15, 8])")
    code.type("ret")
    wait_until(lambda: "self.items[0]" in code.ghost_text())
    code.keys("Tab")
    wait_until(lambda: "        return self.items[0]\n" in code.text())


def test_the_light_bulb_offers_rewrites(code: VSCode) -> None:
    open_total(code)
    code.page.locator(".lightBulbWidget").wait_for()
    code.keys("Control+.")
    code.page.locator(".action-widget").get_by_text("Simplify").first.wait_for()


def test_the_status_bar_opens_a_menu(code: VSCode) -> None:
    code.open("cart.py", CART)
    code.page.locator(STATUS).click()
    code.page.locator(".quick-input-list").get_by_text("Show statistics").wait_for()


def test_the_walkthrough_opens(code: VSCode) -> None:
    code.palette("SpecEdit: Open Walkthrough")
    code.page.get_by_text("Get started with SpecEdit").first.wait_for()
    code.page.get_by_text("Choose a model").first.wait_for()


def test_all_settings_have_a_page(code: VSCode) -> None:
    code.start("workbench.action.openSettings", "@ext:specedit.specedit inline")
    code.page.get_by_text("Complete at the cursor.").first.wait_for()
    code.keys("Escape")


def test_the_status_bar_tells_loading_readiness_and_trouble(open_window: Callable[..., VSCode]) -> None:
    code = open_window(stage={"step": "loading qwen2.5-coder-1.5b", "percent": 40})
    code.ready()
    code.open("cart.py", CART)
    wait_until(lambda: "40%" in code.status())
    (code.root / "stage.json").write_text(json.dumps({"step": "loading qwen2.5-coder-1.5b", "percent": 80}))
    wait_until(lambda: "80%" in code.status())
    (code.root / "stage.json").unlink()
    wait_until(lambda: "%" not in code.status())
    code.script(Script(error="nothing answers there. Start specedit serve"))
    code.ready()
    code.open("cart.py", CART)
    code.command("editor.action.selectAll")
    code.start("specedit.rewriteSelection", {"instruction": "anything"})
    wait_until(lambda: any("Start specedit serve" in message for message in code.notifications()))
