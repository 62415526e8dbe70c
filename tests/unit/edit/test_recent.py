"""What was edited of late, put together from keystrokes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specedit.edit.document import Span, split_lines
from specedit.edit.recent import MAX_CHARS, MAX_EDITS, RecentEdit, RecentEdits

TEXT = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n"


class Editor:
    """A document that is typed in; a second passes with each change unless said otherwise."""

    def __init__(self, text: str = TEXT, recent: RecentEdits | None = None, key: str = "file:///a.py") -> None:
        self.text, self.recent, self.key, self.now = text, recent or RecentEdits(), key, 0.0

    def replace(self, old: str, new: str, after: float = 1.0, source: str = "user") -> None:
        start = self.text.index(old)
        self.change(Span(start, start + len(old)), new, after, source)

    def change(self, span: Span, new: str, after: float = 1.0, source: str = "user") -> None:
        self.now += after
        self.recent.record(self.key, "a.py", Path("a.py"), self.text, span, new, self.now, source)
        self.text = self.text[: span.start] + new + self.text[span.end :]

    def type(self, before: str, typed: str, after: float = 0.2) -> None:
        offset = self.text.index(before)
        for at, char in enumerate(typed):
            self.change(Span(offset + at, offset + at), char, after)

    def edits(self) -> list[RecentEdit]:
        return list(self.recent.latest(MAX_EDITS))

    def changes(self) -> list[tuple[int, str, str]]:
        return [(edit.line, edit.before, edit.after) for edit in self.edits()]


def test_typed_characters_are_one_change_of_a_line() -> None:
    editor = Editor()
    editor.type("ree\n", "XYZ")
    assert editor.edits() == [
        RecentEdit(
            "a.py",
            Path("a.py"),
            3,
            "three\n",
            "thXYZree\n",
            "one\ntwo\n",
            "four\nfive\nsix\n",
            at=editor.now,
            key=editor.key,
        )
    ]


def test_typing_goes_on_after_a_pause_where_it_stopped() -> None:
    editor = Editor()
    editor.type("ree\n", "XY")
    editor.type("ree\n", "Z", after=60)
    assert editor.changes() == [(3, "three\n", "thXYZree\n")]


def test_neighbouring_lines_are_one_change_only_without_a_pause() -> None:
    editor = Editor()
    editor.replace("two", "2")
    editor.replace("three", "3")
    assert editor.changes() == [(2, "two\nthree\n", "2\n3\n")]
    editor.replace("four", "4", after=10)
    assert editor.changes() == [(4, "four\n", "4\n"), (2, "two\nthree\n", "2\n3\n")]


def test_places_apart_are_changes_of_their_own_newest_first() -> None:
    editor = Editor()
    editor.replace("two", "2")
    editor.replace("six", "6")
    editor.replace("four", "4")
    assert editor.changes() == [(4, "four\n", "4\n"), (6, "six\n", "6\n"), (2, "two\n", "2\n")]


def test_an_edit_undone_vanishes_at_once_or_later() -> None:
    editor = Editor()
    editor.type("ree\n", "X")
    editor.replace("X", "", after=30)
    assert editor.changes() == []
    editor.replace("two", "2")
    editor.replace("six", "6", after=30)
    editor.replace("2", "two", after=30)
    assert editor.changes() == [(6, "six\n", "6\n")]


def test_lines_that_come_in_move_the_earlier_edits_below() -> None:
    editor = Editor()
    editor.replace("six", "6")
    editor.replace("two\n", "two\nnew\nlines\n", after=10)
    assert editor.changes() == [(3, "", "new\nlines\n"), (8, "six\n", "6\n")]
    editor.replace("one\n", "", after=10)
    assert [edit.line for edit in editor.edits()] == [1, 2, 7]


def test_lines_deleted_and_a_line_split_and_joined() -> None:
    editor = Editor()
    editor.replace("two\nthree\n", "")
    assert editor.changes() == [(2, "two\nthree\n", "")]
    editor = Editor()
    editor.replace("ree\n", "\nree\n")
    assert editor.changes() == [(3, "three\n", "th\nree\n")]
    editor = Editor()
    editor.replace("two\nthree", "twothree")
    assert editor.changes() == [(2, "two\nthree\n", "twothree\n")]


def test_enter_at_the_end_of_a_line_changes_only_the_new_line() -> None:
    editor = Editor()
    offset = editor.text.index("\nthree")
    editor.change(Span(offset, offset), "\n    ")
    editor.type("\nthree", "pass")
    assert editor.changes() == [(3, "", "    pass\n")]
    assert editor.edits()[0].context_before == "one\ntwo\n"


def test_a_whole_text_sent_anew_counts_as_what_changed_in_it() -> None:
    editor = Editor("line\n" * 5_000 + TEXT)
    editor.change(Span(0, len(editor.text)), editor.text.replace("three", "3"))
    assert editor.changes() == [(5_003, "three\n", "3\n")]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_of_all_kinds(end: str) -> None:
    editor = Editor(TEXT.replace("\n", end))
    editor.replace("six", "6")
    editor.replace("two", "2")
    assert editor.changes() == [(2, f"two{end}", f"2{end}"), (6, f"six{end}", f"6{end}")]
    assert editor.edits()[0].context_before == f"one{end}"
    assert editor.edits()[0].context_after == f"three{end}four{end}five{end}"


def test_form_feeds_and_other_separators_end_no_line() -> None:
    editor = Editor("one\f\u2028\x85x\ntwo\n")
    editor.replace("two", "2")
    assert editor.changes() == [(2, "two\n", "2\n")]


def test_documents_are_told_apart() -> None:
    editor = Editor()
    other = Editor("two\n", editor.recent, "file:///b.py")
    editor.replace("two", "2")
    other.replace("two", "zwei")
    editor.replace("three", "3")
    assert [edit.after for edit in editor.recent.latest(9, editor.key)] == ["2\n3\n"]
    assert [edit.after for edit in editor.recent.latest(1)] == ["2\n3\n"]
    assert [edit.after for edit in editor.recent.latest(9, other.key)] == ["zwei\n"]


def test_what_specedit_rewrote_is_told_from_what_the_user_typed() -> None:
    editor = Editor()
    editor.replace("two", "2", source="rewrite")
    editor.replace("2", "zwei")
    assert [(edit.source, edit.before, edit.after) for edit in editor.edits()] == [
        ("user", "2\n", "zwei\n"),
        ("rewrite", "two\n", "2\n"),
    ]


def test_bounded_in_number_and_size() -> None:
    editor = Editor("".join(f"line {number}\n" for number in range(1_000)))
    for number in range(0, 1_000, 5):
        editor.replace(f"line {number}\n", f"row {number}\n")
    assert len(editor.edits()) == MAX_EDITS
    assert editor.edits()[0].before == "line 995\n"
    editor.change(Span(0, 0), "x" * (MAX_CHARS + 1) + "\n", after=10)
    assert editor.edits()[0].before == "line 995\n"


def test_a_closed_document_keeps_its_edits() -> None:
    editor = Editor()
    editor.replace("two", "2")
    editor.recent.forget(editor.key)
    editor.replace("2", "zwei")
    assert editor.changes() == [(2, "2\n", "zwei\n"), (2, "two\n", "2\n")]


CHANGES = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 9), st.text("ab\n\r", max_size=5), st.sampled_from((0.5, 60.0))),
    max_size=12,
)


@settings(max_examples=300, deadline=None)
@given(st.text("ab\n", max_size=60), CHANGES)
def test_edits_stand_where_they_say(text: str, changes: list[tuple[int, int, str, float]]) -> None:
    """The newest edit's lines stand at its line, between its context."""
    editor = Editor(text)
    for start, length, new, after in changes:
        start = min(start, len(editor.text))
        editor.change(Span(start, min(start + length, len(editor.text))), new.replace("\r", ""), after)
        for edit in editor.edits()[:1]:
            lines = split_lines(editor.text)
            assert edit.before != edit.after
            shown = split_lines(edit.after)
            assert lines[edit.line - 1 : edit.line - 1 + len(shown)] == shown
            assert "".join(lines[: edit.line - 1]).endswith(edit.context_before)
            assert "".join(lines[edit.line - 1 + len(shown) :]).startswith(edit.context_after)


@settings(max_examples=200, deadline=None)
@given(st.text("ab\n", max_size=60), CHANGES)
def test_edits_taken_back_in_turn_give_the_first_text(text: str, changes: list[tuple[int, int, str, float]]) -> None:
    """What is known of one place without a pause is all that happened there."""
    editor = Editor(text)
    for start, length, new, _ in changes[:1]:
        start = min(start, len(editor.text))
        editor.change(Span(start, min(start + length, len(editor.text))), new.replace("\r", ""))
    for edit in editor.edits():
        lines = split_lines(editor.text)
        count = len(split_lines(edit.after))
        editor.text = "".join(lines[: edit.line - 1]) + edit.before + "".join(lines[edit.line - 1 + count :])
    assert editor.text == text
