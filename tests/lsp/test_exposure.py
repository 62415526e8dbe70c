from __future__ import annotations

from pathlib import Path

import pytest

from specedit.config import Settings
from specedit_lsp.exposure import why_withheld
from tests.lsp.buffers import Buffers
from tests.lsp.harness import recorded, scripted


def project(root: Path) -> Path:
    (root / ".git").mkdir()
    (root / ".gitignore").write_text("build/\n")
    return root


def why(path: Path, text: str = "x = 1\n", settings: Settings | None = None) -> str:
    return why_withheld(path.as_uri(), path, text, settings or Settings())


def test_a_program_may_be_shown(tmp_path):
    assert why(project(tmp_path) / "a.py") == ""


@pytest.mark.parametrize("name", [".env", "id_rsa", "server.key", ".ssh/config"])
def test_secrets_are_withheld_by_name(tmp_path, name):
    assert "secret" in why(project(tmp_path) / name)


def test_the_users_own_secrets_are_withheld(tmp_path):
    assert "secret" in why(project(tmp_path) / "private" / "a.py", settings=Settings(secret_patterns=("private/",)))


def test_a_link_to_a_secret_is_withheld(tmp_path):
    (project(tmp_path) / ".env").write_text("KEY=1\n")
    (tmp_path / "settings.txt").symlink_to(tmp_path / ".env")
    assert "secret" in why(tmp_path / "settings.txt")


@pytest.mark.parametrize("uri", ["untitled:.env", "vscode-remote://host/home/me/.ssh/config", "git:/p/.env?HEAD"])
def test_secrets_that_are_no_files_are_withheld(uri):
    assert "secret" in why_withheld(uri, None, "KEY=1\n", Settings())


def test_no_other_document_is_completed_by_a_secret_that_is_no_file(tmp_path):
    with scripted(tmp_path) as editor:
        editor.initialize(tmp_path, options={"inline": {"debounceMs": 0}, "nextEdit": {"enabled": False}})
        buffers = Buffers(editor)
        for folder, word in ((".ssh", "opensesame"), ("src", "shown")):
            text = f"class Holder:\n    word = '{word}'\n"
            uri = buffers.open(text, f"vscode-remote://host/home/me/{folder}/holder.py", language="python")
            buffers.type(uri, f"    other = '{word}'\n")
        uri = buffers.open("holder = Holder()\nx = Holder.\n", language="python")
        assert editor.complete_at(uri, 1, len("x = Holder."))
    shown = str(recorded(tmp_path)[-1]["prompt"])
    assert shown.count("shown") > 1
    assert "opensesame" not in shown


def test_a_new_document_may_be_shown():
    assert why_withheld("untitled:Untitled-1", None, "x = 1\n", Settings()) == ""


def test_ignored_files_are_withheld_unless_allowed(tmp_path):
    file = project(tmp_path) / "build" / "a.py"
    assert ".gitignore" in why(file)
    assert why(file, settings=Settings(allow_ignored=True)) == ""


def test_binary_and_large_texts_are_withheld(tmp_path):
    file = project(tmp_path) / "a.py"
    small = Settings(max_file_bytes=10)
    assert "binary" in why(file, "a\0b")
    assert "10 bytes" in why(file, "0123456789a", small)
    assert "10 bytes" in why(file, "ééééé\n", small)
    assert why(file, "0123456789", small) == ""
