import random
from pathlib import Path

import pytest

from specedit.edit.document import Document, Span, TextEdit, split_lines
from specedit.edit.live import LiveHunk, LiveHunks
from specedit.edit.region import Region, line_range, whole_file
from specedit.edit.session import EditRequest, run_edit
from specedit.edit.stream import Hunk
from tests.fakes import ScriptedEngine, fenced

SOURCES = sorted((Path(__file__).parents[3] / "specedit" / "edit").glob("[a-s]*.py"))


def numbered(count, start=1):
    return "".join(f"line {number}\n" for number in range(start, start + count))


def streamed(document, region, answer, instruction="edit it", chunk_chars=5):
    """What is given chunk by chunk, and the result."""
    live, given = LiveHunks(document, region, instruction), []
    request = EditRequest(document, region, instruction, allow_deletions=True, allow_syntax_errors=True)
    engine = ScriptedEngine([answer], chunk_chars=chunk_chars)
    result = run_edit(request, engine, lambda text: given.extend(live.feed(text)))
    return live, given, result


def hunks_of(given):
    return [live.hunk for live in given]


def after_lines(document, answer, instruction="edit it", region=None):
    """For each line of the answer, the hunks that it settles."""
    live = LiveHunks(document, region or whole_file(document), instruction)
    return [hunks_of(live.feed(f"{line}\n")) for line in answer.split("\n")]


def test_a_hunk_comes_with_the_second_unchanged_line_after_it():
    document = Document(numbered(6), Path("a.txt"))
    answer = fenced(document.text.replace("line 2\n", "new 2\n"))
    steps = after_lines(document, answer)
    assert steps[:4] == [[], [], [], []]
    assert steps[4] == [Hunk(2, "line 2\n", "new 2\n")]
    assert not any(steps[5:])


def test_what_is_not_followed_by_two_lines_waits_for_the_end():
    document = Document(numbered(6), Path("a.txt"))
    _, given, result = streamed(document, whole_file(document), fenced(document.text.replace("line 5", "new 5")))
    assert given == []
    assert result.hunks == (Hunk(5, "line 5\n", "new 5\n"),)


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
def test_hunks_carry_the_line_ends_of_the_file(end):
    text = numbered(8).replace("\n", end)
    document = Document(text, Path("a.txt"))
    answer = fenced(text.replace(f"line 3{end}", f"new 3{end}more{end}"))
    _, given, result = streamed(document, whole_file(document), answer, chunk_chars=1)
    assert hunks_of(given) == [Hunk(3, f"line 3{end}", f"new 3{end}more{end}")]
    assert hunks_of(given) == list(result.hunks)


def test_an_answer_with_carriage_returns_is_read_as_lines():
    document = Document(numbered(8), Path("a.txt"))
    answer = fenced(document.text.replace("line 3", "new 3")).replace("\n", "\r\n")
    _, given, result = streamed(document, whole_file(document), answer, chunk_chars=1)
    assert hunks_of(given) == list(result.hunks) == [Hunk(3, "line 3\n", "new 3\n")]


def test_line_numbers_are_those_of_the_document():
    document = Document(numbered(20), Path("a.txt"))
    region = line_range(document, 10, 17)
    text = document.text[region.span.start : region.span.end]
    _, given, result = streamed(document, region, fenced(text.replace("line 12\n", "")))
    assert hunks_of(given) == list(result.hunks) == [Hunk(12, "line 12\n", "")]


def test_an_ambiguous_place_is_not_taken_for_certain():
    block = "start\n    x\nend\n\n"
    document = Document(block * 4 + "last\n", Path("a.txt"))
    answer = fenced(block + block.replace("x", "y") + block * 2 + "last\n")
    assert not any(after_lines(document, answer)[:9])
    _, given, result = streamed(document, whole_file(document), answer)
    assert hunks_of(given) in ([], list(result.hunks))


def test_lines_copied_from_further_down_are_not_taken_for_a_deletion():
    document = Document(numbered(30), Path("a.txt"))
    answer = fenced(numbered(5) + numbered(3, start=21) + numbered(25, start=6))
    _, given, result = streamed(document, whole_file(document), answer)
    assert hunks_of(given) == list(result.hunks) == [Hunk(6, "", numbered(3, start=21))]


METHOD = "class A:\n    def f(self):\n        a = 1\n        b = 2\n        c = 3\n        return a\n"


def method_region(document):
    return line_range(document, 2, 6)


@pytest.mark.parametrize("shift", [-4, 2])
def test_an_answer_with_another_indentation_gives_the_lines_in_their_place(shift):
    document = Document(METHOD, Path("a.py"))
    region = method_region(document)
    lines = METHOD.replace("b = 2", "b = 20").split("\n")[1:-1]
    moved = [line[-shift:] if shift < 0 else " " * shift + line for line in lines]
    _, given, result = streamed(document, region, fenced("\n".join(moved)))
    assert hunks_of(given) == list(result.hunks) == [Hunk(4, "        b = 2\n", "        b = 20\n")]


def test_text_of_a_string_keeps_its_place_when_the_rest_is_moved():
    text = 'class A:\n    def f(self):\n        a = """\nflush\n"""\n        b = 2\n        c = 3\n        return a\n'
    document = Document(text, Path("a.py"))
    answer = 'def f(self):\n    a = """\nflush\n"""\n    b = 20\n    c = 3\n    return a\n'
    _, given, result = streamed(document, line_range(document, 2, 8), fenced(answer))
    assert hunks_of(given) == list(result.hunks) == [Hunk(6, "        b = 2\n", "        b = 20\n")]


def test_an_indentation_that_is_the_wish_is_shown():
    document = Document("    a\n    b\n    c\nd\ne\nf\n", Path("a.txt"))
    answer = fenced("a\nb\nc\nd\ne\nf\n")
    _, given, result = streamed(document, whole_file(document), answer, "dedent it")
    assert hunks_of(given) == list(result.hunks) == [Hunk(1, "    a\n    b\n    c\n", "a\nb\nc\n")]


@pytest.mark.parametrize(
    "before", ["", "Sure, here it is:\n\n", "<think>\nline 1\n```\nline 9\n</think>\n", "Hm.</think>"]
)
def test_talk_and_thinking_before_the_code_are_not_the_code(before):
    document = Document(numbered(6), Path("a.txt"))
    answer = f"{before}{fenced(document.text.replace('line 2', 'new 2'))}\nDone."
    _, given, result = streamed(document, whole_file(document), answer)
    assert hunks_of(given) == list(result.hunks) == [Hunk(2, "line 2\n", "new 2\n")]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        pytest.param(numbered(6), numbered(6).replace("line 2", "new 2"), id="no code block"),
        pytest.param(
            f"# T\n\n{fenced('a')}\n\n{numbered(6)}",
            f"```\n# T\n\n{fenced('a')}\n\n{numbered(6).replace('line 2', 'new 2')}```",
            id="a fence that may be the file's",
        ),
        pytest.param(numbered(6), f"line 1\n{fenced(numbered(5, start=2))}", id="a line of the file before the block"),
    ],
)
def test_nothing_is_given_where_the_end_decides(text, answer):
    document = Document(text, Path("a.md"))
    _, given, _ = streamed(document, whole_file(document), answer)
    assert given == []


@pytest.mark.parametrize("around", [1, 3])
def test_nothing_is_given_of_an_answer_that_begins_with_what_stands_before_the_part(around):
    document = Document("import os\nimport sys\n" + METHOD, Path("a.py"))
    region = line_range(document, 4, 8)
    answer = fenced("".join(split_lines(document.text)[3 - around :]).replace("b = 2", "b = 20"))
    _, given, result = streamed(document, region, answer)
    assert given == []
    assert around == 3 or hunks_of(LiveHunks(document, region, "").conclude(result.hunks).hunks) == list(result.hunks)


def test_blank_lines_at_the_edges_stay_the_files_own():
    document = Document(f"\n\n{numbered(6)}\n\n", Path("a.txt"))
    _, given, result = streamed(document, whole_file(document), fenced(numbered(6).replace("line 2", "new 2")))
    assert hunks_of(given) == list(result.hunks) == [Hunk(4, "line 2\n", "new 2\n")]


def test_what_stands_keeps_its_number_and_what_does_not_is_changed_or_removed():
    document = Document(numbered(20), Path("a.txt"))
    answer = document.text
    for number in (3, 9, 15):
        answer = answer.replace(f"line {number}\n", f"new {number}\n")
    live, given, _ = streamed(document, whole_file(document), fenced(answer))
    assert [hunk.id for hunk in given] == [1, 2, 3]
    final = [given[0].hunk, Hunk(8, "line 8\nline 9\n", "other\n"), Hunk(19, "", "more\n")]
    conclusion = live.conclude(final)
    assert conclusion.hunks == (given[0], LiveHunk(2, final[1]), LiveHunk(4, final[2]))
    assert conclusion.changed == (LiveHunk(2, final[1]), LiveHunk(4, final[2]))
    assert conclusion.removed == (3,)


def rewritten(lines, rng):
    """Some lines changed, deleted, added, or copied from elsewhere."""
    new = list(lines)
    for _ in range(rng.randint(1, 6)):
        at, count, kind = rng.randrange(len(new)), rng.randint(1, 4), rng.random()
        if kind < 0.4:
            new[at] = f"{new[at].rstrip()}  # changed\n"
        elif kind < 0.6:
            new[at : at + count] = []
        elif kind < 0.8:
            new[at:at] = [f"    added_{rng.randrange(99)} = {number}\n" for number in range(count)]
        elif kind < 0.9:
            other = rng.randrange(len(new))
            new[at:at] = new[other : other + count]
        else:
            new = [line.replace("return", "yield") for line in new]
        new = new or ["pass\n"]
    return new


def random_edit(rng) -> tuple[Document, Region, str]:
    path = rng.choice(SOURCES)
    document = Document(path.read_text(), path)
    region = whole_file(document)
    if rng.random() < 0.5:
        first = rng.randrange(1, len(document.line_spans) - 10)
        region = line_range(document, first, min(len(document.line_spans), first + rng.randint(10, 120)))
    lines = split_lines(document.text[region.span.start : region.span.end])
    return document, region, fenced("".join(rewritten(lines, rng)), "python", "`" * 8)


def test_what_is_given_early_is_what_the_whole_answer_says():
    early = right = late = 0
    for seed in range(100):
        rng = random.Random(seed)
        document, region, answer = random_edit(rng)
        live, given, result = streamed(document, region, answer, chunk_chars=rng.randint(1, 120))
        if result.status != "changed":
            continue
        conclusion = live.conclude(result.hunks)
        shown = {hunk.id: hunk.hunk for hunk in given}
        shown |= {hunk.id: hunk.hunk for hunk in conclusion.changed}
        for number in conclusion.removed:
            del shown[number]
        assert sorted(shown.values(), key=lambda hunk: hunk.start_line) == list(result.hunks)
        assert {hunk.id: hunk.hunk for hunk in conclusion.hunks} == shown
        assert edited(document, shown.values()) == result.document.text
        early, late = early + len(given), late + len(result.hunks)
        right += sum(hunk.hunk in result.hunks for hunk in given)
    assert right >= 0.97 * early
    assert early >= 0.6 * late


def edited(document, found):
    starts = [span.start for span in document.line_spans] + [len(document.text)]
    edits = [
        TextEdit(Span(start, start + len(hunk.old)), hunk.new)
        for hunk in sorted(found, key=lambda hunk: hunk.start_line)
        for start in [starts[hunk.start_line - 1]]
    ]
    return document.apply(edits).text


@pytest.mark.parametrize("seed", range(6))
def test_how_the_answer_is_cut_makes_no_difference(seed):
    document, region, answer = random_edit(random.Random(seed))
    whole = streamed(document, region, answer, chunk_chars=len(answer))[1]
    assert streamed(document, region, answer, chunk_chars=1)[1] == whole
