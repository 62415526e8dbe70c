from __future__ import annotations

import asyncio
from contextlib import suppress

from specedit_lsp.turns import Turns


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_two_documents_at_once_and_no_third():
    async def scenario():
        turns = Turns(2)
        await turns.take("a")
        await turns.take("b")
        third = asyncio.ensure_future(turns.take("c"))
        await settled()
        assert not third.done()
        turns.give_back("a")
        await third
        assert len(turns) == 2

    asyncio.run(scenario())


def test_a_document_waits_for_its_own_turn_to_end():
    async def scenario():
        turns = Turns(2)
        await turns.take("a")
        again = asyncio.ensure_future(turns.take("a"))
        await settled()
        assert not again.done()
        turns.give_back("a")
        await again
        assert len(turns) == 1

    asyncio.run(scenario())


def test_only_the_newest_waits():
    async def scenario():
        turns = Turns(1)
        await turns.take("a")
        waiting = [asyncio.ensure_future(turns.take(key)) for key in "bcdefg"]
        await settled()
        assert [task.cancelled() for task in waiting] == [True] * 5 + [False]
        turns.give_back("a")
        await waiting[-1]

    asyncio.run(scenario())


def test_one_that_gives_up_waiting_leaves_the_turn_to_others():
    async def scenario():
        turns = Turns(1)
        await turns.take("a")
        waiting = asyncio.ensure_future(turns.take("b"))
        await settled()
        waiting.cancel()
        await settled()
        turns.give_back("a")
        await turns.take("c")
        assert len(turns) == 1

    asyncio.run(scenario())


def test_one_that_gives_up_just_as_its_turn_comes_gives_it_back():
    async def scenario():
        turns = Turns(1)
        await turns.take("a")
        waiting = asyncio.ensure_future(turns.take("b"))
        await settled()
        turns.give_back("a")
        waiting.cancel()
        with suppress(asyncio.CancelledError):
            await waiting
        assert len(turns) == 0

    asyncio.run(scenario())
