"""Where lines begin stays right through changes, wherever they are made."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specedit.edit.document import Span
from specedit_lsp.lines import Lines

texts = st.text(alphabet="a\r\n\x0c\x85\u2028", max_size=12)


def starts(lines: Lines) -> list[int]:
    return [lines.start(line) for line in range(len(lines))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", [0]),
        ("a", [0]),
        ("a\n", [0, 2]),
        ("a\r\nb\rc\n", [0, 3, 5, 7]),
        ("\n\r", [0, 1, 2]),
        ("a\x0cb\x0bc\x1cd\x85e\u2028f\u2029", [0]),
    ],
)
def test_only_three_line_ends_count(text: str, expected: list[int]) -> None:
    assert starts(Lines(text)) == expected


@given(texts, st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12), texts), max_size=6))
def test_after_changes_the_lines_are_those_of_the_text(text: str, changes: list[tuple[int, int, str]]) -> None:
    lines = Lines(text)
    for one, other, new_text in changes:
        start, end = sorted((min(one, len(text)), min(other, len(text))))
        text = text[:start] + new_text + text[end:]
        lines.splice(Span(start, end), len(new_text), text)
        assert starts(lines) == starts(Lines(text))
        assert [lines.at(offset) for offset in range(len(text) + 1)] == [
            Lines(text).at(offset) for offset in range(len(text) + 1)
        ]


def test_a_line_is_its_content_and_its_end() -> None:
    text = "a\r\n\rbc\n"
    lines = Lines(text)
    contents = [lines.content(line, text) for line in range(len(lines))]
    assert [text[span.start : span.end] for span in contents] == ["a", "", "bc", ""]
    assert contents[-1] == Span(7, 7)
