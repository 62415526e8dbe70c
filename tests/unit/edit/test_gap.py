import pytest

from specedit.edit.document import Document, Span
from specedit.edit.gap import BYTES_PER_TOKEN, Gap
from specedit.edit.prompt_budget import ON_CPU, PromptBudget


def gap_at(text, **given):
    before, after = text.split("|")
    return Gap.at(Document(before + after), len(before), **given)


def lines(count, width=30):
    return "".join(f"{number:0{width - 1}}\n" for number in range(count))


def test_all_of_a_small_text_is_shown():
    gap = gap_at("a = 1\nb = fo|o\nc = 3\n")
    assert (gap.prefix, gap.typed, gap.tail) == ("a = 1\nb = ", "fo", "o\nc = 3\n")
    assert (gap.line_before, gap.line_after) == ("b = fo", "o")
    assert (gap.lines_above, gap.lines_below) == (["a = 1"], ["c = 3"])


def test_the_windows_keep_to_their_budgets_and_to_whole_lines():
    text = lines(500)
    for cursor in range(7000, 8200, 13):
        gap = Gap.at(Document(text), cursor, budget=PromptBudget(1000, 100, 0))
        assert text[:cursor].endswith(gap.head)
        assert text[cursor:].startswith(gap.tail)
        assert len(gap.head) <= 1000 * BYTES_PER_TOKEN
        assert len(gap.tail) <= 100 * BYTES_PER_TOKEN
        assert len(gap.head) >= 500 * BYTES_PER_TOKEN
        assert text[gap.head_start - 1] == text[gap.tail_end - 1] == "\n"
        assert text.count("\n", 0, gap.head_start) == gap.first_line - 1


def test_the_head_begins_at_the_same_line_for_many_lines_of_typing():
    text = lines(500)
    starts = [
        Gap.at(Document(text), 30 * line, budget=PromptBudget(1000, 256, 0)).head_start for line in range(200, 328)
    ]
    assert starts == sorted(starts)
    assert len(set(starts)) <= 5


@pytest.mark.parametrize("width", [20, 60, 120])
def test_with_a_small_budget_the_head_stays_for_some_lines_too(width):
    text = lines(300, width)
    starts = [Gap.at(Document(text), width * line, budget=ON_CPU).head_start for line in range(100, 228)]
    assert len(set(starts)) <= 128 / 2


def test_a_line_in_the_middle_does_not_move_the_head():
    text = lines(500)
    before = Gap.at(Document(text), 9000, budget=PromptBudget(1000, 256, 0))
    typed = text[:8700] + "new\n" + text[8700:]
    assert Gap.at(Document(typed), 9004, budget=PromptBudget(1000, 256, 0)).head_start == before.head_start


@pytest.mark.parametrize("text", ["x" * 20_000, "é" * 20_000, "\U0001f600 " * 9_000])
def test_one_long_line_is_cut_too(text):
    gap = Gap.at(Document(text), 15_000, budget=PromptBudget(100, 50, 0))
    assert 0 < len(gap.head.encode()) <= 100 * BYTES_PER_TOKEN
    assert 0 < len(gap.tail.encode()) <= 50 * BYTES_PER_TOKEN
    assert text[:15_000].endswith(gap.head)


@pytest.mark.parametrize("line_end", ["\r\n", "\r"])
def test_line_ends_are_shown_alike(line_end):
    text = lines(300).replace("\n", line_end)
    gap = Gap.at(Document(text), 200 * (29 + len(line_end)), budget=PromptBudget(200, 100, 0))
    assert gap.head in lines(300)
    assert gap.tail in lines(300)
    assert gap.line_ending == line_end
    assert len(gap.head.split("\n")[0]) == 29


def test_the_line_end_is_that_around_the_cursor():
    assert Gap.at(Document("a\r\nb\r\n" + lines(1000)), 20_000, budget=PromptBudget(20, 256, 0)).line_ending == "\n"
    assert Gap.at(Document("a\r\n" + "x" * 9000), 9000, budget=PromptBudget(20, 256, 0)).line_ending == "\r\n"
    assert Gap.at(Document(""), 0).line_ending == "\n"


def test_a_selected_item_stands_in_the_place_of_its_span():
    document = Document("x.app(1)\n")
    gap = Gap.at(document, 5, selected=(Span(2, 5), "append"))
    assert (gap.prefix, gap.typed, gap.tail) == ("x.", "append", "(1)\n")


@pytest.mark.parametrize(
    ("text", "typed"), [("x = |", ""), ("x1|", "x1"), ("a.b|", "b"), ("été|", "été"), ("é" * 80 + "|", "")]
)
def test_the_beginning_of_a_word(text, typed):
    assert gap_at(text).typed == typed


def test_bytes_that_can_not_be_decoded_are_shown_as_such():
    assert gap_at("a\udcff|\udcfe").head == "a\ufffd"
