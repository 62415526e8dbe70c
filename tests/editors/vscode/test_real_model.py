"""One pass of each with a real model behind the real server."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from specedit.engine import discovery
from tests.editors.vscode.harness import REPOSITORY, VSCode, wait_until
from tests.faults.serving import end_all
from tests.lsp.harness import environment

pytestmark = pytest.mark.real

PATIENCE_SECONDS = 300.0
SHAPES = (REPOSITORY / "specedit/bench/edits/small/shapes.py").read_text()
RENAME = "Rename the variable res to bounds."
TOTALS = """\
def add_up(values):
    total = 0
    for value in values:
        total +=
    return total
"""


@pytest.fixture(scope="module")
def code(open_window: Callable[..., VSCode]) -> Iterator[VSCode]:
    with pytest.MonkeyPatch.context() as patch:
        code = open_window(
            command=(str(Path(sys.executable).with_name("specedit")), "lsp"),
            settings={"specedit.model": "qwen2.5-coder-0.5b", "specedit.rewrite.preview": "inline"},
        )
        for name, value in environment(code.root).items():
            patch.setenv(name, value)
        yield code
        end_all()


def ready(code: VSCode) -> None:
    wait_until(lambda: "SpecEdit is ready" in code.status(), PATIENCE_SECONDS)


def lines_of_union() -> list[int]:
    lines = SHAPES.split("\n")
    first = lines.index("def union(boxes):")
    return [first, lines.index("    return res", first) + 1]


def rewrite_union(code: VSCode) -> None:
    code.open("shapes.py", SHAPES)
    first, last = lines_of_union()
    code.js("await tools.select([args[0], 0], [args[1], 0])", first, last)
    code.start("specedit.rewriteSelection", {"instruction": RENAME})


def test_it_tells_how_far_the_model_is_loaded_and_which_one_it_is(code: VSCode) -> None:
    told = set()

    def is_ready() -> bool:
        told.add(status := code.status())
        return "SpecEdit is ready" in status

    wait_until(is_ready, PATIENCE_SECONDS)
    assert any("%" in status for status in told), told
    code.start("specedit.showMenu")
    code.page.locator(".quick-input-title").get_by_text("qwen2.5-coder-0.5b").wait_for()
    code.keys("Escape")


def test_a_completion_is_shown_and_taken(code: VSCode) -> None:
    ready(code)
    code.open("totals.py", TOTALS)
    code.js("await tools.select([3, 16])")
    code.type(" ")
    wait_until(lambda: "value" in code.ghost_text(), PATIENCE_SECONDS)
    code.command("editor.action.inlineSuggest.commit")
    wait_until(lambda: "total += value" in code.text())


def test_a_rewrite_is_taken_but_for_one_change(code: VSCode) -> None:
    ready(code)
    rewrite_union(code)
    wait_until(lambda: "specedit.regenerateChanges" in code.lenses(), PATIENCE_SECONDS)
    changes = code.lenses().count("specedit.acceptChange")
    assert changes > 1
    code.js("await tools.select([args[0], 0])", lines_of_union()[1] - 1)
    code.command("specedit.rejectChange")
    code.command("specedit.acceptAllChanges")
    wait_until(lambda: "bounds" in code.text())
    after = code.text()
    assert after.endswith(SHAPES[SHAPES.index("    return res") :])
    assert after.startswith(SHAPES[: SHAPES.index("def union")])
    code.command("undo")
    assert code.text() == SHAPES
    code.command("redo")
    assert code.text() == after
    assert code.save() == after.encode()


def test_a_cancelled_rewrite_changes_nothing_and_the_next_one_works(code: VSCode) -> None:
    ready(code)
    rewrite_union(code)
    wait_until(lambda: "specedit.cancelChanges" in code.lenses())
    code.command("specedit.cancelChanges")
    wait_until(lambda: not code.lenses())
    assert code.text() == SHAPES
    ready(code)


def test_a_killed_engine_is_told_and_started_again(code: VSCode) -> None:
    ready(code)
    rewrite_union(code)
    wait_until(lambda: "specedit.cancelChanges" in code.lenses())
    code.dismiss_notifications()
    (engine,) = discovery.servers()
    os.kill(engine.pid, signal.SIGKILL)
    wait_until(code.notifications)
    assert code.text() == SHAPES
    code.command("specedit.restart")
    rewrite_union(code)
    wait_until(lambda: "specedit.regenerateChanges" in code.lenses(), PATIENCE_SECONDS)
    code.command("specedit.rejectAllChanges")
