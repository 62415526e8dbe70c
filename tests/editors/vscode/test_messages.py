"""Messages that hold what others say: of text in them no link is made, which would run commands of the editor's."""

from __future__ import annotations

from collections.abc import Callable

from tests.editors.vscode.harness import VSCode, wait_until
from tests.lsp.scripted_lsp import Script


def test_what_an_engine_says_is_no_link_to_a_command(open_window: Callable[..., VSCode]) -> None:
    error = "no weights, [get them](command:workbench.action.files.newUntitledFile)"
    code = open_window(script=Script(error=error)).ready()
    code.open("a.py", "x = 1\n")
    code.command("editor.action.selectAll")
    code.start("specedit.rewriteSelection", {"instruction": "do it"})
    wait_until(lambda: any("get them" in message for message in code.notifications()))
    assert code.page.locator(".notification-list-item-message a").all_text_contents() == []
