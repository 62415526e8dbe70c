import json

import pytest
from click.testing import CliRunner

from specedit.cli import main
from tests.tiny_model import save_tiny_model


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return str(save_tiny_model(tmp_path_factory.mktemp("tiny")))


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """No costs of tiny models in the user's cache."""
    monkeypatch.setenv("SPECEDIT_CACHE", str(tmp_path / "cache"))


def bench(*arguments):
    return CliRunner().invoke(main, ["bench", *map(str, arguments)])


@pytest.mark.parametrize("command", ["edits", "wallclock"])
def test_nothing_runs_unless_the_user_agrees_to_run_what_a_model_writes(command):
    refused = bench(command)
    assert refused.exit_code == 2
    assert "--run-model-code" in refused.stderr


def test_a_set_must_be_named():
    assert "--own" in bench("edits", "--run-model-code").stderr


def test_an_unknown_edit_is_answered_with_the_known_ones():
    refused = bench("wallclock", "--run-model-code", "--only", "backof")
    assert refused.exit_code == 2
    assert "backoff" in refused.stderr


def test_a_model_that_is_not_there_exits_with_4(tmp_path):
    missing = bench("wallclock", "--run-model-code", "--model", tmp_path / "none")
    assert missing.exit_code == 4
    assert missing.stdout == ""


def test_edits_prints_a_table_and_goes_on_from_what_it_kept(tiny, tmp_path):
    file = tmp_path / "rows.jsonl"
    row = {"language": "python", "instruction": "Fix x.", "before": "x = 1\n", "after": "x = 2\n"}
    file.write_text("".join(json.dumps(row | {"id": f"{n}", "tests": "assert x == 2"}) + "\n" for n in range(3)))
    arguments = ["edits", "--humanevalfix", file, "--limit", 2, "--model", tiny, "--run-model-code"]
    arguments += ["--out", tmp_path / "out"]
    first = bench(*arguments)
    assert first.exit_code == 0, first.stderr
    assert "| HumanEvalFix | 2 | 0 | 0 |" in first.stdout
    assert len((tmp_path / "out" / "outcomes.jsonl").read_text().split("\n")) == 5
    again = json.loads(bench(*arguments, "--json").stdout)
    assert len((tmp_path / "out" / "outcomes.jsonl").read_text().split("\n")) == 5
    assert again["sets"][0]["cases"] == 2
    assert [outcome["way"] for outcome in again["outcomes"]] == ["specedit", "plain"] * 2
