"""A real server process under mixed load: clients that wait, leave, dawdle, send halves and send nonsense."""

import json

from click.testing import CliRunner

from specedit.cli import main
from tests.faults.serving import environment
from tests.tiny_model import save_tiny_model


def test_a_server_holds_under_mixed_load(tmp_path, monkeypatch):
    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SPECEDIT_CACHE", str(tmp_path / "cache"))
    # Drafts, but by what needs neither compiling nor measuring first: this is about the server.
    monkeypatch.setenv("SPECEDIT_DRAFT_BUDGET", "8")
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    model = save_tiny_model(tmp_path / "tiny")
    # Little room, so that paused answers lose their keys and values too.
    options = ["--clients=20", "--minutes=0.17", "--kv-cache-mb=1", "--json"]
    done = CliRunner().invoke(main, ["bench", "load", f"--model={model}", *options])
    report = json.loads(done.stdout)
    assert done.exit_code == 0, [check for check in report["checks"] if not check["held"]]
    assert report["held"]
    judged = {check["name"] for check in report["checks"] if check["held"]}
    assert {check["name"] for check in report["checks"]} - judged == {"memory is flat"}
    # It was a load: all kinds of clients came, and the server was begun upon by more than one at a time.
    assert {kind for kind, *_ in report["visits"]} == {"inline", "rewrite", "batch", "wrong", "half-open"}
    assert max(sample["queue"]["waiting"] + sample["queue"]["paused"] for sample in report["samples"]) > 1
    assert max(sample["fds"] for sample in report["samples"]) > report["samples"][0]["fds"]
