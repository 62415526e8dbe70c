from __future__ import annotations

import asyncio
import random
import re
import threading
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from lsprotocol.types import (
    ApplyWorkspaceEditParams,
    ApplyWorkspaceEditResult,
    ClientCapabilities,
    DidChangeTextDocumentParams,
    MessageType,
    Position,
    Range,
    TextDocumentContentChangePartial,
    TextDocumentContentChangeWholeDocument,
    TextDocumentItem,
    VersionedTextDocumentIdentifier,
)

from specedit.edit.document import Span
from specedit.engine.api import Engine, GenerateRequest, TextChunk, Usage
from specedit.errors import EngineError, RefusedFileError, UsageError
from specedit_lsp.documents import Documents, TextChange
from specedit_lsp.options import OptionsStore
from specedit_lsp.rewrite import MOST_AT_ONCE, Rewrites
from specedit_lsp.statistics import Statistics
from tests.fakes import ScriptedEngine, fenced
from tests.lsp.fake_backend import FakeBackend
from tests.lsp.fake_client import FakeClient, capabilities
from tests.lsp.harness import applied

PATIENCE_SECONDS = 20.0
URI = "untitled:a.txt"
LINES = 12
#: A change that no rewrite makes.
ANY = TextChange(Span(0, 0), "", "x")
TEXT = "".join(f"line {number}\n" for number in range(1, LINES + 1))


def edited(text: str, *numbers: int) -> str:
    """`text` with those lines changed, each to two."""
    for number in numbers:
        text = text.replace(f"line {number}\n", f"new {number}\nmore {number}\n")
    return text


@dataclass
class SteppedEngine:
    """Gives the next piece of its answer when a test says so, and ends when it is cancelled."""

    pieces: list[str]
    requests: list[GenerateRequest] = field(default_factory=list)
    given: int = 0
    was_cancelled: bool = False
    steps: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def generate(self, request: GenerateRequest) -> Iterator[TextChunk]:
        self.requests.append(request)
        for piece in self.pieces:
            while not self.steps.acquire(timeout=0.005) and not request.cancel.cancelled:
                pass
            if request.cancel.cancelled:
                self.was_cancelled = True
                yield TextChunk("", Usage(), "cancelled")
                return
            self.given += 1
            yield TextChunk(piece, Usage(output_tokens=self.given, forwards=1))
        yield TextChunk("", Usage(output_tokens=self.given, forwards=1), "stop")

    def step(self, count: int = 1) -> None:
        self.steps.release(count)


class Desk:
    """An editor with a document, and the rewrites of it."""

    def __init__(
        self,
        engine: Engine,
        text: str = TEXT,
        uri: str = URI,
        *,
        can: ClientCapabilities | None = None,
        options: dict[str, Any] | None = None,
        arrival_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self.engine = engine
        self.client = FakeClient(can or capabilities(), on_edit=self.make)
        self.documents = Documents()
        self.backend = FakeBackend(engine)
        self.store = OptionsStore()
        assert self.store.initialize(options or {}, []) == []
        self.statistics = Statistics()
        self.rewrites = Rewrites(
            self.documents, self.backend, self.store, self.client, self.statistics, arrival_seconds
        )
        self.document = self.documents.open(TextDocumentItem(uri, "plaintext", 1, text))
        self.uri = uri
        self.edits: list[Any] = []

    # --- the editor

    def make(self, params: ApplyWorkspaceEditParams) -> ApplyWorkspaceEditResult:
        """Apply an edit as the specification says, and send what changed."""
        edits = edits_of(params)
        new_text = applied(self.document.text, edits)
        self.edits.append(edits)
        self.send(TextDocumentContentChangeWholeDocument(new_text))
        return ApplyWorkspaceEditResult(applied=True)

    def send(self, *changes: Any) -> None:
        """Send changes, as the server takes them."""
        identifier = VersionedTextDocumentIdentifier(self.document.version + 1, self.uri)
        made = self.documents.change(DidChangeTextDocumentParams(identifier, list(changes)))
        self.rewrites.document_changed(self.uri, made)

    def type(self, line: int, character: int, text: str) -> None:
        here = Position(line, character)
        self.send(TextDocumentContentChangePartial(Range(here, here), text))

    # --- asking

    def arguments(self, first: int = 0, last: int = LINES, **more: Any) -> dict[str, Any]:
        """To rewrite from the line `first` up to `last`, from 0."""
        return {
            "textDocument": {"uri": self.uri, "version": self.document.version},
            "range": {"start": {"line": first, "character": 0}, "end": {"line": last, "character": 0}},
            "instruction": "edit it",
            **more,
        }

    def start(self, *lines: int, **more: Any) -> str:
        return self.rewrites.start(self.arguments(*lines, **more))["session"]

    async def until(self, condition: Callable[[], Any]) -> Any:
        for _ in range(int(PATIENCE_SECONDS * 200)):
            if value := condition():
                return value
            await asyncio.sleep(0.005)
        raise AssertionError(f"it never came; so far: {self.client.notifications} {self.client.shown}")

    async def ended(self, session: str) -> dict[str, Any]:
        """The end of a rewrite, once nothing is under way any more."""
        end = await self.until(
            lambda: [each for each in self.told("specedit/rewriteEnd") if each["session"] == session]
        )
        await self.until(lambda: self.backend.work == [] and not self.is_ours("", ANY))
        await asyncio.sleep(0)
        assert len(end) == 1
        return end[0]

    def is_ours(self, text: str, change: TextChange, uri: str = "") -> bool:
        """Whether a change of the text is known as a rewrite's."""
        return self.rewrites.making(uri or self.uri, text, [change]) == [True]

    async def rewritten(self, *lines: int, **more: Any) -> dict[str, Any]:
        return await self.ended(self.start(*lines, **more))

    def told(self, method: str) -> list[dict[str, Any]]:
        return self.client.told(method)

    def hunks(self, session: str = "1") -> dict[int, dict[str, Any]]:
        """What the editor shows at the end: the last hunk of each id, without those taken back."""
        shown = {hunk["id"]: hunk for hunk in self.told("specedit/hunk") if hunk["session"] == session}
        gone = {each["id"] for each in self.told("specedit/hunkRemoved") if each["session"] == session}
        return {number: hunk for number, hunk in shown.items() if number not in gone}


def edits_of(params: ApplyWorkspaceEditParams) -> list[dict[str, Any]]:
    """The edits as JSON."""
    if params.edit.changes:
        [edits] = params.edit.changes.values()
    else:
        [document] = params.edit.document_changes
        edits = document.edits
    return [{"range": plain(edit.range), "newText": edit.new_text} for edit in edits]


def plain(range_: Range) -> dict[str, Any]:
    return {
        "start": {"line": range_.start.line, "character": range_.start.character},
        "end": {"line": range_.end.line, "character": range_.end.character},
    }


def run(work: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(work, 60)

    asyncio.run(bounded())


def answering(*answers: Any, **more: Any) -> ScriptedEngine:
    return ScriptedEngine([fenced(answer) if isinstance(answer, str) else answer for answer in answers], **more)


def stepped(answer: str) -> SteppedEngine:
    """A line a piece."""
    return SteppedEngine([f"{line}\n" for line in fenced(answer).split("\n")])


# --- from the command to the text


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("final", [True, False])
def test_a_rewrite_becomes_one_edit_of_the_text_and_no_more(end, final):
    text = (TEXT if final else TEXT[:-1]).replace("\n", end)
    new = edited(TEXT if final else f"{TEXT}", 2, 7).replace("line 12", "the last 😀")
    expected = (new if final else new[:-1]).replace("\n", end)

    async def work():
        desk = Desk(answering(new), text)
        end_told = await desk.rewritten()
        assert (end_told["outcome"], end_told["reason"], end_told["stats"]["hunks"]) == ("ready", "", 3)
        assert end_told["stats"]["outputTokens"] > 0
        assert desk.document.text == expected
        [edits] = desk.edits
        assert [edit["newText"] for edit in edits] == [
            f"new 2{end}more 2{end}",
            f"new 7{end}more 7{end}",
            f"the last 😀{end if final else ''}",
        ]
        assert edits == [{"range": hunk["range"], "newText": hunk["newText"]} for hunk in desk.hunks().values()]
        assert desk.client.messages == []

    run(work())


def test_hunks_of_every_kind_give_the_result_byte_for_byte_to_a_client_that_applies_them():
    async def work():
        new = "zero\n" + edited(TEXT, 5).replace("line 8\nline 9\n", "").replace("line 12\n", "line 12\nend\n")
        desk = Desk(answering(new))
        await desk.rewritten(apply="client")
        edits = [{"range": hunk["range"], "newText": hunk["newText"]} for hunk in desk.hunks().values()]
        assert applied(TEXT, edits) == new
        assert desk.client.edits == []
        assert desk.document.text == TEXT
        for hunk in desk.hunks().values():
            start, end = (hunk["range"][edge]["line"] for edge in ("start", "end"))
            assert hunk["oldText"] == "".join(TEXT.splitlines(True)[start:end])

    run(work())


def test_the_editor_is_told_at_once_which_part_is_rewritten():
    async def work():
        desk = Desk(answering(edited(TEXT, 2), edited(TEXT, 3)))
        arguments = {
            **desk.arguments(),
            "range": {"start": {"line": 1, "character": 2}, "end": {"line": 3, "character": 4}},
        }
        told = desk.rewrites.start(arguments)
        assert told == {
            "session": "1",
            "uri": URI,
            "version": 1,
            "range": {"start": {"line": 1, "character": 0}, "end": {"line": 4, "character": 0}},
            "label": "lines 2-4",
        }
        await desk.ended("1")
        assert await desk.rewrites.regenerate({"session": "1"}) == {**told, "session": "2"}

    run(work())


def test_hunks_come_while_the_model_writes_and_are_of_the_version_asked_for():
    async def work():
        desk = Desk(stepped(edited(TEXT, 2, 8)))
        session = desk.start()
        desk.engine.step(7)
        first = await desk.until(lambda: desk.told("specedit/hunk"))
        assert first == [
            {
                "session": session,
                "id": 1,
                "uri": URI,
                "version": 1,
                "range": {"start": {"line": 1, "character": 0}, "end": {"line": 2, "character": 0}},
                "oldText": "line 2\n",
                "newText": "new 2\nmore 2\n",
            }
        ]
        assert desk.told("specedit/rewriteEnd") == []
        assert desk.client.edits == []
        desk.engine.step(100)
        assert (await desk.ended(session))["outcome"] == "ready"
        second = desk.told("specedit/hunk")[1]
        assert second["range"] == {"start": {"line": 7, "character": 0}, "end": {"line": 8, "character": 0}}
        assert second["version"] == 1

    run(work())


def test_what_was_shown_and_is_not_in_the_result_is_taken_back():
    async def work():
        old, new = "e\na\nh\nh\nf\nd\n", "h\nh\nf\nh\nf\n"
        desk = Desk(answering(new, chunk_chars=2), old)
        assert (await desk.rewritten(0, 6, apply="client"))["stats"]["hunks"] == 2
        assert [hunk["id"] for hunk in desk.told("specedit/hunk")] == [1, 2, 3]
        assert desk.told("specedit/hunkRemoved") == [{"session": "1", "id": 2}]
        hunks = [{"range": hunk["range"], "newText": hunk["newText"]} for hunk in desk.hunks().values()]
        assert applied(old, hunks) == new
        with pytest.raises(UsageError, match="no change 2"):
            await desk.rewrites.accept_hunk({"session": "1", "id": 2})

    run(work())


def test_progress_goes_up_and_ends():
    async def work():
        desk = Desk(answering(edited(TEXT, 2), chunk_chars=30, seconds_per_chunk=0.06))
        await desk.rewritten(workDoneToken="mine")
        told = [params["value"] for params in desk.told("$/progress") if params["token"] == "mine"]
        assert told[0] == {"kind": "begin", "title": "Rewriting the whole file", "cancellable": True, "percentage": 0}
        percents = [value["percentage"] for value in told[1:-1]]
        assert percents
        assert percents == sorted(percents)
        assert percents[-1] <= 99
        assert told[-1] == {"kind": "end", "message": "ready"}
        assert desk.client.requests == []

    run(work())


def test_the_edit_carries_version_label_and_what_the_editor_understands():
    async def work():
        desk = Desk(answering(edited(TEXT, 2)), options={"rewrite": {"confirm": True}})
        await desk.rewritten(instruction="Rename  this\nto that " + "x" * 80)
        [params] = desk.client.edits
        [change] = params.edit.document_changes
        assert (change.text_document.uri, change.text_document.version) == (URI, 1)
        assert params.label.startswith("specedit: Rename this to that")
        assert len(params.label) < 75
        assert params.metadata.is_refactoring
        [(name, annotation)] = params.edit.change_annotations.items()
        assert annotation.needs_confirmation
        assert [edit.annotation_id for edit in change.edits] == [name]

    run(work())


def test_an_editor_that_can_do_little_gets_a_plain_edit():
    async def work():
        can = capabilities()
        can.workspace.workspace_edit = None
        desk = Desk(answering(edited(TEXT, 2)), can=can, options={"rewrite": {"confirm": True}})
        await desk.rewritten()
        [params] = desk.client.edits
        assert list(params.edit.changes) == [URI]
        assert (params.edit.document_changes, params.edit.change_annotations, params.metadata) == (None, None, None)
        assert desk.document.text == edited(TEXT, 2)

    run(work())


def test_an_edit_that_the_editor_does_not_apply_is_told():
    async def work():
        desk = Desk(answering(edited(TEXT, 2)))
        desk.client.on_edit = lambda _: ApplyWorkspaceEditResult(applied=False, failure_reason="the buffer moved on")
        await desk.rewritten()
        [message] = await desk.until(lambda: desk.client.messages)
        assert "did not apply" in message
        assert "the buffer moved on" in message
        assert "Ask again" in message

    run(work())


def test_an_editor_that_drops_an_edit_and_says_it_was_applied_is_found_out():
    async def work():
        desk = Desk(answering(edited(TEXT, 2)), arrival_seconds=0.05)
        desk.client.on_edit = lambda _: ApplyWorkspaceEditResult(applied=True)
        desk.start()
        [message] = await desk.until(lambda: desk.client.messages)
        assert "its text is the same as before" in message
        assert desk.statistics.report()["rewrite"]["accepted"] == 0

    run(work())


def test_a_hunk_that_a_plugin_makes_is_known_as_ours_however_the_editor_tells_it():
    async def work():
        text = "a\n    b\n    c\nd\n"
        desk = Desk(answering("a\n    new\n    b\n    c\nD\n"), text)
        await desk.rewritten(apply="client")
        inserted = TextChange(Span(2, 2), "", "    new\n")
        # Told as the least that changes, the line after it begins alike.
        inserted_within = TextChange(Span(6, 6), "", "new\n    ")
        changed = TextChange(Span(14, 15), "d", "D")
        assert all(desk.is_ours(text, change) for change in (inserted, inserted_within, changed))
        assert not desk.is_ours(text, TextChange(Span(14, 15), "d", "e"))
        assert not desk.is_ours(text, TextChange(Span(0, 1), "a", "D"))
        both = [changed, inserted]
        assert desk.rewrites.making(URI, text, both) == [True, True]
        typed = TextChange(Span(0, 0), "", "# ")
        after = TextChange(Span(16, 17), "d", "D")
        assert desk.rewrites.making(URI, text, [typed, after]) == [False, True]
        await desk.rewrites.reject_hunk({"session": "1", "id": 2})
        assert not desk.is_ours(text, changed)

    run(work())


def test_an_edit_is_known_as_ours_until_its_text_has_come():
    async def work():
        desk = Desk(answering(edited(TEXT, 2)))
        was_ours: list[bool] = []

        def later(params):
            async def soon():
                await asyncio.sleep(0.02)
                was_ours.append(desk.is_ours("", ANY, "UNTITLED:a.txt"))
                desk.make(params)

            tasks.append(asyncio.ensure_future(soon()))
            return ApplyWorkspaceEditResult(applied=True)

        tasks: list[Any] = []
        desk.client.on_edit = later
        await desk.rewritten()
        assert was_ours == [True]
        assert not desk.is_ours("", ANY)
        assert desk.client.messages == []

    run(work())


# --- what can't be asked


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param({"textDocument": {"uri": "untitled:b", "version": 1}}, "not open", id="no such document"),
        pytest.param({"textDocument": {"uri": URI, "version": 0}}, "the text has changed", id="another version"),
        pytest.param({"instruction": " \n"}, "no instruction", id="no instruction"),
        pytest.param({"range": None}, "Update the plugin", id="no range"),
        pytest.param({"apply": "both"}, "Update the plugin", id="an unknown way to apply"),
    ],
)
def test_what_is_wrong_with_a_request_is_said_at_once(change, message):
    async def work():
        desk = Desk(answering(TEXT))
        with pytest.raises(UsageError, match=message):
            desk.rewrites.start({**desk.arguments(), **change})
        assert desk.engine.requests == []
        assert desk.client.notifications == []

    run(work())


@pytest.mark.parametrize(
    ("uri", "text", "message"),
    [("untitled:.env", "KEY=1\n", "secret"), (URI, "a\0b\n", "binary")],
)
def test_secrets_and_binary_text_are_not_shown_to_the_model(uri, text, message):
    async def work():
        desk = Desk(answering(TEXT), text, uri)
        with pytest.raises(RefusedFileError, match=message):
            desk.start(0, 1)
        assert desk.engine.requests == []

    run(work())


def test_an_editor_that_takes_no_edits_is_told_so_unless_it_applies_by_itself():
    async def work():
        desk = Desk(answering(edited(TEXT, 2)), can=ClientCapabilities())
        with pytest.raises(UsageError, match="takes no edits"):
            desk.start()
        assert (await desk.rewritten(apply="client"))["outcome"] == "ready"

    run(work())


def test_no_more_than_a_few_are_under_way():
    async def work():
        desk = Desk(stepped(TEXT))
        sessions = [desk.start(number, number + 1) for number in range(MOST_AT_ONCE)]
        with pytest.raises(UsageError, match="Wait for one to end"):
            desk.start(MOST_AT_ONCE, MOST_AT_ONCE + 1)
        await desk.until(lambda: len(desk.engine.requests) == MOST_AT_ONCE)
        for session in sessions:
            await desk.rewrites.cancel({"session": session})
        await desk.until(lambda: desk.backend.work == [])
        desk.start(MOST_AT_ONCE, MOST_AT_ONCE + 1)
        desk.rewrites.close()

    run(work())


def test_a_request_without_a_version_is_for_the_text_as_it_is():
    async def work():
        desk = Desk(answering(edited(TEXT, 2)))
        assert (await desk.rewritten(textDocument={"uri": URI}))["outcome"] == "ready"

    run(work())


# --- what is refused


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        pytest.param(fenced(TEXT), "changed nothing", id="unchanged"),
        pytest.param("I can't do that.", "not a code block", id="talk"),
        pytest.param(fenced("line 1\n"), "vanish", id="deletions"),
        pytest.param(EngineError("the model has gone. Start it."), "the model has gone", id="no engine"),
        pytest.param(UsageError("temperature is wrong"), "temperature is wrong", id="wrong sampling"),
        pytest.param(ValueError("secret code"), "specedit itself failed", id="a fault of ours"),
    ],
)
def test_answers_that_can_not_be_applied_are_told_with_what_to_do(answer, reason):
    async def work():
        desk = Desk(ScriptedEngine([answer]), "".join(f"line {number}\n" for number in range(1, 40)))
        if isinstance(answer, str) and "```\nline 1\nline 2" in answer:
            desk.engine.answers = [fenced(desk.document.text)]
        end = await desk.rewritten(0, 39)
        assert end["outcome"] == "refused"
        assert reason in end["reason"]
        assert "--" not in end["reason"] + end["fix"]
        [(message, kind)] = desk.client.shown
        assert reason in message
        assert kind == MessageType.Warning
        assert desk.client.edits == []
        assert "secret code" not in str(desk.client.logged)
        assert desk.backend.work == []

    run(work())


def test_options_and_settings_rule_the_answer():
    async def work():
        options = {"rewrite": {"allowDeletions": True, "maxNewTokens": 77, "temperature": 0.5}}
        desk = Desk(answering("line 1\n"), "".join(f"line {number}\n" for number in range(1, 40)), options=options)
        assert (await desk.rewritten(0, 39))["outcome"] == "ready"
        [request] = desk.engine.requests
        assert (request.max_new_tokens, request.sampling.temperature, request.priority) == (77, 0.5, "rewrite")

    run(work())


def test_an_editor_that_applies_by_itself_is_not_shown_messages_beside_the_end():
    async def work():
        desk = Desk(answering(TEXT))
        assert (await desk.rewritten(apply="client"))["fix"]
        assert desk.client.messages == []

    run(work())


# --- cancelled, stale, rebased


@pytest.mark.parametrize("by", ["command", "progress", "close", "newer"])
def test_a_cancelled_rewrite_stops_the_model_and_changes_nothing(by):
    async def work():
        desk = Desk(stepped(edited(TEXT, 2)))
        session = desk.start(workDoneToken=5)
        desk.engine.step(3)
        await desk.until(lambda: desk.engine.given == 3)
        match by:
            case "command":
                assert (await desk.rewrites.cancel({"session": session}))["outcome"] == "cancelled"
            case "progress":
                desk.rewrites.progress_cancelled(5)
            case "close":
                desk.documents.close(URI)
                desk.rewrites.document_closed(URI)
            case "newer":
                desk.start(3, 5)
        [end] = [each for each in desk.told("specedit/rewriteEnd") if each["session"] == session]
        assert end["outcome"] == "cancelled"
        assert end["reason"]
        await desk.until(lambda: desk.engine.was_cancelled)
        assert desk.engine.given == 3
        if by != "newer":
            await desk.ended(session)
        desk.rewrites.close()
        assert desk.client.edits == []
        assert desk.document.text == TEXT

    run(work())


def test_rewrites_of_different_lines_go_on_side_by_side():
    async def work():
        desk = Desk(answering("new 1\n", "new 12\n", seconds_per_chunk=0.02))
        await asyncio.gather(desk.rewritten(0, 1, apply="client"), desk.rewritten(11, 12, apply="client"))
        assert {end["outcome"] for end in desk.told("specedit/rewriteEnd")} == {"ready"}

    run(work())


@pytest.mark.parametrize(
    ("line", "text"),
    [
        pytest.param(5, "x", id="in the part"),
        pytest.param(3, "x", id="on the line above"),
        pytest.param(4, "x\n", id="where it begins"),
        pytest.param(8, "x", id="on the line below"),
    ],
)
def test_a_change_at_or_beside_the_part_drops_the_rewrite_and_stops_the_model(line, text):
    async def work():
        desk = Desk(stepped("".join(f"new {number}\n" for number in range(5, 9))))
        session = desk.start(4, 8)
        desk.engine.step()
        await desk.until(lambda: desk.engine.given == 1)
        desk.type(line, 0, text)
        end = await desk.ended(session)
        assert end["outcome"] == "stale"
        assert "changed" in end["reason"]
        assert "ask again" in end["fix"]
        await desk.until(lambda: desk.engine.was_cancelled)
        assert len(desk.client.messages) == 1
        assert desk.client.edits == []

    run(work())


@pytest.mark.parametrize(
    ("line", "text", "lines"),
    [
        pytest.param(0, "a\nb\nc", 2, id="above"),
        pytest.param(2, "x", 0, id="two lines above"),
        pytest.param(9, "a\nb", 0, id="below"),
        pytest.param(12, "end", 0, id="at the end"),
    ],
)
def test_a_change_apart_from_the_part_moves_the_rewrite(line, text, lines):
    async def work():
        desk = Desk(stepped(edited("".join(f"line {number}\n" for number in range(5, 9)), 5, 8)))
        session = desk.start(4, 8)
        desk.engine.step(5)
        await desk.until(lambda: desk.told("specedit/hunk"))
        desk.type(line, 0, text)
        changed = desk.document.text
        desk.engine.step(100)
        assert (await desk.ended(session))["outcome"] == "ready"
        [rebased] = desk.told("specedit/rebased")
        assert rebased == {"session": session, "uri": URI, "version": 2, "lines": lines}
        first, second = desk.hunks(session).values()
        assert (first["version"], first["range"]["start"]["line"]) == (1, 4)
        assert (second["version"], second["range"]["start"]["line"]) == (2, 7 + lines)
        assert [params.edit.document_changes[0].text_document.version for params in desk.client.edits] == [2]
        assert desk.document.text == edited(changed, 5, 8)

    run(work())


def test_several_changes_in_one_message_are_looked_at_one_after_the_other():
    async def work():
        desk = Desk(stepped("new 6\n"))
        session = desk.start(5, 6)
        await desk.until(lambda: desk.engine.requests)
        top = TextDocumentContentChangePartial(Range(Position(0, 0), Position(0, 0)), "1\n2\n")
        desk.send(top, TextDocumentContentChangePartial(Range(Position(5, 0), Position(5, 0)), "x"))
        assert desk.told("specedit/rewriteEnd") == []
        # The line just above the part, which is four lines further down by then.
        desk.send(top, TextDocumentContentChangePartial(Range(Position(8, 0), Position(8, 0)), "x"))
        assert (await desk.ended(session))["outcome"] == "stale"

    run(work())


def test_a_text_that_was_opened_anew_is_another_one():
    async def work():
        desk = Desk(stepped(edited(TEXT, 2)))
        session = desk.start()
        desk.document = desk.documents.open(TextDocumentItem(URI, "plaintext", 1, TEXT))
        desk.engine.step(100)
        assert (await desk.ended(session))["outcome"] == "stale"
        assert desk.client.edits == []

    run(work())


# --- accepting and rejecting


def reviewed(desk: Desk) -> Coroutine[Any, Any, dict[str, Any]]:
    return desk.rewritten(apply="review")


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 2, 1), (2, 3, 1), (1, 3), (3, 1), (2,)])
def test_hunks_are_accepted_in_any_order(order):
    async def work():
        desk = Desk(answering(edited(TEXT, 2, 6, 10)))
        await reviewed(desk)
        assert desk.client.edits == []
        for number in order:
            done = await desk.rewrites.accept_hunk({"session": "1", "id": number})
            assert done == {"session": "1", "ids": [number]}
        assert desk.document.text == edited(TEXT, *((None, 2, 6, 10)[number] for number in order))
        assert desk.statistics.report()["rewrite"]["accepted"] == len(order)

    run(work())


def test_accepting_all_is_one_edit_of_what_is_left():
    async def work():
        desk = Desk(answering(edited(TEXT, 2, 6, 10)))
        await reviewed(desk)
        await desk.rewrites.accept_hunk({"session": "1", "id": 2})
        await desk.rewrites.reject_hunk({"session": "1", "id": 1})
        assert await desk.rewrites.accept_all({"session": "1"}) == {"session": "1", "ids": [3]}
        assert desk.document.text == edited(TEXT, 6, 10)
        assert len(desk.client.edits) == 2
        assert await desk.rewrites.accept_all({"session": "1"}) == {"session": "1", "ids": []}
        assert len(desk.client.edits) == 2

    run(work())


def test_undo_of_one_leaves_the_others_right():
    async def work():
        desk = Desk(answering(edited(TEXT, 2, 6, 10)))
        await reviewed(desk)
        await desk.rewrites.accept_hunk({"session": "1", "id": 1})
        desk.send(TextDocumentContentChangeWholeDocument(TEXT))
        await desk.rewrites.accept_hunk({"session": "1", "id": 3})
        assert desk.document.text == edited(TEXT, 10)
        await desk.rewrites.accept_hunk({"session": "1", "id": 1})
        assert desk.document.text == edited(TEXT, 2, 10)
        with pytest.raises(UsageError, match="has changed where"):
            await desk.rewrites.accept_hunk({"session": "1", "id": 1})

    run(work())


def test_typing_elsewhere_moves_hunks_and_typing_in_their_place_stops_them():
    async def work():
        desk = Desk(answering(edited(TEXT, 2, 6).replace("line 10\n", "before\nline 10\n")))
        await reviewed(desk)
        desk.type(0, 0, "a\nb\n")
        desk.type(7, 3, "x")
        desk.type(11, 0, "y")
        text = desk.document.text
        await desk.rewrites.accept_hunk({"session": "1", "id": 1})
        assert desk.document.text == edited(text, 2)
        for number in (2, 3):
            with pytest.raises(UsageError, match="Undo what was changed there"):
                await desk.rewrites.accept_hunk({"session": "1", "id": number})
        assert desk.document.text == edited(text, 2)

    run(work())


def test_hunks_accepted_at_once_are_made_one_after_the_other():
    async def work():
        desk = Desk(answering(edited(TEXT, 2, 6, 10)))
        await reviewed(desk)
        tasks: list[Any] = []

        def later(params):
            async def soon():
                await asyncio.sleep(0.01)
                desk.make(params)

            tasks.append(asyncio.ensure_future(soon()))
            return ApplyWorkspaceEditResult(applied=True)

        desk.client.on_edit = later
        accept = desk.rewrites.accept_hunk
        await asyncio.gather(*(accept({"session": "1", "id": number}) for number in (1, 2, 3)))
        assert desk.document.text == edited(TEXT, 2, 6, 10)
        assert [params.edit.document_changes[0].text_document.version for params in desk.client.edits] == [1, 2, 3]

    run(work())


def test_an_editor_that_applies_by_itself_only_reports():
    async def work():
        desk = Desk(answering(edited(TEXT, 2, 6, 10)))
        await desk.rewritten(apply="client")
        await desk.rewrites.accept_hunk({"session": "1", "id": 1})
        await desk.rewrites.accept_hunk({"session": "1", "id": 1})
        await desk.rewrites.reject_all({"session": "1"})
        assert desk.client.edits == []
        counted = desk.statistics.report()["rewrite"]
        assert (counted["shown"], counted["accepted"], counted["rejected"]) == (3, 1, 2)
        assert counted["acceptedChars"] == len("new 2\nmore 2\n")

    run(work())


def test_nothing_is_accepted_before_the_end_or_without_a_result():
    async def work():
        desk = Desk(stepped(edited(TEXT, 2)))
        session = desk.start(apply="review")
        desk.engine.step(8)
        await desk.until(lambda: desk.told("specedit/hunk"))
        with pytest.raises(UsageError, match="still writing"):
            await desk.rewrites.accept_hunk({"session": session, "id": 1})
        await desk.rewrites.cancel({"session": session})
        with pytest.raises(UsageError, match="no result"):
            await desk.rewrites.accept_all({"session": session})
        with pytest.raises(UsageError, match="no rewrite 99"):
            await desk.rewrites.reject_all({"session": "99"})
        assert desk.client.edits == []

    run(work())


def test_what_does_not_fit_the_session_is_said():
    async def work():
        desk = Desk(answering(edited(TEXT, 2)))
        await desk.rewritten()
        with pytest.raises(UsageError, match="applied as one edit"):
            await desk.rewrites.accept_hunk({"session": "1", "id": 1})
        desk.send(TextDocumentContentChangeWholeDocument(TEXT))
        await reviewed(desk)
        with pytest.raises(UsageError, match="no change 7"):
            await desk.rewrites.accept_hunk({"session": "2", "id": 7})
        await desk.rewrites.accept_hunk({"session": "2", "id": 1})
        with pytest.raises(UsageError, match="in the text already"):
            await desk.rewrites.reject_hunk({"session": "2", "id": 1})

    run(work())


# --- once more


def test_regenerating_asks_the_same_with_the_next_seed():
    async def work():
        desk = Desk(answering(edited(TEXT, 6), edited(TEXT, 7), edited(TEXT, 8)))
        await desk.rewritten(apply="client")
        second = (await desk.rewrites.regenerate({"session": "1"}))["session"]
        await desk.ended(second)
        third = (await desk.rewrites.regenerate({"session": second}))["session"]
        await desk.ended(third)
        requests = desk.engine.requests
        assert [request.seed for request in requests] == [0, 1, 2]
        assert [request.sampling.temperature for request in requests] == [0.0, 0.7, 0.7]
        assert len({request.messages for request in requests}) == 1
        assert [hunk["oldText"] for hunk in desk.hunks(third).values()] == ["line 8\n"]

    run(work())


def test_regenerating_ends_what_is_still_written():
    async def work():
        desk = Desk(stepped(edited(TEXT, 6)))
        session = desk.start()
        await desk.until(lambda: desk.engine.requests)
        again = (await desk.rewrites.regenerate({"session": session}))["session"]
        assert (await desk.until(lambda: desk.told("specedit/rewriteEnd")))[0]["outcome"] == "cancelled"
        assert again != session
        desk.rewrites.close()

    run(work())


def test_regenerating_is_for_the_part_as_it_was_wherever_it_is_now():
    async def work():
        desk = Desk(answering("new 5\n"))
        await desk.rewritten(4, 5)
        with pytest.raises(UsageError, match="has changed since"):
            await desk.rewrites.regenerate({"session": "1"})
        desk.send(TextDocumentContentChangeWholeDocument(TEXT))
        desk.type(0, 0, "first\n")
        again = (await desk.rewrites.regenerate({"session": "1"}))["session"]
        await desk.ended(again)
        assert desk.document.text == "first\n" + TEXT.replace("line 5", "new 5")

    run(work())


def test_only_the_last_rewrites_are_remembered():
    async def work():
        desk = Desk(answering(edited(TEXT, 2)))
        for _ in range(30):
            await desk.rewritten(apply="client")
        with pytest.raises(UsageError, match="too long ago"):
            await desk.rewrites.regenerate({"session": "1"})
        await desk.rewrites.accept_all({"session": "30"})

    run(work())


def test_a_cursor_in_a_function_means_the_function():
    async def work():
        code = "import os\n\n\ndef total(items):\n    return sum(items)\n\n\nx = 1\n"
        new = "def total(items):\n    return sum(items, 0)\n"
        desk = Desk(answering(new), code, "untitled:a.py")
        end = await desk.rewritten(4, 4)
        assert end["outcome"] == "ready"
        assert desk.document.text == code.replace("sum(items)", "sum(items, 0)")
        assert desk.told("$/progress")[0]["value"]["title"] == "Rewriting function total"

    run(work())


def test_what_is_not_selected_does_not_change():
    async def work():
        desk = Desk(answering("a = 9; b = 9\n"), "a = 1; b = 2\nc\n")
        where = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 6}}
        end = await desk.rewritten(range=where)
        assert (end["outcome"], end["reason"]) == ("refused", "the answer changes text outside the selection")

    run(work())


@pytest.mark.parametrize("text", ["", "\n", "  \n"])
def test_an_empty_text_gets_what_the_model_writes(text):
    async def work():
        desk = Desk(answering("a\nb\n"), text)
        assert (await desk.rewritten(0, 0))["outcome"] == "ready"
        assert desk.document.text.strip() == "a\nb"

    run(work())


# --- at random

ENDS = ("\n", "\r\n", "\r")


def random_lines(rng: random.Random, count: int) -> list[str]:
    return [rng.choice(("a", "b = 1", "  c", "", "é\x0c", "😀 d", "\u2028e", "f(x)")) for _ in range(count)]


def random_case(rng: random.Random) -> tuple[str, int, int, str]:
    """A text of any line ends, the lines to rewrite, and what the model writes."""
    lines = random_lines(rng, rng.randint(12, 40))
    ends = [rng.choice(ENDS) for _ in lines] if rng.random() < 0.5 else [rng.choice(ENDS)] * len(lines)
    first = rng.randrange(len(lines) - 6)
    last = len(lines) if rng.random() < 0.3 else rng.randint(first + 5, len(lines))
    new = ["start", *lines[first:last]]
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(new))
        new[at : at + rng.randint(0, 2)] = random_lines(rng, rng.randint(0, 3))
    text = "".join(line + end for line, end in zip(lines, ends, strict=True))
    return text if rng.random() < 0.7 else text.rstrip("\r\n"), first, last, "\n".join(new)


def offset_of(text: str, line: int) -> int:
    starts = [0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", text))]
    return starts[min(line, len(starts) - 1)] if line < len(starts) else len(text)


def test_hunks_give_what_the_server_applies_byte_for_byte_in_any_text():
    async def work():
        ready = 0
        for seed in range(60):
            rng = random.Random(seed)
            text, first, last, new = random_case(rng)
            engine = answering(new, chunk_chars=rng.randint(1, 40))
            allowing = {"rewrite": {"allowDeletions": True}}
            desk, other = (Desk(engine, text, options=allowing) for _ in range(2))
            end = await desk.rewritten(first, last, apply="server")
            assert (await other.rewritten(first, last, apply="client"))["outcome"] == end["outcome"]
            if end["outcome"] == "ready":
                ready += 1
                edits = [{"range": hunk["range"], "newText": hunk["newText"]} for hunk in other.hunks().values()]
                assert applied(text, edits).encode() == desk.document.text.encode()
                start, stop = offset_of(text, first), offset_of(text, last)
                assert desk.document.text.startswith(text[:start])
                assert desk.document.text.endswith(text[stop:])
            else:
                assert desk.document.text == text
        assert ready > 30

    run(work())


def test_changes_elsewhere_end_in_a_rewrite_of_the_same_lines_or_none():
    async def work():
        outcomes: list[str] = []
        for seed in range(60):
            rng = random.Random(seed)
            text, first, last, new = random_case(rng)
            allowing = {"rewrite": {"allowDeletions": True}}
            plain_desk = Desk(answering(new), text, options=allowing)
            is_ready = (await plain_desk.rewritten(first, last))["outcome"] == "ready"
            # All is typed before the model has written its last line.
            if not is_ready or new.count("\n") < 5:
                continue
            start, stop = offset_of(text, first), offset_of(text, last)
            before, after = text[:start], text[stop:]
            rewritten = plain_desk.document.text[len(before) : len(plain_desk.document.text) - len(after)]
            desk = Desk(stepped(new), text, options=allowing)
            session = desk.start(first, last)
            for _ in range(rng.randint(1, 4)):
                desk.engine.step()
                await asyncio.sleep(0.002)
                is_above = rng.random() < 0.5
                part = before if is_above else after
                low = rng.randrange(len(part) + 1)
                high = min(len(part), low + rng.randrange(3))
                put = rng.choice(("", "x", "\n", "y\r\n", "😀"))
                part = part[:low] + put + part[high:]
                before, after = (part, after) if is_above else (before, part)
                desk.send(TextDocumentContentChangeWholeDocument(before + text[start:stop] + after))
            desk.engine.step(1000)
            outcome = (await desk.ended(session))["outcome"]
            outcomes.append(outcome)
            assert desk.document.text == before + (rewritten if outcome == "ready" else text[start:stop]) + after
        assert outcomes.count("ready") > 5
        assert outcomes.count("stale") > 5
        assert set(outcomes) == {"ready", "stale"}

    run(work())
