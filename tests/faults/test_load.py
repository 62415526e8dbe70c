"""Real server processes under mixed load: clients that wait, leave, dawdle, send halves and send nonsense."""

import json
import threading

import pytest
from click.testing import CliRunner

from specedit.cli import main
from tests.faults.serving import environment, serving, until
from tests.tiny_model import save_tiny_model


@pytest.fixture
def place(tmp_path, monkeypatch):
    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SPECEDIT_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_tiny_model(tmp_path_factory.mktemp("model") / "tiny")


def load(*options):
    done = CliRunner().invoke(main, ["bench", "load", "--json", *map(str, options)])
    return done.exit_code, json.loads(done.stdout)


def test_a_server_holds_under_mixed_load(place, model, monkeypatch):
    # Drafts are made, by kernels that need not be compiled first.
    monkeypatch.setenv("SPECEDIT_DRAFT_BUDGET", "8")
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    # Little room, so that paused answers lose their keys and values.
    code, report = load("--model", model, "--clients=20", "--minutes=0.17", "--kv-cache-mb=1")
    assert code == 0, [check for check in report["checks"] if not check["held"]]
    assert report["held"]
    assert [check["name"] for check in report["checks"] if not check["held"]] == ["memory is flat"]
    assert {kind for kind, *_ in report["visits"]} == {"inline", "rewrite", "batch", "wrong", "half-open"}
    assert max(sample["queue"]["waiting"] + sample["queue"]["paused"] for sample in report["samples"]) > 1
    assert max(sample["fds"] for sample in report["samples"]) > report["samples"][0]["fds"]


def test_a_server_that_dies_under_load_did_not_hold(place, model):
    with serving(place, "--model", model) as server:
        url = server.wait_for("ready").url

        def kill_in_the_midst():
            until(lambda: "request 20 " in server.said)
            server.popen.kill()

        killing = threading.Thread(target=kill_in_the_midst)
        killing.start()
        code, report = load("--engine", url, "--clients=16", "--minutes=2")
        killing.join()
    assert code == 1
    [ended] = [check for check in report["checks"] if check["name"] == "everything ended as it should"]
    assert not ended["held"]
    assert "no answer from the server" in ended["told"]
    # The load ended with the server, not after its two minutes.
    assert report["seconds"] < 100
    assert report["samples"][0]["rss_bytes"] > 0
