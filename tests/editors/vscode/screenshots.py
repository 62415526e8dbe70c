"""The pictures of the extension's pages, taken of the real thing: python -m tests.editors.vscode.screenshots

Needs what `make test-editors` installs. The model follows a script, so that they are the same each time.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tests.editors.vscode.harness import REPOSITORY, Installed, VSCode, chromium, vscode, wait_until
from tests.lsp.scripted_lsp import Script, obeyed

if TYPE_CHECKING:
    from playwright.sync_api import Browser

IMAGES = REPOSITORY / "editors/vscode/images"
SIZE = (920, 560)
_LOOK = {
    "breadcrumbs.enabled": False,
    "editor.fontSize": 14,
    "editor.minimap.enabled": False,
    "editor.inlineSuggest.minShowDelay": 0,
    "files.exclude": {"**/.*": True},
    "window.menuBarVisibility": "hidden",
    "workbench.activityBar.location": "hidden",
    "workbench.colorTheme": "Default Dark Modern",
}

CART = '''\
from dataclasses import dataclass, field


@dataclass
class Cart:
    items: list = field(default_factory=list)

    def add(self, name, price, count=1):
        self.items.append((name, price, count))

    def total(self):
        total = 0
        for _name, price, count in self.items:
            total += price * count
        return total

    def discounted(self, rate):
        """What the cart costs with a discount."""
        return self.total() * (1 - rate)
'''
CHANGES = {
    "items: list =": "items: list[tuple[str, float, int]] =",
    "add(self, name, price, count=1):": "add(self, name: str, price: float, count: int = 1) -> None:",
    "total(self):": "total(self) -> float:",
    "discounted(self, rate):": "discounted(self, rate: float) -> float:",
    "        return self.total() *": """\
        if not 0 <= rate <= 1:
            raise ValueError(f"{rate} is no discount")
        return self.total() *""",
}
INSTRUCTION = "Add type hints, and refuse a rate that is no discount."


def changed(text: str) -> str:
    """The class after all changes."""
    for old, new in CHANGES.items():
        text = text.replace(old, new)
    return text


def rewrite(code: VSCode) -> None:
    """A class with all of its changes to decide on."""
    code.open("cart.py", CART)
    code.command("editor.action.selectAll")
    code.start("specedit.rewriteSelection", {"instruction": f"{INSTRUCTION} {obeyed(changed(CART))}"})
    wait_until(lambda: "specedit.regenerateChanges" in code.lenses())
    code.js("tools.select([4, 0])")


def prompt(code: VSCode) -> None:
    """The question what to change, with what was said earlier."""
    code.open("cart.py", CART)
    for earlier in ("Simplify this", "Use dataclasses", "Add a docstring that says what this does"):
        code.js("tools.select([10, 0], [15, 0])")
        code.start("specedit.rewriteSelection", {"instruction": earlier})
        wait_until(lambda: "specedit.regenerateChanges" in code.lenses())
        code.command("specedit.rejectAllChanges")
    code.js("tools.select([10, 0], [15, 0])")
    code.start("specedit.rewriteSelection")
    code.page.locator(".quick-input-widget input").first.wait_for()


def completion(code: VSCode) -> None:
    """A completion of several lines."""
    code.open("cart.py", f"{CART}\n    def cheapest(self):\n        ")
    code.js("tools.select([21, 8])")
    code.command("editor.action.inlineSuggest.trigger")
    code.page.locator(".ghost-text-decoration, .ghost-text").first.wait_for()


def next_edit(code: VSCode) -> None:
    """An edit proposed again on the next line."""
    calls = "".join(f"total += price({name}, {name}_count)\n" for name in ("apple", "pear", "plum", "fig"))
    code.open("fruit.py", calls)
    code.js(
        """
        const at = new vscode.Position(0, args[0])
        await vscode.window.activeTextEditor.edit((edit) => edit.insert(at, ', tax'))
        tools.select([0, args[0] + 5])
        """,
        calls.index(")"),
    )
    code.page.locator(".view-lines").get_by_text(", tax").nth(1).wait_for()


PICTURES: dict[str, Callable[[VSCode], None]] = {
    "rewrite": rewrite,
    "prompt": prompt,
    "completion": completion,
    "next-edit": next_edit,
}
COMPLETION = "return min(self.items, key=lambda item: item[1], default=None)"


def draw_icon(browser: Browser) -> None:
    """The icon in the size that the marketplace wants."""
    page = browser.new_page(viewport={"width": 256, "height": 256})
    icon = (REPOSITORY / "editors/vscode/icon.svg").read_text()
    page.set_content(f"<style>* {{ margin: 0 }} svg {{ display: block }}</style>{icon}")
    page.screenshot(path=REPOSITORY / "editors/vscode/icon.png", omit_background=True)


def main(names: list[str]) -> None:
    """Take the pictures of those names, or all."""
    installed = Installed.find()
    script = Script(completions=[COMPLETION])
    with tempfile.TemporaryDirectory() as place, chromium(installed) as browser:
        draw_icon(browser)
        with vscode(installed, browser, Path(place) / "w", script=script, settings=_LOOK, size=SIZE, scale=2) as code:
            code.command("workbench.action.closeSidebar")
            for name in names or PICTURES:
                PICTURES[name](code)
                code.page.screenshot(path=IMAGES / f"{name}.png", animations="disabled", caret="initial")
                code.keys("Escape")
                code.js("await vscode.commands.executeCommand('specedit.rejectAllChanges').then(undefined, () => {})")


if __name__ == "__main__":
    main(sys.argv[1:])
