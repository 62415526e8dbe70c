import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from specedit.bench.case import Case
from specedit.bench.serving import markdown, measure, to_json
from specedit.cli import main
from specedit.errors import EngineError
from tests.tiny_model import save_tiny_model

CASES = [
    Case(name=name, file_name="a.py", before=f"{name} = 1\n", instruction=f"Set {name} to 2.", check="")
    for name in ("a", "b", "c")
]
WAYS = {"none": None, "drafts": {"method": "any"}}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return save_tiny_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def vllm(tmp_path_factory):
    command = tmp_path_factory.mktemp("bin") / "vllm"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} {Path(__file__).with_name("fake_vllm.py")} "$@"\n')
    command.chmod(0o700)
    return command


@pytest.mark.parametrize("clients", [1, 3])
def test_each_way_is_counted_and_the_first_runs_again(vllm, tiny, clients):
    first, drafts, again = measure(vllm, tiny, CASES, speculative=WAYS, clients=clients)
    assert (first.way, drafts.way, again.way) == ("none", "drafts", "none")
    assert (drafts.output_tokens, drafts.tokens_per_step) == (120, 4.0)
    assert (drafts.mean_accepted_length, drafts.acceptance_rate) == (4.0, 0.5)
    assert (again.output_tokens, again.tokens_per_step, again.mean_accepted_length) == (120, 1.0, 1.0)
    assert drafts.same_as_first == 3


def test_figures_are_printed_as_a_table_and_as_json(vllm, tiny):
    served = list(measure(vllm, tiny, CASES, speculative=WAYS))
    assert "| drafts | 120 | 4.00 | 4.00 | 50% |" in markdown(served)
    assert [one["way"] for one in json.loads(to_json(served))] == ["none", "drafts", "none"]


def test_a_server_that_does_not_start_is_told_with_its_last_words(vllm, tiny):
    with pytest.raises(EngineError, match="no such device: abacus"):
        next(measure(vllm, tiny, CASES, speculative=WAYS, arguments=["--broken"]))


def test_the_command_measures_the_ways_that_are_named(vllm, tiny):
    command = ["bench", "serving", "--vllm", str(vllm), "--model", str(tiny), "--limit", "2"]
    done = CliRunner().invoke(main, [*command, "--way", "specedit"])
    assert done.exit_code == 0, done.output
    rows = [line.split(" | ")[0] for line in done.stdout.splitlines() if line.startswith("| ")]
    assert rows == ["| drafts", "| none", "| specedit", "| none"]
    broken = CliRunner().invoke(main, [*command, "--", "--broken"])
    assert broken.exit_code == 4
    assert "abacus" in broken.output
    assert "There are: none, ngram" in CliRunner().invoke(main, [*command, "--way", "magic"]).output
