from __future__ import annotations

from typing import Any

import pytest

from specedit_lsp.offers import Offers


class Counts:
    """What was counted, in order."""

    def __init__(self) -> None:
        self.events: list[tuple[Any, ...]] = []

    def shown(self, kind: str) -> None:
        self.events.append(("shown", kind))

    def accepted(self, kind: str, chars: int) -> None:
        self.events.append(("accepted", kind, chars))

    def rejected(self, kind: str) -> None:
        self.events.append(("rejected", kind))


class Screen:
    """An editor that shows items and reports what becomes of them."""

    def __init__(self) -> None:
        self.counts = Counts()
        self.offers = Offers(self.counts)

    def offer(self, text: str, *, key: str = "a.py", origin: int = 1, standing: int = 0) -> dict[str, Any]:
        command = self.offers.new(key, "inline", text, standing, origin)
        arguments = [dict(argument) for argument in command.arguments]
        return {"insertText": text, "command": {"title": "", "command": command.command, "arguments": arguments}}

    def show(self, item: dict[str, Any]) -> None:
        self.offers.did_show({"item": item})

    def accept(self, item: dict[str, Any]) -> None:
        self.offers.did_accept(item["command"]["arguments"][0])

    def take(self, item: dict[str, Any], length: int) -> None:
        self.offers.did_partially_accept({"item": item, "acceptedLength": length})

    @property
    def events(self) -> list[tuple[Any, ...]]:
        """What was counted, once the document is closed."""
        self.offers.forget("a.py")
        return self.counts.events


def test_shown_and_accepted():
    screen = Screen()
    item = screen.offer("compute(1)")
    screen.show(item)
    screen.show(item)
    screen.accept(item)
    assert screen.counts.events == [("shown", "inline"), ("accepted", "inline", 10)]


def test_an_editor_that_does_not_say_what_it_shows():
    screen = Screen()
    screen.accept(screen.offer("compute(1)"))
    assert screen.counts.events == [("shown", "inline"), ("accepted", "inline", 10)]


def test_parts_are_counted_once():
    screen = Screen()
    item = screen.offer("compute(1)")
    for length in (3, 7, 7):
        screen.take(item, length)
    screen.accept(item)
    assert screen.events == [("shown", "inline"), ("accepted", "inline", 10)]


def test_a_part_alone_counts_when_the_next_one_comes():
    screen = Screen()
    screen.take(screen.offer("compute(1)", origin=1), 3)
    screen.offer("count(2)", origin=2)
    assert screen.counts.events == [("shown", "inline"), ("accepted", "inline", 3)]


def test_the_rest_of_a_suggestion_is_the_same_suggestion():
    screen = Screen()
    item = screen.offer("compute(1)")
    screen.show(item)
    screen.take(item, 3)
    rest = screen.offer("pute(1)")
    screen.show(rest)
    screen.accept(rest)
    assert screen.events == [("shown", "inline"), ("accepted", "inline", 10)]


@pytest.mark.parametrize(("length", "chars"), [(4, 2), (5, 3), (3, 1)], ids=["whole", "more", "half a character"])
def test_lengths_are_utf16_units(length, chars):
    screen = Screen()
    screen.take(screen.offer("🎉🎉 done"), length)
    assert screen.events[-1] == ("accepted", "inline", chars)


def test_what_stood_there_already_was_not_written():
    screen = Screen()
    screen.accept(screen.offer("compute(1)", standing=3))
    assert screen.events[-1] == ("accepted", "inline", 7)


def test_one_that_is_followed_by_another_was_rejected():
    screen = Screen()
    screen.show(screen.offer("compute(1)", origin=1))
    screen.show(screen.offer("count(2)", origin=2))
    assert screen.counts.events == [("shown", "inline"), ("rejected", "inline"), ("shown", "inline")]


def test_closing_the_document_rejects():
    screen = Screen()
    screen.show(screen.offer("compute(1)"))
    screen.offers.forget("b.py")
    assert ("rejected", "inline") not in screen.counts.events
    screen.offers.forget("a.py")
    assert ("rejected", "inline") in screen.counts.events


@pytest.mark.parametrize(
    "params",
    [
        None,
        3,
        [],
        {},
        {"item": None},
        {"item": {"command": {"arguments": []}}},
        {"item": {"command": {"arguments": [{"id": "999"}]}}, "acceptedLength": 3},
        {"item": {"command": {"arguments": [{"id": ["1"]}]}}, "acceptedLength": 3},
        {"item": {"command": {"arguments": [{"id": "1"}]}}, "acceptedLength": "3"},
        {"item": {"command": {"arguments": [{"id": "1"}]}}, "acceptedLength": -3},
    ],
)
def test_reports_that_make_no_sense_count_nothing(params):
    screen = Screen()
    screen.offer("compute(1)")
    screen.offers.did_partially_accept(params)
    screen.offers.did_accept(params)
    assert not screen.counts.events


def test_only_so_many_are_remembered():
    screen = Screen()
    first = screen.offer("compute(1)")
    for origin in range(2, 2_000):
        screen.offer("count(2)", origin=origin)
    screen.accept(first)
    assert not screen.counts.events
