"""The next edit with a real model."""

from __future__ import annotations

from pathlib import Path

import pytest

from specedit.edit.document import Document, Span, TextEdit
from specedit.edit.next_edit import ask
from specedit.edit.recent import RecentEdits
from specedit.engine.api import CancelToken

pytestmark = pytest.mark.real

TEXT = """\
import os


def read_config(root):
    path = os.path.join(root, "config.toml")
    with open(path) as file:
        return file.read()


def read_notes(root):
    path = os.path.join(root, "notes.txt")
    with open(path) as file:
        return file.read()


def area(width, height):
    return width * height
"""
OLD, NEW = "with open(path) as file:", 'with open(path, encoding="utf-8") as file:'


def test_the_change_is_made_at_the_place_most_like_it(qwen) -> None:
    from specedit.engine.local import LocalEngine

    recent, start = RecentEdits(), TEXT.index(OLD)
    recent.record("a", "notes.py", Path("notes.py"), TEXT, Span(start, start + len(OLD)), NEW, 0.0)
    document = Document(TEXT.replace(OLD, NEW, 1), Path("notes.py"))
    engine = LocalEngine(*qwen)
    asked = ask(document, recent.latest(8), start + len(NEW), engine, CancelToken(), finished=True)
    changed = document.apply(TextEdit(edit.span, edit.new_text) for edit in asked.edits).text
    assert changed == TEXT.replace(OLD, NEW)
    assert {edit.source for edit in asked.edits} == {"model"}
    assert asked.usage.output_tokens > asked.usage.forwards, "most of the answer is drafted"
