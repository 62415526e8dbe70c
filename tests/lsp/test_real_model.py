"""Each capability once with a real model: a real server on either side of the language server."""

from __future__ import annotations

import ast
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from specedit.engine import discovery
from specedit.engine.discovery import ServerRecord
from tests.faults.serving import end_all, get, until
from tests.lsp.buffers import Buffers
from tests.lsp.harness import Editor, environment, running

pytestmark = pytest.mark.real

OPTIONS = {"model": "qwen2.5-coder-0.5b"}
PATIENCE_SECONDS = 300.0

TOTALS = """\
import math


def add_up(values):
    total = 0
    for value in values:
        if math.isnan(value):
            continue
        print("adding", value)
        total += value
    print("done")
    return total


def larger(one, other):
    return max(one, other)
"""

# Long enough to be in the middle of for a while.
CHECKS = "".join(
    f"""\
def check_{name}(value, errors):
    if value is None:
        errors.append("{name} is missing")
    elif not isinstance(value, str):
        errors.append("{name} is not a text")
    return errors


"""
    for name in ("street", "city", "country", "phone", "email", "website", "language", "currency")
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the model's server, which all tests share, leaves its record; it ends with them."""
    place = tmp_path_factory.mktemp("real")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment(place).items():
            patch.setenv(name, value)
        yield place
        end_all()


@pytest.fixture(scope="module")
def loading(place: Path) -> list[dict[str, Any]]:
    """What an editor was told while the model was started and loaded for the first of them."""
    with running(place) as editor:
        ready(editor, place)
        return editor.told("specedit/status")


@pytest.fixture
def editor(place: Path, loading: object) -> Iterator[Editor]:
    with running(place) as editor:
        ready(editor, place)
        yield editor


@pytest.fixture
def buffers(editor: Editor) -> Buffers:
    return Buffers(editor)


def ready(editor: Editor, place: Path) -> None:
    editor.initialize(place, options=OPTIONS)
    editor.until(lambda: states(editor)[-1:] == ["ready"], patience=PATIENCE_SECONDS)


def states(editor: Editor) -> list[str]:
    return [status["state"] for status in editor.told("specedit/status")]


def record() -> ServerRecord:
    (found,) = discovery.servers()
    return found


def counted(name: str) -> float:
    """What the model's server counts under a name, without labels."""
    found = re.search(rf"^{name} (\S+)$", get(record(), "/metrics").text, re.MULTILINE)
    assert found, name
    return float(found[1])


# --- completions


def completed(buffers: Buffers, uri: str, marked: str, *, language: str = "python", **context: Any) -> tuple[str, Any]:
    """The text with what is proposed at the mark, and the item."""
    item = proposed(buffers, uri, marked, language=language, **context)[0]
    return buffers.with_edits(uri, [{"range": item["range"], "newText": item["insertText"]}]), item


def proposed(buffers: Buffers, uri: str, marked: str, *, language: str = "python", **context: Any) -> list[Any]:
    before, after = marked.split("|")
    buffers.open(before + after, uri, language=language)
    cursor = buffers.position(uri, len(before))
    items = buffers.editor.complete_at(uri, cursor["line"], cursor["character"], **context)
    assert items, "nothing is proposed"
    return items


def run(code: str) -> dict[str, Any]:
    """What the code defines."""
    defined: dict[str, Any] = {}
    exec(code, defined)
    return defined


def test_loading_is_told_with_how_far_it_is(loading: list[dict[str, Any]]):
    states = [status["state"] for status in loading]
    assert states == ["loading"] * (len(states) - 1) + ["ready"]
    percents = [status["percent"] for status in loading if status["percent"] is not None]
    assert percents == sorted(set(percents))
    assert len(percents) >= 3
    assert loading[-1]["model"] == OPTIONS["model"]


def test_a_completion_is_shown_typed_along_and_accepted(editor: Editor, buffers: Buffers, place: Path):
    uri = (place / "area.py").as_uri()
    marked = "def area(width, height):\n    return |\n\n\nassert area(2, 3) == 6\n"
    text, item = completed(buffers, uri, marked)
    assert run(text)["area"](4, 5) == 20
    editor.notify("textDocument/didShowCompletion", {"item": item})

    start = marked.index("|")
    buffers.type(uri, item["insertText"][:2], start)
    (rest,) = editor.complete_at(uri, **buffers.position(uri, start + 2))
    assert buffers.with_edits(uri, [{"range": rest["range"], "newText": rest["insertText"]}]) == text
    editor.command(rest["command"]["command"], *rest["command"]["arguments"])
    counts = editor.command("specedit.statistics")["inline"]
    assert (counts["shown"], counts["accepted"], counts["rejected"]) == (1, 1, 0)
    assert counts["answers"] == 1, "the model was asked once"


def test_a_word_is_completed_from_its_middle(buffers: Buffers, place: Path):
    marked = "def average(values):\n    return su|\n"
    text, item = completed(buffers, (place / "average.py").as_uri(), marked)
    assert item["insertText"].startswith("m(")
    assert run(text)["average"]([1, 2, 6]) == 3


def test_a_bracket_that_is_closed_already_is_not_closed_again(buffers: Buffers, place: Path):
    marked = """\
def squares(numbers):
    result = []
    for number in numbers:
        result.append(|)
    return result
"""
    text, _ = completed(buffers, (place / "squares.py").as_uri(), marked)
    assert run(text)["squares"]([2, 3]) == [4, 9]


def test_what_another_open_file_defines_is_known(buffers: Buffers, place: Path):
    marked = "from shop import Basket\n\nbasket = Basket()\nbasket.put_|"
    (place / "shop.py").write_text("")
    buffers.open(
        "class Basket:\n    def put_into_cart(self, goods: str) -> None:\n        self.goods.append(goods)\n",
        (place / "shop.py").as_uri(),
        language="python",
    )
    _, item = completed(buffers, (place / "main.py").as_uri(), marked)
    assert item["insertText"].startswith("into_cart(")


def test_whoever_asks_is_given_several(buffers: Buffers, place: Path):
    marked = "def test_sort():\n    assert sort([3, 1, 2]) == [1, 2, 3]\n\n\ndef test_|\n"
    uri = (place / "test_sort.py").as_uri()
    items = proposed(buffers, uri, marked, invoked=True)
    texts = {buffers.with_edits(uri, [{"range": item["range"], "newText": item["insertText"]}]) for item in items}
    assert 2 <= len(texts) == len(items) <= 3
    assert all(len(run(text).keys() - {"__builtins__", "test_sort"}) == 1 for text in texts)


def test_a_body_has_the_line_ends_and_tabs_of_its_file(buffers: Buffers, place: Path):
    marked = """\
class Queue:
	def __init__(self, size):
		self.size = size
		self.items = []

	def put(self, item):
		if len(self.items) >= self.size:
			raise OverflowError("the queue is full")
		self.items.append(item)

	def get(self):
		|

	def __len__(self):
		return len(self.items)
""".replace("\n", "\r\n")
    text, item = completed(buffers, (place / "queue.py").as_uri(), marked)
    lines = item["insertText"].split("\r\n")
    assert len(lines) > 1
    assert not any("\n" in line or line.startswith(" ") for line in lines)
    queue = run(text)["Queue"](1)
    queue.put("a")
    assert queue.get() == "a"
    assert len(queue) == 0


# --- rewrites


def rewrite(buffers: Buffers, uri: str, instruction: str, symbol: str, *, apply: str = "server") -> str:
    """Ask for a rewrite with the cursor in the first line of what `symbol` is in; gives the session."""
    at = buffers[uri].index(symbol)
    document = {"uri": uri, "version": buffers.version(uri)}
    arguments = {"textDocument": document, "range": buffers.range(uri, at, at), "instruction": instruction}
    session: str = buffers.editor.command("specedit.rewrite", {**arguments, "apply": apply})["session"]
    return session


def ended(editor: Editor, session: str) -> Any:
    """The end of a rewrite, once it is told."""

    def end() -> Any:
        return next((end for end in editor.told("specedit/rewriteEnd") if end["session"] == session), None)

    return editor.until(end, patience=PATIENCE_SECONDS)


def told_hunks(editor: Editor, session: str) -> dict[int, Any]:
    """The changes of a rewrite as they were told last."""
    return {hunk["id"]: hunk for hunk in editor.told("specedit/hunk") if hunk["session"] == session}


def at_work(editor: Editor) -> None:
    """Wait until the model is in the middle of a rewrite's answer."""

    def reported() -> bool:
        values = [progress["value"] for progress in editor.told("$/progress")]
        return any(value["kind"] == "report" for value in values)

    editor.until(reported, patience=PATIENCE_SECONDS)
    assert not editor.told("specedit/rewriteEnd")


RENAME = "Rename the variable `total` to `result`."


def test_a_rewrite_streams_its_changes_and_is_one_edit(editor: Editor, buffers: Buffers, place: Path):
    uri = buffers.open(TOTALS, (place / "totals.py").as_uri(), language="python")
    session = rewrite(buffers, uri, RENAME, "def add_up")
    end = ended(editor, session)
    assert end["outcome"] == "ready", end
    editor.until(lambda: buffers.edits and buffers.version(uri) > 1)
    assert buffers[uri] == TOTALS.replace("total", "result")
    assert len(buffers.edits) == 1

    methods = [method for method, _ in editor.notifications]
    after_hunk = editor.notifications[methods.index("specedit/hunk") :]
    assert any(method == "$/progress" and given["value"]["kind"] == "report" for method, given in after_hunk)
    values = [progress["value"] for progress in editor.told("$/progress")]
    kinds = [value["kind"] for value in values]
    assert (kinds[0], set(kinds[1:-1]), kinds[-1]) == ("begin", {"report"}, "end")
    percents = [value["percentage"] for value in values[1:-1]]
    assert percents == sorted(percents)
    assert 0 < percents[-1] < 100
    assert {hunk["version"] for hunk in told_hunks(editor, session).values()} == {1}
    assert end["stats"]["forwards"] < end["stats"]["outputTokens"], "most of the answer is drafted"


def test_changes_are_accepted_and_rejected_one_by_one(editor: Editor, buffers: Buffers, place: Path):
    uri = buffers.open(TOTALS, (place / "review.py").as_uri(), language="python")
    session = rewrite(buffers, uri, RENAME, "def add_up", apply="review")
    assert ended(editor, session)["outcome"] == "ready"
    hunks = told_hunks(editor, session)
    assert len(hunks) >= 2
    assert buffers[uri] == TOTALS
    *others, last = hunks
    for number in others:
        editor.command("specedit.rejectHunk", {"session": session, "id": number})
    editor.command("specedit.acceptHunk", {"session": session, "id": last})
    assert buffers[uri] == TOTALS.replace(hunks[last]["oldText"], hunks[last]["newText"])
    counts = editor.command("specedit.statistics")["rewrite"]
    assert (counts["shown"], counts["accepted"], counts["rejected"]) == (len(hunks), 1, len(others))


def test_a_rewrite_can_be_had_anew(editor: Editor, buffers: Buffers, place: Path):
    uri = buffers.open(TOTALS, (place / "anew.py").as_uri(), language="python")
    first = rewrite(buffers, uri, RENAME, "def add_up", apply="review")
    assert ended(editor, first)["outcome"] == "ready"
    second = editor.command("specedit.regenerate", {"session": first})["session"]
    assert second != first
    assert ended(editor, second)["outcome"] == "ready"
    editor.command("specedit.acceptAll", {"session": second})
    assert run(buffers[uri])["add_up"]([1, float("nan"), 2]) == 3
    assert buffers[uri] != TOTALS


def test_a_code_action_adds_a_docstring(editor: Editor, buffers: Buffers, place: Path):
    uri = buffers.open(TOTALS, (place / "action.py").as_uri(), language="python")
    at = TOTALS.index("def add_up")
    params = {"textDocument": {"uri": uri}, "range": buffers.range(uri, at, at), "context": {"diagnostics": []}}
    actions = editor.request("textDocument/codeAction", params)
    (action,) = (action for action in actions if "docstring" in action["title"])
    editor.command(action["command"]["command"], *action["command"]["arguments"])
    editor.until(lambda: buffers.version(uri) > 1, patience=PATIENCE_SECONDS)
    functions = {node.name: node for node in ast.parse(buffers[uri]).body if isinstance(node, ast.FunctionDef)}
    assert ast.get_docstring(functions["add_up"])
    assert not ast.get_docstring(functions["larger"])
    assert run(buffers[uri])["add_up"]([1, float("nan"), 2]) == 3


# --- the next edit


def replace(buffers: Buffers, uri: str, old: str, new: str) -> None:
    """Type over the first `old`."""
    at = buffers[uri].index(old)
    buffers.replace(uri, at, at + len(old), new)


def next_edit(editor: Editor, version: int) -> Any:
    """What is proposed in the text of that version."""

    def proposal() -> Any:
        told = editor.told("specedit/nextEdit")
        return next((edit for edit in told if edit["range"] and edit["version"] == version), None)

    return editor.until(proposal, patience=PATIENCE_SECONDS)


def test_the_uses_of_a_renamed_parameter_follow(editor: Editor, buffers: Buffers, place: Path):
    text = "def label(colour):\n    if not colour:\n        return None\n    return colour.lower()\n"
    uri = buffers.open(text, (place / "label.py").as_uri(), language="python")
    replace(buffers, uri, "colour", "color")
    for _ in range(2):
        edit = next_edit(editor, buffers.version(uri))
        assert edit["source"] == "repeat"
        accepted = buffers.with_edits(uri, [edit])
        replace(buffers, uri, "colour", "color")
        assert buffers[uri] == accepted
    assert buffers[uri] == text.replace("colour", "color")
    assert editor.command("specedit.statistics")["nextEdit"]["answers"] == 0


def test_the_model_makes_the_same_change_elsewhere(editor: Editor, buffers: Buffers, place: Path):
    old, new = "with open(path) as file:", 'with open(path, encoding="utf-8") as file:'
    text = "import os\n" + "".join(
        f"""

def read_{name}(root):
    path = os.path.join(root, "{name}.txt")
    {old}
        return file.read()
"""
        for name in ("config", "notes")
    )
    uri = buffers.open(text, (place / "read.py").as_uri(), language="python")
    replace(buffers, uri, old, new)
    edit = next_edit(editor, buffers.version(uri))
    assert edit["source"] == "model"
    assert buffers.with_edits(uri, [edit]) == text.replace(old, new)
    cursor = buffers.position(uri, buffers[uri].rindex("open(path"))
    assert editor.command("specedit.nextEdit", {"textDocument": {"uri": uri}, "position": cursor}) == edit


# --- what goes on in the model's server


UPPER = "Write every message in upper case."


def test_a_cancelled_rewrite_stops_the_model_within_a_step(editor: Editor, buffers: Buffers, place: Path):
    uri = buffers.open(CHECKS, (place / "cancelled.py").as_uri(), language="python")
    asked = {"textDocument": {"uri": uri, "version": 1}, "range": buffers.range(uri), "instruction": UPPER}
    session = editor.command("specedit.rewrite", asked)["session"]
    at_work(editor)
    token = editor.told("$/progress")[0]["token"]
    editor.notify("window/workDoneProgress/cancel", {"token": token})
    assert ended(editor, session)["outcome"] == "cancelled"
    steps = counted("specedit_steps_total")
    until(lambda: counted("specedit_running") == 0)
    assert counted("specedit_steps_total") - steps <= 2
    counts = editor.command("specedit.statistics")["rewrite"]
    assert counts["answers"] == 1
    assert 0 < counts["outputTokens"] < len(CHECKS) / 6, "less than half of the answer"
    assert buffers[uri] == CHECKS
    assert editor.until(lambda: states(editor)[-1:] == ["ready"])


def test_restarting_ends_the_server_and_starts_one_anew(editor: Editor, buffers: Buffers, place: Path):
    old = record().pid
    editor.command("specedit.restartEngine", patience=PATIENCE_SECONDS)
    assert record().pid != old
    with pytest.raises(ProcessLookupError):
        os.kill(old, 0)
    editor.until(lambda: states(editor)[-1:] == ["ready"])
    assert "loading" in states(editor)[states(editor).index("ready") :]
    text, _ = completed(buffers, (place / "anew.py").as_uri(), "def area(width, height):\n    return |\n")
    assert run(text)["area"](4, 5) == 20


def test_a_server_that_is_killed_is_told_and_the_next_request_has_another(
    editor: Editor, buffers: Buffers, place: Path
):
    uri = buffers.open(CHECKS, (place / "killed.py").as_uri(), language="python")
    asked = {"textDocument": {"uri": uri, "version": 1}, "range": buffers.range(uri), "instruction": UPPER}
    session = editor.command("specedit.rewrite", asked)["session"]
    at_work(editor)
    killed = record().pid
    os.kill(killed, signal.SIGKILL)
    end = ended(editor, session)
    assert end["outcome"] == "refused"
    assert end["reason"]
    editor.until(lambda: any(end["reason"] in message for message in editor.messages))
    editor.until(lambda: states(editor)[-1:] == ["error"])
    assert buffers[uri] == CHECKS

    other = buffers.open(TOTALS, (place / "again.py").as_uri(), language="python")
    session = rewrite(buffers, other, RENAME, "def add_up")
    assert ended(editor, session)["outcome"] == "ready"
    assert record().pid != killed
    editor.until(lambda: buffers[other] == TOTALS.replace("total", "result"))
    assert editor.until(lambda: states(editor)[-1:] == ["ready"])
