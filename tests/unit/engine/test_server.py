"""The HTTP server, used by the official client over a real connection, without a model."""

from __future__ import annotations

import contextlib
import json
import logging
import math
import socket
import threading
import time

import httpx2
import openai
import pytest
from prometheus_client.parser import text_string_to_metric_families

from specedit.engine.api import (
    DraftedToken,
    DrafterUsage,
    Fim,
    Hints,
    Message,
    TextChunk,
    TokenLogprob,
    TraceStep,
    Usage,
)
from specedit.engine.server import ServedModel, create_app, shut_down
from specedit.engine.serving.metrics import Metrics
from specedit.errors import (
    ContextOverflowError,
    EngineError,
    OutOfMemoryError,
    OverloadedError,
    ShuttingDownError,
    UnsupportedModelError,
    UsageError,
)
from tests.unit.engine.scripted_answers import ScriptedAnswers, script
from tests.unit.engine.serving.loopback import HEADERS, TOKEN, serving

MODEL = ServedModel(name="org/tiny", context_tokens=2048, created=1_700_000_000, device="cpu")
ASK = [{"role": "user", "content": "Hi"}]
CHAT = {"model": "default", "messages": ASK}
SOON = 5.0


@pytest.fixture(scope="module")
def served():
    """(answers, application, port) of a server that the tests of this file share."""
    answers = ScriptedAnswers()
    app = create_app(answers, model=MODEL, token=TOKEN, ping_seconds=0.2, send_seconds=0.5)
    with serving(app) as port:
        yield answers, app, port


@pytest.fixture(autouse=True)
def answers(served):
    served[0].reset()
    return served[0]


@pytest.fixture(scope="module")
def port(served):
    return served[2]


@pytest.fixture(scope="module")
def client(port):
    with openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key=TOKEN, max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
def http(port):
    with httpx2.Client(base_url=f"http://127.0.0.1:{port}", headers=HEADERS) as http:
        yield http


@pytest.fixture
def app(served):
    yield served[1]
    served[1].state.shutting_down = False


def events(text):
    return [line.removeprefix("data: ") for line in text.split("\n") if line.startswith("data: ")]


# Whole answers


def test_a_chat(client, answers):
    answer = client.chat.completions.create(model="org/tiny", messages=ASK, temperature=0, seed=5, stop=["a", "b"])
    [choice] = answer.choices
    assert (choice.message.role, choice.message.content, choice.finish_reason) == ("assistant", "Hello world", "stop")
    assert answer.model == "org/tiny"
    assert answer.id.startswith("chatcmpl-")
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (7, 2, 9)
    [request] = answers.requests
    assert request.messages == (Message("user", "Hi"),)
    assert (request.seed, request.stop, request.max_new_tokens) == (5, ("a", "b"), "context")


def test_a_completion_and_a_gap_to_fill(client, answers):
    answers.script = script("body", finish="length")
    answer = client.completions.create(model="default", prompt="def f():", max_tokens=1)
    assert (answer.choices[0].text, answer.choices[0].finish_reason) == ("body", "length")
    client.completions.create(model="default", prompt="before", suffix="")
    plain, fim = answers.requests
    assert (plain.prompt, plain.fim, plain.priority, plain.max_new_tokens) == ("def f():", None, "rewrite", 1)
    assert (fim.prompt, fim.fim, fim.priority, fim.max_new_tokens) == (None, Fim("before", ""), "inline", 16)


def test_what_was_drafted_from_a_prediction_is_told(client, answers):
    drafters = {"cursor": DrafterUsage(30, 20), "lookup": DrafterUsage(5, 1), "ngram": DrafterUsage(7, 7)}
    answers.script = script("x", usage=Usage(prompt_tokens=9, cached_tokens=4, output_tokens=25, drafters=drafters))
    prediction = {"type": "content", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}
    usage = client.chat.completions.create(model="default", messages=ASK, prediction=prediction).usage
    details = usage.completion_tokens_details
    assert (details.accepted_prediction_tokens, details.rejected_prediction_tokens) == (21, 14)
    assert usage.prompt_tokens_details.cached_tokens == 4
    assert usage.specedit["drafters"]["ngram"] == {"drafted": 7, "accepted": 7}
    assert answers.requests[0].prediction == "ab"
    without = client.chat.completions.create(model="default", messages=ASK).usage.completion_tokens_details
    assert (without.accepted_prediction_tokens, without.rejected_prediction_tokens) == (0, 0)


def test_what_specedits_own_clients_send(client, answers):
    extension = {
        "hints": {"substitutions": [["a", "b"]], "resume_offsets": [3], "opening": "```\n"},
        "priority": "batch",
        "limit": "prediction",
        "plain": True,
    }
    client.chat.completions.create(model="default", messages=ASK, extra_body={"specedit": extension})
    [request] = answers.requests
    assert request.hints == Hints((("a", "b"),), (3,), "```\n")
    assert (request.priority, request.max_new_tokens, answers.plain) == ("batch", None, [True])


LETTER = TokenLogprob("é".encode()[:1], -0.5, (TokenLogprob(b"e", -1.0), TokenLogprob(b"\xc3", -0.5)))
TOKENS = (TokenLogprob(b"ab", -0.25, (TokenLogprob(b"ab", -0.25),)), LETTER, TokenLogprob(b"\xa9", -math.inf))


def test_log_probabilities_of_a_chat(client, answers):
    answers.script = [TextChunk("abé", Usage(), "stop", tokens=TOKENS)]
    answer = client.chat.completions.create(model="default", messages=ASK, logprobs=True, top_logprobs=2)
    first, part, never = answer.choices[0].logprobs.content
    assert (first.token, first.logprob, first.bytes) == ("ab", -0.25, [97, 98])
    assert [(top.token, top.logprob) for top in part.top_logprobs] == [("e", -1.0), ("\ufffd", -0.5)]
    assert (part.bytes, never.logprob) == ([0xC3], -9999.0)
    assert answers.requests[0].logprobs == 2
    assert client.chat.completions.create(model="default", messages=ASK).choices[0].logprobs is None


def test_log_probabilities_of_a_completion(client, answers):
    answers.script = [TextChunk("ab", Usage(), tokens=TOKENS[:1]), TextChunk("é", Usage(), "stop", tokens=TOKENS[1:])]
    logprobs = client.completions.create(model="default", prompt="x", logprobs=2).choices[0].logprobs
    assert logprobs.tokens == ["ab", "bytes:\\xc3", "bytes:\\xa9"]
    assert logprobs.token_logprobs == [-0.25, -0.5, -9999.0]
    assert logprobs.top_logprobs[1] == {"e": -1.0, "bytes:\\xc3": -0.5}
    assert logprobs.text_offset == [0, 2, 2]
    streamed = client.completions.create(model="default", prompt="x", logprobs=2, stream=True)
    offsets = [event.choices[0].logprobs.text_offset for event in streamed]
    assert offsets == [[0], [2, 2]]


# Streams


def test_a_streamed_chat(client, answers):
    answers.script = script("Hel", "", "lo", "")
    chunks = list(client.chat.completions.create(model="default", messages=ASK, stream=True))
    assert [chunk.choices[0].delta.content for chunk in chunks] == ["Hel", "lo", ""]
    assert [chunk.choices[0].delta.role for chunk in chunks] == ["assistant", None, None]
    assert [chunk.choices[0].finish_reason for chunk in chunks] == [None, None, "stop"]
    assert len({(chunk.id, chunk.created, chunk.system_fingerprint) for chunk in chunks}) == 1


def test_the_last_chunk_tells_the_usage_where_it_is_asked_for(http):
    plain = http.post("/v1/chat/completions", json={**CHAT, "stream": True})
    *chunks, done = events(plain.text)
    assert done == "[DONE]"
    assert not any("usage" in json.loads(chunk) for chunk in chunks)
    asked = http.post("/v1/chat/completions", json={**CHAT, "stream": True, "stream_options": {"include_usage": True}})
    *chunks, last, done = events(asked.text)
    assert all(json.loads(chunk)["usage"] is None for chunk in chunks)
    assert json.loads(last)["choices"] == []
    assert json.loads(last)["usage"]["specedit"]["forwards"] == 2


def test_each_chunk_tells_the_usage_so_far_where_it_is_asked_for(http):
    options = {"include_usage": True, "continuous_usage_stats": True}
    told = http.post("/v1/chat/completions", json={**CHAT, "stream": True, "stream_options": options})
    *chunks, _last, _done = events(told.text)
    counts = [json.loads(chunk)["usage"]["specedit"]["output_tokens"] for chunk in chunks]
    assert counts
    assert counts == sorted(counts)


def test_a_streamed_completion(client):
    chunks = list(
        client.completions.create(model="default", prompt="x", stream=True, stream_options={"include_usage": True})
    )
    assert "".join(chunk.choices[0].text for chunk in chunks[:-1]) == "Hello world"
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].usage.total_tokens == 9


def test_a_trace_tells_each_step(client, answers):
    step = TraceStep(drafted=(DraftedToken("a", -1, "cursor", 0.9),), accepted=(0,), emitted=("a", "b"), proposed=3)
    answers.script = [TextChunk("", Usage(), None, step), TextChunk("ab", Usage(), "stop", step)]
    stream = client.chat.completions.create(
        model="default", messages=ASK, stream=True, extra_body={"specedit": {"trace": True}}
    )
    steps = [chunk.specedit["step"] for chunk in stream]
    assert len(steps) == 2
    assert steps[0]["drafted"] == [{"text": "a", "parent": -1, "origin": "cursor", "probability": 0.9}]
    assert answers.requests[0].trace


def test_unusual_line_ends_in_code_end_no_line_of_the_stream(http, answers):
    answers.script = script("a\u2028b\u2029c\x85d\r\n\x0ce")
    text = http.post("/v1/chat/completions", json={**CHAT, "stream": True}).text
    first, done = [line for line in text.splitlines() if line]
    assert json.loads(first.removeprefix("data: "))["choices"][0]["delta"]["content"] == "a\u2028b\u2029c\x85d\r\n\x0ce"
    assert done == "data: [DONE]"


def test_a_stream_that_waits_for_its_turn_shows_that_it_is_alive(http, answers):
    turn = threading.Event()
    answers.script = [turn, *script("x")]
    with http.stream("POST", "/v1/chat/completions", json={**CHAT, "stream": True}) as response:
        lines = response.iter_lines()
        assert next(lines) == ": waiting"
        turn.set()
        assert events("\n".join(lines))[-1] == "[DONE]"


# Errors


@pytest.mark.parametrize(
    ("error", "kind", "status", "code"),
    [
        (UsageError("top_k is wrong"), openai.BadRequestError, 400, None),
        (ContextOverflowError("2048 of 2000"), openai.BadRequestError, 400, "context_length_exceeded"),
        (UnsupportedModelError("no chat template"), openai.BadRequestError, 400, "unsupported_by_model"),
        (OverloadedError("too many wait"), openai.RateLimitError, 429, "overloaded"),
        (ShuttingDownError("going"), openai.InternalServerError, 503, "shutting_down"),
        (OutOfMemoryError("no memory"), openai.InternalServerError, 503, "out_of_memory"),
        (EngineError("broken"), openai.InternalServerError, 500, "engine_failed"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("at_once", [False, True])
def test_errors_before_the_first_text_have_their_status(client, answers, error, kind, status, code, stream, at_once):
    if at_once:
        answers.refusal = error
    else:
        answers.script = [error]
    with pytest.raises(kind) as raised:
        client.chat.completions.create(model="default", messages=ASK, stream=stream)
    assert (raised.value.status_code, raised.value.code) == (status, code)
    assert str(error) in raised.value.message
    assert (raised.value.response.headers.get("retry-after") is not None) == (status == 429)


def test_an_error_in_mid_stream_is_an_event_and_the_end(client, http, answers):
    answers.script = [*script("half", finish=None), OutOfMemoryError("no memory left")]
    got = []
    with pytest.raises(openai.APIError, match="no memory left"):
        got.extend(
            chunk.choices[0].delta.content
            for chunk in client.chat.completions.create(model="default", messages=ASK, stream=True)
        )
    *_, last = events(http.post("/v1/chat/completions", json={**CHAT, "stream": True}).text)
    assert json.loads(last)["error"]["code"] == "out_of_memory"


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_that_a_shutdown_ends_is_an_error(http, answers, stream):
    answers.script = script("half", "", finish="cancelled")
    response = http.post("/v1/completions", json={"model": "default", "prompt": "x", "stream": stream})
    error = json.loads(events(response.text)[-1]) if stream else response.json()
    assert error["error"]["code"] == "shutting_down"
    assert response.status_code == (200 if stream else 503)


def test_another_model_is_not_found(client):
    with pytest.raises(openai.NotFoundError, match="org/tiny") as raised:
        client.chat.completions.create(model="gpt-4", messages=ASK)
    assert (raised.value.code, raised.value.param) == ("model_not_found", "model")
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("gpt-4")


def test_a_wrong_token_is_an_authentication_error(client):
    with pytest.raises(openai.AuthenticationError):
        client.with_options(api_key="other").chat.completions.create(**CHAT)


def test_a_fault_of_the_server_tells_and_logs_nothing_of_the_code(client, answers, caplog):
    answers.refusal = ValueError("secret code")
    with caplog.at_level(logging.DEBUG), pytest.raises(openai.InternalServerError) as raised:
        client.chat.completions.create(**CHAT)
    assert "secret" not in raised.value.response.text
    assert "a request failed: ValueError" in caplog.text
    assert "secret" not in caplog.text


def test_no_text_is_logged(http, answers, caplog):
    answers.script = [*script("secret", finish=None), EngineError("secret")]
    with caplog.at_level(logging.DEBUG):
        http.post("/v1/completions", json={"model": "default", "prompt": "secret", "stream": True})
        http.post("/v1/completions", json={"model": "default", "prompt": "secret", "secret": 1})
        http.post("/v1/completions", json={"model": "default", "prompt": "secret"})
    ours = [record for record in caplog.records if not record.name.startswith(("httpx2", "httpcore2", "httpcore"))]
    assert not any("secret" in record.getMessage() for record in ours)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/chat/completions", 405),
        ("DELETE", "/v1/models", 405),
        ("GET", "/v1/embeddings", 404),
        ("POST", "/v1/completions/", 404),
        ("GET", "/docs", 404),
    ],
)
def test_paths_and_methods_that_are_not_there(http, method, path, status):
    response = http.request(method, path)
    assert response.status_code == status
    assert response.json()["error"]["type"] == "invalid_request_error"
    assert ("allow" in response.headers) == (status == 405)


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": ""},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "application/json", "Content-Encoding": "gzip"},
    ],
)
def test_bodies_that_are_not_json_are_refused(http, headers):
    response = http.post("/v1/chat/completions", content=json.dumps(CHAT), headers=headers)
    assert response.status_code == 415
    assert response.json()["error"]["code"] == "unsupported_media_type"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b'{"model": "default", "messages": [{"role": "user", "content": "\xff"}]}',
        b'{"model": "default", "messages": [{"role": "user", "content": "\\ud800"}]}',
        b"[" * 1_000_000,
        b'{"tools":' + b"[" * 1_000_000,
        b'{"prompt_cache_options":' + b'{"a":' * 1_000_000,
        b'{"model": "default", "prompt": NaN}',
        b"null",
    ],
)
def test_bodies_that_are_no_request_are_refused(http, answers, body):
    for path in ("/v1/chat/completions", "/v1/completions"):
        response = http.post(path, content=body, headers={"Content-Type": "application/json"})
        assert response.status_code == 400
        assert response.json()["error"]["message"]
    assert answers.requests == []


def test_a_large_prediction_is_taken(client, answers):
    text = "x = 1\n" * 180_000
    client.chat.completions.create(**CHAT, prediction={"type": "content", "content": text})
    assert answers.requests[0].prediction == text


# Clients that go away


def counted(http, outcome, priority):
    """How many chats ended so."""
    wanted = {"endpoint": "/v1/chat/completions", "outcome": outcome, "priority": priority}
    families = text_string_to_metric_families(http.get("/metrics").text)
    samples = [sample for family in families for sample in family.samples if sample.name == "specedit_requests_total"]
    return sum(sample.value for sample in samples if sample.labels == wanted)


def begin(port, *, stream=True):
    """A connection on which a chat was asked for."""
    body = json.dumps({**CHAT, "stream": stream}).encode()
    connection = socket.create_connection(("127.0.0.1", port))
    head = f"Host: localhost\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json"
    head = f"POST /v1/chat/completions HTTP/1.1\r\n{head}\r\nContent-Length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode() + body)
    return connection


def until(condition):
    deadline = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < deadline, "did not come about"
        time.sleep(0.005)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("text", [(), ("some", "text")])
def test_a_client_that_goes_away_cancels_its_answer(port, answers, http, stream, text):
    answers.script = [*(script(*text, finish=None) if text else ()), threading.Event(), *script("never")]
    before = counted(http, "cancelled", "rewrite")
    connection = begin(port, stream=stream)
    until(lambda: answers.requests)
    if stream and text:
        while b"text" not in connection.recv(65536):
            pass
    connection.close()
    assert answers.ended.get(timeout=SOON) == "cancelled"
    until(lambda: counted(http, "cancelled", "rewrite") == before + 1)


def test_the_official_client_cancels_by_closing_the_stream(client, answers):
    answers.script = [*script("some", finish=None), threading.Event()]
    stream = client.chat.completions.create(**CHAT, stream=True)
    next(iter(stream))
    stream.close()
    assert answers.ended.get(timeout=SOON) == "cancelled"


def test_a_client_that_goes_away_before_its_turn_to_be_encoded_costs_nothing(port, answers):
    answers.encoding.clear()
    answers.script = [threading.Event()]
    connections = [begin(port), begin(port)]
    time.sleep(0.3)
    for connection in connections:
        connection.close()
    time.sleep(0.3)
    answers.encoding.set()
    assert answers.ended.get(timeout=SOON) == "cancelled"
    assert len(answers.requests) == 1, "the second was never encoded"


def test_a_client_that_does_not_read_holds_up_nobody(port, answers, client):
    held = threading.Event()
    answers.script = [*script(*["x" * 100_000] * 300, finish=None), held, *script("end")]
    with contextlib.closing(begin(port)):
        until(lambda: answers.requests)
        answers.script = script("quick")
        assert client.chat.completions.create(**CHAT).choices[0].message.content == "quick"
        assert sorted([answers.ended.get(timeout=SOON), answers.ended.get(timeout=SOON)]) == ["cancelled", "stop"]


def test_requests_are_counted_by_what_became_of_them(http, answers):
    kinds = [("stop", "rewrite"), ("refused", "rewrite"), ("refused", "none"), ("cancelled", "rewrite")]
    before = [counted(http, *kind) for kind in kinds]
    for stream in (False, True):
        http.post("/v1/chat/completions", json={**CHAT, "stream": stream})
    answers.refusal = OverloadedError("full")
    http.post("/v1/chat/completions", json=CHAT)
    http.post("/v1/chat/completions", content="{", headers={"Content-Type": "application/json"})
    assert [counted(http, *kind) - old for kind, old in zip(kinds, before, strict=True)] == [2, 1, 1, 0]


# What it tells of itself


def test_the_model_that_is_served(client):
    [model] = client.models.list()
    assert (model.id, model.owned_by, model.max_model_len, model.created, model.device) == (
        "org/tiny",
        "specedit",
        2048,
        1_700_000_000,
        "cpu",
    )
    assert client.models.retrieve("org/tiny") == model
    assert client.models.retrieve("default") == model


def test_health_is_open_and_tells_nothing_else(port, app):
    url = f"http://127.0.0.1:{port}/health"
    response = httpx2.get(url)
    assert (response.status_code, response.json()) == (200, {"status": "ok"})
    shut_down(app)
    response = httpx2.get(url)
    assert (response.status_code, response.json()) == (503, {"status": "shutting down"})


def test_a_server_that_shuts_down_takes_no_requests_and_ends_its_answers(client, app, answers):
    last = threading.Event()
    answers.script = [*script("begun", finish=None), last, *script(" and done")]
    stream = iter(client.chat.completions.create(**CHAT, stream=True))
    assert next(stream).choices[0].delta.content == "begun"
    shut_down(app)
    with pytest.raises(openai.InternalServerError, match="shutting down"):
        client.chat.completions.create(**CHAT)
    last.set()
    assert [chunk.choices[0].delta.content for chunk in stream] == [" and done"]


def test_metrics_tell_the_queue(http):
    text = http.get("/metrics").text
    assert 'specedit_waiting{priority="inline"} 0.0' in text
    assert "specedit_kv_bytes 4096.0" in text
    assert "specedit_steps_total 9.0" in text


def test_a_server_without_token_is_refused(answers):
    for token in ("", "with blank", "ümlaut", "line\n"):
        with pytest.raises(UsageError, match="token"):
            create_app(answers, model=MODEL, token=token, metrics=Metrics())
