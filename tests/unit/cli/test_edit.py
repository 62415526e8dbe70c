import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from specedit import __version__
from specedit.cli import engine as engines
from specedit.cli import main
from specedit.engine.discovery import ServerRecord, register
from specedit.errors import EngineError, ModelNotFoundError
from specedit.models.registry import ModelEntry, ResolvedModel
from tests.fakes import ScriptedEngine, fenced
from tests.scripted_server import DONE, ScriptedServer, as_json, chat, models, stream, stream_start, usage
from tests.signals import heeding_ctrl_c

AREA = "def area(w, h):\n    return w * h\n"
WIDTH = "def area(width, h):\n    return width * h\n"
GOOD = fenced(WIDTH)


FOUND = ResolvedModel("scripted", Path(), ModelEntry("scripted", ()))


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
def edit(monkeypatch):
    """Runs `specedit edit` with a model that gives these answers."""

    def run(*arguments, answers=(GOOD,), stdin=None, **fake):
        engine = ScriptedEngine(list(answers), **fake)
        loaded = []
        monkeypatch.setattr(engines, "find_model", lambda *_, **given: FOUND)
        monkeypatch.setattr(engines, "load_engine", lambda *_, **given: loaded.append(FOUND) or engine)
        result = CliRunner().invoke(main, ["edit", *map(str, arguments)], input=stdin)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.output
        result.engine, result.loaded = engine, loaded
        return result

    return run


def _write(name, text=AREA):
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_the_change_is_shown_and_not_written(project, edit):
    path = _write("area.py")
    result = edit(path, "-m", "rename w to width")
    assert result.exit_code == 0
    assert result.stdout == (
        "diff --git a/area.py b/area.py\n--- a/area.py\n+++ b/area.py\n@@ -1,2 +1,2 @@\n"
        "-def area(w, h):\n-    return w * h\n+def area(width, h):\n+    return width * h\n"
    )
    assert path.read_text() == AREA
    assert "output tokens" in result.stderr
    assert "tokens per forward" in result.stderr


def test_write_applies_it(project, edit):
    path = _write("area.py")
    assert edit(path, "-m", "rename w to width", "--write").exit_code == 0
    assert path.read_text() == WIDTH


def test_check_tells_by_its_exit_code(project, edit):
    path = _write("area.py")
    assert edit(path, "-m", "rename w", "--check").exit_code == 1
    assert path.read_text() == AREA
    assert edit(path, "-m", "rename w", "--check", answers=[fenced(AREA)]).exit_code == 0


def test_what_changed_nothing_says_what_to_try(project, edit):
    path = _write("area.py")
    modified = path.stat().st_mtime_ns
    result = edit(path, "-m", "make it better", "--write", answers=[fenced(AREA)])
    assert (result.exit_code, result.stdout) == (0, "")
    assert "area.py: the model changed nothing; say more exactly" in result.stderr
    assert path.stat().st_mtime_ns == modified


def test_one_json_object_a_file(project, edit):
    paths = [_write("area.py"), _write("same.py", WIDTH), _write("bad.py")]
    answers = [fenced(WIDTH), fenced(WIDTH), "I would rather not."]
    result = edit(*paths, "-m", "rename w to width", "--json", answers=answers)
    changed, unchanged, refused = map(json.loads, result.stdout.splitlines())
    assert result.exit_code == 3
    assert changed == {
        "path": "area.py",
        "status": "changed",
        "reason": None,
        "hunks": [{"start_line": 1, "old": AREA, "new": WIDTH}],
        "stats": changed["stats"],
    }
    assert changed["stats"]["forwards"] > 0
    assert changed["stats"]["seconds"] == 0.5
    assert changed["stats"]["by_drafter"]["lookup"]["accepted"] == changed["stats"]["accepted"] > 0
    assert (unchanged["status"], unchanged["hunks"]) == ("unchanged", [])
    assert refused["status"] == "refused"
    assert "not a code block" in refused["reason"]


def test_a_range_and_a_symbol(project, edit):
    path = _write("two.py", AREA + "\n\n" + AREA.replace("area", "again"))
    again = "def again(width, h):\n    return width * h\n"
    for part in (["--range", "5:6"], ["--symbol", "again"]):
        result = edit(path, "-m", "rename w to width", *part, answers=[fenced(again)])
        assert "@@ -2,5 +2,5 @@" in result.stdout
        assert result.engine.requests[0].prediction == AREA.replace("area", "again")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gone.py"], "does not exist"),
        (["area.py", "other.py", "--range", "1:2"], "one PATH"),
        (["area.py", "other.py", "--symbol", "area"], "one PATH"),
        (["area.py", "--range", "two"], "range of lines"),
        (["area.py", "--range", "9:12"], "2 lines"),
        (["area.py", "--symbol", "volume"], "no symbol"),
        (["area.py", "--write", "--check"], "not both"),
        (["area.py", "--temperature", "-1"], "temperature"),
        (["area.py", "--stdin-filename", "x.py"], "needs -"),
        ([], "PATH"),
    ],
)
def test_wrong_usage(project, edit, arguments, message):
    _write("area.py"), _write("other.py")
    result = edit(*arguments, "-m", "rename w")
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_wrong_settings_stop_before_anything_is_read(project, edit):
    path = _write("area.py")
    _write("specedit.toml", 'model = "evil"\n')
    result = edit(path, "-m", "rename w", "--write")
    assert (result.exit_code, result.engine.requests) == (2, [])
    assert "specedit.toml" in result.stderr
    assert path.read_text() == AREA


def test_a_missing_model_is_told_with_the_command_that_pulls_it(project, monkeypatch):
    _write("area.py")

    def no_model(*_, ask, **given):
        assert ask is None, "without a terminal nobody can be asked"
        raise ModelNotFoundError("no such model here. Run: specedit models pull small")

    monkeypatch.setattr(engines, "find_model", no_model)
    result = CliRunner().invoke(main, ["edit", "area.py", "-m", "rename w", "--write"])
    assert result.exit_code == 4
    assert "specedit models pull small" in result.stderr


def test_a_mistake_about_the_file_is_told_before_the_model_is_loaded(project, edit):
    path = _write("area.py")
    mistakes = [[path, "--range", "5:99"], [path, "--symbol", "nothing"], [_write(".env", "KEY=1\n")]]
    results = [edit(*mistake, "-m", "rename w") for mistake in mistakes]
    assert [result.exit_code for result in results] == [2, 2, 3]
    assert all(result.loaded == [] for result in results)


def test_a_failure_does_not_stop_the_rest(project, edit):
    paths = [_write(name) for name in ("a.py", "b.py", "c.py")]
    secret = _write(".env", "KEY=1\n")
    answers = [EngineError("out of memory"), fenced(AREA.replace("w,", "w")), fenced(WIDTH)]
    result = edit(secret, *paths, "-m", "rename w to width", "--write", answers=answers)
    assert result.exit_code == 3
    assert [path.read_text() for path in paths] == [AREA, AREA, WIDTH]
    assert "a.py: failed: out of memory" in result.stderr
    assert "b.py: refused: the file would no longer parse" in result.stderr
    assert "2 refused, 1 failed, 1 changed" in result.stderr
    assert len(result.engine.requests) == 3


def test_a_read_only_file_is_refused_before_the_model_is_asked(project, edit):
    path = _write("area.py")
    path.chmod(0o444)
    result = edit(path, "-m", "rename w", "--write")
    assert (result.exit_code, result.engine.requests) == (3, [])
    assert "read-only" in result.stderr


def test_a_file_that_changed_meanwhile_is_left_alone(project, edit):
    path = _write("area.py")

    def answer(_):
        path.write_text("# mine now\n")
        return fenced(WIDTH)

    result = edit(path, "-m", "rename w to width", "--write", answers=[answer])
    assert result.exit_code == 3
    assert "changed on disk" in result.stderr
    assert path.read_text() == "# mine now\n"


def test_guards_are_lifted_by_flags(project, edit):
    broken = fenced(AREA.replace("h)", "h"))
    _write("area.py")
    assert edit("area.py", "-m", "break it", answers=[broken]).exit_code == 3
    assert edit("area.py", "-m", "break it", "--allow-syntax-errors", answers=[broken]).exit_code == 0
    _write("long.txt", "".join(f"{n}\n" for n in range(30)))
    short = fenced("1\n2\n")
    assert edit("long.txt", "-m", "shorten", answers=[short]).exit_code == 3
    assert edit("long.txt", "-m", "shorten", "--allow-deletions", answers=[short]).exit_code == 0


def test_ignored_files_need_a_flag(project, edit):
    subprocess.run(["git", "init", "-q"], check=True)
    _write(".gitignore", "build\n")
    path = _write("build/area.py")
    assert edit(path, "-m", "rename w").exit_code == 3
    assert edit(path, "-m", "rename w", "--allow-ignored").exit_code == 0


def test_sampling_reaches_the_engine(project, edit):
    _write("area.py")
    flags = ["--seed", "3", "--temperature", "0.5", "--top-p", "0.9", "--max-new-tokens", "64"]
    asked = edit("area.py", "-m", "rename w", *flags).engine.requests[0]
    assert (asked.seed, asked.sampling.temperature, asked.sampling.top_p) == (3, 0.5, 0.9)
    assert asked.max_new_tokens == 64


def test_compare_tells_whether_the_answer_is_the_same(project, edit):
    _write("area.py")
    result = edit("area.py", "-m", "rename w", "--compare")
    assert "plain decoding: 0.50 s, 1.00 times as long; the same answer" in result.stderr
    result = edit("area.py", "-m", "rename w", "--compare", answers=[fenced(WIDTH), fenced(AREA)])
    assert "another answer" in result.stderr
    assert "+def area(width, h):" in result.stdout


def test_stdin_gives_a_diff(project, edit):
    result = edit("-", "--stdin-filename", "sub/area.py", "-m", "rename w", stdin=AREA)
    assert "--- a/sub/area.py" in result.stdout
    assert "+def area(width, h):" in result.stdout


def test_stdin_with_write_gives_the_new_text(project, edit):
    crlf = AREA.replace("\n", "\r\n").encode()
    result = edit("-", "--stdin-filename", "area.py", "-m", "rename w", "--write", stdin=crlf)
    assert result.stdout_bytes == WIDTH.replace("\n", "\r\n").encode()
    same = edit("-", "-m", "rename w", "--write", stdin=crlf, answers=[fenced(AREA)])
    assert same.stdout_bytes == crlf
    refused = edit("-", "-m", "rename w", "--write", stdin=crlf, answers=["No."])
    assert (refused.exit_code, refused.stdout_bytes) == (3, b"")


GIT_CASES = {
    "plain": ("area.py", AREA, WIDTH),
    "crlf": ("area.py", AREA.replace("\n", "\r\n"), WIDTH.replace("\n", "\r\n")),
    "mixed": ("area.py", "a = 1\r\nb = 2\nc = 3\r\n", "a = 1\r\nb = 5\nc = 3\r\n"),
    "no final newline": ("a.txt", "a\nb", "a\nc"),
    "a blank in the name": ("my dir/my area.py", AREA, WIDTH),
    "quotes in the name": ('a"b\\c\td.py', AREA, WIDTH),
    "beyond ascii": ("größe 😀.py", AREA, WIDTH),
    "was empty": ("area.py", "", AREA),
    "byte-order mark": ("area.py", "\ufeff" + AREA, "\ufeff" + WIDTH),
    "form feed": ("a.txt", "a\fb\nc\n", "a\fb\nd\n"),
    "several hunks": (
        "a.txt",
        "".join(f"{n}\n" for n in range(60)),
        "x\n" + "".join(f"{n}\n" for n in range(1, 59)) + "y\n",
    ),
}


@pytest.mark.parametrize(("name", "before", "after"), GIT_CASES.values(), ids=list(GIT_CASES))
def test_git_applies_the_patch(project, edit, monkeypatch, name, before, after):
    subprocess.run(["git", "init", "-q"], check=True)
    path = _write(Path("sub", name), before)
    monkeypatch.chdir("sub")
    answer = fenced(after.removeprefix("\ufeff"))
    result = edit(name, "-m", "change", "--patch", project / "change.patch", answers=[answer])
    assert result.exit_code == 0, result.stderr
    assert result.stdout_bytes == (project / "change.patch").read_bytes()
    subprocess.run(["git", "apply", "--check", "change.patch"], cwd=project, check=True)
    subprocess.run(["git", "apply", "change.patch"], cwd=project, check=True)
    assert (project / path).read_bytes() == after.encode()


def test_a_file_in_utf16_is_shown_as_text_and_patched_as_bytes(project, edit):
    subprocess.run(["git", "init", "-q"], check=True)
    path = _write("area.py", AREA.encode("utf-16"))
    shown = edit(path, "-m", "rename w", "--json", "--patch", "wide.patch")
    assert json.loads(shown.stdout)["hunks"] == [{"start_line": 1, "old": AREA, "new": WIDTH}]
    subprocess.run(["git", "apply", "wide.patch"], check=True)
    assert path.read_bytes() == WIDTH.encode("utf-16")


def test_a_patch_holds_all_files_that_changed(project, edit):
    paths = [_write("a.py"), _write("b.py"), _write("c.py")]
    answers = [fenced(WIDTH), "No.", fenced(WIDTH)]
    edit(*paths, "-m", "rename w", "--patch", "all.patch", answers=answers)
    assert Path("all.patch").read_text().count("diff --git") == 2
    subprocess.run(["git", "apply", "all.patch"], check=True)
    assert [path.read_text() for path in paths] == [WIDTH, AREA, WIDTH]


def test_help_names_the_options(project, edit):
    result = edit("--help")
    assert result.exit_code == 0
    for option in ("--range", "--symbol", "--write", "--check", "--patch", "--json", "--compare"):
        assert option in result.stdout


def test_a_patch_never_replaces_what_it_should_not(project, edit):
    path = _write("area.py")
    assert edit(path, "-m", "rename w", "--patch", path).exit_code == 2
    assert edit(path, "-m", "rename w", "--patch", "absent/x.patch").exit_code == 2
    assert path.read_text() == AREA

    earlier = project / "earlier.patch"
    earlier.write_text("kept")
    assert edit(path, "-m", "rename w", "--patch", earlier, answers=[fenced(AREA)]).exit_code == 0
    assert earlier.read_text() == "kept"
    assert sorted(child.name for child in project.iterdir()) == [".git", "area.py", "earlier.patch"]


def test_a_secret_on_stdin_is_a_secret(project, edit):
    result = edit("-", "--stdin-filename", "prod.env", "-m", "x", stdin="KEY=1\n")
    assert (result.exit_code, result.engine.requests) == (3, [])


def test_stats_say_what_was_accepted_and_where_the_time_went(project, edit):
    said = edit(_write("area.py"), "-m", "rename w to width", "--stats").stderr
    assert "lookup: " in said
    assert "1: " in said
    assert "6 at most" in said
    assert "0.10 drafting, 0.30 forwards, 0.10 all else" in said
    assert "drafting" not in edit(_write("area.py"), "-m", "rename w to width").stderr


def test_trace_saves_one_page_for_all_files(project, edit):
    paths = [_write("area.py"), _write("other.py")]
    result = edit(*paths, "-m", "rename w to width", "--trace", "trace.html")
    assert result.exit_code == 0
    page = Path("trace.html").read_text()
    assert page.count("<section>") == 2
    assert "other.py: changed" in page
    assert sorted(path.name for path in Path().iterdir()) == [".git", "area.py", "other.py", "trace.html"]
    assert all(request.trace for request in result.engine.requests)
    assert not edit(paths[0], "-m", "rename w to width").engine.requests[0].trace, "nothing is collected unasked"


def test_a_trace_shows_refused_and_failed_edits_too(project, edit):
    answers = ["I would rather not.", EngineError("the device is gone")]
    edit(_write("area.py"), _write("other.py"), "-m", "rename w", "--trace", "trace.html", answers=answers)
    page = Path("trace.html").read_text()
    assert "area.py: refused" in page
    assert "other.py: failed" in page


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--trace", "area.py"], "--trace names a file that is to be edited"),
        (["--trace", "nowhere/trace.html"], "no directory nowhere"),
        (["--trace", "out", "--patch", "out"], "the same file"),
        (["--drafters", "cursor,eagle"], "'eagle'"),
        (["--drafters", "cursor,eagle"], "cursor, replay, lookup, ngram"),
        (["--drafters", ","], "cursor, replay, lookup, ngram"),
        (["--drafters", "cursor", "--no-draft"], "not both"),
    ],
)
def test_wrong_drafters_and_traces_are_told_before_the_model_is_loaded(project, edit, arguments, said):
    result = edit(_write("area.py"), "-m", "rename w to width", *arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.loaded == []


def test_the_drafters_reach_the_engine(project, edit, monkeypatch):
    edit(_write("area.py"), "-m", "rename w to width")
    given = []
    engine = ScriptedEngine([GOOD])
    monkeypatch.setattr(engines, "load_engine", lambda *_, settings, draft: given.append((settings, draft)) or engine)
    arguments = ["edit", "area.py", "-m", "rename w to width"]
    CliRunner().invoke(main, [*arguments, "--drafters", "lookup, cursor"])
    CliRunner().invoke(main, [*arguments, "--no-draft"])
    assert given[0][0].drafters == ("lookup", "cursor")
    assert [draft for _, draft in given] == [True, False]


# --- engines elsewhere

CHAT = "/v1/chat/completions"


@pytest.fixture
def server():
    """A server of no known kind that answers with the edited file."""
    answer = stream(chat(GOOD[:9]), chat(GOOD[9:], finish="stop"), usage(), DONE)
    with ScriptedServer({"/v1/models": [models("m", owned_by="vllm")], CHAT: [answer]}) as server:
        yield server


@pytest.fixture
def ours():
    """The same, as specedit's."""
    counted = {"output_tokens": 8, "forwards": 2, "drafters": {"lookup": {"drafted": 7, "accepted": 6}}}
    step = {"drafted": [], "accepted": [], "emitted": [GOOD], "proposed": 0}
    answer = stream(chat(GOOD, finish="stop", specedit={"step": step}), usage(specedit=counted), DONE)
    with ScriptedServer({"/v1/models": [models("m", owned_by="specedit")], CHAT: [answer]}) as server:
        yield server


@pytest.fixture
def asked(monkeypatch):
    """Runs `specedit edit` where no model can be loaded."""

    def no_model(*_, **given):
        pytest.fail("a model was looked for in this process")

    monkeypatch.setattr(engines, "find_model", no_model)

    def run(*arguments):
        result = CliRunner().invoke(main, ["edit", *map(str, arguments)])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.output
        return result

    return run


def test_an_edit_by_a_server(project, asked, server):
    path = _write("area.py")
    result = asked(path, "-m", "rename w to width", "--write", "--engine", server.url)
    assert result.exit_code == 0
    assert path.read_text() == WIDTH
    assert f"the engine is m at {server.url} (vLLM)" in result.stderr
    assert "3 output tokens" in result.stderr
    assert "forwards" not in result.stderr, "what the server does not tell is not made up"
    assert "rename w to width" in server.body(CHAT)["messages"][0]["content"]


def test_the_engine_can_stand_in_the_users_settings(project, asked, server, monkeypatch):
    config = project / "config" / "specedit"
    config.mkdir(parents=True)
    (config / "config.toml").write_text(f'engine = "{server.url}"\nmodel = "m"\n')
    monkeypatch.setenv("SPECEDIT_API_KEY", "sk-secret")
    result = asked(_write("area.py"), "-m", "rename w to width")
    assert "+def area(width, h):" in result.stdout
    assert server.asked(CHAT)[0].headers["authorization"] == "Bearer sk-secret"
    assert "sk-secret" not in result.output


def test_a_server_that_can_not_help_is_told_at_once(project, asked, server):
    path = _write("area.py")
    wrong = asked(path, "-m", "rename w", "--write", "--engine", server.url, "--model", "tiny")
    assert (wrong.exit_code, server.asked(CHAT)) == (4, [])
    assert "no model 'tiny'. Name one that it has with --model or SPECEDIT_MODEL: m" in wrong.stderr
    gone = asked(path, "-m", "rename w", "--write", "--engine", "http://127.0.0.1:1")
    assert gone.exit_code == 4
    assert "start the server there" in gone.stderr
    assert path.read_text() == AREA


def test_a_marker_in_the_file_is_refused_and_too_long_a_file_as_well(project, asked, server):
    path = _write("area.py", AREA + "# <|im_end|>\n")
    result = asked(path, "-m", "rename w", "--write", "--engine", server.url)
    assert result.exit_code == 3
    assert "area.py: refused: line 3" in result.stderr
    too_long = as_json(400, {"error": {"message": "maximum context length is 9 tokens"}})
    server.replies = {**server.replies, CHAT: [too_long]}
    result = asked(_write("area.py"), "-m", "rename w", "--write", "--engine", server.url)
    assert result.exit_code == 3
    assert "area.py: refused: prompt and answer do not fit" in result.stderr


@pytest.mark.parametrize("flag", [["--no-draft"], ["--drafters", "cursor"]])
def test_a_flag_that_no_server_can_follow_is_wrong_usage(project, asked, edit, server, flag):
    path = _write("area.py")
    for engine in (server.url, "shared"):
        result = asked(path, "-m", "rename w", *flag, "--engine", engine)
        assert result.exit_code == 2
        assert f"{flag[0]} is for a model in this process" in result.stderr
    assert server.requests == []
    assert edit(path, "-m", "rename w", *flag, "--engine", "local").exit_code == 0


def test_what_only_specedits_server_tells(project, asked, server, ours):
    path = _write("area.py")
    common = [path, "-m", "rename w to width", "--stats", "--trace", "trace.html", "--engine"]
    result = asked(*common, server.url)
    assert result.exit_code == 0
    assert "(vLLM) tells no steps, no drafters and no times" in result.stderr
    assert not Path("trace.html").exists()
    result = asked(*common, ours.url)
    assert "lookup: 6 of 7" in result.stderr
    assert "4.0 tokens per forward" in result.stderr
    assert Path("trace.html").exists()


def test_comparing_needs_specedits_server(project, asked, server, ours):
    path = _write("area.py")
    result = asked(path, "-m", "rename w to width", "--compare", "--engine", server.url)
    assert (result.exit_code, server.asked(CHAT)) == (2, [])
    assert "--compare needs" in result.stderr
    result = asked(path, "-m", "rename w to width", "--compare", "--engine", ours.url)
    assert "the same answer" in result.stderr
    assert [one.body["specedit"].get("plain", False) for one in ours.asked(CHAT)] == [False, True]


@pytest.fixture
def running(project, ours, monkeypatch):
    """The server as one that this user started."""
    runtime = project / "runtime"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("SPECEDIT_RUNTIME", str(runtime))
    (runtime / "token").touch(mode=0o600)
    (runtime / "token").write_text("a-token-of-some-length")
    record = ServerRecord(
        url=ours.url,
        token_file=str(runtime / "token"),
        model="m",
        pid=os.getpid(),
        version=__version__,
        started=0.0,
        state="ready",
    )
    registration = register(lambda: record, model="m")
    yield ours
    registration.remove()


def test_a_server_that_runs_is_found(running, asked, edit, monkeypatch):
    path = _write("area.py")
    result = asked(path, "-m", "rename w to width")
    assert "+def area(width, h):" in result.stdout
    assert f"the engine is m at {running.url} (specedit serve)" in result.stderr
    assert running.asked(CHAT)[0].headers["authorization"] == "Bearer a-token-of-some-length"
    answered = len(running.asked(CHAT))
    for elsewhere in (["--engine", "local"], ["--model", "other"], ["--no-draft"]):
        assert edit(path, "-m", "rename w to width", *elsewhere).engine.requests
    monkeypatch.setenv("SPECEDIT_DEVICE", "cpu")
    assert edit(path, "-m", "rename w to width").engine.requests
    assert len(running.asked(CHAT)) == answered


LOCAL_ONLY = "accelerate gguf huggingface_hub numba numpy prometheus_client safetensors sse_starlette starlette"
LOCAL_ONLY += " tokenizers torch transformers uvicorn"


def test_an_edit_by_a_server_needs_nothing_of_the_local_extra(project, server):
    path = _write("area.py")
    code = f"import sys\nsys.modules.update(dict.fromkeys({LOCAL_ONLY.split()}))\nfrom specedit.cli import main\nmain()"
    common = [sys.executable, "-c", code, "edit", str(path), "-m", "rename w to width"]
    here = subprocess.run(common, capture_output=True, text=True)
    assert (here.returncode, "pip install 'specedit[local]'" in here.stderr) == (4, True), "so it is as if not there"
    by_server = subprocess.run([*common, "--engine", server.url], capture_output=True, text=True)
    assert by_server.returncode == 0, by_server.stderr
    assert "+def area(width, h):" in by_server.stdout
    healthy = [sys.executable, "-c", code, "doctor", "--engine", server.url]
    assert "wrong" not in subprocess.run(healthy, capture_output=True, text=True, check=True).stdout


def test_ctrl_c_hangs_up(project, server):
    path = _write("area.py")
    server.replies = {**server.replies, CHAT: [server.held(stream_start() + chat(GOOD[:9]))]}
    command = [sys.executable, "-m", "specedit.cli", "edit", path, "-m", "rename w", "--write", "--engine", server.url]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=heeding_ctrl_c)
    deadline = time.monotonic() + 20
    while not server.asked(CHAT):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=20)[1]
    assert process.returncode == 130
    assert "interrupted. Done: no file. Not done: area.py." in said
    assert path.read_text() == AREA
    assert server.closed.wait(5)
