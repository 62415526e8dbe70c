"""Clients of a server under load: those that wait for their answers, those that leave, and those that behave badly.

Most of them work in rounds: each takes its turns, and the next round begins when all are through, so that the queue
fills and drains on any machine. Beside them some hold connections open without ever finishing what they began.
"""

from __future__ import annotations

import asyncio
import random
import socket
import struct
import time
from collections.abc import AsyncIterator, Container, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any, Literal

import httpx2
import msgspec

from specedit.bench.load_asks import Ask, WrongAsk
from specedit.bench.load_server import Address
from specedit.engine.api import Priority

Behaviour = Literal[
    "streamed",
    "whole",
    "wrong",
    "leaves before its turn",
    "leaves in the prefill",
    "leaves in mid-stream",
    "is reset in mid-stream",
    "reads slowly",
]
Hold = Literal["says nothing", "half a head", "half a body", "never reads"]

#: How often each is taken, of so many turns.
_DECK: Mapping[Behaviour, int] = {
    "streamed": 6,
    "whole": 5,
    "wrong": 2,
    "leaves before its turn": 1,
    "leaves in the prefill": 1,
    "leaves in mid-stream": 2,
    "is reset in mid-stream": 1,
    "reads slowly": 1,
}
_LEAVING: Container[Behaviour] = ("leaves in the prefill", "leaves in mid-stream", "is reset in mid-stream")
#: The longest that a server may hold a connection on which nothing happens: it allows a head 40 seconds, a body 60.
_HOLDS: Mapping[Hold, float] = {"says nothing": 60.0, "half a head": 60.0, "half a body": 90.0, "never reads": 90.0}

_PRIORITIES: tuple[Priority, ...] = ("inline", "rewrite", "inline", "rewrite", "batch")
_TURNS: Mapping[Priority, int] = {"inline": 3, "rewrite": 2, "batch": 1}

#: Little, so that what a client doesn't read soon stays with the server.
_RECEIVE_BYTES = 2048
_BUFFER_BYTES = 8192
_SLOW_BYTES = 8
_SHOWN_CHARS = 60


class Visit(msgspec.Struct, frozen=True, kw_only=True):
    """What one client did once, and what came of it.

    Attributes:
        kind: the priority of what it asked for, "wrong" or "half-open".
        behaviour: what it did.
        outcome: how that ended.
        wrong: what should not have been, with the request; empty where all was well.
        seconds: from connecting to the end.
        first_text_seconds: until the first text of a streamed answer.
    """

    kind: str
    behaviour: str
    outcome: str
    wrong: str = ""
    seconds: float = 0.0
    first_text_seconds: float | None = None


class Ledger:
    """What each request was answered first."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, str | None]] = {}

    def difference(self, name: str, text: str, finish: str | None) -> str:
        """In what an answer differs from what the same request was answered before; empty where in nothing.

        Args:
            name: of the request.
            text: of the answer, or its beginning.
            finish: why it ended, None for a beginning.
        """
        known, known_finish = self._known.get(name, ("", None))
        shared = _shared_chars(known, text)
        same = (
            shared == min(len(known), len(text))
            and (not finish or len(text) >= len(known))
            and (not known_finish or len(known) >= len(text))
            and (not finish or known_finish in (None, finish))
        )
        if not same:
            first, now = (
                f"{one[shared : shared + _SHOWN_CHARS]!r} ({why})"
                for one, why in ((known, known_finish), (text, finish))
            )
            return f"{name}: after {shared} characters first {first}, now {now}"
        if finish or (known_finish is None and len(text) > len(known)):
            self._known[name] = (text, finish)
        return ""

    def whole(self) -> list[str]:
        """The names of requests that were answered to the end."""
        return [name for name, (_, finish) in self._known.items() if finish is not None]


@dataclass(eq=False)
class Crowd:
    """All clients of one load.

    Attributes:
        address: whom they ask.
        asks: what they ask for.
        wrong_asks: what they ask for wrongly.
        seed: decides who does what in which order.
        patience_seconds: how long they wait for the end of an answer before they call it stuck.
        pause_seconds: between two turns, on average.
        visits: what they did so far.
        ledger: what they were answered.
    """

    address: Address
    asks: Mapping[Priority, Sequence[Ask]]
    wrong_asks: Sequence[WrongAsk]
    seed: int
    patience_seconds: float
    pause_seconds: float
    visits: list[Visit] = field(default_factory=list)
    ledger: Ledger = field(default_factory=Ledger)
    _over: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, clients: int, seconds: float) -> None:
        """Have so many clients come for so long, and wait for the answers that are then under way."""
        asyncio.get_running_loop().call_later(seconds, self.stop)
        num_holding = max(len(_HOLDS), clients // 8)
        async with self._http() as http, asyncio.TaskGroup() as group:
            for number in range(num_holding):
                group.create_task(self._hold_on(number))
            workers = [_Worker(self, http, number) for number in range(clients - num_holding)]
            while not self._over.is_set():
                async with asyncio.TaskGroup() as round_:
                    for worker in workers:
                        round_.create_task(worker.turns())

    def stop(self) -> None:
        """Let no client begin anything more."""
        self._over.set()

    @property
    def is_over(self) -> bool:
        """Whether no client begins anything more."""
        return self._over.is_set()

    async def over_within(self, seconds: float) -> None:
        """Wait for so long, or until the load is over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._over.wait()

    async def ask_alone(self, count: int) -> tuple[int, list[str]]:
        """Ask up to `count` requests again, one after the other and decoded plainly: how many, and what differs."""
        by_name = {ask.name: ask for asks in self.asks.values() for ask in asks}
        names = sorted(by_name.keys() & set(self.ledger.whole()))
        # Evenly spread, so that all priorities are among them.
        chosen = names[:: -(-len(names) // count)] if names and count else []
        async with self._http() as http:
            told = [await self._ask_alone(http, by_name[name]) for name in chosen]
        return len(chosen), [difference for difference in told if difference]

    async def _ask_alone(self, http: httpx2.AsyncClient, ask: Ask) -> str:
        try:
            async with asyncio.timeout(self.patience_seconds):
                response = await http.post(ask.path, json=ask.body(stream=False, plain=True))
        except (TimeoutError, httpx2.HTTPError) as error:
            return f"{ask.name}: {error!r}"
        text, finish, problem = _whole(response)
        return f"{ask.name}: {problem} {text}" if problem else self.ledger.difference(ask.name, text, finish)

    def _http(self) -> httpx2.AsyncClient:
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=2.0)
        address = self.address
        return httpx2.AsyncClient(
            base_url=address.url, headers=address.headers, timeout=None, limits=limits, trust_env=False
        )

    # --- connections that nothing comes of

    async def _hold_on(self, number: int) -> None:
        holds = cycle(_HOLDS)
        for _ in range(number % len(_HOLDS)):
            next(holds)
        asks = cycle(self.asks["rewrite"])
        while not self._over.is_set():
            hold, started = next(holds), time.perf_counter()
            try:
                outcome = await self._held(hold, next(asks))
                wrong = f"{hold}: open after {_HOLDS[hold]:.0f} seconds" if outcome == "still open" else ""
            except OSError as error:
                outcome, wrong = "failed", f"{hold}: {error!r}"
                await asyncio.sleep(self.pause_seconds)
            seconds = time.perf_counter() - started
            self.visits.append(Visit(kind="half-open", behaviour=hold, outcome=outcome, wrong=wrong, seconds=seconds))

    async def _held(self, hold: Hold, ask: Ask) -> str:
        whole = raw_request(self.address, ask.path, ask.long().body(stream=True, **_many_bytes(ask)))
        sent = {
            "says nothing": b"",
            "half a head": whole[: whole.index(b"\r\n\r\n") // 2],
            "half a body": whole[: (whole.index(b"\r\n\r\n") + len(whole)) // 2],
            "never reads": whole,
        }
        async with _connection(self.address) as (reader, writer):
            writer.write(sent[hold])
            if hold == "never reads":
                await self.over_within(_HOLDS[hold])
                _reset(writer)
                return "left"
            reading = asyncio.create_task(reader.read())
            waiting = asyncio.create_task(self._over.wait())
            await asyncio.wait({reading, waiting}, timeout=_HOLDS[hold], return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            if not reading.done():
                reading.cancel()
                return "left" if self._over.is_set() else "still open"
            answer = reading.result()
            return f"refused, {_status(answer)}" if answer else "closed"


class _Worker:
    """A client that takes turns; the same number does the same in each load of one seed."""

    def __init__(self, crowd: Crowd, http: httpx2.AsyncClient, number: int) -> None:
        self._crowd = crowd
        self._http = http
        self._random = random.Random(f"{crowd.seed} {number}")  # noqa: S311 - no secret
        self._priority = _PRIORITIES[number % len(_PRIORITIES)]
        self._behaviours = self._deck(number)
        self._wrong = cycle(self._random.sample(crowd.wrong_asks, len(crowd.wrong_asks)))

    def _deck(self, number: int) -> Iterator[Behaviour]:
        # All of them occur in the first round, if there are clients enough.
        yield list(_DECK)[number % len(_DECK)]
        deck = [behaviour for behaviour, count in _DECK.items() for _ in range(count)]
        while True:
            self._random.shuffle(deck)
            yield from deck

    async def turns(self) -> None:
        """Those of one round."""
        for _ in range(_TURNS[self._priority]):
            await self._crowd.over_within(self._random.uniform(0.0, 2.0 * self._crowd.pause_seconds))
            if self._crowd.is_over:
                return
            await self._turn(next(self._behaviours))

    async def _turn(self, behaviour: Behaviour) -> None:
        crowd, started = self._crowd, time.perf_counter()
        ask = self._random.choice(crowd.asks[self._priority])
        try:
            async with asyncio.timeout(crowd.patience_seconds):
                visit = await self._visit(behaviour, ask)
        except TimeoutError:
            wrong = f"{ask.name}: not over after {crowd.patience_seconds:g} seconds"
            visit = Visit(kind=self._priority, behaviour=behaviour, outcome="stuck", wrong=wrong)
        except (httpx2.HTTPError, OSError, EOFError, msgspec.DecodeError) as error:
            visit = Visit(kind=self._priority, behaviour=behaviour, outcome="failed", wrong=f"{ask.name}: {error!r}")
        crowd.visits.append(msgspec.structs.replace(visit, seconds=time.perf_counter() - started))

    async def _visit(self, behaviour: Behaviour, ask: Ask) -> Visit:
        match behaviour:
            case "streamed":
                return await self._streamed(ask, behaviour)
            case "whole":
                response = await self._http.post(ask.path, json=ask.body(stream=False))
                return self._ended(ask, behaviour, *_whole(response))
            case "wrong":
                return await self._refused(next(self._wrong))
            case "leaves before its turn":
                await self._leave(ask.long(), self._random.uniform(0.0, 0.1))
                return Visit(kind=self._priority, behaviour=behaviour, outcome="left")
            case "leaves in the prefill":
                return await self._leave_in_prefill(ask.fresh(self._random.getrandbits(64)))
            case "leaves in mid-stream":
                return await self._streamed(ask.long(), behaviour, num_texts=self._random.randint(1, 4))
            case "is reset in mid-stream":
                return await self._vanish(ask.long())
            case "reads slowly":
                return await self._read_slowly(ask)

    async def _streamed(self, ask: Ask, behaviour: Behaviour, num_texts: int | None = None) -> Visit:
        """Read an answer, or only its first texts."""
        started, first, stream = time.perf_counter(), None, _Stream()
        async with self._http.stream("POST", ask.path, json=ask.body(stream=True)) as response:
            if response.status_code != httpx2.codes.OK:
                return self._ended(ask, behaviour, *_whole(response, await response.aread()))
            async for line in response.aiter_lines():
                stream.take(line)
                if first is None and stream.num_texts:
                    first = time.perf_counter() - started
                if num_texts is not None and stream.num_texts >= num_texts and stream.finish is None:
                    break
        return self._ended(ask, behaviour, *stream.told(), first_text_seconds=first)

    async def _refused(self, wrong: WrongAsk) -> Visit:
        headers = {name: value for name, value in wrong.headers.items() if value is not None}
        request = self._http.build_request(wrong.method, wrong.path, headers=headers, content=wrong.content)
        for name, value in wrong.headers.items():
            if value is None:
                del request.headers[name]
        # httpx would make /v1/../etc of it /etc, and send no more than the body that is there.
        if "Content-Length" in headers or ".." in wrong.path:
            status = await self._raw_status(wrong)
        else:
            status = (await self._http.send(request)).status_code
        told = "" if status == wrong.status else f"{wrong.name}: {status} where {wrong.status} is due"
        return Visit(kind="wrong", behaviour=wrong.name, outcome=f"refused, {status}", wrong=told)

    async def _raw_status(self, wrong: WrongAsk) -> int:
        headers = self._crowd.address.headers | {"Content-Length": str(len(wrong.content))}
        headers |= {name: value for name, value in wrong.headers.items() if value is not None}
        async with _connection(self._crowd.address) as (reader, writer):
            writer.write(_head(self._crowd.address, wrong.method, wrong.path, headers) + wrong.content)
            return _status(await reader.read())

    async def _leave(self, ask: Ask, after: float) -> None:
        """Ask, and close the connection after so many seconds."""
        is_streamed = self._random.random() < 0.5
        async with _connection(self._crowd.address) as (_, writer):
            writer.write(raw_request(self._crowd.address, ask.path, ask.body(stream=is_streamed)))
            await writer.drain()
            await asyncio.sleep(after)

    async def _leave_in_prefill(self, ask: Ask) -> Visit:
        """Ask for a stream and leave when it opens: at the first step, which is the first chunk of the prompt."""
        async with _connection(self._crowd.address) as (reader, writer):
            writer.write(raw_request(self._crowd.address, ask.path, ask.body(stream=True)))
            status = _status(await reader.readline())
        problem = "" if status == httpx2.codes.OK else f"refused, {status}"
        return self._ended(ask, "leaves in the prefill", "", None, problem)

    async def _vanish(self, ask: Ask) -> Visit:
        """Ask, read until text has come, and be gone without a farewell."""
        stream = _Stream()
        async with _connection(self._crowd.address) as (reader, writer):
            writer.write(raw_request(self._crowd.address, ask.path, ask.body(stream=True)))
            status = _status(await reader.readline())
            while stream.num_texts == 0 and (line := await reader.readline()):
                stream.take(line.decode())
            _reset(writer)
        problem = stream.problem if status == httpx2.codes.OK else f"refused, {status}"
        return self._ended(ask, "is reset in mid-stream", stream.text, None, problem)

    async def _read_slowly(self, ask: Ask) -> Visit:
        """Ask for an answer of many bytes, read a few of them a second, and after a while the others."""
        crowd, data = self._crowd, b""
        async with _connection(crowd.address) as (reader, writer):
            writer.write(raw_request(crowd.address, ask.path, ask.body(stream=True, **_many_bytes(ask))))
            for _ in range(10):
                data += await reader.read(_SLOW_BYTES)
                await asyncio.sleep(crowd.pause_seconds / 2)
            data += await reader.read()
        head, _, body = data.partition(b"\r\n\r\n")
        if _status(head) != httpx2.codes.OK:
            return self._ended(ask, "reads slowly", body.decode(), None, f"refused, {_status(head)}")
        stream = _Stream()
        for line in body.decode().split("\n"):
            stream.take(line)
        return self._ended(ask, "reads slowly", *stream.told())

    def _ended(
        self,
        ask: Ask,
        behaviour: Behaviour,
        text: str,
        finish: str | None,
        problem: str = "",
        *,
        first_text_seconds: float | None = None,
    ) -> Visit:
        """What came of reading an answer."""
        if problem or (finish is None and behaviour not in _LEAVING):
            outcome, wrong = "failed", f"{ask.name}: {problem or 'it ended without an end'} {text[:_SHOWN_CHARS]!r}"
        else:
            outcome, wrong = finish or "left", self._crowd.ledger.difference(ask.name, text, finish)
        return Visit(
            kind=ask.request.priority,
            behaviour=behaviour,
            outcome="different" if wrong and outcome != "failed" else outcome,
            wrong=wrong,
            first_text_seconds=first_text_seconds,
        )


# --- HTTP by hand, where a library would behave too well


def raw_request(address: Address, path: str, body: Mapping[str, object]) -> bytes:
    """A POST as HTTP/1.0 has it: the answer comes in one piece, and its end is that of the connection."""
    content = msgspec.json.encode(body)
    headers = address.headers | {"Content-Length": str(len(content))}
    return _head(address, "POST", path, headers) + content


def _head(address: Address, method: str, path: str, headers: Mapping[str, str]) -> bytes:
    host, port = address.place
    lines = [f"{method} {path} HTTP/1.0", f"Host: {host}:{port}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


@asynccontextmanager
async def _connection(address: Address) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection whose client takes little at a time; closed at the end."""
    sock = socket.socket()
    sock.setblocking(False)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BYTES)
    try:
        await asyncio.get_running_loop().sock_connect(sock, address.place)
        reader, writer = await asyncio.open_connection(sock=sock, limit=_BUFFER_BYTES)
    except BaseException:
        sock.close()
        raise
    try:
        yield reader, writer
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close a connection so that the other side gets a reset in place of an end."""
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def _status(answer: bytes) -> int:
    """The status of an HTTP answer; 0 where there is none."""
    words = answer[:64].split()
    return int(words[1]) if len(words) > 1 and words[1].isdigit() else 0


def _many_bytes(ask: Ask) -> dict[str, Any]:
    """Fields that make an answer long in bytes."""
    return {"logprobs": True, "top_logprobs": 20} if ask.request.messages else {"logprobs": 5}


# --- what an answer says


def _shared_chars(one: str, other: str) -> int:
    """How many characters both begin with."""
    different = (place for place, (left, right) in enumerate(zip(one, other, strict=False)) if left != right)
    return next(different, min(len(one), len(other)))


class _Part(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    text: str | None = None
    message: _Part | None = None
    delta: _Part | None = None
    finish_reason: str | None = None

    def said(self) -> str:
        part = self.message or self.delta
        return (part.content if part else self.text) or ""


class _Answer(msgspec.Struct):
    choices: list[_Choice] = []
    error: dict[str, object] | None = None


class _Stream:
    """A streamed answer, line by line."""

    def __init__(self) -> None:
        self.text = ""
        self.num_texts = 0
        self.finish: str | None = None
        self.problem = ""
        self._is_done = False

    def take(self, line: str) -> None:
        name, _, data = line.strip().partition(": ")
        if name != "data":
            return
        if data == "[DONE]":
            self._is_done = True
            return
        answer = msgspec.json.decode(data, type=_Answer)
        if answer.error is not None:
            self.problem = f"in mid-stream: {answer.error}"
        for choice in answer.choices:
            self.text += choice.said()
            self.num_texts += bool(choice.said())
            self.finish = choice.finish_reason or self.finish

    def told(self) -> tuple[str, str | None, str]:
        """Text, why it ended, what went wrong."""
        unfinished = "it has no [DONE]" if self.finish and not self._is_done else ""
        return self.text, self.finish, self.problem or unfinished


def _whole(response: httpx2.Response, content: bytes | None = None) -> tuple[str, str | None, str]:
    """Text, why it ended, what went wrong."""
    content = response.content if content is None else content
    if response.status_code != httpx2.codes.OK:
        return content.decode("utf-8", "replace"), None, f"refused, {response.status_code}:"
    [choice] = msgspec.json.decode(content, type=_Answer).choices
    return choice.said(), choice.finish_reason, ""
