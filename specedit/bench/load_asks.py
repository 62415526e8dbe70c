"""What a load asks for: requests of all sizes and priorities, and requests that a server has to refuse.

The same seed gives the same ones. A server gets each of them many times, whole and in pieces, and must always give the
same answer.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle, islice
from typing import Any

import msgspec

from specedit.bench.corpus import own_edits
from specedit.edit.session import generate_request
from specedit.engine.api import Fim, GenerateRequest, Hints, Message, Priority, Sampling
from specedit.engine.client import dialect

_CHAT = "/v1/chat/completions"
_COMPLETIONS = "/v1/completions"

#: Tokens that a chat template may add.
_TEMPLATE_TOKENS = 64
_SAMPLED = Sampling(temperature=0.8, top_p=0.95)
#: So long an answer is never awaited: its client leaves.
LONG_TOKENS = 256
#: Some chunks of a prefill.
_FRESH_CHARS = 1400
#: What all of it fits into.
FEWEST_CONTEXT_TOKENS = 2048
#: How many different requests of each priority there are: few, so that each is answered often.
_COUNTS: Mapping[Priority, int] = {"inline": 10, "rewrite": 8, "batch": 4}


@dataclass(frozen=True, slots=True)
class Ask:
    """A request.

    Attributes:
        name: tells it from all others.
        request: what is asked.
        model: who is asked.
    """

    name: str
    request: GenerateRequest
    model: str

    @property
    def path(self) -> str:
        """The endpoint."""
        return _CHAT if self.request.messages else _COMPLETIONS

    def body(self, *, stream: bool, plain: bool = False, **more: Any) -> dict[str, Any]:
        """The body; `plain` asks for decoding without drafts, `more` are other fields."""
        request, fim = self.request, self.request.fim
        if request.messages:
            body = dialect.chat_body(request, self.model, "specedit", plain=plain)
        else:
            prompt, suffix = (fim.prefix, fim.suffix) if fim else (request.prompt or "", None)
            body = dialect.completion_body(request, self.model, "specedit", prompt=prompt, suffix=suffix, plain=plain)
        if not stream:
            del body["stream"], body["stream_options"]
        return body | more

    def long(self) -> Ask:
        """The same with a long answer."""
        return Ask(f"{self.name}, long", replace(self.request, max_new_tokens=LONG_TOKENS), self.model)

    def fresh(self, mark: int) -> Ask:
        """An inline request with a long prompt that nobody else has, so that all of it is read; `mark` makes it so."""
        text = "".join(message.content for message in self.request.messages) or self.request.prompt or "x = 1\n"
        prompt = f"# {mark:x}\n{text * _FRESH_CHARS}"[:_FRESH_CHARS]
        request = GenerateRequest(prompt=prompt, priority="inline", max_new_tokens=LONG_TOKENS)
        return Ask(f"fresh {mark:x}", request, self.model)


@dataclass(frozen=True, slots=True)
class WrongAsk:
    """A request that must be refused.

    Attributes:
        name: what is wrong with it.
        status: what HTTP must answer.
        method: of HTTP.
        path: of the endpoint.
        headers: on top of those that a right request has; None takes one away.
        content: the body.
    """

    name: str
    status: int
    method: str = "POST"
    path: str = _COMPLETIONS
    headers: Mapping[str, str | None] = field(default_factory=dict)
    content: bytes = b""


def asks(model: str, context_tokens: int, seed: int, *, fills: bool) -> dict[Priority, list[Ask]]:
    """Requests by priority, made of our own edits; every second one is sampled.

    Args:
        model: what the server calls its model.
        context_tokens: what its context holds, at least `FEWEST_CONTEXT_TOKENS`. A token is taken for a byte, so all
            of them fit.
        seed: chooses them.
        fills: whether the model fills in the middle; half of the inline requests then do.
    """
    random_ = random.Random(f"asks {seed}")  # noqa: S311 - no secret
    cases = [*own_edits("small"), *own_edits("speed")]
    random_.shuffle(cases)
    edits = [generate_request(case.request()) for case in cases]

    def inline() -> Iterator[GenerateRequest]:
        for number, case in enumerate(cycle(cases)):
            cut = random_.randrange(len(case.before) // 2, len(case.before))
            prefix, suffix = case.before[:cut], case.before[cut : cut + 400]
            limit = random_.randint(2, 10)
            if fills and number % 2:
                yield GenerateRequest(fim=Fim(prefix, suffix), max_new_tokens=limit)
            else:
                yield GenerateRequest(prompt=prefix, max_new_tokens=limit)

    def rewrite() -> Iterator[GenerateRequest]:
        for edit in cycle(edits):
            yield replace(edit, max_new_tokens=random_.randint(8, 40))

    def batch() -> Iterator[GenerateRequest]:
        for edit in cycle(edits):
            yield replace(edit, prediction="", hints=Hints(), max_new_tokens=random_.randint(8, 24))

    made: dict[Priority, list[Ask]] = {}
    sources: dict[Priority, Iterator[GenerateRequest]] = {"inline": inline(), "rewrite": rewrite(), "batch": batch()}
    for priority, requests in sources.items():
        fitting = (request for request in islice(requests, 1000) if _most_tokens(request) <= context_tokens)
        made[priority] = [
            Ask(
                f"{priority} {number}",
                replace(
                    request,
                    priority=priority,
                    sampling=_SAMPLED if number % 2 else Sampling(),
                    seed=random_.getrandbits(32),
                ),
                model,
            )
            for number, request in enumerate(islice(fitting, _COUNTS[priority]))
        ]
    return made


def wrong_asks(model: str, context_tokens: int) -> Sequence[WrongAsk]:
    """Requests that a server has to refuse, each for one reason."""
    right = {"model": model, "prompt": "x = ", "max_tokens": 2}

    def wrong(name: str, status: int, **changes: Any) -> WrongAsk:
        return WrongAsk(name, status, content=msgspec.json.encode(right | changes))

    body = msgspec.json.encode(right)
    return (
        WrongAsk("no token", 401, headers={"Authorization": None}, content=body),
        WrongAsk("another token", 401, headers={"Authorization": "Bearer 0123456789abcdef"}, content=body),
        WrongAsk("a web page's", 403, headers={"Origin": "https://example.org"}, content=body),
        WrongAsk("another host", 421, headers={"Host": "example.org"}, content=body),
        WrongAsk("no such path", 404, path="/v1/../etc/passwd", content=body),
        WrongAsk("another method", 405, method="GET"),
        WrongAsk("no JSON", 400, content=b'{"model": '),
        WrongAsk("another type", 415, headers={"Content-Type": "text/plain"}, content=body),
        # More than can arrive: it has to be refused for what it declares.
        WrongAsk("too large", 413, headers={"Content-Length": str(1 << 40)}, content=body),
        wrong("unknown field", 400, prompts="x"),
        wrong("two answers", 400, n=2),
        wrong("another model", 404, model="no-such-model"),
        wrong("over the context", 400, prompt="a b " * context_tokens),
        wrong("out of range", 400, temperature=-1.0),
    )


def probe_fill(model: str) -> Ask:
    """A request that a model which can't fill in the middle refuses."""
    request = GenerateRequest(fim=Fim("x = ", "\n"), priority="inline", max_new_tokens=1)
    return Ask("fill", request, model)


def probe_chat(model: str) -> Ask:
    """A short request, to have everything loaded that is loaded once."""
    return Ask("chat", GenerateRequest(messages=(Message("user", "Say x."),), max_new_tokens=4), model)


def _most_tokens(request: GenerateRequest) -> int:
    """At least as many as prompt and answer have."""
    texts = [message.content for message in request.messages]
    texts += [request.prompt or "", *((request.fim.prefix, request.fim.suffix) if request.fim else ())]
    assert isinstance(request.max_new_tokens, int)
    return sum(len(text.encode()) for text in texts) + max(request.max_new_tokens, LONG_TOKENS) + _TEMPLATE_TOKENS
