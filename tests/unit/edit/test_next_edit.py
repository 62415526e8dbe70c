"""What is proposed after the user's own edits."""

from __future__ import annotations

from pathlib import Path

import pytest

from specedit.edit.document import Document, Span, TextEdit
from specedit.edit.next_edit import NextEdit, ask, repeats
from specedit.edit.recent import RecentEdits
from specedit.engine.api import CancelToken
from specedit.errors import UnreachableError
from tests.fakes import ScriptedEngine, fenced


class Writer:
    """Somebody who edits a file, and what is proposed to them after each edit."""

    def __init__(self, text: str, name: str = "a.py", recent: RecentEdits | None = None) -> None:
        self.text, self.path, self.recent = text, Path(name), recent or RecentEdits()
        self.cursor, self.now = 0, 0.0

    @property
    def document(self) -> Document:
        return Document(self.text, self.path)

    def edit(self, old: str, new: str, nth: int = 0, source: str = "user") -> None:
        """The `nth` place with the text `old` becomes `new`; the cursor is left behind it."""
        start = -1
        for _ in range(nth + 1):
            start = self.text.index(old, start + 1)
        self.now += 10
        span = Span(start, start + len(old))
        self.recent.record(self.path.name, self.path.name, self.path, self.text, span, new, self.now, source)
        self.text = self.text[:start] + new + self.text[span.end :]
        self.cursor = start + len(new)

    def take(self, edit: NextEdit) -> None:
        self.edit_span(edit.span, edit.new_text)

    def edit_span(self, span: Span, new: str) -> None:
        self.now += 10
        self.recent.record(self.path.name, self.path.name, self.path, self.text, span, new, self.now)
        self.text = self.document.apply([TextEdit(span, new)]).text
        self.cursor = span.start + len(new)

    def proposed(self, **given: object) -> list[NextEdit]:
        return repeats(self.document, self.recent.latest(8), self.cursor, **given)

    def lines(self, **given: object) -> list[tuple[int, str]]:
        """The proposals as (line number, the line that it would be)."""
        found = []
        for edit in self.proposed(**given):
            number = self.document.line_number(edit.span.start)
            changed = self.document.apply([TextEdit(edit.span, edit.new_text)])
            found.append((number, changed.text.split("\n")[number - 1].strip()))
        return found


CALLS = "".join(f"    total += price({name}, {name}_count)\n" for name in ("apple", "pear", "plum", "fig", "nut"))


def test_two_edits_alike_propose_the_third_and_so_on_to_the_last() -> None:
    writer = Writer(CALLS)
    writer.edit("price(apple", "cost(apple")
    assert writer.lines() == [], "one example is not enough"
    writer.edit("price(pear", "cost(pear")
    taken = 0
    while proposed := writer.proposed():
        writer.take(proposed[0])
        taken += 1
    assert taken == 3
    assert writer.text == CALLS.replace("price", "cost")


def test_what_changes_is_told_and_no_more() -> None:
    writer = Writer(CALLS)
    writer.edit("price(apple", "cost(apple")
    writer.edit("price(pear", "cost(pear")
    edit = writer.proposed()[0]
    assert (writer.text[edit.span.start : edit.span.end], edit.new_text) == ("price", "cost")
    assert edit.source == "repeat"
    assert edit.like == 2


def test_ahead_of_the_cursor_first_then_from_the_top() -> None:
    writer = Writer(CALLS)
    writer.edit("price(fig", "cost(fig")
    writer.edit("price(plum", "cost(plum")
    assert [number for number, _ in writer.lines()] == [5, 1, 2]


def test_a_line_that_the_user_went_past_speaks_against_it() -> None:
    writer = Writer(CALLS)
    writer.edit("price(apple", "cost(apple")
    writer.edit("price(plum", "cost(plum")
    assert writer.lines() == []


def test_what_the_user_declined_is_not_proposed_elsewhere_either() -> None:
    writer = Writer(CALLS)
    writer.edit("price(apple", "cost(apple")
    writer.edit("price(pear", "cost(pear")
    line = "    total += price(plum, plum_count)"
    assert writer.lines(declined=frozenset({(line, line.replace("price", "cost"))})) == []


def test_an_edit_that_contradicts_ends_it() -> None:
    writer = Writer(CALLS)
    writer.edit("price(apple", "cost(apple")
    writer.edit("price(pear", "cost(pear")
    writer.edit("price(plum", "value(plum")
    assert writer.lines() == []


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        ("x = 10\ny = 10\nz = 10\n", "10", "12"),
        ("draw(a)\ndraw(b)\n# draw(c) later\n", "draw", "paint"),
        ('show(name)\nshow(name)\nlog("the name of it")\n', "name", "title"),
    ],
    ids=["a number", "a comment", "a string"],
)
def test_places_of_another_kind_are_left(text: str, old: str, new: str) -> None:
    writer = Writer(text)
    writer.edit(old, new)
    writer.edit(old, new, nth=0)
    assert writer.lines(finished=True) == []


def test_far_away_more_edits_have_to_agree() -> None:
    other = "".join(f"    other{number}()\n" for number in range(30))
    text = CALLS + other + "    total += price(date, date_count)\n"
    writer = Writer(text)
    for name in ("apple", "pear"):
        writer.edit(f"price({name}", f"cost({name}")
    assert [number for number, _ in writer.lines()] == [3, 4, 5]
    writer.edit("price(plum", "cost(plum")
    assert [number for number, _ in writer.lines()] == [4, 5, 36]


def test_where_it_is_done_already_nothing_is_proposed() -> None:
    writer = Writer("f(a, key=None)\nf(b)\nf(c, key=None)\nf(d)\nf(e)\n")
    writer.edit("f(b)", "f(b, key=None)")
    writer.edit("f(d)", "f(d, key=None)")
    assert writer.lines() == [(5, "f(e, key=None)")]


# --- names


RENAMED = """\
def total_of(items):
    return sum(items)


def report(items):
    total = total_of(items)
    print("total_of", total)  # total_of is cheap
    return [total, total_of(items[1:]), my_total_of]
"""


def test_a_function_renamed_where_it_is_defined_is_renamed_at_each_use() -> None:
    writer = Writer(RENAMED)
    writer.edit("def total_of(", "def sum_of(")
    assert writer.lines() == [
        (6, "total = sum_of(items)"),
        (8, "return [total, sum_of(items[1:]), my_total_of]"),
    ]


def test_a_half_typed_name_proposes_nothing_until_the_cursor_leaves_it() -> None:
    writer = Writer(RENAMED)
    writer.edit("total_of", "su")
    assert writer.lines() == []
    writer.cursor = writer.text.index("return")
    assert writer.lines() != []


def test_a_half_typed_name_counts_as_whole_where_it_stands_elsewhere_or_is_said_to() -> None:
    writer = Writer(RENAMED + "sum_of = None\n")
    writer.edit("total_of", "sum_of")
    assert writer.lines() == [], "it is the name of something else"
    writer = Writer(RENAMED)
    writer.edit("total_of", "sum_of")
    assert writer.lines() == []
    assert len(writer.lines(finished=True)) == 2


def test_a_name_that_is_declared_elsewhere_still_is_left() -> None:
    writer = Writer(RENAMED + "\n\nclass A:\n    def total_of(self):\n        return 1\n")
    writer.edit("def total_of(", "def sum_of(")
    assert writer.lines() == []


def test_a_use_that_is_changed_renames_nothing() -> None:
    writer = Writer(RENAMED)
    writer.edit("total_of(items)", "sum_of(items)", nth=1)
    assert writer.lines(finished=True) == []


def test_a_local_name_is_changed_in_its_block_alone() -> None:
    text = "def f():\n    count = 1\n    return count\n\n\ndef g(count):\n    return count\n"
    writer = Writer(text)
    writer.edit("count = 1", "number = 1")
    assert writer.lines(finished=True) == [(3, "return number")]


def test_a_parameter_is_changed_in_the_body_but_not_as_a_keyword_or_member() -> None:
    writer = Writer("def f(size, b):\n    self.size = g(b, size=size)\n    return size\n\n\nsize = 3\n")
    writer.edit("f(size", "f(width")
    assert writer.lines(finished=True) == [(2, "self.size = g(b, size=width)"), (3, "return width")]


@pytest.mark.parametrize(
    ("name", "text", "old", "new", "expected"),
    [
        ("a.js", "const userName = 1;\nshow(userName, userNames);\n", "userName", "login", "show(login, userNames);"),
        ("a.go", "func open(path string) {\n\tread(path)\n}\n", "path", "name", "read(name)"),
        ("a.rs", "fn area(w: u32) -> u32 {\n    w * 2\n}\n", "(w:", "(width:", "width * 2"),
        ("a.ts", "type Item = string;\nlet a: Item;\n", "Item", "Entry", "let a: Entry;"),
    ],
)
def test_names_in_other_languages(name: str, text: str, old: str, new: str, expected: str) -> None:
    writer = Writer(text, name)
    writer.edit(old, new)
    assert [line for _, line in writer.lines(finished=True)] == [expected]


def test_a_rename_in_one_file_twice_is_known_in_another() -> None:
    writer = Writer("load(a)\nload(b)\nload(c)\nload(d)\nload(e)\n")
    for name in "abcd":
        writer.edit(f"load({name}", f"read({name}")
    other = Writer("x = load(y)\n", "b.py", writer.recent)
    assert other.lines() == [(1, "x = read(y)")]
    assert Writer("x = load(y)\n", "b.rs", writer.recent).lines() == []


# --- what must hold always


def test_line_ends_stay() -> None:
    writer = Writer(CALLS.replace("\n", "\r\n"))
    writer.edit("price(apple", "cost(apple")
    writer.edit("price(pear", "cost(pear")
    writer.take(writer.proposed()[0])
    assert writer.text.count("\r\n") == writer.text.count("\n") == 5


def test_rewrites_teach_nothing() -> None:
    writer = Writer(CALLS)
    writer.edit("price(apple", "cost(apple", source="rewrite")
    writer.edit("price(pear", "cost(pear", source="rewrite")
    assert writer.lines() == []


@pytest.mark.parametrize("text", ["", "x", "\n", "a\n"])
def test_small_texts(text: str) -> None:
    assert repeats(Document(text), (), 0) == []
    writer = Writer(text)
    writer.edit_span(Span(0, len(text)), "b\n")
    assert writer.proposed(finished=True) == []


# --- the model


TESTS = """\
def test_a():
    assert_equal(first(), 1)


def test_b():
    assert_equal(second(), 2)


def test_c():
    print("unrelated")
"""


def asked(writer: Writer, *answers: object) -> tuple[list[tuple[int, str]], ScriptedEngine]:
    engine = ScriptedEngine(answers)
    result = ask(writer.document, writer.recent.latest(8), writer.cursor, engine, CancelToken(), finished=True)
    return [(writer.document.line_number(edit.span.start), edit.new_text) for edit in result.edits], engine


def one_changed() -> Writer:
    writer = Writer(TESTS)
    writer.edit("assert_equal(first(), 1)", "assert first() == 1")
    return writer


def answering(old: str, new: str):
    """An engine's answer: the part that was asked about, with a change."""
    return lambda request: fenced(request.prediction.replace(old, new), "python")


def test_the_model_is_shown_the_change_and_asked_about_the_place_most_like_it() -> None:
    edits, engine = asked(one_changed(), answering("assert_equal(second(), 2)", "assert second() == 2"))
    assert [number for number, _ in edits] == [6]
    request = engine.requests[0]
    assert request.priority == "rewrite"
    assert request.prediction == "    assert_equal(second(), 2)\n"
    before, after, now = (message.content for message in request.messages)
    assert "    assert_equal(first(), 1)\n" in before
    assert "    assert first() == 1\n" in after
    assert "    assert_equal(second(), 2)\n" in now


def test_the_proposal_made_is_the_text_that_the_model_meant() -> None:
    writer = one_changed()
    engine = ScriptedEngine([answering("assert_equal(second(), 2)", "assert second() == 2")])
    (edit,) = ask(writer.document, writer.recent.latest(8), writer.cursor, engine, CancelToken(), finished=True).edits
    assert edit.source == "model"
    changed = writer.document.apply([TextEdit(edit.span, edit.new_text)]).text
    assert changed == writer.text.replace("assert_equal(second(), 2)", "assert second() == 2")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("second", "second"),
        ("second", "third"),
        ("assert_equal(second(), 2)", "assert second() == (2"),
        ("assert_equal(second(), 2)", "\n".join(f"assert second() == {n}" for n in range(9))),
        ("assert_equal(second(), 2)", "..."),
    ],
    ids=["nothing", "something else", "broken syntax", "too much", "left out"],
)
def test_answers_that_are_not_proposed(old: str, new: str) -> None:
    edits, engine = asked(one_changed(), answering(old, new))
    assert edits == []
    assert len(engine.requests) == 1


def test_nothing_like_it_asks_no_model() -> None:
    writer = Writer("value = compute(1)\n\n\nclass Other:\n    pass\n")
    writer.edit("compute(1)", "compute(2)")
    edits, engine = asked(writer, "never")
    assert (edits, engine.requests) == ([], [])


def test_new_code_asks_no_model() -> None:
    writer = Writer(TESTS)
    writer.edit("def test_b", "def test_n():\n    assert_equal(third(), 3)\n\n\ndef test_b")
    edits, engine = asked(writer, "never")
    assert (edits, engine.requests) == ([], [])


def test_an_engine_that_fails_is_told() -> None:
    writer = one_changed()
    engine = ScriptedEngine([UnreachableError("nobody answers. Start a server.")])
    result = ask(writer.document, writer.recent.latest(8), writer.cursor, engine, CancelToken(), finished=True)
    assert (result.edits, result.failure) == ((), "nobody answers. Start a server.")


def test_of_a_long_file_only_the_place_is_shown() -> None:
    filler = "".join(f"value_{number} = {number}\n" for number in range(2_000))
    writer = Writer(filler + TESTS + filler)
    writer.edit("assert_equal(first(), 1)", "assert first() == 1")
    edits, engine = asked(writer, answering("assert_equal(second(), 2)", "assert second() == 2"))
    assert [number for number, _ in edits] == [2_006]
    assert sum(len(message.content) for message in engine.requests[0].messages) < 500
