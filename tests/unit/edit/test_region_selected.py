from pathlib import Path

import pytest

from specedit.edit.document import Document, Span
from specedit.edit.region import selected

CODE = '''\
import os

TOTAL = 1


class Basket:
    """Things."""

    @property
    def total(self):
        return sum(
            item.price for item in self.items
        )

    def clear(self): self.items = []


def main():
    print(Basket().total)
'''


def region_at(text, start, end=None, name="a.py"):
    document = Document(text, Path(name))
    return selected(document, Span(start, start if end is None else end))


@pytest.mark.parametrize(
    ("where", "label", "first", "last"),
    [
        ("item.price", "function Basket.total", "    @property", "        )"),
        ("@property", "function Basket.total", "    @property", "        )"),
        ("self.items = []", "function Basket.clear", "    def clear", "self.items = []"),
        ("Things", "class Basket", "class Basket", "self.items = []"),
        ("print", "function main", "def main", "print(Basket().total)"),
        ("TOTAL", "line 3", "TOTAL = 1", "TOTAL = 1"),
    ],
)
def test_a_cursor_means_the_innermost_definition_else_its_line(where, label, first, last):
    region = region_at(CODE, CODE.index(where))
    text = CODE[region.span.start : region.span.end]
    assert region.label == label
    assert region.user_span == region.span
    assert text.startswith(first)
    assert text.endswith(f"{last}\n")


def test_a_cursor_in_a_text_without_grammar_means_its_line():
    assert region_at("a\nbc\nd\n", 3, name="a.txt").span == Span(2, 5)


@pytest.mark.parametrize(
    ("start", "end", "lines"),
    [
        pytest.param(0, 2, Span(0, 2), id="a line with its end"),
        pytest.param(0, 1, Span(0, 2), id="a line without its end"),
        pytest.param(0, 3, Span(0, 5), id="a character of the next line"),
        pytest.param(2, 4, Span(2, 5), id="to the end of the line"),
        pytest.param(1, 2, Span(0, 2), id="only a line end"),
        pytest.param(3, 7, Span(2, 7), id="to the end of the text"),
    ],
)
def test_a_selection_means_the_lines_it_touches(start, end, lines):
    assert region_at("a\nbc\nd\n", start, end, "a.txt").span == lines


def test_only_what_is_selected_may_change_but_blanks_beside_it_may():
    text = "  a = 1; b = 2\n  c\n"
    assert region_at(text, 2, 7).user_span == Span(0, 7)
    assert region_at(text, 9, 15).user_span == Span(9, 15)
    assert region_at(text, 2, 14).user_span == Span(0, 15)


def test_labels_name_the_lines():
    assert region_at("a\nb\nc\n", 2, 4, "a.txt").label == "line 2"
    assert region_at("a\nb\nc\n", 0, 4, "a.txt").label == "lines 1-2"
    assert region_at("a\nb\nc\n", 0, 6, "a.txt").label == "the whole file"


@pytest.mark.parametrize(("text", "at", "span"), [("", 0, Span(0, 0)), ("a\n", 2, Span(2, 2)), ("a", 1, Span(0, 1))])
def test_the_end_of_a_text_is_a_place(text, at, span):
    assert region_at(text, at).span == span


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_other_line_ends_and_characters_beyond_ascii(end):
    text = ("# héllo 😀\n" + CODE).replace("\n", end)
    region = region_at(text, text.index("item.price"))
    assert region.label == "function Basket.total"
    assert text[region.span.start : region.span.end].split(end)[0] == "    @property"
