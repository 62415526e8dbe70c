import random

import pytest

from specedit.edit.document import Span
from specedit_lsp.documents import TextChange
from specedit_lsp.places import Places, is_apart, moved


def change(text, start, end, new):
    return TextChange(Span(start, end), text[start:end], new)


@pytest.mark.parametrize(
    ("start", "end", "new", "expected"),
    [
        pytest.param(0, 2, "xyz", Span(5, 9), id="before"),
        pytest.param(2, 4, "", Span(2, 6), id="right before"),
        pytest.param(4, 4, "ab", Span(6, 10), id="put in at the start"),
        pytest.param(5, 6, "xyz", Span(4, 10), id="within"),
        pytest.param(4, 8, "z", Span(4, 5), id="all of it"),
        pytest.param(8, 8, "z", Span(4, 8), id="put in at the end"),
        pytest.param(9, 11, "", Span(4, 8), id="after"),
        pytest.param(3, 5, "x", None, id="over the start"),
        pytest.param(7, 9, "x", None, id="over the end"),
        pytest.param(3, 9, "x", None, id="around"),
    ],
)
def test_a_span_goes_with_the_text(start, end, new, expected):
    assert moved(Span(4, 8), change("0123456789ab", start, end, new)) == expected


def test_what_is_lost_stays_lost():
    places = Places({"a": Span(0, 2), "b": Span(4, 6)})
    places.follow(change("0123456789", 1, 3, ""))
    places.follow(change("03456789", 0, 0, "x"))
    assert (places["a"], places["b"]) == (None, Span(3, 5))


def test_text_that_no_change_touches_is_found_again():
    for seed in range(300):
        rng = random.Random(seed)
        text = (
            "".join(rng.choice("ab\n") for _ in range(30)) + "<middle>" + "".join(rng.choice("ab\n") for _ in range(30))
        )
        span: Span | None = Span(30, 38)
        for _ in range(5):
            start = rng.randrange(len(text) + 1)
            end = min(len(text), start + rng.randrange(4))
            made = change(text, start, end, "x" * rng.randrange(4))
            text = text[:start] + made.new_text + text[end:]
            span = moved(span, made) if span else None
        if "<middle>" in text:
            assert span is not None
            assert text[span.start : span.end] == "<middle>"


TEXT = "a\nb\r\nc\nPART\nd\re\n"
PART = Span(TEXT.index("PART"), TEXT.index("d"))


@pytest.mark.parametrize(
    ("at", "apart"),
    [
        pytest.param(0, True, id="two lines above"),
        pytest.param(2, True, id="at the start of the second line above"),
        pytest.param(3, True, id="in the second line above"),
        pytest.param(4, True, id="at its end"),
        pytest.param(5, False, id="where the line above begins, which it changes"),
        pytest.param(6, False, id="in the line above"),
        pytest.param(7, False, id="where the part begins"),
        pytest.param(9, False, id="in the part"),
        pytest.param(12, False, id="where the part ends"),
        pytest.param(13, False, id="in the line below"),
        pytest.param(14, True, id="after the line below"),
    ],
)
def test_a_change_is_apart_if_a_whole_line_lies_between(at, apart):
    assert is_apart(TEXT, PART, change(TEXT, at, at, "x")) == apart


def test_a_change_next_to_a_part_at_the_end_of_the_text_is_not_apart():
    assert not is_apart("a\nPART", Span(2, 6), change("a\nPART", 6, 6, "x"))
