from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from lsprotocol.types import (
    DidChangeTextDocumentParams,
    InlineCompletionContext,
    InlineCompletionItem,
    InlineCompletionParams,
    InlineCompletionTriggerKind,
    Position,
    Range,
    SelectedCompletionInfo,
    TextDocumentContentChangePartial,
    TextDocumentIdentifier,
    TextDocumentItem,
    VersionedTextDocumentIdentifier,
)

from specedit.edit.document import Document, Span
from specedit.edit.next_edit import NextEdit
from specedit.engine.api import GenerateRequest, TextChunk, Usage
from specedit.errors import FimUnsupportedError, UnreachableError
from specedit_lsp.documents import Documents, OpenDocument
from specedit_lsp.inline import InlineCompletions
from specedit_lsp.options import OptionsStore
from specedit_lsp.statistics import Statistics
from tests.fakes import ScriptedEngine
from tests.lsp.fake_backend import FakeBackend
from tests.lsp.fake_client import FakeClient

URI = "untitled:a.py"
PATIENCE_SECONDS = 20.0

Answer = str | Exception | Callable[[GenerateRequest], str]


@dataclass
class HeldEngine:
    """An engine that answers only once `release` is set, or ends when it is cancelled, unless it is deaf to that."""

    answer: str = "compute(1)"
    is_deaf: bool = False
    requests: list[GenerateRequest] = field(default_factory=list)
    ended: int = 0
    release: threading.Event = field(default_factory=threading.Event)

    def generate(self, request: GenerateRequest) -> Iterator[TextChunk]:
        self.requests.append(request)
        if not self.is_deaf:
            request.cancel.on_cancel(self.release.set)
        assert self.release.wait(PATIENCE_SECONDS)
        if not self.is_deaf:
            self.release.clear()
        self.ended += 1
        if request.cancel.cancelled and not self.is_deaf:
            yield TextChunk("", Usage(), "cancelled")
            return
        yield TextChunk(self.answer, Usage(output_tokens=4, forwards=2))
        yield TextChunk("", Usage(output_tokens=4, forwards=2), "stop")

    @property
    def under_way(self) -> int:
        return len(self.requests) - self.ended


@dataclass
class OpenFiles:
    """Context: the other documents that are open."""

    documents: list[Document]
    threads: list[threading.Thread] = field(default_factory=list)
    root: Path | None = None

    def open_documents(self) -> list[Document]:
        self.threads.append(threading.current_thread())
        return self.documents

    def read(self, path: Path) -> Document | None:
        return None

    def recent(self) -> tuple[()]:
        return ()

    def list_files(self, directory: Path) -> list[Path]:
        return []


@dataclass
class FakeNextEdits:
    """Proposes `edit` wherever the cursor is."""

    edit: NextEdit | None = None

    def at(self, uri: str, offset: int) -> NextEdit | None:
        return self.edit


class Desk:
    """An editor's view of inline completion: one document after another, typed into and asked about."""

    def __init__(self, *answers: Answer, engine: Any = None, options: dict[str, Any] | None = None) -> None:
        self.documents = Documents()
        self.engine = engine or ScriptedEngine(answers or ["compute(1)"])
        self.backend = FakeBackend(self.engine)
        self.options = OptionsStore()
        assert not self.options.initialize({"inline": {"debounceMs": 0, **(options or {})}}, [])
        self.client = FakeClient()
        self.statistics = Statistics()
        self.files = OpenFiles([])
        self.next_edits = FakeNextEdits()
        self.seconds = 0.0
        self.inline = InlineCompletions(
            self.documents,
            self.backend,
            self.options,
            self.client,
            self.statistics,
            lambda document: self.files,
            self.next_edits,
            clock=lambda: self.seconds,
        )

    def open(self, text: str, uri: str = URI) -> OpenDocument:
        return self.documents.open(TextDocumentItem(uri, "python", 1, text))

    def type(self, text: str, at: tuple[int, int], uri: str = URI, *, until: tuple[int, int] | None = None) -> None:
        document = self.documents.get(uri)
        assert document
        event = TextDocumentContentChangePartial(Range(Position(*at), Position(*(until or at))), text)
        identifier = VersionedTextDocumentIdentifier(document.version + 1, uri)
        self.inline.document_changed(uri, self.documents.change(DidChangeTextDocumentParams(identifier, [event])))

    async def ask(
        self,
        line: int,
        character: int,
        uri: str = URI,
        *,
        invoked: bool = False,
        selected: SelectedCompletionInfo | None = None,
    ) -> list[InlineCompletionItem]:
        kind = InlineCompletionTriggerKind.Invoked if invoked else InlineCompletionTriggerKind.Automatic
        context = InlineCompletionContext(kind, selected)
        params = InlineCompletionParams(context, TextDocumentIdentifier(uri), Position(line, character))
        return list((await self.inline.complete(params)).items)

    def asking(self, *place: Any, **given: Any) -> asyncio.Task[list[InlineCompletionItem]]:
        return asyncio.ensure_future(self.ask(*place, **given))

    @property
    def messages(self) -> list[str]:
        return [message for message, _ in self.client.shown]

    @property
    def log(self) -> list[str]:
        return [message for message, _ in self.client.logged]


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not condition():
            await asyncio.sleep(0.001)


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scenario)


def texts(items: list[InlineCompletionItem]) -> list[Any]:
    return [item.insert_text for item in items]


# --- what is given


def test_one_item_where_the_editor_asks():
    async def scenario():
        desk = Desk("compute(1)")
        desk.open("x = \n")
        (item,) = await desk.ask(0, 4)
        assert item.insert_text == "compute(1)"
        assert item.range == Range(Position(0, 4), Position(0, 4))
        assert item.filter_text is None
        assert item.command.command == "specedit.didAcceptCompletion"
        assert desk.engine.requests[0].priority == "inline"

    run(scenario())


def test_several_items_where_the_user_asks():
    async def scenario():
        desk = Desk("compute(1)", "count(2)", "compute(1)")
        desk.open("x = \n")
        items = await desk.ask(0, 4, invoked=True)
        assert texts(items) == ["compute(1)", "count(2)"]
        assert len({item.command.arguments[0]["id"] for item in items}) == 2

    run(scenario())


def test_the_user_is_not_kept_waiting():
    async def scenario():
        desk = Desk("compute(1)", options={"debounceMs": 10_000})
        desk.open("x = \n")
        async with asyncio.timeout(5):
            assert texts(await desk.ask(0, 4, invoked=True)) == ["compute(1)"]

    run(scenario())


def test_what_the_user_sees_stays_the_first_of_several():
    async def scenario():
        desk = Desk("compute(1)", "cost(3)", "count(2)")
        desk.open("x = \n")
        await desk.ask(0, 4)
        assert texts(await desk.ask(0, 4, invoked=True)) == ["compute(1)", "cost(3)", "count(2)"]

    run(scenario())


@pytest.mark.parametrize(("editor", "line_end"), [("Visual Studio Code", "\r\n"), ("Neovim", "\n")])
def test_lines_end_as_the_file_has_them_unless_the_editor_sees_to_that(editor, line_end):
    async def scenario():
        desk = Desk("\n    return 1\n\n")
        desk.client.name = editor
        desk.open("def f():\r\n")
        assert texts(await desk.ask(0, 8)) == [f"{line_end}    return 1"]
        desk.type("\r\n    ", (0, 8))
        assert texts(await desk.ask(1, 4)) == ["return 1"]
        assert len(desk.engine.requests) == 1

    run(scenario())


def test_ranges_count_the_editors_units():
    async def scenario():
        desk = Desk("compute(1)")
        desk.open('"🎉🎉"; x = \n')
        (item,) = await desk.ask(0, 12)
        assert item.range == Range(Position(0, 12), Position(0, 12))

    run(scenario())


@pytest.mark.parametrize("place", [(0, 99), (99, 0), (0, 4)])
def test_a_position_outside_is_the_nearest_inside(place):
    async def scenario():
        desk = Desk("compute(1)")
        desk.open("x = ")
        (item,) = await desk.ask(*place)
        assert item.range.start == Position(0, 4)

    run(scenario())


def test_an_unknown_document_has_no_completions():
    async def scenario():
        assert await Desk().ask(0, 0) == []

    run(scenario())


def test_switched_off_by_the_user():
    async def scenario():
        desk = Desk(options={"enabled": False})
        desk.open("x = \n")
        assert await desk.ask(0, 4) == []
        assert not desk.engine.requests

    run(scenario())


LONG = "value = compute(number)\n" * 1000


def shown(desk):
    """How many characters before and after the cursor, and of other files, the last request shows."""
    fim = desk.engine.requests[-1].fim
    assert fim
    return len(fim.prefix), len(fim.suffix), sum(len(file.text) for file in fim.files)


def test_a_model_on_a_cpu_is_shown_less():
    async def scenario():
        sizes = {}
        for place in ("cuda:0", "cpu", None):
            desk = Desk("compute(1)")
            desk.backend.place = place
            desk.files.documents = [Document(LONG[:600], Path("b.py"))]
            desk.open(LONG)
            await desk.ask(500, 8)
            sizes[place] = shown(desk)
        assert sizes[None] == sizes["cuda:0"]
        assert all(cpu < gpu for cpu, gpu in zip(sizes["cpu"], sizes["cuda:0"], strict=True))

    run(scenario())


@pytest.mark.parametrize("place", ["cuda", "cpu", None])
def test_how_much_is_shown_is_for_the_user_to_say(place):
    async def scenario():
        desk = Desk("compute(1)", options={"prefixTokens": 200, "suffixTokens": 0, "contextTokens": 0})
        desk.backend.place = place
        desk.files.documents = [Document("def compute(number):\n    return number\n", Path("b.py"))]
        desk.open(LONG)
        await desk.ask(500, 8)
        before, after, others = shown(desk)
        assert 300 <= before <= 600
        assert (after, others) == (0, 0)

    run(scenario())


def test_where_the_model_runs_is_asked_away_from_the_event_loop():
    async def scenario():
        desk = Desk("compute(1)")
        threads = []
        desk.backend.device = lambda cancel: threads.append(threading.current_thread())
        desk.open("x = \n")
        await desk.ask(0, 4)
        assert threads
        assert threading.main_thread() not in threads

    run(scenario())


def test_context_is_gathered_away_from_the_event_loop():
    async def scenario():
        desk = Desk("compute(1)")
        desk.files.documents = [Document("def compute(number):\n    return number\n", Path("b.py"))]
        desk.open("x = com\n")
        await desk.ask(0, 7)
        assert desk.files.threads
        assert threading.main_thread() not in desk.files.threads

    run(scenario())


# --- the editor's own list


def test_the_selected_item_is_gone_on_from():
    async def scenario():
        desk = Desk("(1)")
        desk.open("x = com\n")
        selected = SelectedCompletionInfo(Range(Position(0, 4), Position(0, 7)), "compute")
        (item,) = await desk.ask(0, 7, selected=selected)
        assert item.insert_text == "compute(1)"
        assert item.range == Range(Position(0, 4), Position(0, 7))

    run(scenario())


def test_a_suggestion_that_the_selected_item_begins_is_given_again():
    async def scenario():
        desk = Desk("pute(1)")
        desk.open("x = com\n")
        await desk.ask(0, 7)
        selected = SelectedCompletionInfo(Range(Position(0, 4), Position(0, 7)), "compute")
        (item,) = await desk.ask(0, 7, selected=selected)
        assert (item.insert_text, len(desk.engine.requests)) == ("compute(1)", 1)

    run(scenario())


def test_editors_are_told_what_to_compare_where_the_item_is_spelled_otherwise():
    async def scenario():
        desk = Desk("(1)")
        desk.open("x = cpt\n")
        selected = SelectedCompletionInfo(Range(Position(0, 4), Position(0, 7)), "compute")
        (item,) = await desk.ask(0, 7, selected=selected)
        assert item.filter_text.startswith("cpt")

    run(scenario())


# --- typing along


def test_typing_along_asks_no_model():
    async def scenario():
        desk = Desk("compute(1)", "wrong")
        desk.open("x = \n")
        await desk.ask(0, 4)
        for at, character in enumerate("comp", start=4):
            desk.type(character, (0, at))
            assert texts(await desk.ask(0, at + 1)) == ["compute(1)"[at - 3 :]]
        desk.type("", (0, 6), until=(0, 8))
        assert texts(await desk.ask(0, 6)) == ["mpute(1)"]
        assert len(desk.engine.requests) == 1

    run(scenario())


def test_typing_something_else_asks_anew():
    async def scenario():
        desk = Desk("compute(1)", "ost(3)")
        desk.open("x = \n")
        await desk.ask(0, 4)
        desk.type("k", (0, 4))
        assert texts(await desk.ask(0, 5)) == ["ost(3)"]

    run(scenario())


def test_where_nothing_was_found_nobody_asks_twice():
    async def scenario():
        desk = Desk("  ", "compute(1)")
        desk.open("x = \n")
        assert await desk.ask(0, 4) == []
        assert await desk.ask(0, 4) == []
        assert len(desk.engine.requests) == 1
        assert texts(await desk.ask(0, 4, invoked=True)) == ["compute(1)"], "the user insists"

    run(scenario())


def test_what_was_made_from_more_or_less_text_is_made_anew():
    async def scenario():
        desk = Desk("compute(1)", "count(2)")
        desk.open("x = \n")
        await desk.ask(0, 4)
        desk.options.configure({None: {"inline": {"prefixTokens": 100}}})
        assert texts(await desk.ask(0, 4)) == ["count(2)"]
        desk.options.configure({None: {}})
        assert texts(await desk.ask(0, 4)) == ["compute(1)"], "it was kept"

    run(scenario())


def test_another_model_is_asked_anew():
    async def scenario():
        desk = Desk("compute(1)", "count(2)")
        desk.open("x = \n")
        await desk.ask(0, 4)
        desk.inline.engine_restarted()
        assert texts(await desk.ask(0, 4)) == ["count(2)"]

    run(scenario())


# --- what is over


def test_a_newer_request_ends_the_older_one():
    async def scenario():
        desk = Desk(engine=HeldEngine())
        desk.open("x = \n")
        older = desk.asking(0, 4)
        await until(lambda: desk.engine.requests)
        newer = desk.asking(0, 4)
        assert await older == []
        assert desk.engine.requests[0].cancel.cancelled
        await until(lambda: len(desk.engine.requests) == 2)
        desk.engine.release.set()
        assert texts(await newer) == ["compute(1)"]

    run(scenario())


def test_a_cancelled_request_stops_the_model():
    async def scenario():
        desk = Desk(engine=HeldEngine())
        desk.open("x = \n")
        asked = desk.asking(0, 4)
        await until(lambda: desk.engine.requests)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        await until(lambda: desk.engine.requests[0].cancel.cancelled and desk.engine.ended)
        assert desk.backend.work == []

    run(scenario())


def test_typing_stops_the_model():
    async def scenario():
        desk = Desk(engine=HeldEngine())
        desk.open("x = \n")
        asked = desk.asking(0, 4)
        await until(lambda: desk.engine.requests)
        desk.type("c", (0, 4))
        assert desk.engine.requests[0].cancel.cancelled
        assert await asked == []

    run(scenario())


def test_typing_elsewhere_before_the_model_is_asked_leaves_it_alone():
    async def scenario():
        desk = Desk("compute(1)", options={"debounceMs": 20})
        desk.open("x = \n")
        asked = desk.asking(0, 4)
        await asyncio.sleep(0)
        desk.type("y", (0, 0))
        assert await asked == []
        assert not desk.engine.requests

    run(scenario())


def test_fast_typing_has_one_request_under_way_and_ends_all_but_the_last():
    async def scenario():
        desk = Desk(engine=HeldEngine(answer="!"))
        desk.open("x = \n")
        asked, most = [], 0
        for number in range(200):
            desk.type("abcdefg"[number % 7], (0, 4 + number))
            asked.append(desk.asking(0, 5 + number))
            await asyncio.sleep(0.0005)
            most = max(most, desk.engine.under_way)
        await until(lambda: desk.engine.requests and not desk.engine.requests[-1].cancel.cancelled)
        desk.engine.release.set()
        answers = await asyncio.gather(*asked)
        assert texts(answers[-1]) == ["!"]
        assert not any(answers[:-1])
        assert [request.cancel.cancelled for request in desk.engine.requests[:-1]] == [True] * (
            len(desk.engine.requests) - 1
        )
        assert most <= 1

    run(scenario())


def test_while_typing_goes_on_nobody_asks():
    async def scenario():
        desk = Desk(options={"debounceMs": 10_000})
        desk.open("x = \n")
        for number in range(200):
            desk.type("a", (0, 4 + number))
            asked = desk.asking(0, 5 + number)
            await asyncio.sleep(0.0005)
        asked.cancel()
        assert not desk.engine.requests

    run(scenario())


def test_an_engine_that_hangs_piles_up_nothing():
    async def scenario():
        desk = Desk(engine=HeldEngine(is_deaf=True))
        uris = [f"untitled:{number}.py" for number in range(6)]
        asked = []
        for _ in range(5):
            for uri in uris:
                desk.open("x = \n", uri)
                asked.append(desk.asking(0, 4, uri))
                await asyncio.sleep(0.002)
        assert len(desk.engine.requests) == 2
        assert sum(not task.done() for task in asked) <= 3, "two at work, one waits"
        desk.engine.release.set()
        await asyncio.gather(*asked)
        assert texts(asked[-1].result()) == ["compute(1)"]

    run(scenario())


@pytest.mark.parametrize("end", [lambda inline: inline.document_closed(URI), InlineCompletions.close])
def test_a_request_ends_with_its_document_and_with_the_server(end):
    async def scenario():
        desk = Desk(engine=HeldEngine())
        desk.open("x = \n")
        asked = desk.asking(0, 4)
        await until(lambda: desk.engine.requests)
        end(desk.inline)
        assert await asked == []
        assert desk.engine.requests[0].cancel.cancelled

    run(scenario())


def test_a_document_that_is_opened_anew_has_no_suggestions_left():
    async def scenario():
        desk = Desk("compute(1)", "count(2)")
        desk.open("x = \n")
        await desk.ask(0, 4)
        desk.inline.document_closed(URI)
        desk.documents.close(URI)
        desk.open("x = \n")
        assert texts(await desk.ask(0, 4)) == ["count(2)"]

    run(scenario())


# --- the text has moved on


async def _answered_before_the_text(desk: Desk, text: str, at: tuple[int, int] = (0, 4)) -> list[InlineCompletionItem]:
    """The items of a request for `x = com|`, whose last letters the editor sends when the model is at work."""
    desk.open("x = \n")
    asked = desk.asking(0, 7)
    await until(lambda: desk.engine.requests)
    desk.type(text, at)
    desk.engine.release.set()
    return await asked


def test_the_rest_is_given_where_the_editor_sends_its_beginning_later():
    async def scenario():
        desk = Desk(engine=HeldEngine("compute(1)"))
        (item,) = await _answered_before_the_text(desk, "com")
        assert (item.insert_text, item.range.start) == ("pute(1)", Position(0, 7))

    run(scenario())


@pytest.mark.parametrize(("text", "at"), [("kom", (0, 4)), ("com", (0, 0)), ("import os\n", (0, 0))])
def test_an_answer_for_another_text_is_dropped(text, at):
    async def scenario():
        assert await _answered_before_the_text(Desk(engine=HeldEngine("compute(1)")), text, at) == []

    run(scenario())


def test_an_editor_may_ask_for_a_text_that_it_sends_later():
    async def scenario():
        desk = Desk("compute(1)", options={"debounceMs": 20})
        desk.open("x\n")
        asked = desk.asking(0, 4)
        await asyncio.sleep(0)
        desk.type(" = ", (0, 1))
        (item,) = await asked
        assert item.range.start == Position(0, 4)
        assert desk.engine.requests[0].fim.prefix == "x = "

    run(scenario())


# --- the next edit


def test_the_next_edit_comes_first_and_asks_no_model():
    async def scenario():
        desk = Desk("compute(1)")
        desk.open("total = sum\n")
        desk.next_edits.edit = NextEdit(Span(8, 11), "sum_of(x)", "repeat")
        (item,) = await desk.ask(0, 11)
        assert item.insert_text == "_of(x)"
        assert not desk.engine.requests

    run(scenario())


def test_a_next_edit_behind_the_cursor_reaches_from_there():
    async def scenario():
        desk = Desk("compute(1)")
        desk.open("total = sum\n")
        desk.next_edits.edit = NextEdit(Span(11, 11), "_of(x)", "repeat")
        (item,) = await desk.ask(0, 8)
        assert item.insert_text == "sum_of(x)"
        assert item.range == Range(Position(0, 8), Position(0, 11))

    run(scenario())


@pytest.mark.parametrize(
    "edit",
    [
        NextEdit(Span(4, 13), "other", "repeat"),  # over two lines
        NextEdit(Span(0, 5), "sum = 2", "repeat"),  # what stands before the cursor would change
        NextEdit(Span(8, 9), "x", "repeat"),  # text farther on the line would go
    ],
)
def test_a_next_edit_that_is_no_inline_item_is_left_to_the_editor(edit):
    async def scenario():
        desk = Desk("compute(1)")
        desk.open("a = [1, 2]\nb = 2\n")
        desk.next_edits.edit = edit
        assert texts(await desk.ask(0, 5)) == ["compute(1)"]

    run(scenario())


def test_an_item_of_the_editors_list_is_gone_on_from_first():
    async def scenario():
        desk = Desk("(1)")
        desk.open("x = com\n")
        desk.next_edits.edit = NextEdit(Span(7, 7), "plete()", "repeat")
        selected = SelectedCompletionInfo(Range(Position(0, 4), Position(0, 7)), "compute")
        assert texts(await desk.ask(0, 7, selected=selected)) == ["compute(1)"]

    run(scenario())


# --- what is never offered


def test_secrets_are_not_completed_and_that_is_said_once(tmp_path):
    async def scenario():
        desk = Desk("compute(1)")
        uri = (tmp_path / ".env").as_uri()
        desk.open("KEY=\n", uri)
        desk.next_edits.edit = NextEdit(Span(4, 4), "1", "repeat")
        assert await desk.ask(0, 4, uri) == []
        assert await desk.ask(0, 4, uri) == []
        assert not desk.engine.requests
        assert len([line for line in desk.log if ".env" in line]) == 1
        assert not desk.messages

    run(scenario())


def test_a_binary_text_is_not_completed():
    async def scenario():
        desk = Desk("compute(1)")
        desk.open("x = \n\0")
        assert await desk.ask(0, 4) == []
        assert not desk.engine.requests

    run(scenario())


# --- what goes wrong


def test_a_model_that_cannot_fill_in_is_told_once_and_not_asked_again():
    async def scenario():
        desk = Desk(FimUnsupportedError("inline completion is off: no markers. Serve a code model"), "compute(1)")
        desk.open("x = \n")
        for _ in range(3):
            assert await desk.ask(0, 4) == []
        assert len(desk.engine.requests) == 1
        assert desk.messages == ["inline completion is off: no markers. Serve a code model"]
        desk.inline.engine_restarted()
        assert texts(await desk.ask(0, 4)) == ["compute(1)"]

    run(scenario())


def test_other_trouble_is_shown_once_a_minute_at_most():
    async def scenario():
        desk = Desk(*(UnreachableError(f"nobody answers at {number}") for number in range(3)))
        desk.open("x = \n")
        for seconds in (0, 59, 61):
            desk.seconds = seconds
            assert await desk.ask(0, 4) == []
        assert desk.messages == ["nobody answers at 0", "nobody answers at 2"]
        assert len(desk.log) == 3

    run(scenario())


def test_the_same_trouble_is_shown_again_only_where_it_comes_back():
    async def scenario():
        trouble = UnreachableError("nobody answers. Start a server")
        desk = Desk(trouble, trouble, "compute(1)", trouble)
        desk.open("x = \n")
        for minutes in range(3):
            desk.seconds = 100 * minutes
            await desk.ask(0, 4)
        assert desk.messages == ["nobody answers. Start a server"]
        desk.seconds = 1_000
        desk.type("k", (0, 4))
        await desk.ask(0, 5)
        assert desk.messages == ["nobody answers. Start a server"] * 2

    run(scenario())


def test_trouble_of_a_request_that_is_over_is_not_told():
    async def scenario():
        def fails(request: GenerateRequest) -> str:
            cancelled = threading.Event()
            request.cancel.on_cancel(cancelled.set)
            assert cancelled.wait(PATIENCE_SECONDS)
            raise UnreachableError("the connection is gone")

        desk = Desk(fails)
        desk.open("x = \n")
        asked = desk.asking(0, 4)
        await until(lambda: desk.engine.requests)
        desk.type("c", (0, 4))
        assert await asked == []
        assert not desk.messages

    run(scenario())


def test_a_fault_of_ours_is_no_popup_and_shows_no_code(caplog):
    async def scenario():
        desk = Desk(ValueError("x = SECRET"), "compute(1)")
        desk.open("x = \n")
        assert await desk.ask(0, 4) == []
        assert not desk.messages
        assert texts(await desk.ask(0, 4)) == ["compute(1)"], "the next request is as good as any"

    with caplog.at_level(logging.DEBUG):
        run(scenario())
    assert "ValueError" in caplog.text
    assert "SECRET" not in caplog.text


# --- what became of it


def test_what_was_shown_and_accepted_is_counted():
    async def scenario():
        desk = Desk("compute(1)")
        desk.open("x = \n")
        (item,) = await desk.ask(0, 4)
        params = {"item": {"insertText": item.insert_text, "command": _json(item)}}
        desk.inline.did_show(params)
        desk.inline.did_show(params)
        desk.inline.did_accept(item.command.arguments[0])
        report = desk.statistics.report()["inline"]
        assert (report["shown"], report["accepted"], report["acceptedChars"]) == (1, 1, 10)
        assert report["outputTokens"] > 0

    run(scenario())


def _json(item: InlineCompletionItem) -> dict[str, Any]:
    return {"title": item.command.title, "command": item.command.command, "arguments": item.command.arguments}
