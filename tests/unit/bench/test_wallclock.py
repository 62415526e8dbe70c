import json

import msgspec
import pytest

from specedit.bench.case import Case
from specedit.bench.wallclock import markdown, measure, to_json
from tests.tiny_model import save_tiny_model

CASES = [
    Case(name=name, file_name="a.py", before=f"{name} = 1\n", instruction="Set it to 2.", check=f"assert {name} == 2")
    for name in ("a", "b")
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    lines = []
    found = list(measure(str(save_tiny_model(tmp_path_factory.mktemp("tiny"))), CASES, repeat=2, progress=lines.append))
    assert len(lines) == 2 * len(CASES) * 3
    return found


def test_each_edit_is_answered_three_ways_with_the_same_text(runs):
    assert [(run.edit, run.way) for run in runs] == [
        (name, way) for name in ("a", "b") for way in ("plain", "prompt lookup", "specedit")
    ]
    assert all(run.same_as_plain for run in runs)
    assert len({run.output_tokens for run in runs if run.edit == "a"}) == 1


def test_plain_decoding_is_one_token_a_forward_and_the_others_are_counted(runs):
    for run in runs:
        if run.way == "plain":
            assert (run.forwards, run.speedup) == (run.output_tokens, 1.0)
        else:
            assert 0 < run.forwards < run.output_tokens
            assert run.speedup > 0


def test_a_random_model_makes_no_edit_and_the_table_says_so(runs):
    assert not any(run.made for run in runs)
    assert all(run.reason for run in runs)
    lines = markdown(runs).split("\n")
    rows = [line for line in lines if line.startswith(("| a |", "| b |"))]
    assert len(rows) == 2
    assert all(row.endswith("| no | yes |") for row in rows)
    assert all(row.count("|") == lines[2].count("|") for row in rows)


def test_the_table_names_who_differs(runs):
    plain, lookup, ours = runs[:3]
    wrong = msgspec.structs.replace(lookup, same_as_plain=False)
    assert markdown([plain, wrong, ours]).endswith("| no | prompt lookup no, specedit yes |")


def test_json_holds_every_run(runs):
    assert [run["way"] for run in json.loads(to_json(runs))] == [run.way for run in runs]
