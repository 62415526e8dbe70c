"""Finding, starting and losing the server, and who may choose it; in the extension host and on the screen."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.editors.vscode.harness import VSCode, wait_until
from tests.lsp.scripted_lsp import Script, obeyed


def edits(code: VSCode) -> bool:
    """Whether a rewrite comes back."""
    code.open("a.py", "x = 1\n")
    code.command("editor.action.selectAll")
    code.start("specedit.rewriteSelection", {"instruction": obeyed("x = 2\n")})
    wait_until(lambda: "specedit.regenerateChanges" in code.lenses())
    code.command("specedit.acceptChange")
    code.until_text("x = 2\n")
    return True


@pytest.fixture(scope="module")
def code(open_window: Callable[..., VSCode]) -> VSCode:
    return open_window(
        script=Script(),
        files={".vscode/settings.json": '{"specedit.model": "another", "specedit.rewrite.allowDeletions": true}'},
    )


def test_it_is_active_and_says_that_it_is_ready(code: VSCode) -> None:
    code.until("vscode.extensions.getExtension('specedit.specedit').isActive")
    wait_until(code.server_pid)
    assert edits(code)
    wait_until(lambda: "SpecEdit is ready" in code.status())


def test_a_workspace_chooses_no_model_and_lifts_no_guard(code: VSCode) -> None:
    settings = "vscode.workspace.getConfiguration('specedit')"
    assert code.js(f"return [{settings}.get('model'), {settings}.get('rewrite.allowDeletions')]") == ["", False]


def test_a_setting_that_the_server_starts_with_starts_it_anew(code: VSCode) -> None:
    before = wait_until(code.server_pid)
    code.js("await vscode.workspace.getConfiguration('specedit').update('rewrite.temperature', 0.5, 2)")
    assert edits(code)
    assert code.server_pid() == before
    settings = code.root / "data/Machine/settings.json"
    settings.write_text(settings.read_text().replace("{", '{"specedit.logLevel": "debug", ', 1))
    wait_until(lambda: code.server_pid() != before)
    assert edits(code)


def test_a_killed_server_comes_back_by_itself(code: VSCode) -> None:
    assert edits(code)
    killed = wait_until(code.server_pid)
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: code.server_pid() != killed)
    assert edits(code)


def test_one_that_always_dies_is_left_alone_until_the_user_restarts_it(code: VSCode) -> None:
    def is_given_up() -> bool:
        with suppress(ProcessLookupError):
            os.kill(wait_until(code.server_pid), signal.SIGKILL)
        return any("Restart" in text for text in code.page.locator(".notification-list-item").all_inner_texts())

    wait_until(is_given_up)
    assert "error" in code.status().lower() or "stopped" in code.status().lower()
    code.dismiss_notifications()
    code.command("specedit.restart")
    assert edits(code)


def test_statistics_are_shown(code: VSCode) -> None:
    assert edits(code)
    code.start("specedit.showStatistics")
    wait_until(lambda: any("accepted" in frame.locator("body").inner_text() for frame in code.page.frames))


def test_without_specedit_it_says_what_to_do(open_window: Callable[..., VSCode]) -> None:
    code = open_window(settings={"specedit.server.path": "/nowhere/specedit"})
    wait_until(lambda: any("/nowhere/specedit" in text for text in code.notifications()))
    buttons = code.page.locator(".notification-list-item .monaco-button").all_inner_texts()
    assert any("Install" in button for button in buttons)
    wait_until(lambda: "error" in code.status().lower() or "not found" in code.status().lower())


def test_nothing_of_a_folder_is_run_before_it_is_trusted(open_window: Callable[..., VSCode], tmp_path: Path) -> None:
    proof = tmp_path / "it was run"
    code = open_window(
        flags=(),
        settings={"security.workspace.trust.startupPrompt": "never"},
        files={
            ".vscode/settings.json": json.dumps({"specedit.server.path": "${workspaceFolder}/.venv/bin/python"}),
            ".venv/bin/python": f"#!/bin/sh\ntouch '{proof}'\n",
        },
    )
    assert not code.js("return vscode.workspace.isTrusted")
    assert edits(code)
    assert not proof.exists()
    code.start("workbench.trust.manage")
    code.page.get_by_role("button", name="Trust", exact=True).click()
    wait_until(proof.exists)
