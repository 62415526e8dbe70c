from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from specedit.engine.api import CancelToken, Engine, GenerateRequest, Message, TextChunk, Usage
from specedit.errors import (
    ConfigError,
    ContextOverflowError,
    EngineError,
    FimUnsupportedError,
    OverloadedError,
    SpecEditError,
    UnreachableError,
    UnsupportedModelError,
)
from specedit_lsp.status import StatusBoard
from specedit_lsp.tracked_engine import TrackedEngine
from tests.fakes import ScriptedEngine


@dataclass
class Address(ScriptedEngine):
    """An engine behind a connection."""

    closed: int = 0
    connected: int = 0

    def connect(self) -> object:
        self.connected += 1
        return self

    def close(self) -> None:
        self.closed += 1


@dataclass
class Own(Address):
    """One in a server of the user's own."""

    ended: list[int] = field(default_factory=list)

    def connect(self, cancel: CancelToken | None = None) -> object:
        return super().connect()

    def end(self) -> bool:
        self.ended.append(self.closed)
        return True


class Desk:
    """A tracked engine with what it is made of; `make` gives the engines in order, the last one again and again."""

    def __init__(self, *engines: Engine | SpecEditError) -> None:
        self.engines = list(engines)
        self.made = 0
        self.now = 100.0
        self.board = StatusBoard(lambda _: None)
        self.tracked = TrackedEngine(self._make, self.board, clock=lambda: self.now)

    def _make(self) -> Engine:
        engine = self.engines[min(self.made, len(self.engines) - 1)]
        self.made += 1
        if isinstance(engine, SpecEditError):
            raise engine
        return engine

    def ask(self, **changes) -> str:
        return "".join(chunk.text for chunk in self.tracked.generate(ask(**changes)))

    def fails(self, **changes) -> SpecEditError:
        with pytest.raises(SpecEditError) as failed:
            self.ask(**changes)
        return failed.value

    @property
    def state(self) -> str:
        return self.board.status.state


def ask(**changes) -> GenerateRequest:
    return GenerateRequest(messages=(Message("user", "go on"),), **changes)


def test_nothing_is_made_before_somebody_asks():
    desk = Desk(ScriptedEngine(["hello"]))
    assert (desk.made, desk.tracked.model_name, desk.state) == (0, "", "ready")
    assert desk.ask() == "hello"
    assert desk.ask() == "hello"
    assert (desk.made, desk.tracked.model_name) == (1, "scripted")


def test_an_error_is_told_and_cleared_by_the_next_answer():
    desk = Desk(ScriptedEngine([UnreachableError("it is gone. Start it"), "hello"]))
    desk.fails()
    assert (desk.board.status.message, desk.board.status.fix) == ("it is gone", "Start it")
    assert desk.ask() == "hello"
    assert desk.state == "ready"


def test_an_engine_that_can_not_be_made_is_tried_again():
    desk = Desk(ConfigError("no address. Mend it"), ScriptedEngine(["hello"]))
    desk.fails()
    assert desk.state == "error"
    assert desk.ask() == "hello"


def test_an_error_in_mid_answer_is_told():
    class Breaking(ScriptedEngine):
        def generate(self, request: GenerateRequest) -> Iterator[TextChunk]:
            yield TextChunk("he", Usage())
            raise UnreachableError("it broke off. Ask again")

    desk = Desk(Breaking([""]))
    desk.fails()
    assert desk.board.status.message == "it broke off"


@pytest.mark.parametrize(
    "error",
    [
        ContextOverflowError("too long"),
        UnsupportedModelError("it can't fill"),
        FimUnsupportedError("inline completion is off: it can't fill. Serve another"),
    ],
)
def test_what_is_wrong_with_a_request_is_no_fault_of_the_engine(error: SpecEditError):
    desk = Desk(ScriptedEngine([error]))
    assert desk.fails() is error
    assert desk.state == "ready"


def test_what_goes_wrong_after_a_cancel_is_not_told():
    request = ask()

    class Ending(ScriptedEngine):
        def generate(self, request: GenerateRequest) -> Iterator[TextChunk]:
            request.cancel.cancel()
            raise EngineError("cancelled while the server was starting")
            yield

    desk = Desk(Ending([""]))
    with pytest.raises(EngineError):
        list(desk.tracked.generate(request))
    assert desk.state == "ready"


def test_a_cancelled_answer_says_nothing_of_the_engine():
    desk = Desk(ScriptedEngine([UnreachableError("gone"), "hello"]))
    desk.fails()
    request = ask()
    request.cancel.cancel()
    assert [chunk.finish_reason for chunk in desk.tracked.generate(request)] == ["cancelled"]
    assert desk.state == "error"


def test_closing_the_answer_stops_the_model():
    stopped = []

    class Endless(ScriptedEngine):
        def generate(self, request: GenerateRequest) -> Iterator[TextChunk]:
            try:
                while True:
                    yield TextChunk("x", Usage())
            finally:
                stopped.append(True)

    desk = Desk(Endless([""]))
    chunks = desk.tracked.generate(ask())
    next(chunks)
    chunks.close()
    assert stopped == [True]
    assert desk.state == "ready"


def test_an_address_that_failed_is_asked_anew_what_is_there():
    gone, there = Address([OverloadedError("busy. Wait")]), Address(["hello"])
    desk = Desk(gone, there)
    desk.fails()
    assert gone.closed == 1
    assert desk.ask() == "hello"
    assert (desk.made, there.closed) == (2, 0)


def test_an_address_is_not_left_while_another_answer_comes_from_it():
    address = Address(["hello" * 3, OverloadedError("busy. Wait"), "hello"])
    desk = Desk(address)
    under_way = desk.tracked.generate(ask())
    next(under_way)
    desk.fails()
    assert address.closed == 0
    assert sum(1 for _ in under_way) > 0


def test_the_server_of_ones_own_is_kept():
    own = Own([UnreachableError("killed. Ask again"), "hello"])
    desk = Desk(own)
    desk.fails()
    assert desk.ask() == "hello"
    assert (desk.made, own.closed) == (1, 0)


def test_connecting_clears_an_error_and_failing_to_tells_one():
    class Refusing(Address):
        def connect(self) -> object:
            if not super().connect() or self.connected == 1:
                raise UnreachableError("nothing there. Start it")
            return self

    refusing = Refusing([""])
    desk = Desk(refusing)
    with pytest.raises(UnreachableError):
        desk.tracked.connect()
    assert desk.state == "error"
    desk.tracked.connect()
    assert (desk.state, desk.board.status.model) == ("ready", "scripted")


def test_where_the_model_runs_is_asked_once_and_again_after_an_error():
    own, address = Own([UnreachableError("gone. Start it"), "hello"], device="cpu"), Address(["hello"], device="cuda")
    for engine, device in ((own, "cpu"), (address, "cuda"), (ScriptedEngine([""], device="mps"), "mps")):
        tracked = Desk(engine).tracked
        assert [tracked.device(CancelToken()) for _ in range(3)] == [device] * 3
    assert (own.connected, address.connected) == (1, 1)
    desk = Desk(own)
    desk.tracked.connect()
    desk.fails()
    own.device = "cuda"
    assert desk.tracked.device(CancelToken()) == "cuda"
    assert Desk(ScriptedEngine([""])).tracked.device(CancelToken()) is None


def test_where_a_server_that_is_started_runs_is_waited_for_until_the_request_is_over():
    class Starting(Own):
        def connect(self, cancel: CancelToken | None = None) -> object:
            assert cancel is not None
            cancel.cancel()
            raise EngineError("cancelled while the server was starting")

    desk = Desk(Starting([""]))
    with pytest.raises(EngineError):
        desk.tracked.device(CancelToken())
    assert desk.state == "ready"


def test_a_server_that_can_not_start_is_not_started_at_every_keystroke_to_ask_where_it_runs():
    class Failing(Own):
        def connect(self, cancel: CancelToken | None = None) -> object:
            self.connected += 1
            raise UnreachableError("it can't start. Pull the model")

    own = Failing([""])
    desk = Desk(own)
    for _ in range(5):
        with pytest.raises(UnreachableError):
            desk.tracked.device(CancelToken())
    assert own.connected == 2


def test_an_engine_without_a_connection_is_always_ready():
    desk = Desk(ScriptedEngine([""]))
    desk.tracked.connect()
    desk.tracked.restart()
    assert desk.state == "ready"


def test_restarting_closes_first_and_connects_to_another_one():
    own, address = Own([""]), Address([""])
    for engine in (own, address):
        new = Address(["new"])
        desk = Desk(engine, new)
        desk.tracked.restart()
        assert (engine.closed, new.connected) == (1, 1)
        assert desk.ask() == "new"
    assert own.ended == [1]


def test_restarting_says_what_it_does():
    seen: list[str] = []

    class Seen(Own):
        def end(self) -> bool:
            seen.append(desk.board.status.message)
            return super().end()

        def connect(self, cancel: CancelToken | None = None) -> object:
            seen.append(desk.board.status.message)
            return super().connect()

    desk = Desk(Seen([""]))
    desk.tracked.restart()
    assert seen == ["ending the server", "looking for the model"]
    assert desk.state == "ready"


def test_what_a_closed_engine_suffers_is_not_told():
    desk = Desk(Address(["hello" * 3]), Address(["new"]))

    class Closed(Address):
        def generate(self, request: GenerateRequest) -> Iterator[TextChunk]:
            yield TextChunk("he", Usage())
            desk.tracked.close()
            raise EngineError("the connection was closed")

    desk.engines[0] = Closed([""])
    desk.fails()
    assert desk.state == "ready"
    assert desk.ask() == "new"


def test_completions_that_nobody_asked_for_wait_after_a_second_failure():
    own = Own([UnreachableError("it can't start. Pull the model")])
    desk = Desk(own)
    for _ in range(2):
        desk.fails(priority="inline")
    assert len(own.requests) == 2, "the next request tries again"
    assert "can't start" in str(desk.fails(priority="inline"))
    assert len(own.requests) == 2, "the one after that is refused at once"
    desk.fails(priority="rewrite")
    assert len(own.requests) == 3, "what the user asks for always tries"
    desk.now += 61
    desk.fails(priority="inline")
    assert len(own.requests) == 4
    desk.now += 9
    desk.fails(priority="inline")
    assert len(own.requests) == 4, "longer each time"


@pytest.mark.parametrize("mend", [lambda desk: desk.ask(), lambda desk: desk.tracked.close()])
def test_waiting_ends_with_an_answer_or_a_restart(mend: Callable[[Desk], object]):
    own = Own([*[UnreachableError("gone")] * 2, "hello"])
    desk = Desk(own)
    for _ in range(2):
        desk.fails()
    mend(desk)
    assert desk.ask(priority="inline") == "hello"


def test_warnings_of_the_engine_are_logged_once(caplog: pytest.LogCaptureFixture):
    engine = ScriptedEngine(["hello"], warnings=["all text goes unencrypted"])
    desk = Desk(engine)
    with caplog.at_level(logging.WARNING):
        desk.ask()
        desk.ask()
    assert [record.message for record in caplog.records] == ["all text goes unencrypted"]
