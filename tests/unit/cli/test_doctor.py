import json

import pytest
from click.testing import CliRunner

from specedit.cli import main
from tests.scripted_server import DONE, ScriptedServer, as_json, chat, completion, models, stream, usage

MODELS, CHAT, COMPLETIONS = "/v1/models", "/v1/chat/completions", "/v1/completions"
ANSWER = stream(chat("one"), chat(" two", finish="stop"), usage(), DONE)
GAP = stream(completion("x", finish="length"), DONE)


@pytest.fixture
def doctor(tmp_path, monkeypatch):
    """Runs `specedit doctor` for a user without settings and without running servers."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SPECEDIT_RUNTIME", str(tmp_path / "none"))

    def run(*arguments):
        result = CliRunner().invoke(main, ["doctor", *arguments])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.output
        return result

    return run


def serve(owned_by="vllm", **replies):
    named = {"models": MODELS, "chat": CHAT, "completions": COMPLETIONS}
    given = {named[name]: reply for name, reply in replies.items()}
    known = {MODELS: [models("m", owned_by=owned_by, max_model_len=4096)], CHAT: [ANSWER], COMPLETIONS: [GAP]}
    return ScriptedServer(known | given)


def states(result):
    return {check["name"]: check["state"] for check in json.loads(result.stdout)["checks"]}


def test_a_server_in_order(doctor):
    with serve() as server:
        result = doctor("--engine", server.url)
    assert result.exit_code == 0, result.output
    lines = [line[7:].partition(": ") for line in result.stdout.splitlines()]
    said = {name: text for name, _, text in lines}
    assert list(said) == [
        "settings",
        "running servers",
        "engine",
        "model",
        "context",
        "key",
        "streaming",
        "seed",
        "prediction",
        "filling in the middle",
        "cancel",
    ]
    assert said["engine"] == f"{server.url} (vLLM)"
    assert (said["model"], said["context"]) == ("m", "4096 tokens")
    assert said["streaming"].startswith("2 pieces")
    assert said["filling in the middle"] == "by `suffix`"
    assert all(line.startswith("ok ") for line in result.stdout.splitlines())


@pytest.mark.parametrize(
    ("replies", "name", "said"),
    [
        ({"models": [as_json(401, {})]}, "engine", "wants a key: set SPECEDIT_API_KEY"),
        ({"models": [models("a", "b")]}, "engine", "has 2 models"),
        ({"chat": [as_json(401, {})]}, "answer", "wants a key: set SPECEDIT_API_KEY"),
        ({"chat": [stream(chat("one"))]}, "answer", "broke off"),
    ],
)
def test_what_is_wrong_ends_it_with_what_to_do(doctor, replies, name, said):
    with serve(**replies) as server:
        result = doctor("--engine", server.url, "--json")
    assert result.exit_code == 4
    told = json.loads(result.stdout)
    assert told["ok"] is False
    assert (told["checks"][-1]["name"], told["checks"][-1]["state"]) == (name, "wrong")
    assert said in told["checks"][-1]["said"]


def test_nobody_there(doctor):
    result = doctor("--engine", "http://127.0.0.1:1")
    assert result.exit_code == 4
    assert "wrong  engine: nothing answers at http://127.0.0.1:1" in result.stdout


def test_what_only_lacks_is_a_note(doctor):
    other = stream(chat("three", finish="stop"), DONE)
    no_suffix = as_json(400, {"error": {"message": "suffix is not currently supported"}})
    with serve(chat=[ANSWER, ANSWER, other, ANSWER], completions=[no_suffix]) as server:
        result = doctor("--engine", server.url, "--json")
    assert result.exit_code == 0
    notes = [name for name, state in states(result).items() if state == "note"]
    assert notes == ["seed", "filling in the middle"]
    with serve(chat=[stream(chat("one two", finish="stop"), usage(), DONE)]) as server:
        assert states(doctor("--engine", server.url, "--json"))["streaming"] == "note"


def test_a_prediction_must_not_change_the_answer(doctor):
    counted = {"output_tokens": 5, "drafters": {"cursor": {"drafted": 4, "accepted": 4}}}
    good = stream(chat("one"), chat(" two", finish="stop"), usage(specedit=counted), DONE)
    with serve("specedit", chat=[good]) as server:
        result = doctor("--engine", server.url)
        assert "prediction: 4 of 5 tokens" in result.stdout
        assert server.asked(CHAT)[4].body["prediction"]["content"] == "one two"
    changed = stream(chat("eins", finish="stop"), DONE)
    with serve("specedit", chat=[good, good, good, good, changed, good]) as server:
        result = doctor("--engine", server.url, "--json")
        assert states(result)["prediction"] == "wrong"
        assert result.exit_code == 4


def test_wrong_settings_are_its_first_finding(doctor, tmp_path):
    (tmp_path / "specedit.toml").write_text('api_key = "x"\n')
    result = doctor()
    assert result.exit_code == 4
    assert result.stdout.startswith("wrong  settings: ")
    assert "'api_key', which a project may not" in result.stdout
    (tmp_path / "specedit.toml").unlink()
    assert "is not an http:// or https:// address" in doctor("--engine", "gpu").stdout


def test_a_model_here_that_is_not_there(doctor, monkeypatch, tmp_path):
    monkeypatch.setenv("SPECEDIT_CACHE", str(tmp_path / "cache"))
    result = doctor("--engine", "local", "--model", "smollm2-135m")
    assert result.exit_code == 4
    assert "ok     torch: " in result.stdout
    assert "wrong  model: " in result.stdout
    assert "specedit models pull smollm2-135m" in result.stdout


def test_a_device_that_is_not_there(doctor, monkeypatch):
    monkeypatch.setenv("SPECEDIT_DEVICE", "cuda:93")
    assert "wrong  device: the device 'cuda:93' can't be used" in doctor("--engine", "local").stdout


def test_others_may_not_enter_the_runtime_directory(doctor, monkeypatch, tmp_path):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o755)
    monkeypatch.setenv("SPECEDIT_RUNTIME", str(tmp_path / "open"))
    with serve() as server:
        result = doctor("--engine", server.url)
    assert result.exit_code == 0
    assert "note   running servers: " in result.stdout
    assert "chmod 700" in result.stdout
