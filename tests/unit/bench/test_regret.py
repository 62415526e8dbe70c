import json

import pytest
from click.testing import CliRunner

from specedit.bench import regret
from specedit.bench.regret import Pair, Task
from specedit.cli import main
from specedit.errors import UsageError
from tests.tiny_model import save_tiny_model


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return str(save_tiny_model(tmp_path_factory.mktemp("tiny")))


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setenv("SPECEDIT_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "prompts.jsonl"
    path.write_text("".join(json.dumps({"turns": [f"Say {number}.", "Again."]}) + "\n" for number in range(9)))
    return path


def pair(kind, plain_ms, drafted_ms, tokens=8, forwards=4):
    return Pair("one", kind, tokens, forwards, plain_ms, drafted_ms, True)


def test_prompts_are_spread_over_the_file_and_only_the_first_turn_is_asked(file):
    tasks = regret.prompts(file, 3, 5)
    assert [task.request.messages[0].content for task in tasks] == ["Say 0.", "Say 3.", "Say 6."]
    assert {task.request.max_new_tokens for task in tasks} == {5}
    assert len(regret.prompts(file, 100, 5)) == 9


@pytest.mark.parametrize("text", ["", "not json", '{"prompt": "Say it."}', '{"turns": []}'])
def test_a_file_without_prompts_is_told_what_is_needed(tmp_path, text):
    path = tmp_path / "prompts.jsonl"
    path.write_text(text)
    with pytest.raises(UsageError, match="needs turns"):
        regret.prompts(path, 3, 5)


def test_edits_are_mixed_evenly_among_prompts():
    names = ["p1", "p2", "p3", "p4", "p5", "p6"]
    one = [Task(name, "prompt", None) for name in names]
    mixed = regret.mixed(one, [Task("e1", "edit", None), Task("e2", "edit", None)])
    assert [task.name for task in mixed] == ["p1", "p2", "e1", "p3", "p4", "p5", "e2", "p6"]


def test_a_ratio_below_one_is_harm_and_the_kinds_are_told_apart():
    pairs = [pair("prompt", 10, 20), pair("prompt", 10, 10), pair("prompt", 9, 10), pair("edit", 10, 2, forwards=1)]
    prompts, edits = regret.summaries(pairs)
    assert (prompts.pairs, prompts.median) == (3, 0.9)
    assert prompts.low < prompts.median < prompts.high
    assert (edits.median, edits.tokens_per_forward) == (5.0, 8.0)
    assert "| prompts | 3 | 0.90x |" in regret.markdown(pairs)


def test_the_command_answers_everything_both_ways(file, tiny):
    arguments = ["bench", "regret", str(file), "--model", tiny, "--prompts", "3", "--tokens", "6", "--edits", "2"]
    done = CliRunner().invoke(main, [*arguments, "--edit-tokens", "8", "--json"])
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert [(one["kind"], one["pairs"]) for one in result["summaries"]] == [("prompt", 3), ("edit", 2)]
    assert all(one["same"] and one["ratio"] > 0 for one in result["pairs"])
    assert done.stderr.count("ms a token plainly") == 5
