from pathlib import Path

from specedit.edit.answer_lines import AnswerLines
from specedit.edit.document import Document
from specedit.edit.region import line_range, whole_file

TEXT = "\none\n\ntwo\nthree\n\n"


def read(answer, text=TEXT, instruction="edit it", lines=None):
    """The lines that each line of the answer gives."""
    document = Document(text, Path("a.txt"))
    answer_lines = AnswerLines(document, line_range(document, *lines) if lines else whole_file(document), instruction)
    return [answer_lines.feed(f"{line}\n") for line in answer.split("\n")]


def test_lines_are_given_as_they_come_between_the_regions_own_blank_edges():
    assert read("```\none\n\n2\n\n\n```\nthat is it\n") == [[], ["", "one"], [], ["", "2"], [], [], [], [], []]


def test_blank_edges_are_the_answers_own_where_the_instruction_is_about_them():
    assert read("```\none\n2\n", instruction="remove the blank lines at the top")[:3] == [[], ["one"], ["2"]]


def test_a_line_that_also_stands_before_the_region_waits_for_the_next():
    assert read("```\none\n2\n", text="one\ntwo\none\ntwo\nthree\n", lines=(3, 5))[:3] == [[], [], ["one", "2"]]


def test_lines_like_the_first_of_the_region_are_the_region():
    text = "a\nb\nc\nd\n" * 2
    assert read("```\na\nb\nc\n", text=text, lines=(5, 8))[:4] == [[], [], [], ["a", "b", "c"]]


def test_what_is_told_twice_is_never_given():
    text = "a\nb\n" * 100
    assert not any(read("```\n" + "b\na\n" * 90, text=text, lines=(101, 200)))


def test_nothing_more_is_given_once_the_lines_are_not_the_region_moved_as_a_whole():
    text = "    a\n    b\n    c\n    d\n"
    assert read("```\na\nb\n    c\nd\n", text=text)[:5] == [[], ["    a"], ["    b"], [], []]
