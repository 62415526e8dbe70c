"""Proposals for the next edit, as an editor sees them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from lsprotocol.types import (
    DidChangeTextDocumentParams,
    Position,
    Range,
    TextDocumentContentChangePartial,
    TextDocumentItem,
    VersionedTextDocumentIdentifier,
)

from specedit.edit.recent import RecentEdits
from specedit.errors import UnreachableError, UsageError
from specedit_lsp.documents import Documents
from specedit_lsp.next_edit import METHOD, NextEdits
from specedit_lsp.options import OptionsStore
from specedit_lsp.statistics import Statistics
from tests.fakes import ScriptedEngine, fenced
from tests.lsp.fake_backend import FakeBackend
from tests.lsp.fake_client import FakeClient

URI = "file:///project/shop.py"
CALLS = "".join(f"    total += price({name}, {name}_count)\n" for name in ("apple", "pear", "plum", "fig"))
TESTS = "def test_a():\n    assert_equal(first(), 1)\n\n\ndef test_b():\n    assert_equal(second(), 2)\n"
A_MOMENT = 0.01


class Desk:
    """An editor with one document, its edits far enough apart in time to be edits of their own."""

    def __init__(self, text: str = CALLS, *answers: Any, uri: str = URI, options: dict[str, Any] | None = None) -> None:
        self.documents, self.recent, self.client = Documents(), RecentEdits(), FakeClient()
        self.engine = ScriptedEngine(answers or [lambda request: fenced(request.prediction)])
        self.backend, self.options, self.statistics = FakeBackend(self.engine), OptionsStore(), Statistics()
        assert not self.options.initialize({"nextEdit": options or {}}, [])
        self.next_edits = NextEdits(
            self.documents,
            self.backend,
            self.options,
            self.recent,
            self.client,
            self.statistics,
            rest_seconds=A_MOMENT,
            finished_seconds=A_MOMENT,
        )
        self.document = self.documents.open(TextDocumentItem(uri, "python", 1, text))
        self.now = 0.0

    def edit(self, old: str, new: str, nth: int = 0) -> None:
        start = -1
        for _ in range(nth + 1):
            start = self.document.text.index(old, start + 1)
        ends = self.document.position(start), self.document.position(start + len(old))
        self.change(Range(*ends), new)

    def change(self, where: Range, new: str) -> None:
        before, self.now = self.document.text, self.now + 10
        identifier = VersionedTextDocumentIdentifier(self.document.version + 1, self.document.uri)
        changes = self.documents.change(
            DidChangeTextDocumentParams(identifier, [TextDocumentContentChangePartial(range=where, text=new)])
        )
        for change in changes:
            path = self.document.path
            self.recent.record(self.document.uri, "shop.py", path, before, change.span, change.new_text, self.now)
        self.next_edits.changed(self.document.uri, changes)

    def take(self, told: dict[str, Any]) -> None:
        where = Range(*(Position(**told["range"][end]) for end in ("start", "end")))
        self.change(where, told["newText"])

    @property
    def told(self) -> list[dict[str, Any]]:
        return self.client.told(METHOD)

    async def until(self, holds: Callable[[], bool]) -> None:
        for _ in range(500):
            if holds():
                return
            await asyncio.sleep(A_MOMENT)
        raise AssertionError(f"it did not come; told: {self.told}")

    async def rest(self) -> None:
        """Until nothing is looked for any more."""
        watch = self.next_edits._watches.get(self.document.uri)
        if watch and watch.task:
            await asyncio.wait([watch.task], timeout=10)


def at_desk(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    def run() -> None:
        asyncio.run(test())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


@at_desk
async def test_the_same_change_is_proposed_once_typing_rests():
    desk = Desk()
    desk.edit("price(apple", "cost(apple")
    desk.edit("price(pear", "cost(pear")
    await desk.rest()
    assert desk.told == [
        {
            "uri": URI,
            "version": 3,
            "range": {"start": {"line": 2, "character": 13}, "end": {"line": 2, "character": 18}},
            "newText": "cost",
            "source": "repeat",
        }
    ]
    assert desk.engine.requests == [], "no model is needed"
    assert desk.statistics.report()["nextEdit"]["shown"] == 1


@at_desk
async def test_a_document_beyond_all_measure_gets_none():
    desk = Desk(CALLS + "\n" * 1_000_000)
    desk.edit("price(apple", "cost(apple")
    desk.edit("price(pear", "cost(pear")
    await desk.rest()
    assert desk.told == []


@at_desk
async def test_taken_the_next_is_offered_until_there_is_none():
    desk = Desk()
    desk.edit("price(apple", "cost(apple")
    desk.edit("price(pear", "cost(pear")
    await desk.rest()
    desk.take(desk.told[-1])
    await desk.rest()
    assert desk.told[-1]["range"]["start"]["line"] == 3
    desk.take(desk.told[-1])
    await desk.rest()
    assert desk.document.text == CALLS.replace("price", "cost")
    assert len(desk.told) == 2, "an editor knows itself that a proposal was taken"
    assert desk.statistics.report()["nextEdit"]["accepted"] == 2


@at_desk
async def test_what_no_longer_holds_is_withdrawn():
    desk = Desk(options={"model": False})
    desk.edit("price(apple", "cost(apple")
    desk.edit("price(pear", "cost(pear")
    await desk.rest()
    desk.edit("price(plum", "value(plum")
    await desk.rest()
    assert desk.told[-1] == {"uri": URI, "version": 4, "range": None}
    assert desk.next_edits.at(URI, desk.document.text.index("fig")) is None


@at_desk
async def test_typing_on_ends_the_search_and_the_version_is_the_last():
    desk = Desk()
    desk.edit("price(apple", "cost(apple")
    desk.edit("price(pear", "c(pear")
    desk.edit("c(pear", "co(pear")
    desk.edit("co(pear", "cost(pear")
    await desk.rest()
    assert [told["version"] for told in desk.told] == [5]


@at_desk
async def test_a_proposal_is_given_where_the_cursor_stands_on_its_line_before_it():
    desk = Desk()
    desk.edit("price(apple", "cost(apple")
    desk.edit("price(pear", "cost(pear")
    await desk.rest()
    text = desk.document.text
    line = text.index("    total += price(plum")
    assert desk.next_edits.at(URI, line).new_text == "cost"
    assert desk.next_edits.at(URI, text.index("(plum")).new_text == "cost"
    assert desk.next_edits.at(URI, text.index("plum_count")) is None, "behind it"
    assert desk.next_edits.at(URI, 0) is None, "another line"
    assert desk.next_edits.at(URI, text.index("    total += price(fig")).new_text == "cost", "the one after the next"
    assert desk.next_edits.at("file:///project/other.py", 0) is None


@at_desk
async def test_a_proposal_that_two_edits_passed_by_is_not_made_again():
    desk = Desk("a = 1\nb = 2\nc = 3\n\n\n" + CALLS, options={"model": False})
    desk.edit("price(apple", "cost(apple")
    desk.edit("price(pear", "cost(pear")
    await desk.rest()
    for old in ("a = 1", "b = 2", "c = 3"):
        desk.edit(old, f"{old}0")
        await desk.rest()
    assert desk.told[-1]["range"] is None
    assert desk.statistics.report()["nextEdit"]["rejected"] == 1


@at_desk
async def test_switched_off_nothing_is_proposed():
    desk = Desk(options={"enabled": False})
    desk.edit("price(apple", "cost(apple")
    desk.edit("price(pear", "cost(pear")
    await desk.rest()
    assert desk.told == []


# --- the model


def in_the_part(old: str, new: str) -> Callable[[Any], str]:
    return lambda request: fenced(request.prediction.replace(old, new), "python")


BETTER = in_the_part("assert_equal(second(), 2)", "assert second() == 2")


@at_desk
async def test_the_model_is_asked_where_nothing_repeats():
    desk = Desk(TESTS, BETTER)
    desk.edit("assert_equal(first(), 1)", "assert first() == 1")
    await desk.rest()
    assert [(told["source"], told["range"]["start"]["line"]) for told in desk.told] == [("model", 5)]
    assert desk.backend.worked == ["nextEdit"]
    assert desk.statistics.report()["nextEdit"]["answers"] == 1
    desk.take(desk.told[-1])
    assert "assert second() == 2\n" in desk.document.text


@at_desk
async def test_typing_on_stops_the_model():
    desk = Desk(TESTS, BETTER)
    desk.engine.seconds_per_chunk = 0.05
    desk.edit("assert_equal(first(), 1)", "assert first() == 1")
    await desk.until(lambda: bool(desk.engine.requests))
    desk.edit("first() == 1", "first() == 11")
    assert not desk.engine.requests[0].cancel.cancelled, "a task is told at its next turn"
    await asyncio.sleep(0)
    await desk.until(lambda: desk.engine.requests[0].cancel.cancelled)
    assert all(told["version"] != 2 for told in desk.told)


@at_desk
async def test_a_secret_is_not_shown_to_the_model():
    desk = Desk(TESTS, BETTER, uri="file:///project/.env")
    desk.edit("assert_equal(first(), 1)", "assert first() == 1")
    await desk.rest()
    assert (desk.told, desk.engine.requests) == ([], [])


@at_desk
async def test_without_the_model_none_is_asked():
    desk = Desk(TESTS, BETTER, options={"model": False})
    desk.edit("assert_equal(first(), 1)", "assert first() == 1")
    await desk.rest()
    assert (desk.told, desk.engine.requests) == ([], [])


@at_desk
async def test_an_engine_that_fails_in_the_background_disturbs_nobody():
    desk = Desk(TESTS, UnreachableError("nobody answers. Start a server."))
    desk.edit("assert_equal(first(), 1)", "assert first() == 1")
    await desk.rest()
    assert (desk.told, desk.client.shown) == ([], [])


# --- on demand


def here(line: int, character: int = 0, uri: str = URI) -> dict[str, Any]:
    return {"textDocument": {"uri": uri}, "position": {"line": line, "character": character}}


@at_desk
async def test_on_demand_the_next_one_after_the_cursor():
    desk = Desk()
    desk.edit("price(apple", "cost(apple")
    desk.edit("price(pear", "cost(pear")
    assert (await desk.next_edits.ask_now(here(0)))["range"]["start"]["line"] == 2
    assert (await desk.next_edits.ask_now([here(3)]))["range"]["start"]["line"] == 3
    assert desk.next_edits.at(URI, desk.document.text.index("fig") - 12) is not None


@at_desk
async def test_on_demand_nothing_is_null_and_a_failure_is_shown():
    desk = Desk(CALLS)
    assert await desk.next_edits.ask_now(here(0)) is None
    desk = Desk(TESTS, UnreachableError("nobody answers. Start a server."))
    desk.edit("assert_equal(first(), 1)", "assert first() == 1")
    assert await desk.next_edits.ask_now(here(0)) is None
    assert desk.client.messages == ["nobody answers. Start a server."]


@pytest.mark.parametrize("arguments", [None, [], {}, {"textDocument": 1}, here(0, uri="file:///project/closed.py")])
def test_on_demand_what_can_not_be_meant_is_refused(arguments):
    with pytest.raises(UsageError, match=r"specedit\.nextEdit"):
        asyncio.run(Desk().next_edits.ask_now(arguments))


@at_desk
async def test_a_closed_document_is_forgotten():
    desk = Desk()
    desk.edit("price(apple", "cost(apple")
    desk.edit("price(pear", "cost(pear")
    desk.documents.close(URI)
    desk.next_edits.closed(URI)
    await asyncio.sleep(5 * A_MOMENT)
    assert desk.told == []
