"""`specedit complete` as a user runs it, with a model that gives set answers."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from specedit.cli import engine as engines
from specedit.cli import main
from specedit.errors import EngineError, ModelNotFoundError
from specedit.models.registry import ModelEntry, ResolvedModel
from tests.fakes import ScriptedEngine

FOUND = ResolvedModel("scripted", Path(), ModelEntry("scripted", ()))
TEXT = "def area(w, h):\n    return \n"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """An empty project as the current directory, with settings of its own only."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SPECEDIT_RUNTIME", str(tmp_path / "none"))
    (tmp_path / ".git").mkdir()
    return tmp_path


@pytest.fixture
def complete(monkeypatch):
    """Runs `specedit complete` with a model that gives these answers."""

    def run(*arguments, answers=("w * h\n",), stdin=None, device=None):
        engine = ScriptedEngine(list(answers), device=device)
        monkeypatch.setattr(engines, "find_model", lambda *_, **given: FOUND)
        monkeypatch.setattr(engines, "load_engine", lambda *_, **given: engine)
        result = CliRunner().invoke(main, ["complete", *map(str, arguments)], input=stdin)
        result.engine = engine
        return result

    return run


def write(name, text=TEXT):
    path = Path(name)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.encode())
    return path


def test_the_text_goes_to_stdout_and_nothing_is_written(project, complete):
    path = write("area.py")
    result = complete(path, "--at", "2:12")
    assert (result.exit_code, result.stdout) == (0, "w * h\n")
    assert path.read_text() == TEXT
    fim = result.engine.requests[0].fim
    assert (fim.prefix, fim.suffix, fim.name) == (TEXT[:-1], "\n", "area.py")


def test_places_are_counted_in_characters_from_one(project, complete):
    path = write("area.py", "x = '\U0001f600é'\r\ny = \r\n\r\n")
    prefixes = []
    for place in ("1:1", "1:6", "1:7", "2:5", "3:1", "4:1"):
        result = complete(path, "--at", place, "--json")
        assert result.exit_code == 0
        prefixes.append(result.engine.requests[0].fim.prefix)
    first = "x = '\U0001f600é'\n"
    assert prefixes == ["", "x = '", "x = '\U0001f600", first + "y = ", first + "y = \n", first + "y = \n\n"]


def test_json_says_what_is_replaced(project, complete):
    path = write("call.py", "x = 1\nfoo()\n")
    result = complete(path, "--at", "2:5", "--json", answers=["a, b)\nbar()\n"])
    assert json.loads(result.stdout) | {"stats": None} == {
        "path": "call.py",
        "status": "found",
        "reason": None,
        "start": {"line": 2, "column": 5},
        "end": {"line": 2, "column": 5},
        "text": "a, b",
        "stats": None,
    }
    result = complete(path, "--at", "2:5", "--json", answers=["\n    a,\n)\n"])
    shown = json.loads(result.stdout)
    assert (shown["end"], shown["text"]) == ({"line": 2, "column": 6}, "\n    a,\n)")
    assert shown["stats"]["output_tokens"] > 0


def test_alternatives(project, complete):
    path = write("area.py")
    answers = ["w * h\n", "w + h\n", "w * h\n"]
    result = complete(path, "--at", "2:12", "--alternatives", 3, answers=answers)
    assert result.stdout == "--- 1 of 2\nw * h\n--- 2 of 2\nw + h\n"
    result = complete(path, "--at", "2:12", "--alternatives", 3, "--json", answers=answers)
    assert [json.loads(line)["text"] for line in result.stdout.splitlines()] == ["w * h", "w + h"]


def test_nothing_to_propose_says_why(project, complete):
    result = complete(write("area.py"), "--at", "2:12", answers=[""])
    assert (result.exit_code, result.stdout) == (0, "")
    assert "proposes nothing" in result.stderr


def test_what_is_imported_is_shown_to_the_model(project, complete):
    write("pkg/shop.py", "def price(goods: list) -> float:\n    return 1.0\n")
    path = write("pkg/main.py", "from .shop import price\nx = price(\n")
    result = complete(path, "--at", "2:11")
    fim = result.engine.requests[0].fim
    assert [(file.name, file.text) for file in fim.files] == [("pkg/shop.py", "def price(goods: list) -> float:\n")]
    assert fim.name == "pkg/main.py"


def test_text_on_stdin_takes_the_name_that_it_is_given(project, complete):
    result = complete("-", "--at", "2:12", "--stdin-filename", "area.py", stdin=TEXT)
    assert result.stdout == "w * h\n"
    assert result.engine.requests[0].fim.name == "area.py"
    assert complete("-", "--at", "2:12", stdin=TEXT).exit_code == 0
    refused = complete("-", "--at", "1:1", "--stdin-filename", ".env", stdin="KEY=\n")
    assert refused.exit_code == 3
    assert "secret" in refused.stderr


def test_a_model_on_a_cpu_is_shown_less(project, complete):
    path = write("long.py", TEXT * 500)
    on_gpu, on_cpu = (complete(path, "--at", "500:12", device=device) for device in ("cuda:0", "cpu"))
    texts = [result.engine.requests[0].fim for result in (on_gpu, on_cpu)]
    assert len(texts[1].prefix) < len(texts[0].prefix) / 2
    assert len(texts[1].suffix) < len(texts[0].suffix) / 2


def test_flags_reach_the_model(project, complete):
    result = complete(write("area.py"), "--at", "2:12", "--max-new-tokens", "7", "--seed", "5", "--stats")
    [request] = result.engine.requests
    assert (request.max_new_tokens, request.seed, request.priority) == (7, 5, "inline")
    assert "forwards" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["gone.py", "--at", "1:1"], 2, "does not exist"),
        (["area.py"], 2, "--at"),
        (["area.py", "--at", "7"], 2, "such as 12:5"),
        (["area.py", "--at", "9:1"], 2, "area.py has 3 lines: there is no line 9"),
        (["area.py", "--at", "0:1"], 2, "there is no line 0"),
        (["area.py", "--at", "2:13"], 2, "line 2 of area.py ends at column 12: there is no column 13"),
        (["area.py", "--at", "2:0"], 2, "there is no column 0"),
        (["empty.py", "--at", "2:1"], 2, "empty.py has 1 line: there is no line 2"),
        (["area.py", "--at", "1:1", "--stdin-filename", "b.py"], 2, "--stdin-filename needs -"),
        ([".env", "--at", "1:1"], 3, "secret"),
        (["ignored.py", "--at", "1:1"], 3, "ignored"),
        (["binary.py", "--at", "1:1"], 3, "binary"),
    ],
)
def test_wrong_usage_says_what_is_right(project, complete, arguments, code, message):
    write("area.py")
    write("empty.py", "")
    write(".env", "KEY=\n")
    write("ignored.py")
    write("binary.py", "\0\1")
    write(".gitignore", "ignored.py\n")
    result = complete(*arguments)
    assert result.exit_code == code
    assert message in result.stderr.replace("\n", " ")
    assert result.engine.requests == []


def test_an_engine_that_fails_is_no_answer(project, complete, monkeypatch):
    result = complete(write("area.py"), "--at", "2:12", answers=[EngineError("out of luck")])
    assert (result.exit_code, result.stdout) == (4, "")
    assert "out of luck" in result.stderr
    gone = ModelNotFoundError("no such model")
    monkeypatch.setattr(engines, "find_model", lambda *_, **given: (_ for _ in ()).throw(gone))
    result = CliRunner().invoke(main, ["complete", "area.py", "--at", "2:12"])
    assert result.exit_code == 4


def test_ignored_files_are_read_where_that_is_allowed(project, complete):
    write(".gitignore", "area.py\n")
    assert complete(write("area.py"), "--at", "2:12", "--allow-ignored").exit_code == 0


def test_the_command_alone_loads_nothing_heavy():
    code = "import specedit.cli.complete, sys; print([n for n in ('torch', 'numpy', 'httpx2') if n in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
