import json
import re

import pytest

from specedit.bench.case import Case
from specedit.bench.corpus import benchmark_edits, own_edits, sampled
from specedit.errors import UsageError

OWN = [*own_edits("speed"), *own_edits("small")]


@pytest.mark.parametrize("case", OWN, ids=lambda case: case.name)
def test_no_edit_of_ours_is_made_already(case):
    assert not case.judge(case.before).passed


@pytest.mark.parametrize("case", OWN, ids=lambda case: case.name)
def test_each_file_is_sound_and_its_part_is_found(case):
    compile(case.before, case.file_name, "exec")
    compile(case.check, "check", "exec")
    assert case.before.endswith("\n")
    assert case.request().region.span.end > 0


def test_there_are_six_edits_for_the_speed_table_from_small_to_large():
    lines = [case.lines for case in own_edits("speed")]
    assert len(lines) == 6
    assert lines == sorted(lines)
    assert lines[0] <= 10
    assert lines[-1] >= 100


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("weighted_average", "tmp", "total"),
        ("ledger", "amt", "amount"),
        ("inventory", "qty", "quantity"),
        ("http_cache", "Entry", "CachedResponse"),
        ("sum_of_squares", "range(1, n)", "range(1, n + 1)"),
        ("shapes_rename", "res", "bounds"),
    ],
)
def test_a_right_edit_passes_and_a_half_made_one_does_not(name, old, new):
    [case] = [case for case in OWN if case.name == name]
    word = re.compile(rf"\b{re.escape(old)}(?!\w)")
    assert case.judge(word.sub(new, case.before)).passed
    if len(word.findall(case.before)) > 1:
        assert not case.judge(word.sub(new, case.before, count=1)).passed


def test_a_pattern_that_is_missing_or_left_over_fails_by_name():
    case = Case(name="a", file_name="a.py", before="", instruction="", check="", must=("^x = 1$",), must_not=("y",))
    assert case.judge("x = 1\n").passed
    assert "^x = 1$" in case.judge("x = 2\n").reason
    assert "y" in case.judge("x = 1\ny = 2\n").reason


def row(number, **changes):
    given = {
        "id": f"set/{number}_twice",
        "language": "python",
        "instruction": "Fix it.",
        "before": "x = 1\n",
        "after": "x = 2\n",
        "tests": "assert x == 2",
    }
    return given | changes


def write_rows(path, *rows):
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    return path


def test_a_benchmark_file_is_read_in_order_python_and_wanted_ids_only(tmp_path):
    file = write_rows(tmp_path / "rows.jsonl", row(3), row(1, language="go"), row(2), row(4))
    ids = tmp_path / "ids.json"
    ids.write_text('["set/3_twice", "set/4_twice"]')
    assert [case.name for case in benchmark_edits(file)] == ["set/3_twice", "set/2_twice", "set/4_twice"]
    first, last = benchmark_edits(file, ids=ids)
    assert (first.file_name, last.name) == ("twice.py", "set/4_twice")
    assert first.judge("x = 2").passed
    assert not first.judge(first.before).passed


@pytest.mark.parametrize("content", ["no json\n", '{"id": "a"}\n', json.dumps(row(1, language="go")) + "\n"])
def test_a_file_that_is_no_benchmark_is_refused(tmp_path, content):
    file = tmp_path / "rows.jsonl"
    file.write_text(content)
    with pytest.raises(UsageError, match=r"rows\.jsonl"):
        benchmark_edits(file)


def test_a_sample_depends_on_its_seed_only_and_leaves_out_what_cannot_pass(tmp_path):
    bad = row(9, tests="import a_package_that_is_not_here")
    cases = benchmark_edits(write_rows(tmp_path / "rows.jsonl", *(row(number) for number in range(4)), bad))
    assert sampled(cases, 2, 1) == sampled(cases, 2, 1)
    assert len(sampled(cases, 2, 1)) == 2
    assert {case.name for case in sampled(cases, 9, 1)} == {f"set/{number}_twice" for number in range(4)}
