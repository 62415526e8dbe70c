from __future__ import annotations

import asyncio

from lsprotocol.types import ClientCapabilities
from pygls.exceptions import JsonRpcInternalError

from specedit_lsp.progress import Progress
from tests.lsp.fake_client import FakeClient


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def told(client):
    return [params["value"] for params in client.told("$/progress")]


def test_work_is_shown_from_begin_to_end():
    client, clock = FakeClient(), Clock()
    progress = Progress(client, "Rewrite", "t", clock)
    asyncio.run(progress.begin())
    progress.report(40, "40 of 100")
    progress.end("done")
    assert client.requests == []
    assert {params["token"] for params in client.told("$/progress")} == {"t"}
    assert told(client) == [
        {"kind": "begin", "title": "Rewrite", "cancellable": True, "percentage": 0},
        {"kind": "report", "percentage": 40, "message": "40 of 100"},
        {"kind": "end", "message": "done"},
    ]


def test_it_is_told_at_most_ten_times_a_second_and_never_goes_back_nor_to_the_end():
    client, clock = FakeClient(), Clock()
    progress = Progress(client, "Rewrite", 7, clock)
    asyncio.run(progress.begin())
    for step in range(200):
        clock.now = 100 + step / 100
        progress.report(step if step != 150 else 0)
    percents = [value["percentage"] for value in told(client)[1:]]
    assert len(percents) <= 21
    assert percents == sorted(percents)
    assert percents[-1] == 99


def test_a_token_is_asked_for_where_the_request_had_none():
    client = FakeClient()
    progress, other = Progress(client, "Rewrite"), Progress(client, "Rewrite")
    asyncio.run(progress.begin())
    asyncio.run(other.begin())
    tokens = [params.token for _, params in client.requests]
    assert tokens == [progress.token, other.token]
    assert len(set(tokens)) == 2
    assert [params["token"] for params in client.told("$/progress")] == tokens


def test_nothing_is_told_to_an_editor_that_shows_none():
    refusing = FakeClient(answers={"window/workDoneProgress/create": JsonRpcInternalError("no")})
    for client in (FakeClient(capabilities=ClientCapabilities()), refusing):
        progress = Progress(client, "Rewrite")
        asyncio.run(progress.begin())
        progress.report(10)
        progress.end()
        assert client.notifications == []


def test_work_that_ended_before_the_editor_answered_is_never_shown():
    client = FakeClient()
    progress = Progress(client, "Rewrite")
    client.answers["window/workDoneProgress/create"] = lambda _: progress.end()
    asyncio.run(progress.begin())
    progress.report(50)
    progress.end()
    assert client.notifications == []
