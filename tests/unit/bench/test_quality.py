import pytest

from specedit.bench.case import Case
from specedit.bench.quality import Ledger, code_block, measure, summaries
from tests.fakes import ScriptedEngine, fenced

BEFORE = "def f(x):\n    return x\n"
RIGHT = "def f(x):\n    return x + 1\n"
WRONG = "def f(x):\n    return x - 1\n"


def case(name="a", before=BEFORE):
    return Case(name=name, file_name=f"{name}.py", before=before, instruction="Add one.", check="assert f(1) == 2")


def outcome_of(answer, way, **changes):
    engine = ScriptedEngine([answer], **changes)
    [outcome] = measure({"set": [case()]}, engine, ways=[way])
    return outcome


@pytest.mark.parametrize("way", ["specedit", "plain"])
@pytest.mark.parametrize(
    ("answer", "status", "passed"),
    [(RIGHT, "changed", True), (WRONG, "changed", False), (BEFORE, "unchanged", False)],
)
def test_an_answer_counts_only_if_the_check_passes(way, answer, status, passed):
    outcome = outcome_of(fenced(answer, "python"), way)
    assert (outcome.status, outcome.passed) == (status, passed)


def test_both_ways_ask_for_the_whole_code_in_their_own_words():
    engine = ScriptedEngine([fenced(RIGHT)])
    measure({"set": [case()]}, engine)
    ours, plain = engine.requests
    assert [message.role for message in ours.messages] == ["user"]
    assert [message.content for message in plain.messages] == [
        f"Add one.\n\n```python\n{BEFORE}```\n\nReturn the whole code."
    ]


def test_a_right_answer_that_is_refused_is_counted():
    right_but_cut = outcome_of(fenced(RIGHT, "python"), "specedit", finish_reason="length")
    assert (right_but_cut.status, right_but_cut.passed, right_but_cut.refused_right) == ("refused", False, True)
    wrong = outcome_of(fenced(WRONG, "python"), "specedit", finish_reason="length")
    assert (wrong.status, wrong.refused_right) == ("refused", False)


def test_a_summary_counts_each_set_apart():
    engine = ScriptedEngine([fenced(answer) for answer in (RIGHT, RIGHT, BEFORE, RIGHT, WRONG, WRONG)])
    found = measure({"one": [case("a"), case("b")], "two": [case("c")]}, engine)
    one, two = summaries(found)
    assert (one.set_name, one.cases, one.unchanged, dict(one.passed)) == ("one", 2, 1, {"specedit": 1, "plain": 2})
    assert (two.set_name, two.cases, two.unchanged, dict(two.passed)) == ("two", 1, 0, {"specedit": 0, "plain": 0})
    assert one.tokens_per_forward["plain"] == 5


def test_a_run_that_was_cut_goes_on_where_it_stopped(tmp_path):
    file = tmp_path / "out" / "outcomes.jsonl"
    first = measure({"set": [case("a")]}, ScriptedEngine([fenced(RIGHT)]), ledger=Ledger(file))
    with file.open("a") as stream:
        stream.write('{"case": "half a li')
    engine = ScriptedEngine([fenced(WRONG)])
    again = measure({"set": [case("a"), case("b")]}, engine, ledger=Ledger(file))
    assert again[:2] == first
    assert len(engine.requests) == 2
    changed = case("a", before=BEFORE + "\n\ny = 1\n")
    measure({"set": [changed]}, engine, ledger=Ledger(file))
    assert len(engine.requests) == 4


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("Sure:\n```python\nx = 1\n```\nDone.\n```\ny\n```", "x = 1\n"),
        ("```\nx = 1\ny", "x = 1\ny"),
        ("x = 1", "x = 1"),
    ],
)
def test_the_first_block_of_a_plain_answer_is_its_code(answer, code):
    assert code_block(answer) == code
