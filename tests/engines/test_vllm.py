"""specedit with a real vLLM on the CPU: edits through it, and its drafting inside it.

`make test-engines` installs vLLM and names its command in SPECEDIT_TEST_VLLM.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner

from specedit.bench.corpus import own_edits
from specedit.bench.serving import PROPOSER
from specedit.bench.vllm_server import running
from specedit.cli import main
from specedit.edit.session import generate_request
from specedit.models.registry import resolve

VLLM = os.environ.get("SPECEDIT_TEST_VLLM")
pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(VLLM is None, reason="set SPECEDIT_TEST_VLLM to vLLM's command; make test-engines does"),
]

NAME = "smollm2-135m"
EDITS = ("clamp", "count_words", "longest_line", "median", "merge_intervals", "transpose")
NEW_TOKENS = 120
#: A KV cache of 320 tokens. Two of these requests come to need more, so one is preempted.
TIGHT = ["--max-model-len", "320", "--block-size", "32", "--num-gpu-blocks-override", "11", "--max-num-seqs", "2"]
PLAIN = ["--dtype", "float32", "--enforce-eager", "--served-model-name", NAME, "--no-enable-prefix-caching"]


@pytest.fixture(scope="module")
def requests():
    return [generate_request(case.request()) for case in own_edits("small") if case.name in EDITS]


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """Starts a vLLM with SmolLM2; machine code for its numba is kept apart from ours."""
    environment = {"SPECEDIT_CACHE": str(Path(VLLM).parents[1] / "cache")}

    def started(**settings):
        arguments = [*PLAIN, *TIGHT]
        return running(Path(VLLM), resolve(NAME).path, arguments=arguments, environment=environment, **settings)

    return started


@pytest.fixture(scope="module")
def plain_answers(start, requests):
    """What vLLM gives without drafts, one request after another."""
    with start() as server:
        return [server.answer(request, NEW_TOKENS) for request in requests]


@pytest.fixture(scope="module")
def drafting(start, plain_answers):
    """A vLLM with specedit's drafting."""
    with start(speculative={"method": "custom_class", "model": PROPOSER, "num_speculative_tokens": 16}) as server:
        yield server


def test_drafts_do_not_change_the_text(drafting, requests, plain_answers):
    before = drafting.counters()
    answers = [drafting.answer(request, NEW_TOKENS) for request in requests]
    counted = drafting.counters().since(before)
    assert answers == plain_answers
    assert counted.preemptions == 0
    assert counted.tokens_per_step > 1.5


def test_requests_that_share_a_batch_move_and_are_preempted_get_the_text_they_get_alone(
    drafting, requests, plain_answers
):
    before = drafting.counters()
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(drafting.answer, requests, [NEW_TOKENS] * len(requests)))
    counted = drafting.counters().since(before)
    assert answers == plain_answers
    assert counted.preemptions > 0
    assert counted.mean_accepted_length > 1.5


def test_an_edit_through_vllm_is_the_edit_made_here(drafting, tmp_path, monkeypatch):
    monkeypatch.setenv("SPECEDIT_DTYPE", "float32")
    [case] = [case for case in own_edits("small") if case.name == "clamp"]
    written = {}
    for engine in ("local", drafting.url):
        file = tmp_path / "clamp.py"
        file.write_text(case.before)
        command = ["edit", str(file), "-m", case.instruction, "--write", "--max-new-tokens", str(NEW_TOKENS)]
        command += ["--model", NAME, "--engine", engine]
        edited = CliRunner().invoke(main, command)
        assert edited.exit_code == 0, edited.output
        written[engine] = file.read_text()
    assert written[drafting.url] == written["local"] != case.before
