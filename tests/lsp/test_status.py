from __future__ import annotations

import asyncio
import threading

import pytest

from specedit.engine.discovery import Progress
from specedit_lsp.status import Status, StatusBoard, told_apart


@pytest.fixture
def board() -> StatusBoard:
    return StatusBoard(lambda _: None)


def test_what_goes_before_what(board: StatusBoard):
    assert board.status == Status("ready")
    board.failed("it is gone. Start it")
    assert board.status == Status("error", "it is gone", fix="Start it")
    board.count("inline", 1)
    board.count("rewrite", 1)
    assert (board.status.state, board.status.message) == ("busy", "completing, rewriting")
    board.loading(Progress("loading m", 40))
    assert board.status == Status("loading", "loading m", 40)
    board.loaded()
    board.count("rewrite", -1)
    board.count("inline", -1)
    assert board.status.state == "error"
    board.succeeded("m")
    assert board.status == Status("ready", model="m")


def test_what_was_found_clears_an_error(board: StatusBoard):
    board.failed("gone")
    board.loading(Progress("loading m"))
    board.found("m")
    assert board.status == Status("ready", model="m")


def test_each_thread_waits_for_itself(board: StatusBoard):
    def other() -> None:
        board.loading(Progress("b", 2))
        seen.append(board.status.message)
        board.loaded()

    seen: list[str] = []
    board.loading(Progress("a", 1))
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert seen == ["b"]
    assert board.status.message == "a"
    board.loaded()
    assert board.status.state == "ready"


def test_the_loop_is_told_of_changes_only_and_from_any_thread():
    told: list[Status] = []
    board = StatusBoard(told.append)

    async def scenario() -> None:
        board.listen()
        await asyncio.to_thread(board.loading, Progress("loading m", 1))
        await asyncio.sleep(0)
        board.count("inline", 0)
        board.loading(Progress("loading m", 1))
        await asyncio.sleep(0)
        board.loading(Progress("loading m", 2))
        await asyncio.sleep(0)

    asyncio.run(scenario())
    assert told == [Status("loading", "loading m", 1), Status("loading", "loading m", 2)]
    board.succeeded("after the loop has ended")


def test_nobody_is_told_once_it_is_mute():
    told: list[Status] = []
    board = StatusBoard(told.append)

    async def scenario() -> None:
        board.listen()
        board.failed("no")
        board.mute()
        board.failed("no more")
        await asyncio.sleep(0)

    asyncio.run(scenario())
    assert told == []


@pytest.mark.parametrize(
    ("said", "message", "fix"),
    [
        ("nothing answers there. Start it", "nothing answers there", "Start it"),
        ("the answer broke off: ask again", "the answer broke off", "ask again"),
        (
            "http://127.0.0.1:1 can't be reached: refused: start it, or name another",
            "http://127.0.0.1:1 can't be reached: refused",
            "start it, or name another",
        ),
        ("it is 1.5 too old. Take 2.0. Or 3.0.", "it is 1.5 too old", "Take 2.0. Or 3.0."),
        ("it failed", "it failed", ""),
        ("", "", ""),
        (
            "the server ended. Mend what it says (/a.log):\n  line one\n  specedit: no model x\n",
            "the server ended (specedit: no model x)",
            "Mend what it says (/a.log)",
        ),
    ],
)
def test_an_error_is_told_as_what_happened_and_what_to_do(said: str, message: str, fix: str):
    assert told_apart(said) == (message, fix)


def test_a_long_message_is_cut():
    assert [len(part) for part in told_apart("x" * 1000 + ". " + "y" * 1000)] == [300, 300]


def test_it_goes_over_the_wire_by_name():
    assert Status("loading", "m", 4, "f", "n").to_json() == {
        "state": "loading",
        "message": "m",
        "percent": 4,
        "fix": "f",
        "model": "n",
    }
