"""specedit with a real llama-server: edits, cancelling and errors, through its HTTP alone."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request

import pytest
from click.testing import CliRunner

from specedit.cli import main
from specedit.engine.api import Fim, GenerateRequest, Message, Sampling
from specedit.engine.remote import RemoteEngine
from specedit.errors import ContextOverflowError, EngineError, MarkerTextError
from tests.engines.smollm2_gguf import gguf_path

pytestmark = pytest.mark.smollm2

NAME = "smollm2-135m"
CONTEXT_TOKENS = 1024
CODE = "def area(w, h):\n    return w * h\n"
ASK = GenerateRequest((Message("user", "Write a short poem about the sea."),), max_new_tokens=12)


@pytest.fixture(scope="module")
def url():
    if not gguf_path().is_file():
        pytest.fail(
            f"{gguf_path()} is missing: run `python -m tests.engines.smollm2_gguf` (`make test` does that first)"
        )
    command = [sys.executable, "-m", "tests.engines.llama_server", str(gguf_path()), NAME, str(CONTEXT_TOKENS)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        address = server.stdout.readline().strip()
        assert address, "llama-server did not start"
        yield address
        server.stdin.close()
        server.wait(30)


@pytest.fixture
def engine(url):
    engine = RemoteEngine(url)
    yield engine
    engine.close()


@pytest.fixture
def edit(tmp_path, monkeypatch, url):
    """Runs `specedit edit area.py` by the server."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "area.py").write_text(CODE)

    def run(*arguments):
        command = ["edit", "area.py", "-m", "Rename w to width.", "--engine", url, *arguments]
        result = CliRunner().invoke(main, command)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.output
        return result

    return run


def told(url, path, body=None):
    request = urllib.request.Request(url + path, json.dumps(body).encode() if body else None)
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)


def test_an_edit_comes_to_its_end_and_the_same_again(edit, tmp_path):
    first, again = (edit("--max-new-tokens", "24", "--json") for _ in range(2))
    assert "the engine is smollm2-135m at http://127.0.0.1:" in first.stderr
    assert "(llama-server)" in first.stderr
    outcomes = [json.loads(result.stdout) for result in (first, again)]
    for outcome in outcomes:
        assert outcome["status"] in ("changed", "unchanged", "refused")
        counted = outcome.pop("stats")
        assert counted["output_tokens"] == counted["forwards"] > 0, "it drafts nothing"
        assert counted["prompt_tokens"] > 30
    assert outcomes[0] == outcomes[1]
    assert first.exit_code == again.exit_code == (3 if outcomes[0]["status"] == "refused" else 0)
    assert (tmp_path / "area.py").read_text() == CODE


def test_the_answer_is_the_servers_own(engine, url):
    body = {"messages": [{"role": "user", "content": ASK.messages[0].content}], "max_tokens": 12, "temperature": 0}
    expected = told(url, "/v1/chat/completions", body)["choices"][0]["message"]["content"]
    chunks = list(engine.generate(ASK))
    assert "".join(chunk.text for chunk in chunks) == expected
    assert (chunks[-1].finish_reason, chunks[-1].usage.output_tokens) == ("length", 12)


def test_a_seed_gives_its_text_again(engine):
    def text(seed):
        request = GenerateRequest(ASK.messages, sampling=Sampling(1.0), seed=seed, max_new_tokens=8)
        return "".join(chunk.text for chunk in engine.generate(request))

    first = text(1)
    assert text(1) == first
    assert any(text(seed) != first for seed in range(2, 6))


def test_a_cancel_frees_the_slot(engine, url):
    request = GenerateRequest((Message("user", "Count from one to one thousand in words."),), max_new_tokens=900)
    chunks = engine.generate(request)
    next(chunks)
    assert told(url, "/slots")[0]["is_processing"]
    request.cancel.cancel()
    assert [chunk.finish_reason for chunk in chunks] == ["cancelled"]
    deadline = time.monotonic() + 5
    while told(url, "/slots")[0]["is_processing"]:
        assert time.monotonic() < deadline, "the server goes on for nobody"
        time.sleep(0.02)


def test_what_does_not_fit_is_told(engine):
    with pytest.raises(ContextOverflowError, match="1024 tokens"):
        list(engine.generate(GenerateRequest((Message("user", "word " * 2000),), max_new_tokens=8)))


def test_filling_in_the_middle_is_off_with_one_message(engine):
    with pytest.raises(EngineError, match=r"inline completion is off: .*Infill is not supported by this model"):
        list(engine.generate(GenerateRequest(fim=Fim("def half(x):\n    return ", "\n"), max_new_tokens=4)))


def test_the_server_would_take_markers_for_its_own(engine, url):
    text = "<|im_end|>"
    assert len(told(url, "/tokenize", {"content": text, "parse_special": True})["tokens"]) == 1
    with pytest.raises(MarkerTextError, match="line 1"):
        list(engine.generate(GenerateRequest((Message("user", text),), max_new_tokens=4)))


def test_a_model_that_it_does_not_have(edit):
    result = edit("--model", "qwen2.5-coder-7b")
    assert result.exit_code == 4
    assert "has no model 'qwen2.5-coder-7b'" in result.stderr
    assert result.stderr.rstrip().endswith(NAME)


def test_the_doctor_finds_it_well(url):
    result = CliRunner().invoke(main, ["doctor", "--engine", url, "--json"])
    states = {check["name"]: check["state"] for check in json.loads(result.stdout)["checks"]}
    assert result.exit_code == 0
    assert states.pop("filling in the middle") == "note"
    assert set(states.values()) == {"ok"}
