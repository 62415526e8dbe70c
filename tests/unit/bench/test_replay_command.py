import json
import xml.etree.ElementTree as ET

import pytest
from click.testing import CliRunner

from specedit.cli import main
from tests.tiny_model import save_tiny_model

PEERS = ["transformers", "ngram-k5", "ngram-k32", "ngram-12-48", "suffix-tree"]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return str(save_tiny_model(tmp_path_factory.mktemp("tiny")))


@pytest.fixture(scope="module")
def edits(tmp_path_factory):
    """Three edits of a file of lines that are much alike."""
    file = tmp_path_factory.mktemp("edits") / "edits.jsonl"
    rows = []
    for number in range(3):
        before = "".join(f"value_{at} = compute({at}, {at * at})\n" for at in range(10))
        after = before.replace(f"value_{number} ", f"result_{number} ")
        rows.append({"before": before, "after": after, "path": "a.py", "instruction": f"Rename value_{number}."})
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def replay(*arguments):
    return CliRunner().invoke(main, ["bench", "replay", *map(str, arguments)])


def test_json_alone_on_stdout_and_the_same_twice(tiny, edits):
    first = replay(edits, "--model", tiny, "--drafters", ",".join(PEERS), "--json")
    assert first.exit_code == 0, first.stderr
    entries = {entry["name"]: entry for entry in json.loads(first.stdout)["drafters"]}
    assert list(entries) == ["copy-oracle", *PEERS]
    assert first.stdout == replay(edits, "--tokenizer", tiny, "--drafters", ",".join(PEERS), "--json").stdout
    assert all(entries[name]["ratio_to_copy_oracle"] > 1 for name in PEERS)
    assert entries["ngram-k5"]["nodes_per_forward_max"] == 5
    assert entries["transformers"]["tokens_per_forward"] <= 11
    assert entries["suffix-tree"]["by_size"]["short"]["edits"] == 3


def test_budget_limit_and_drafters_choose(tiny, edits):
    found = replay(edits, "--model", tiny, "--drafters", "lookup, transformers", "--budget", 16, "--limit", 2, "--json")
    entries = json.loads(found.stdout)["drafters"]
    assert [entry["name"] for entry in entries] == ["copy-oracle", "copy-oracle-128", "lookup", "transformers"]
    assert [entry["nodes_per_forward_max"] for entry in entries] == [16, 128, 16, 10]
    assert entries[0]["by_size"]["short"]["edits"] == 2


def test_the_table_stands_under_its_command(tiny, edits, monkeypatch):
    monkeypatch.setattr("sys.argv", ["specedit", "bench", "replay", "my edits.jsonl"])
    table = replay(edits, "--model", tiny, "--drafters", "lookup").stdout
    assert table.startswith("`specedit bench replay 'my edits.jsonl'`")
    assert "3 edits, " in table
    assert "\n| lookup | " in table


def test_a_picture_shows_each_drafter_by_name(tiny, edits, tmp_path):
    drafters = ["--drafters", "lookup,transformers"]
    for name in ("plot.svg", "again.svg", "plot.png"):
        assert replay(edits, "--model", tiny, *drafters, "--plot", tmp_path / name, "--json").exit_code == 0
    texts = {node.text for node in ET.parse(tmp_path / "plot.svg").iter("{http://www.w3.org/2000/svg}text")}
    assert {"copy-oracle", "lookup", "transformers", "tokens per forward"} <= texts
    assert any("edited share" in text for text in texts)
    assert (tmp_path / "plot.svg").read_bytes() == (tmp_path / "again.svg").read_bytes()
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--drafters", "lokup"], "no drafter is called 'lokup'. There are: "),
        (["--plot", "plot.gif"], "Name a file that ends in .png, .svg or .pdf"),
        (["--plot", "nowhere/plot.png"], "there is no directory nowhere"),
    ],
)
def test_a_wrong_choice_is_told_before_anything_runs(tiny, edits, arguments, said):
    refused = replay(edits, "--model", tiny, *arguments)
    assert refused.exit_code == 2
    assert said in refused.stderr
    assert refused.stdout == ""


def test_a_line_that_is_no_edit_is_named(tiny, tmp_path):
    file = tmp_path / "edits.jsonl"
    file.write_text('{"before": "", "after": "x"}\n{"before": "x"}\n')
    refused = replay(file, "--model", tiny)
    assert refused.exit_code == 2
    assert "line 2, is no recorded edit" in refused.stderr


def test_a_model_that_is_not_there_exits_with_4(edits, tmp_path):
    missing = replay(edits, "--model", tmp_path / "none")
    assert missing.exit_code == 4
    assert missing.stdout == ""
