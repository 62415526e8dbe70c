"""What a request in OpenAI's form asks of the engine, and which requests are refused with which advice."""

from __future__ import annotations

import json

import pytest

from specedit.engine.api import CancelToken, ContextFile, Fim, Message, Sampling, Usage
from specedit.engine.serving.openai_answer import usage_body
from specedit.engine.serving.openai_api import ChatRequest, CompletionRequest, RequestError, decode_request, failure
from specedit.errors import FileError, OutOfMemoryError, SpecEditError

MESSAGES = [{"role": "user", "content": "Hi"}]


def chat(**fields):
    body = json.dumps({"model": "tiny", "messages": MESSAGES, **fields}).encode()
    return decode_request(body, ChatRequest, "tiny").generate_request(CancelToken())


def completion(**fields):
    body = json.dumps({"model": "tiny", "prompt": "x", **fields}).encode()
    return decode_request(body, CompletionRequest, "tiny").generate_request(CancelToken())


def refusal(ask, **fields):
    with pytest.raises(RequestError) as raised:
        ask(**fields)
    return raised.value


@pytest.mark.parametrize("ask", [chat, completion])
def test_what_is_not_said_is_as_openai_documents_it(ask):
    request = ask()
    assert request.sampling == Sampling(temperature=1.0)
    assert (request.stop, request.logprobs, request.prediction, request.priority) == ((), None, "", "rewrite")
    assert request.seed != ask().seed, "sampling is random where no seed is given"
    assert not request.trace


@pytest.mark.parametrize("ask", [chat, completion])
def test_null_is_the_same_as_nothing(ask):
    fields = "frequency_penalty logit_bias logprobs max_tokens min_p n prediction presence_penalty repetition_penalty "
    fields += "seed specedit stop stream stream_options temperature top_k top_p user"
    request = ask(**dict.fromkeys(fields.split()))
    assert (request.sampling, request.max_new_tokens) == (ask().sampling, ask().max_new_tokens)


@pytest.mark.parametrize("ask", [chat, completion])
def test_every_way_to_sample(ask):
    request = ask(
        temperature=2,
        top_p=0.5,
        top_k=7,
        min_p=0.25,
        repetition_penalty=1.5,
        presence_penalty=-2,
        frequency_penalty=2,
        logit_bias={"5": -100, "17": 100},
        seed=-(2**63),
    )
    assert request.sampling == Sampling(2.0, 7, 0.5, 0.25, 1.5, -2.0, 2.0, {5: -100.0, 17: 100.0})
    assert request.seed == -(2**63)


def test_the_ends_of_ranges_mean_what_they_do_elsewhere():
    assert chat(top_k=-1).sampling.top_k == 0, "vLLM's -1 is off"
    assert 0 < chat(top_p=0).sampling.top_p < 1e-6, "OpenAI's 0 keeps the most probable token"


def test_limits():
    assert chat().max_new_tokens == "context"
    assert chat(max_tokens=5).max_new_tokens == 5
    assert chat(max_completion_tokens=6).max_new_tokens == 6
    assert chat(max_tokens=7, max_completion_tokens=6).max_new_tokens == 6
    assert completion().max_new_tokens == 16
    assert completion(max_tokens=0).max_new_tokens == 0
    by_prediction = {"limit": "prediction"}
    assert chat(specedit=by_prediction).max_new_tokens is None
    assert completion(specedit=by_prediction).max_new_tokens is None
    assert chat(specedit=by_prediction, max_tokens=5).max_new_tokens == 5
    assert completion(specedit={"limit": "context"}).max_new_tokens == "context"
    assert completion(specedit={}).max_new_tokens == 16


def test_messages():
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    sent = [
        {"role": "developer", "content": "be short"},
        {"role": "system", "content": ""},
        {"role": "user", "content": parts, "name": "me"},
        {"role": "assistant", "content": "c", "refusal": None, "tool_calls": None, "annotations": [], "audio": None},
    ]
    assert chat(messages=sent).messages == (
        Message("system", "be short"),
        Message("system", ""),
        Message("user", "ab"),
        Message("assistant", "c"),
    )


def test_stops_and_priorities():
    assert chat(stop="x").stop == ("x",)
    assert completion(stop=["x", "y"]).stop == ("x", "y")
    assert chat(specedit={"priority": "inline"}).priority == "inline"
    assert completion(suffix="y").priority == "inline"
    assert completion(suffix="y", specedit={"priority": "batch"}).priority == "batch"


def test_what_belongs_to_a_gap():
    told = {"typed": "se", "files": [{"name": "a.py", "text": "A = 1"}], "name": "c.py"}
    fim = completion(prompt="def f(", suffix="):", specedit=told).fim
    assert fim == Fim("def f(", "):", "se", (ContextFile("a.py", "A = 1"),), "c.py")
    for name, value in told.items():
        for ask in (completion, chat):
            refused = refusal(ask, specedit={name: value})
            assert refused.param == f"specedit.{name}"
            assert "with a suffix" in str(refused)


def test_log_probabilities():
    assert chat(logprobs=True).logprobs == 0
    assert chat(logprobs=True, top_logprobs=20).logprobs == 20
    assert chat(logprobs=False).logprobs is None
    assert completion(logprobs=0).logprobs == 0
    assert completion(logprobs=5).logprobs == 5


def test_what_changes_nothing_is_taken():
    chat(
        user="me",
        metadata={"a": "b"},
        store=True,
        service_tier="auto",
        safety_identifier="x",
        prompt_cache_key="x",
        prompt_cache_options={"mode": "implicit"},
        prompt_cache_retention="24h",
        parallel_tool_calls=False,
        tools=[],
        functions=[],
        tool_choice="none",
        function_call="auto",
        response_format={"type": "text"},
        modalities=["text"],
        reasoning_effort="none",
        verbosity="medium",
        n=1,
    )
    completion(user="me", n=1, best_of=1, echo=False, prompt=["x"])


IMAGE = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]


@pytest.mark.parametrize(
    ("ask", "fields", "param", "advice"),
    [
        (chat, {"n": 2}, "n", "a request for each answer"),
        (chat, {"tools": [{"type": "function"}]}, "tools", "tools and functions are not supported"),
        (chat, {"tool_choice": "required"}, "tool_choice", "not supported"),
        (chat, {"functions": [{"name": "f"}]}, "functions", "not supported"),
        (chat, {"function_call": {"name": "f"}}, "function_call", "not supported"),
        (chat, {"response_format": {"type": "json_object"}}, "response_format.type", "other than text"),
        (chat, {"response_format": {"type": "json_schema", "json_schema": {}}}, None, "other than text"),
        (chat, {"modalities": ["text", "audio"]}, "modalities[1]", "other than text"),
        (chat, {"audio": {"voice": "x"}}, "audio", "answers are text"),
        (chat, {"web_search_options": {}}, "web_search_options", "web search"),
        (chat, {"moderation": {"model": "x"}}, "moderation", "not supported"),
        (chat, {"reasoning_effort": "high"}, "reasoning_effort", "without reasoning"),
        (chat, {"verbosity": "low"}, "verbosity", "say in a message"),
        (chat, {"messages": IMAGE}, None, "only text is understood"),
        (chat, {"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role", "others are not supported"),
        (chat, {"messages": [{"role": "user", "content": None}]}, "messages[0].content", "only text"),
        (chat, {"messages": []}, "messages", "length >= 1"),
        (chat, {"prediction": {"type": "content", "content": 1}}, "prediction.content", "only text"),
        (chat, {"top_logprobs": 2}, "top_logprobs", "needs logprobs"),
        (chat, {"logprobs": True, "top_logprobs": 21}, "top_logprobs", "<= 20"),
        (chat, {"stream_options": {"include_usage": True}}, "stream_options", "needs stream"),
        (chat, {"temperature": 2.5}, "temperature", "<= 2"),
        (chat, {"presence_penalty": -3}, "presence_penalty", ">= -2"),
        (chat, {"stop": list("abcde")}, "stop", "length <= 4"),
        (chat, {"logit_bias": {"x": 1}}, "logit_bias", "int"),
        (chat, {"logit_bias": {"5": 101}}, "logit_bias[...]", "<= 100"),
        (chat, {"max_tokens": "many"}, "max_tokens", "Expected `int | null`"),
        (chat, {"seed": 2**63}, "seed", "<= "),
        (chat, {"surprise": 1}, "surprise", "no such field"),
        (chat, {"specedit": {"surprise": 1}}, "specedit.surprise", "no such field"),
        (completion, {"prompt": [1, 2]}, None, "a prompt is one text"),
        (completion, {"prompt": ["a", "b"]}, "prompt", "a prompt is one text"),
        (completion, {"prompt": None}, "prompt", "a prompt is one text"),
        (completion, {"echo": True}, "echo", "put the prompt before the answer yourself"),
        (completion, {"best_of": 2}, "best_of", "not supported"),
        (completion, {"logprobs": 6}, "logprobs", "<= 5"),
        (completion, {"messages": MESSAGES}, "messages", "no such field"),
    ],
)
def test_what_is_not_supported_is_refused_with_advice(ask, fields, param, advice):
    error = refusal(ask, **fields)
    assert error.status == 400
    assert advice in str(error)
    assert param is None or error.param == param


def test_a_missing_field_is_named():
    with pytest.raises(RequestError, match="messages"):
        decode_request(b'{"model": "tiny"}', ChatRequest, "tiny")


def test_only_the_served_model_is_there():
    assert chat(model="default").messages
    error = refusal(chat, model="other")
    assert (error.status, error.code, error.param) == (404, "model_not_found", "model")


def test_what_nobody_meant_tells_nothing():
    status, body = failure(RuntimeError("secret"))
    assert status == 500
    assert "secret" not in body.error.message


def test_every_error_of_specedit_has_a_status():
    assert failure(OutOfMemoryError("full"))[0] == 503
    assert failure(SpecEditError("?"))[0] == 500
    assert failure(FileError("?"))[0] == 500


def test_usage_without_drafters():
    told = usage_body(Usage(prompt_tokens=3, output_tokens=4), predicted=True)
    assert (told.total_tokens, told.completion_tokens_details.accepted_prediction_tokens) == (7, 0)
