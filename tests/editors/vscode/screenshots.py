"""The pictures of the extension's pages, taken of the real thing: python -m tests.editors.vscode.screenshots

Needs what `make test-editors` installs. The model follows a script, so that they are the same each time.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tests.editors.pictured import CART, LABEL, changed
from tests.editors.vscode.harness import REPOSITORY, Installed, VSCode, chromium, vscode, wait_until
from tests.fakes import fenced
from tests.lsp.scripted_lsp import Script, obeyed

if TYPE_CHECKING:
    from playwright.sync_api import Browser

IMAGES = REPOSITORY / "editors/vscode/images"
WIDTH = 1080
_LOOK = {
    "breadcrumbs.enabled": False,
    "chat.disableAIFeatures": True,
    "editor.fontSize": 14,
    "editor.quickSuggestions": {"other": "off"},
    "editor.minimap.enabled": False,
    "editor.inlineSuggest.minShowDelay": 0,
    "files.exclude": {"**/.*": True},
    "window.menuBarVisibility": "hidden",
    "workbench.activityBar.location": "hidden",
    "workbench.colorTheme": "Default Dark Modern",
}

BOX = """\
from shapes import Box


def union(boxes):
    \"\"\"The smallest box that holds all of them.\"\"\"
    res = boxes[0]
    for box in boxes[1:]:
        low = min(res.low, box.low)

        # Boxes may lie within each other.
        high = max(res.high, box.high)

        res = Box(low, high)
    return res
"""
COMPLETION = "return min(self.items, key=lambda item: item[1], default=None)"


def rewrite(code: VSCode) -> None:
    """Changes in their lines, with what to do about each above it."""
    code.open("box.py", BOX)
    code.js("await tools.select([3, 0], [14, 0])")
    answer = (
        BOX[BOX.index("def union") :].replace("res ", "bounds ").replace("res\n", "bounds\n").replace("res.", "bounds.")
    )
    code.start("specedit.rewriteSelection", {"instruction": obeyed(answer)})
    code.js("await tools.select([0, 0])")
    code.page.locator(".codelens-decoration").get_by_text("Accept All").wait_for()
    wait_until(lambda: code.page.locator(".codelens-decoration").get_by_text("Reject", exact=True).count() == 4)


def diff(code: VSCode) -> None:
    """Changes of several lines, side by side."""
    code.open("cart.py", CART)
    code.command("editor.action.selectAll")
    code.start("specedit.rewriteSelection", {"instruction": obeyed(changed(CART))})
    code.page.locator(".tab").filter(has_text="proposes").wait_for()
    wait_until(lambda: code.page.locator(".line-insert, .char-insert").count())


def prompt(code: VSCode) -> None:
    """The question what to change, with what was said earlier."""
    code.open("cart.py", CART)
    for earlier in ("Simplify this", "Use a dictionary", "Add a docstring that says what this does"):
        code.js("await tools.select([10, 0], [15, 0])")
        code.start("specedit.rewriteSelection")
        code.answer(earlier)
        code.keys("Enter")
        wait_until(lambda: "specedit.regenerateChanges" in code.lenses())
        code.command("specedit.rejectAllChanges")
    code.js("await tools.select([10, 0], [15, 0])")
    code.start("specedit.rewriteSelection")
    code.page.locator(".quick-input-list .monaco-list-row").first.wait_for()


def actions(code: VSCode) -> None:
    """Ready instructions for what is selected."""
    code.open("cart.py", CART)
    code.js("await tools.select([12, 9])")
    code.page.locator(".lightBulbWidget").wait_for()
    code.keys("Control+.")
    code.page.locator(".action-widget").get_by_text("Simplify").wait_for()


def completion(code: VSCode) -> None:
    """A completion of several lines."""
    code.open("cart.py", f"{CART}\n    def cheapest(self):\n        ")
    code.js("await tools.select([21, 8])")
    code.command("editor.action.inlineSuggest.trigger")
    code.page.locator(".ghost-text-decoration, .ghost-text").first.wait_for()


def next_edit(code: VSCode) -> None:
    """An edit proposed again on another line."""
    # The scripted model completes the same everywhere.
    code.command("specedit.toggle")
    code.open("label.py", LABEL)
    code.js("await tools.select([0, 10], [0, 16])")
    code.command("type", {"text": "color"})
    wait_until(lambda: "color:" in code.drawn("not"))
    code.command("specedit.toggle")


#: Pictures, and how high each is.
PICTURES: dict[str, tuple[Callable[[VSCode], None], int]] = {
    "rewrite": (rewrite, 460),
    "diff": (diff, 520),
    "actions": (actions, 430),
    "prompt": (prompt, 430),
    "completion": (completion, 520),
    "next-edit": (next_edit, 240),
}


def draw_icon(browser: Browser) -> None:
    """The icon in the size that the marketplace wants."""
    page = browser.new_page(viewport={"width": 256, "height": 256})
    icon = (REPOSITORY / "editors/vscode/icon.svg").read_text()
    page.set_content(f"<style>* {{ margin: 0 }} svg {{ display: block }}</style>{icon}")
    page.screenshot(path=REPOSITORY / "editors/vscode/icon.png", omit_background=True)


def main(names: list[str]) -> None:
    """Take the pictures of those names, or all."""
    installed = Installed.find()
    method = CART[CART.index("    def total") : CART.index("\n    def discounted")]
    script = Script(completions=[COMPLETION], answers=[fenced(method.replace("total = 0", "total = 0.0"))])
    with tempfile.TemporaryDirectory() as place, chromium(installed) as browser:
        draw_icon(browser)
        with vscode(installed, browser, Path(place) / "w", script=script, settings=_LOOK, scale=2) as code:
            code.command("workbench.action.closeSidebar")
            code.ready()
            for name in names or PICTURES:
                take, height = PICTURES[name]
                code.page.set_viewport_size({"width": WIDTH, "height": height})
                take(code)
                code.page.screenshot(path=IMAGES / f"{name}.png", animations="disabled")
                code.keys("Escape")
                code.js("await vscode.commands.executeCommand('specedit.rejectAllChanges').then(undefined, () => {})")


if __name__ == "__main__":
    main(sys.argv[1:])
