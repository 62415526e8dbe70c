"""Each thing that the server can do, as an editor sees it: a real process, whose model follows a script."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from specedit.errors import EngineError
from tests.lsp.buffers import Buffers
from tests.lsp.harness import CAPABILITIES, Editor, applied, recorded, running, scripted
from tests.lsp.scripted_lsp import obeyed

QUICK = {"inline": {"debounceMs": 0}, "nextEdit": {"enabled": False}}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("project")


@pytest.fixture(scope="module")
def editor(place: Path) -> Iterator[Editor]:
    """An editor whose model completes with one word, and rewrites in capitals or as it is told."""
    with scripted(place, completions=["completed"]) as editor:
        editor.initialize(place, options=QUICK)
        yield editor


@pytest.fixture(scope="module")
def shared(editor: Editor) -> Buffers:
    return Buffers(editor)


@pytest.fixture
def buffers(shared: Buffers) -> Iterator[Buffers]:
    shared.edits.clear()
    shared.refuses = ""
    yield shared
    shared.refuses = ""


@pytest.fixture(scope="module")
def slow_place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("slow")


@pytest.fixture(scope="module")
def slow(slow_place: Path) -> Iterator[Buffers]:
    """The same with a model that takes ten seconds for an answer."""
    with scripted(slow_place, completions=["x" * 400], seconds_per_chunk=0.1, chunk_chars=4) as editor:
        editor.initialize(slow_place, options=QUICK)
        yield Buffers(editor)


def rewriting(buffers: Buffers, uri: str, instruction: str = "in capitals", **given: Any) -> str:
    """Begin a rewrite of all; gives its session."""
    arguments = {
        "textDocument": {"uri": uri, "version": buffers.version(uri)},
        "range": buffers.range(uri),
        "instruction": instruction,
        **given,
    }
    session: str = buffers.editor.command("specedit.rewrite", arguments)["session"]
    return session


def of_session(editor: Editor, method: str, session: str) -> list[Any]:
    return [params for params in editor.told(method) if params.get("session") == session]


def end_of(editor: Editor, session: str) -> Any:
    return editor.until(lambda: of_session(editor, "specedit/rewriteEnd", session))[0]


def rewritten(buffers: Buffers, text: str, instruction: str = "in capitals", **given: Any) -> str:
    """What an editor has after a rewrite of `text` that the server applies."""
    uri = buffers.open(text)
    before = len(buffers.edits)
    session = rewriting(buffers, uri, instruction, **given)
    end = end_of(buffers.editor, session)
    assert end["outcome"] == "ready", end
    buffers.editor.until(lambda: len(buffers.edits) > before and buffers.version(uri) > 1)
    hunks = of_session(buffers.editor, "specedit/hunk", session)
    latest = {hunk["id"]: hunk for hunk in hunks}
    assert applied(text, list(latest.values())) == buffers[uri], "the hunks are the edit"
    return buffers[uri]


# --- what it can do


def test_what_it_says_it_can_do(tmp_path: Path) -> None:
    with scripted(tmp_path) as editor:
        result = editor.initialize(tmp_path)
        assert editor.shutdown() == 0
    found = result["capabilities"]
    assert result["serverInfo"]["name"] == "specedit"
    assert found["textDocumentSync"]["openClose"] is True
    assert found["textDocumentSync"]["change"] == 2, "incremental"
    assert found["inlineCompletionProvider"] == {}
    assert found["codeActionProvider"]["codeActionKinds"] == ["refactor.rewrite", "quickfix"]
    assert found["workspace"]["workspaceFolders"] == {"supported": True, "changeNotifications": True}
    commands = (
        "rewrite acceptHunk rejectHunk acceptAll rejectAll regenerate cancelRewrite nextEdit restartEngine statistics"
    )
    assert {f"specedit.{name}" for name in commands.split()} < set(found["executeCommandProvider"]["commands"])


@pytest.mark.parametrize("arguments", [["-m", "specedit.cli", "lsp", "--stdio"], ["-m", "specedit_lsp"]])
def test_it_is_started_by_either_name(tmp_path: Path, arguments: list[str]) -> None:
    _, module, *rest = arguments
    with running(tmp_path, *rest, module=module) as editor:
        assert editor.initialize(tmp_path, options={"warmUp": False})["serverInfo"]["name"] == "specedit"
        assert editor.shutdown() == 0


def test_a_command_that_is_not_known_is_refused_with_a_fix(editor: Editor) -> None:
    with pytest.raises(EngineError, match=r"there is no command specedit\.future\. Update"):
        editor.command("specedit.future")


# --- positions


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_positions_in_the_units_of_the_editor(tmp_path: Path, encoding: str) -> None:
    can = {**CAPABILITIES, "general": {"positionEncodings": [encoding]}}
    with scripted(tmp_path, completions=["completed"]) as editor:
        found = editor.initialize(tmp_path, options=QUICK, capabilities=can)
        assert found["capabilities"]["positionEncoding"] == encoding
        buffers = Buffers(editor, encoding)
        uri = buffers.open("s = '😋é😋' + \nend\n")
        buffers.type(uri, "𝒙é = ", len("s = '😋é😋' + "))
        cursor = buffers.position(uri, len("s = '😋é😋' + 𝒙é = "))
        items = editor.complete_at(uri, cursor["line"], cursor["character"])
        assert [(item["insertText"], item["range"]) for item in items] == [
            ("completed", {"start": cursor, "end": cursor})
        ]
        assert recorded(tmp_path)[-1]["prompt"]["prefix"] == "s = '😋é😋' + 𝒙é = "

        uri = buffers.open("😋😋x = 1\n0\n0\ny😋 = é\n")
        start, end = buffers.text_range(uri, "x = 1\n")
        answer = {"textDocument": {"uri": uri}, "range": {"start": start, "end": end}, "instruction": "in capitals"}
        session = editor.command("specedit.rewrite", answer)["session"]
        assert end_of(editor, session)["outcome"] == "ready"
        editor.until(lambda: buffers.version(uri) > 1)
        assert buffers[uri] == "😋😋X = 1\n0\n0\ny😋 = é\n"
        session = rewriting(buffers, uri)
        editor.until(lambda: buffers.version(uri) > 2)
        assert buffers[uri] == "😋😋X = 1\n0\n0\nY😋 = É\n"


def test_an_editor_that_says_nothing_counts_in_utf_16(tmp_path: Path) -> None:
    with scripted(tmp_path, completions=["completed"]) as editor:
        assert (
            editor.initialize(tmp_path, options=QUICK, capabilities={})["capabilities"]["positionEncoding"] == "utf-16"
        )
        uri = editor.open("untitled:a", "😋😋x\n")
        for character, offset in ((2, 1), (3, 1), (4, 2), (5, 3), (99, 3)):
            editor.complete_at(uri, 0, character)
            prompt = recorded(tmp_path)[-1]["prompt"]
            assert prompt["prefix"] + prompt["typed"] == "😋😋x"[:offset], f"at {character}"


# --- inline completion


def test_a_completion_at_the_cursor(editor: Editor, buffers: Buffers) -> None:
    uri = buffers.open("x = \n")
    (item,) = editor.complete_at(uri, 0, 4)
    place = {"line": 0, "character": 4}
    assert (item["insertText"], item["range"]) == ("completed", {"start": place, "end": place})
    assert item["command"]["command"] == "specedit.didAcceptCompletion"


def test_typing_along_a_completion_asks_no_more(editor: Editor, buffers: Buffers, place: Path) -> None:
    uri = buffers.open("y = \n")
    assert editor.complete_at(uri, 0, 4)
    asked = len(recorded(place))
    for count, letter in enumerate("compl", 1):
        buffers.type(uri, letter, 3 + count)
        (item,) = editor.complete_at(uri, 0, 4 + count)
        start, end = item["range"]["start"]["character"], item["range"]["end"]["character"]
        assert buffers[uri][:start] + item["insertText"] + buffers[uri][end:] == "y = completed\n"
    assert len(recorded(place)) == asked


def test_several_completions_where_the_user_asks(tmp_path: Path) -> None:
    with scripted(tmp_path, completions=["one", "two", "three"]) as editor:
        editor.initialize(tmp_path, options=QUICK)
        uri = editor.open("untitled:a", "x = \n")
        assert [item["insertText"] for item in editor.complete_at(uri, 0, 4, invoked=True)] == ["one", "two", "three"]


def test_the_selected_item_of_the_editors_own_list_is_continued(editor: Editor, buffers: Buffers, place: Path) -> None:
    uri = buffers.open("x = os.pa\n")
    start, end = buffers.text_range(uri, "pa")
    selected = {"range": {"start": start, "end": end}, "text": "path"}
    (item,) = editor.complete_at(uri, 0, 9, selected=selected)
    prompt = recorded(place)[-1]["prompt"]
    assert (prompt["prefix"] + prompt["typed"]).endswith("os.path")
    assert item["insertText"].startswith("path")
    assert item["range"]["start"] == start


def test_what_becomes_of_completions_is_counted(editor: Editor, buffers: Buffers) -> None:
    before = editor.command("specedit.statistics")["inline"]
    uri = buffers.open("counted = \n")
    (item,) = editor.complete_at(uri, 0, 10)
    editor.notify("textDocument/didShowCompletion", {"item": item})
    editor.command(item["command"]["command"], *item["command"]["arguments"])
    uri = buffers.open("counted too = \n")
    (item,) = editor.complete_at(uri, 0, 14)
    editor.notify("textDocument/didShowCompletion", {"item": item})
    editor.notify("textDocument/didPartiallyAcceptCompletion", {"item": item, "acceptedLength": 4})
    buffers.close(uri)
    report = editor.command("specedit.statistics")
    after = report["inline"]
    changes = {name: after[name] - before[name] for name in ("shown", "accepted", "acceptedChars", "answers")}
    assert changes == {"shown": 2, "accepted": 2, "acceptedChars": len("completed") + 4, "answers": 2}
    assert "accepted" in report["summary"]


def test_cancelling_a_completion_stops_the_model(slow: Buffers, slow_place: Path) -> None:
    uri = slow.open("x = \n")
    asked = len(recorded(slow_place))
    position = {"line": 0, "character": 4}
    params = {"textDocument": {"uri": uri}, "position": position, "context": {"triggerKind": 2}}
    request = slow.editor.send("textDocument/inlineCompletion", params)
    slow.editor.until(lambda: len(recorded(slow_place)) > asked)
    slow.editor.cancel(request)
    assert slow.editor.response(request)["error"]["code"] == -32800
    number = recorded(slow_place)[-1]["number"]
    assert ending(slow, slow_place, "completion", number)["chunks"] <= 3


def test_typing_fast_piles_up_no_work(slow: Buffers, slow_place: Path) -> None:
    uri = slow.open("x = \n")
    asked = len(recorded(slow_place))
    requests = []
    for count in range(200):
        slow.type(uri, "ab "[count % 3], 4 + count)
        params = {
            "textDocument": {"uri": uri},
            "position": {"line": 0, "character": 5 + count},
            "context": {"triggerKind": 2},
        }
        requests.append(slow.editor.send("textDocument/inlineCompletion", params))
    for request in requests[:-1]:
        assert slow.editor.response(request)["result"] == {"items": []}
    slow.editor.cancel(requests[-1])
    slow.editor.response(requests[-1])
    assert len(recorded(slow_place)) - asked <= 20


def ending(buffers: Buffers, place: Path, kind: str, number: int) -> Any:
    """How the model's answer of that number ended."""

    def found() -> Any:
        return next((one for one in recorded(place, "ended") if (one["kind"], one["number"]) == (kind, number)), None)

    return buffers.editor.until(found)


# --- rewriting


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("alpha\r\n0\r\n0\r\nbeta\r\n", id="CRLF"),
        pytest.param("alpha\r\n0\n0\rbeta\r\n0\ngamma\rdelta", id="mixed"),
        pytest.param("alpha\n0\n0\nbeta", id="no line end at the end"),
        pytest.param("alpha\n\n\n", id="several at the end"),
        pytest.param("0\x0c1\n0\n0\nbeta\n", id="form feed"),
        pytest.param("0\u20281 \x85 \u2029\n0\n0\nbeta \x1c\n", id="what only Unicode calls a line end"),
        pytest.param("😋 alpha 😋\n0\n0\n😋beta", id="astral"),
        pytest.param("\talpha\n0\n\t\tbeta\n", id="tabs"),
        pytest.param("alpha", id="one line"),
    ],
)
def test_a_rewrite_changes_the_letters_and_no_other_byte(buffers: Buffers, text: str) -> None:
    assert rewritten(buffers, text) == text.upper()


@pytest.mark.parametrize(
    ("text", "answer", "expected"),
    [
        ("a\nb\n", "a\nc", "a\nc\n"),
        ("a\nb", "c\nb\n", "c\nb"),
        ("a\n\n\n", "c", "c\n\n\n"),
        ("f()\n}", "g()\n}\n", "g()\n}"),
        ("f()\n}", "f()\n];\n", "f()\n];"),
        ("a\r\nb\nc\rd\ne", "a\nb\nc\nd\nf", "a\r\nb\nc\rd\nf"),
        ("a\r\nb\r\n", "a\nnew\nb\n", "a\r\nnew\r\nb\r\n"),
    ],
)
def test_line_ends_stay_whatever_the_model_writes(buffers: Buffers, text: str, answer: str, expected: str) -> None:
    assert rewritten(buffers, text, obeyed(answer)) == expected


def test_one_line_of_a_hundred_with_crlf_is_one_hunk(editor: Editor, buffers: Buffers) -> None:
    lines = [f"line {number}" for number in range(100)]
    uri = buffers.open("".join(f"{line}\r\n" for line in lines))
    session = rewriting(buffers, uri, obeyed("\n".join([*lines[:50], "changed", *lines[51:]])), apply="client")
    assert end_of(editor, session)["outcome"] == "ready"
    (hunk,) = of_session(editor, "specedit/hunk", session)
    assert (hunk["oldText"], hunk["newText"]) == ("line 50\r\n", "changed\r\n")
    assert (hunk["range"]["start"]["line"], hunk["range"]["end"]["line"]) == (50, 51)


def test_an_answer_that_changes_nothing_is_said_and_edits_nothing(editor: Editor, buffers: Buffers) -> None:
    uri = buffers.open("0\r\n1\r\n")
    end = end_of(editor, rewriting(buffers, uri))
    assert (end["outcome"], end["reason"]) == ("refused", "the model changed nothing")
    assert end["fix"]
    assert "--" not in end["fix"], "there are no flags in an editor"
    editor.until(lambda: any("the model changed nothing" in message for message in editor.messages))
    assert (buffers.edits, buffers[uri]) == ([], "0\r\n1\r\n")


def test_the_edit_has_a_version_a_label_and_asks_first_where_the_user_wants_that(tmp_path: Path) -> None:
    with scripted(tmp_path) as editor:
        editor.initialize(tmp_path, options={**QUICK, "rewrite": {"confirm": True}})
        buffers = Buffers(editor)
        rewritten(buffers, "alpha\n")
    (edit,) = buffers.edits
    assert edit["label"] == "specedit: in capitals"
    (change,) = edit["edit"]["documentChanges"]
    assert change["textDocument"]["version"] == 1
    assert {each["annotationId"] for each in change["edits"]} == {"specedit"}
    assert edit["edit"]["changeAnnotations"]["specedit"]["needsConfirmation"] is True


def test_an_editor_that_does_not_apply_is_not_believed_to_have(editor: Editor, buffers: Buffers) -> None:
    buffers.refuses = "the buffer is read-only"
    uri = buffers.open("alpha\n")
    end_of(editor, rewriting(buffers, uri))
    editor.until(lambda: any("the buffer is read-only" in message for message in editor.messages))
    assert editor.command("specedit.statistics")["rewrite"]["shown"] > 0


def test_progress_is_shown_with_percentages_and_can_be_cancelled(slow: Buffers, slow_place: Path) -> None:
    editor, uri = slow.editor, slow.open("alpha beta\n" * 30)
    progress_before = len(editor.told("$/progress"))
    session = rewriting(slow, uri)
    created = editor.until(lambda: editor.asked("window/workDoneProgress/create"))[-1]

    def reports() -> list[Any]:
        told = [params["value"] for params in editor.told("$/progress")[progress_before:]]
        return [value for value in told if value["kind"] == "report"]

    editor.until(lambda: len(reports()) >= 3)
    editor.notify("window/workDoneProgress/cancel", {"token": created["token"]})
    end = end_of(editor, session)
    assert end["outcome"] == "cancelled"
    told = [params for params in editor.told("$/progress")[progress_before:] if params["token"] == created["token"]]
    begin, *middle, last = [params["value"] for params in told]
    assert (begin["kind"], begin["cancellable"], begin["percentage"]) == ("begin", True, 0)
    percentages = [value["percentage"] for value in middle]
    assert percentages == sorted(percentages)
    assert 0 < percentages[-1] < 100
    assert last["kind"] == "end"
    assert slow[uri] == "alpha beta\n" * 30
    assert is_stopped(slow, slow_place)


def is_stopped(buffers: Buffers, place: Path) -> bool:
    """Whether the last rewrite ended long before its answer did."""
    number = [one for one in recorded(place) if one["kind"] == "rewrite"][-1]["number"]
    found = ending(buffers, place, "rewrite", number)
    return found["finish"] != "stop" and found["chunks"] < 40


def test_hunks_come_while_the_model_writes_and_none_can_be_accepted_then(slow: Buffers, slow_place: Path) -> None:
    uri = slow.open("".join(f"alpha\n{number}\n{number}.0\n" for number in range(100)))
    session = rewriting(slow, uri, apply="review")
    hunk = slow.editor.until(lambda: of_session(slow.editor, "specedit/hunk", session))[0]
    assert (hunk["uri"], hunk["version"], hunk["oldText"], hunk["newText"]) == (uri, 1, "alpha\n", "ALPHA\n")
    with pytest.raises(EngineError, match="still writing"):
        slow.editor.command("specedit.acceptHunk", {"session": session, "id": hunk["id"]})
    assert slow.editor.command("specedit.cancelRewrite", {"session": session})["outcome"] == "cancelled"
    assert is_stopped(slow, slow_place)


def test_a_text_that_is_changed_meanwhile_is_not_rewritten(slow: Buffers, slow_place: Path) -> None:
    uri = slow.open("alpha beta\n" * 30)
    session = rewriting(slow, uri)
    slow.editor.until(lambda: of_session(slow.editor, "specedit/hunk", session) or _writes(slow_place))
    shown = len(slow.editor.messages)
    slow.replace(uri, 0, 5, "OLD")
    end = end_of(slow.editor, session)
    assert end["outcome"] == "stale"
    assert end["fix"] == "ask again for the text as it is now"
    slow.editor.until(lambda: slow.editor.messages[shown:])
    assert is_stopped(slow, slow_place)
    assert slow[uri] == "OLD beta\n" + "alpha beta\n" * 29
    with pytest.raises(EngineError, match="Ask for a new one"):
        slow.editor.command("specedit.acceptAll", {"session": session})


def _writes(place: Path) -> bool:
    return any(one["kind"] == "rewrite" for one in recorded(place))


def test_a_change_elsewhere_meanwhile_stays_and_so_does_the_rewrite(slow: Buffers) -> None:
    uri = slow.open("above\n\nalpha\n\nbelow\n")
    session = rewriting(slow, uri, range=slow.range(uri, 7, 13))
    slow.type(uri, "!", len("above\n\nalpha\n\nbelow"))
    slow.replace(uri, 0, 0, "more\n")
    end = end_of(slow.editor, session)
    assert end["outcome"] == "ready", end
    slow.editor.until(lambda: "ALPHA" in slow[uri])
    assert slow[uri] == "more\nabove\n\nALPHA\n\nbelow!\n"
    moved = of_session(slow.editor, "specedit/rebased", session)
    assert [each["lines"] for each in moved] == [0, 1]


def test_two_parts_are_rewritten_at_once(slow: Buffers) -> None:
    uri = slow.open("alpha\n" + "0\n" * 20 + "beta\n")
    sessions = [
        rewriting(slow, uri, obeyed("ALPHA\nand more\n"), range=slow.range(uri, 0, 6)),
        rewriting(slow, uri, range=slow.range(uri, 46)),
    ]
    assert [end_of(slow.editor, session)["outcome"] for session in sessions] == ["ready", "ready"]
    slow.editor.until(lambda: "ALPHA" in slow[uri] and "BETA" in slow[uri])
    assert slow[uri] == "ALPHA\nand more\n" + "0\n" * 20 + "BETA\n"


def test_a_newer_rewrite_of_the_same_lines_ends_the_older(slow: Buffers) -> None:
    uri = slow.open("alpha\n")
    older = rewriting(slow, uri)
    newer = rewriting(slow, uri, obeyed("newer\n"))
    assert end_of(slow.editor, older)["outcome"] == "cancelled"
    assert end_of(slow.editor, newer)["outcome"] == "ready"
    slow.editor.until(lambda: slow[uri] != "alpha\n")
    assert slow[uri] == "newer\n"


def test_more_rewrites_than_a_machine_can_bear_are_refused(slow: Buffers) -> None:
    uris = [slow.open("alpha beta\n" * 50) for _ in range(5)]
    sessions = [rewriting(slow, uri) for uri in uris[:4]]
    with pytest.raises(EngineError, match="Wait for one to end, or cancel one"):
        rewriting(slow, uris[4])
    for session in sessions:
        slow.editor.command("specedit.cancelRewrite", {"session": session})
    slow.editor.until(lambda: states(slow.editor)[-1] == "ready")


def test_a_document_that_is_closed_meanwhile_ends_the_rewrite(slow: Buffers, slow_place: Path) -> None:
    uri = slow.open("alpha beta\n" * 30)
    session = rewriting(slow, uri)
    slow.close(uri)
    assert end_of(slow.editor, session)["outcome"] == "cancelled"
    assert is_stopped(slow, slow_place)


def test_a_rewrite_for_an_older_text_is_refused(editor: Editor, buffers: Buffers) -> None:
    uri = buffers.open("alpha\n")
    buffers.type(uri, "x", 0)
    arguments = {"textDocument": {"uri": uri, "version": 1}, "range": buffers.range(uri), "instruction": "in capitals"}
    with pytest.raises(EngineError, match=r"the text has changed .*Ask again"):
        editor.command("specedit.rewrite", arguments)


def test_an_editor_that_applies_is_sent_no_edit(editor: Editor, buffers: Buffers) -> None:
    text = "alpha\n0\n0\nbeta\n"
    uri = buffers.open(text)
    before = editor.command("specedit.statistics")["rewrite"]
    session = rewriting(buffers, uri, apply="client")
    assert end_of(editor, session)["outcome"] == "ready"
    hunks = of_session(editor, "specedit/hunk", session)
    assert applied(text, hunks) == text.upper()
    editor.command("specedit.acceptHunk", {"session": session, "id": hunks[0]["id"]})
    editor.command("specedit.rejectHunk", {"session": session, "id": hunks[1]["id"]})
    after = editor.command("specedit.statistics")["rewrite"]
    assert {name: after[name] - before[name] for name in ("shown", "accepted", "rejected")} == {
        "shown": 2,
        "accepted": 1,
        "rejected": 1,
    }
    assert buffers.edits == []


REVIEWED = "one\n0\n0\ntwo\n0\n0\nthree\n"
ANSWERED = "ONE\n1\n2\n3\n4\n0\n0\nTWO\n0\n0\nthree, changed\n"


def reviewing(buffers: Buffers) -> tuple[str, str, list[int]]:
    """A rewrite of three hunks of which the first adds four lines: document, session and the hunks' numbers."""
    uri = buffers.open(REVIEWED)
    session = rewriting(buffers, uri, obeyed(ANSWERED), apply="review")
    assert end_of(buffers.editor, session)["outcome"] == "ready"
    numbers = [hunk["id"] for hunk in of_session(buffers.editor, "specedit/hunk", session)]
    assert len(numbers) == 3
    return uri, session, numbers


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_any_order_of_accepting_gives_the_same_text(buffers: Buffers, order: tuple[int, ...]) -> None:
    uri, session, numbers = reviewing(buffers)
    for which in order:
        buffers.editor.command("specedit.acceptHunk", {"session": session, "id": numbers[which]})
    assert buffers[uri] == ANSWERED
    assert len(buffers.edits) == 3


def test_accepting_faster_than_the_editor_applies_gives_the_same_text(buffers: Buffers) -> None:
    uri, session, numbers = reviewing(buffers)
    twice = [*numbers, *numbers]
    commands = [
        {"command": "specedit.acceptHunk", "arguments": [{"session": session, "id": number}]} for number in twice
    ]
    requests = [buffers.editor.send("workspace/executeCommand", command) for command in commands]
    assert all("result" in buffers.editor.response(request) for request in requests[:3])
    for request in requests[3:]:
        buffers.editor.response(request)
    assert buffers[uri] == ANSWERED


def test_a_rejected_hunk_stays_as_it_was(buffers: Buffers) -> None:
    uri, session, numbers = reviewing(buffers)
    buffers.editor.command("specedit.acceptHunk", {"session": session, "id": numbers[0]})
    buffers.editor.command("specedit.rejectHunk", {"session": session, "id": numbers[1]})
    found = buffers.editor.command("specedit.acceptAll", {"session": session})
    assert found["ids"] == [numbers[2]]
    assert buffers[uri] == ANSWERED.replace("TWO", "two")


def test_all_are_accepted_as_one_edit(buffers: Buffers) -> None:
    uri, session, numbers = reviewing(buffers)
    assert buffers.editor.command("specedit.acceptAll", {"session": session})["ids"] == numbers
    assert (buffers[uri], len(buffers.edits)) == (ANSWERED, 1)


def test_all_are_rejected(buffers: Buffers) -> None:
    uri, session, numbers = reviewing(buffers)
    assert buffers.editor.command("specedit.rejectAll", {"session": session})["ids"] == numbers
    assert (buffers[uri], buffers.edits) == (REVIEWED, [])


def test_an_accepted_hunk_that_is_undone_leaves_the_others_right(buffers: Buffers) -> None:
    uri, session, numbers = reviewing(buffers)
    buffers.editor.command("specedit.acceptHunk", {"session": session, "id": numbers[0]})
    buffers.replace(uri, 0, len("ONE\n1\n2\n3\n4\n"), "one\n")
    assert buffers[uri] == REVIEWED
    buffers.editor.command("specedit.acceptHunk", {"session": session, "id": numbers[2]})
    assert buffers[uri] == REVIEWED.replace("three", "three, changed")


def test_a_rewrite_is_made_anew(buffers: Buffers) -> None:
    uri, session, _ = reviewing(buffers)
    again = buffers.editor.command("specedit.regenerate", {"session": session})["session"]
    assert again != session
    assert end_of(buffers.editor, again)["outcome"] == "ready"
    buffers.editor.command("specedit.acceptAll", {"session": again})
    assert buffers[uri] == ANSWERED


# --- code actions


def actions(editor: Editor, uri: str, range_: Any, *diagnostics: Any, **context: Any) -> list[Any]:
    params = {"textDocument": {"uri": uri}, "range": range_, "context": {"diagnostics": list(diagnostics), **context}}
    found: list[Any] = editor.request("textDocument/codeAction", params)
    return found


def test_code_actions_are_tagged_and_their_commands_run(editor: Editor, buffers: Buffers, place: Path) -> None:
    uri = buffers.open("alpha = 0\n", language="python")
    problem = {"range": buffers.range(uri), "message": "alpha is in small letters", "severity": 2}
    found = actions(editor, uri, buffers.range(uri), problem)
    assert all(action["tags"] == [1] for action in found)
    assert {action["kind"] for action in found} == {"quickfix", "refactor.rewrite"}
    (fix,) = [action for action in found if action["kind"] == "quickfix"]
    assert fix["diagnostics"] == [problem]
    session = editor.command(fix["command"]["command"], *fix["command"]["arguments"])["session"]
    assert end_of(editor, session)["outcome"] == "ready"
    editor.until(lambda: buffers.version(uri) > 1)
    assert buffers[uri] == "ALPHA = 0\n"
    assert "alpha is in small letters" in recorded(place)[-1]["prompt"][-1]


def test_only_the_kinds_that_were_asked_for(editor: Editor, buffers: Buffers) -> None:
    uri = buffers.open("alpha = 0\n", language="python")
    assert {action["kind"] for action in actions(editor, uri, buffers.range(uri), only=["refactor"])} == {
        "refactor.rewrite"
    }
    assert actions(editor, uri, buffers.range(uri), only=["source"]) == []


def test_an_editor_without_tags_gets_none_and_one_from_the_future_is_understood(tmp_path: Path) -> None:
    text_document = {**CAPABILITIES["textDocument"], "codeAction": {**CAPABILITIES["textDocument"]["codeAction"]}}
    del text_document["codeAction"]["tagSupport"]
    with scripted(tmp_path) as editor:
        editor.initialize(tmp_path, options=QUICK, capabilities={**CAPABILITIES, "textDocument": text_document})
        uri = editor.open("untitled:a", "alpha = 0\n")
        found = actions(editor, uri, {"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 0}})
        assert found
        assert not any("tags" in action for action in found)
    text_document["codeAction"]["tagSupport"] = {"valueSet": [1, 999]}
    text_document["completion"] = {"completionItemKind": {"valueSet": [999]}}
    with scripted(tmp_path) as editor:
        editor.initialize(tmp_path, options=QUICK, capabilities={**CAPABILITIES, "textDocument": text_document})
        uri = editor.open("untitled:a", "alpha = 0\n")
        range_ = {"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 0}}
        problem = {"range": range_, "message": "new", "severity": 9, "tags": [9]}
        found = actions(editor, uri, range_, problem)
        assert found[0]["diagnostics"] == [problem]
        assert found[0]["tags"] == [1]


# --- the next edit


def test_a_rename_by_hand_is_proposed_at_the_next_place(tmp_path: Path) -> None:
    text = "count = 1\nprint(count)\nother = 2\nreturn count + other\n"
    with scripted(tmp_path) as editor:
        editor.initialize(tmp_path, options={"inline": {"debounceMs": 0}, "nextEdit": {"model": False}})
        buffers = Buffers(editor)
        uri = buffers.open(text, language="python")
        buffers.replace(uri, 0, 5, "total")
        proposal = editor.next("specedit/nextEdit")
        assert (proposal["uri"], proposal["version"], proposal["source"]) == (uri, 2, "repeat")
        after = applied(buffers[uri], [proposal])
        assert after == "total = 1\nprint(total)\nother = 2\nreturn count + other\n"

        (item,) = editor.complete_at(uri, 1, 6)
        assert applied(buffers[uri], [{"range": item["range"], "newText": item["insertText"]}]) == after

        here = {"textDocument": {"uri": uri}, "position": {"line": 0, "character": 5}}
        assert editor.command("specedit.nextEdit", here)["newText"] == proposal["newText"]

        start = buffers[uri].index("count")
        buffers.replace(uri, start, start + 5, "total")
        further = editor.until(
            lambda: [each for each in editor.told("specedit/nextEdit") if each["version"] == 3 and each["range"]]
        )[-1]
        assert applied(buffers[uri], [further]).endswith("return total + other\n")
        assert editor.command("specedit.statistics")["nextEdit"]["accepted"] == 1
        assert recorded(tmp_path) == [], "no model was asked"


def test_asking_for_the_next_edit_can_be_cancelled(slow: Buffers, slow_place: Path) -> None:
    before, after = "assert_equal(first(), 1)", "assert first() == 1"
    text = f"def test_a():\n    {before}\n\n\ndef test_b():\n    assert_equal(second(), 2)\n"
    uri = slow.open(text, language="python")
    start = text.index(before)
    slow.replace(uri, start, start + len(before), after)
    here = {"textDocument": {"uri": uri}, "position": slow.position(uri, start + len(after))}
    asked = len(recorded(slow_place))
    request = slow.editor.send("workspace/executeCommand", {"command": "specedit.nextEdit", "arguments": [here]})
    slow.editor.until(lambda: len(recorded(slow_place)) > asked)
    slow.editor.cancel(request)
    assert slow.editor.response(request)["error"]["code"] == -32800
    last = recorded(slow_place)[-1]
    assert ending(slow, slow_place, last["kind"], last["number"])["chunks"] <= 3


# --- the engine


def test_the_status_goes_from_loading_to_ready_and_busy(tmp_path: Path) -> None:
    with scripted(tmp_path, seconds_per_chunk=0.05) as editor:
        editor.initialize(tmp_path, options=QUICK)
        editor.until(lambda: states(editor)[-1:] == ["ready"])
        uri = editor.open("untitled:a", "x = \n")
        editor.complete_at(uri, 0, 4)
        editor.until(lambda: states(editor)[-2:] == ["busy", "ready"])
        editor.command("specedit.restartEngine")
        editor.until(lambda: states(editor)[-1] == "ready")
        assert editor.told("specedit/status")[-1]["model"] == "scripted"
        assert editor.complete_at(editor.open("untitled:b", "y = \n"), 0, 4)


def states(editor: Editor) -> list[str]:
    return [status["state"] for status in editor.told("specedit/status")]


# --- documents of all kinds


def test_names_with_blanks_and_escapes_are_two_files(editor: Editor, buffers: Buffers, place: Path) -> None:
    folder = place / "my proj"
    folder.mkdir()
    blank, escaped, accent = folder / "a b.py", folder / "a%20b.py", folder / "café#1.py"
    for path in (blank, escaped, accent):
        path.write_text("on disk\n")
        buffers.open(f"{path.name} = ", path.as_uri(), language="python")
    buffers.type(blank.as_uri(), "1 + ")
    buffers.type(escaped.as_uri(), "2 + ")
    assert editor.complete_at(blank.as_uri(), 0, len("a b.py = 1 + "))
    assert recorded(place)[-1]["prompt"]["prefix"].endswith("a b.py = 1 + ")
    assert editor.complete_at(str(escaped.as_uri()), 0, len("a%20b.py = 2 + "))
    assert recorded(place)[-1]["prompt"]["prefix"].endswith("a%20b.py = 2 + ")
    spelled = accent.as_uri().replace("%C3%A9", "%c3%a9")
    assert editor.complete_at(spelled, 0, len("café#1.py = "))
    for path in (blank, escaped, accent):
        buffers.close(path.as_uri())
        assert path.read_text() == "on disk\n"


def test_documents_that_are_no_files_never_reach_the_disk(editor: Editor, buffers: Buffers, place: Path) -> None:
    (place / "there.py").write_text("on disk\n")
    names = [f"{scheme}:{place}/there.py" for scheme in ("untitled", "vscode-remote", "git")]
    cells = [f"vscode-notebook-cell:{place}/there.py#{cell}" for cell in ("one", "two")]
    buffers.open("1 beta\n", cells[1], language="python")
    for name in [*names, cells[0]]:
        uri = buffers.open("0 alpha\n", name, language="python")
        assert editor.complete_at(uri, 0, 7)
        session = rewriting(buffers, uri, apply="client")
        assert end_of(editor, session)["outcome"] == "ready"
        assert "on disk" not in str(recorded(place)[-2:])
        buffers.close(uri)
    assert editor.complete_at(cells[1], 0, 6)
    buffers.close(cells[1])


@pytest.fixture
def kept_back(place: Path) -> Iterator[list[Path]]:
    (place / ".git").mkdir(exist_ok=True)
    (place / ".gitignore").write_text("ignored.py\n")
    paths = [place / ".env", place / "ignored.py"]
    for path in paths:
        path.write_text("PASSWORD = 'opensesame'\n")
    yield paths
    for path in [*paths, place / ".gitignore"]:
        path.unlink()


def test_secrets_and_ignored_files_are_never_shown_to_the_model(
    editor: Editor, buffers: Buffers, place: Path, kept_back: list[Path]
) -> None:
    for path in kept_back:
        uri = buffers.open("PASSWORD = 'opensesame'\nPASSWORD_2 = ", path.as_uri())
        assert editor.complete_at(uri, 1, 13) == []
        assert editor.complete_at(uri, 1, 13, invoked=True) == []
        with pytest.raises(EngineError, match=rf"{path.name} is not shown to a model: .*(secret|ignored)"):
            rewriting(buffers, uri)
        buffers.type(uri, "opensesame")
    user = place / "user.py"
    uri = buffers.open(
        "from ignored import PASSWORD\nimport ignored\nx = PASSWORD + ", user.as_uri(), language="python"
    )
    assert editor.complete_at(uri, 2, 15)
    end_of(editor, rewriting(buffers, uri, apply="client"))
    for path in [*kept_back, user]:
        buffers.close(path.as_uri())
    assert "opensesame" not in (place / "record.jsonl").read_text()
