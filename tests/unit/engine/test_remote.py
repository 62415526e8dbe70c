import math
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from dataclasses import replace

import pytest

from specedit.engine.api import ContextFile, Fim, FimMarkers, GenerateRequest, Hints, Message, Sampling
from specedit.engine.client.transport import Timeouts
from specedit.engine.remote import RemoteEngine
from specedit.errors import (
    ConfigError,
    ContextOverflowError,
    EngineError,
    MarkerTextError,
    OutOfMemoryError,
    OverloadedError,
    ShuttingDownError,
    SpecEditError,
    UnreachableError,
    UsageError,
)
from tests.scripted_server import (
    DONE,
    ScriptedServer,
    answer,
    as_json,
    chat,
    completion,
    event,
    models,
    stream,
    stream_start,
    usage,
)

MODELS, CHAT, COMPLETIONS, INFILL = "/v1/models", "/v1/chat/completions", "/v1/completions", "/infill"
HELLO = stream(chat("Hel"), chat("lo"), chat(finish="stop"), usage(), DONE)
ASK = GenerateRequest(messages=(Message("user", "Say hello."),), max_new_tokens=8)
GAP = GenerateRequest(fim=Fim("def f(", "):\n"), max_new_tokens=8)
MARKERS = FimMarkers("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")
SOON = Timeouts(pause_seconds=(0.01, 0.02))


@pytest.fixture
def serve():
    """Starts a server that has these models and gives these replies."""
    started = []

    def start(replies=(), owned_by="vllm", ids=("m",), listed=None, path=CHAT, **beside):
        server = ScriptedServer({MODELS: [listed or models(*ids, owned_by=owned_by, **beside)], path: replies})
        started.append(server.__enter__())
        return server

    yield start
    for server in started:
        server.__exit__()


@pytest.fixture
def connect():
    engines = []

    def make(server, **settings):
        url = server if isinstance(server, str) else server.url
        engines.append(RemoteEngine(url, **({"timeouts": SOON} | settings)))
        return engines[-1]

    yield make
    for engine in engines:
        engine.close()


def text_of(chunks):
    return "".join(chunk.text for chunk in chunks)


def failure(engine, request=ASK):
    with pytest.raises(SpecEditError) as caught:
        list(engine.generate(request))
    return caught.value


# --- answers


def test_an_answer_arrives_in_pieces_and_ends_with_its_reason(serve, connect):
    chunks = list(connect(serve([HELLO])).generate(ASK))
    assert [chunk.text for chunk in chunks] == ["Hel", "lo", ""]
    assert [chunk.finish_reason for chunk in chunks] == [None, None, "stop"]
    assert (chunks[-1].usage.prompt_tokens, chunks[-1].usage.output_tokens) == (7, 3)
    assert [chunk.usage.output_tokens for chunk in chunks[:2]] == [1, 2], "until then, what has come is counted"


def test_nothing_that_decides_the_tokens_is_left_to_the_server(serve, connect):
    server = serve([HELLO])
    sampling = Sampling(0.5, top_p=0.9, presence_penalty=0.1, frequency_penalty=0.2, logit_bias={3: -1.0})
    request = GenerateRequest(ASK.messages, sampling=sampling, seed=9, stop=("END",), max_new_tokens=8)
    list(connect(server).generate(request))
    body = server.body(CHAT)
    expected = {"temperature": 0.5, "top_p": 0.9, "presence_penalty": 0.1, "frequency_penalty": 0.2, "seed": 9}
    assert expected.items() <= body.items()
    assert (body["stop"], body["logit_bias"], body["max_tokens"]) == (["END"], {"3": -1.0}, 8)
    assert (body["model"], body["stream"]) == ("m", True)
    assert body["stream_options"] == {"include_usage": True}
    assert body["messages"] == [{"role": "user", "content": "Say hello."}]


@pytest.mark.parametrize(
    ("owned_by", "neutral"),
    [
        ("vllm", {"top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0}),
        ("llamacpp", {"top_k": 0, "min_p": 0.0, "repeat_penalty": 1.0}),
        ("sglang", {"top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}),
        ("openai", {}),
    ],
)
def test_defaults_of_a_server_or_a_model_are_switched_off(serve, connect, owned_by, neutral):
    server = serve([HELLO], owned_by=owned_by)
    list(connect(server).generate(ASK))
    body = server.body(CHAT)
    known = ("top_k", "min_p", "repeat_penalty", "repetition_penalty")
    assert {key: body[key] for key in known if key in body} == neutral
    assert ("chat_template_kwargs" in body) == bool(neutral), "thinking is switched off where that is understood"
    list(connect(server).generate(GenerateRequest(ASK.messages, sampling=Sampling(1.0, top_k=5), max_new_tokens=1)))
    assert server.body(CHAT)["top_k"] == 5


def test_the_limit_follows_the_prediction(serve, connect):
    server = serve([HELLO])
    engine = connect(server)
    list(engine.generate(GenerateRequest(ASK.messages, prediction="x" * 400)))
    assert server.body(CHAT)["max_tokens"] == 400 // 2 * 3 // 2 + 256
    list(engine.generate(GenerateRequest(ASK.messages, max_new_tokens="context")))
    assert "max_tokens" not in server.body(CHAT)


def test_a_limit_that_was_only_guessed_does_not_refuse_an_edit_that_fits(serve, connect):
    too_long = as_json(400, {"error": {"message": "maximum context length is 64 tokens", "code": 400}})
    server = serve([too_long, HELLO])
    assert text_of(connect(server).generate(GenerateRequest(ASK.messages, prediction="x = 1\n"))) == "Hello"
    assert "max_tokens" not in server.body(CHAT)
    assert isinstance(failure(connect(serve([too_long])), ASK), ContextOverflowError), "one that was given stands"


def test_prediction_and_hints_go_to_specedit_only(serve, connect):
    request = GenerateRequest(
        ASK.messages, prediction="a\n", hints=Hints((("a", "b"),), (1,), "```\n", "```"), priority="batch", trace=True
    )
    ours = serve([HELLO], owned_by="specedit")
    list(connect(ours).generate(request))
    body = ours.body(CHAT)
    assert body["prediction"] == {"type": "content", "content": "a\n"}
    assert body["specedit"]["hints"]["substitutions"] == [["a", "b"]]
    assert (body["specedit"]["priority"], body["specedit"]["limit"]) == ("batch", "prediction")
    assert body["specedit"]["trace"] is True
    assert "max_tokens" not in body

    other = serve([HELLO])
    list(connect(other).generate(request))
    assert {"prediction", "specedit"} & set(other.body(CHAT)) == set()
    list(connect(other, send_prediction=True).generate(request))
    assert other.body(CHAT)["prediction"]["content"] == "```\na\n```", "what is sent is the whole expected answer"
    assert "specedit" not in other.body(CHAT)


def test_counters_and_steps_of_specedit_come_back_as_they_are(serve, connect):
    told = {
        "prompt_tokens": 9,
        "output_tokens": 6,
        "forwards": 2,
        "drafters": {"lookup": {"drafted": 8, "accepted": 4}},
        "decode_seconds": 0.25,
    }
    step = {"drafted": [], "accepted": [], "emitted": ["Hel", "lo"], "proposed": 4}
    replies = [stream(chat("Hello", specedit={"step": step}), chat(finish="stop"), usage(specedit=told), DONE)]
    server = serve(replies, owned_by="specedit")
    first, last = connect(server).generate(GenerateRequest(ASK.messages, trace=True))
    assert first.step.emitted == ("Hel", "lo")
    assert last.usage.tokens_per_forward == 3.0
    assert last.usage.drafters["lookup"].accepted == 4
    assert last.usage.seconds == 0.25


def test_plain_decoding_can_be_asked_of_specedit_only(serve, connect):
    ours = serve([HELLO], owned_by="specedit")
    assert text_of(connect(ours).generate_plain(ASK)) == "Hello"
    assert ours.body(CHAT)["specedit"]["plain"] is True
    with pytest.raises(UsageError, match=r"vLLM at .* plain decoding.*--engine local"):
        connect(serve([HELLO])).generate_plain(ASK)


def test_llama_servers_timings_are_understood(serve, connect):
    timings = {"cache_n": 5, "prompt_n": 2, "predicted_n": 10, "draft_n": 12, "draft_n_accepted": 6}
    server = serve([stream(chat("Hello", finish="stop"), usage(timings=timings), DONE)], owned_by="llamacpp")
    told = stream(chat("Hello", finish="stop"), event({"choices": [], "timings": timings}), DONE)
    server.replies = {**server.replies, CHAT: [told]}
    total = list(connect(server).generate(ASK))[-1].usage
    assert (total.prompt_tokens, total.cached_tokens, total.output_tokens) == (7, 5, 10)
    assert (total.forwards, total.drafted, total.accepted) == (4, 12, 6)


def test_log_probabilities_of_both_forms(serve, connect):
    content = [{"token": "\ufffd", "bytes": [195], "logprob": -0.5, "top_logprobs": [{"token": "x", "logprob": -1.0}]}]
    chunk = {"choices": [{"delta": {"content": "a"}, "finish_reason": "stop", "logprobs": {"content": content}}]}
    server = serve([stream(event(chunk), DONE)])
    [token] = next(connect(server).generate(GenerateRequest(ASK.messages, logprobs=1))).tokens
    assert (token.token_bytes, token.logprob) == (b"\xc3", -0.5)
    assert (token.top[0].text, token.top[0].logprob) == ("x", -1.0)
    assert (server.body(CHAT)["logprobs"], server.body(CHAT)["top_logprobs"]) == (True, 1)

    lists = {"tokens": ["a", "bytes:\\xc3"], "token_logprobs": [None, -2.0], "top_logprobs": [{"a": -0.1}, None]}
    chunk = {"choices": [{"text": "a", "finish_reason": "length", "logprobs": lists}]}
    server = serve([stream(event(chunk), DONE)], path=COMPLETIONS)
    tokens = next(connect(server).generate(GenerateRequest(prompt="x", logprobs=1))).tokens
    assert [token.token_bytes for token in tokens] == [b"a", b"\xc3"]
    assert tokens[0].logprob == -math.inf


# --- which server, which model


def test_the_only_model_is_taken_and_of_several_one_must_be_named(serve, connect):
    assert connect(serve([HELLO], ids=("only",))).model_name == "only"
    several = serve([HELLO], ids=("big", "small"))
    assert connect(several, model="small").connect().id == "small"
    assert "2 models" in str(failure(connect(several)))
    assert "--model" in str(failure(connect(several)))
    assert "no model 'tiny'" in str(failure(connect(several, model="tiny")))
    assert "big, small" in str(failure(connect(several, model="tiny")))
    aliased = serve([HELLO], ids=("/models/x.gguf",), aliases=["x"])
    engine = connect(aliased, model="x")
    assert engine.model_name == "x", "nobody needs to be asked for a name that was given"
    assert engine.connect().id == engine.model_name == "/models/x.gguf"


def test_the_kind_the_context_and_the_device_are_told(serve, connect):
    engine = connect(serve([HELLO], owned_by="specedit", max_model_len=4096, device="cpu"))
    assert (engine.kind, engine.context_tokens, engine.device) == ("specedit", 4096, "cpu")
    engine = connect(serve([HELLO], owned_by="llamacpp", meta={"n_ctx": 2048}))
    assert (engine.kind, engine.context_tokens, engine.device) == ("llamacpp", 2048, None)
    assert connect(serve([HELLO], owned_by="someone")).kind == "other"


def test_a_server_that_was_not_there_is_asked_again(serve, connect):
    server = serve([HELLO])
    good, server.replies = server.replies, {MODELS: [as_json(500, {})]}
    engine = connect(server)
    failure(engine)
    server.replies = good
    assert text_of(engine.generate(ASK)) == "Hello"
    asked = len(server.asked(MODELS))
    assert text_of(engine.generate(ASK)) == "Hello"
    assert len(server.asked(MODELS)) == asked, "once known, it is not asked again"


def test_the_address_may_end_in_v1(serve, connect):
    server = serve([HELLO])
    assert text_of(connect(f"{server.url}/v1/").generate(ASK)) == "Hello"


# --- filling in the middle


def test_specedit_and_others_take_a_suffix(serve, connect):
    for owned_by in ("specedit", "openai"):
        server = serve([stream(completion("x", finish="stop"), DONE)], path=COMPLETIONS, owned_by=owned_by)
        engine = connect(server)
        assert text_of(engine.generate(GAP)) == "x"
        assert (server.body(COMPLETIONS)["prompt"], server.body(COMPLETIONS)["suffix"]) == ("def f(", "):\n")
        assert engine.fim_way == "suffix"


def test_who_leaves_a_gap_half_filled_knows_what_it_took(serve, connect):
    told = {"prompt_tokens": 7, "completion_tokens": 5, "specedit": {"output_tokens": 5, "forwards": 2}}
    server = serve([stream(completion("x", usage=told), DONE)], path=COMPLETIONS, owned_by="specedit")
    chunks = connect(server).generate(GAP)
    usage = next(chunks).usage
    chunks.close()
    assert (usage.output_tokens, usage.forwards) == (5, 2)
    assert server.body(COMPLETIONS)["stream_options"]["continuous_usage_stats"] is True


def test_where_a_suffix_is_refused_the_markers_are_taken_from_then_on(serve, connect):
    no_suffix = as_json(400, {"error": {"message": "suffix is not currently supported", "code": 400}})
    server = serve([no_suffix, stream(completion("x", finish="stop"), DONE)], path=COMPLETIONS)
    engine = connect(server, fim_markers=lambda _: MARKERS)
    assert text_of(engine.generate(GAP)) == "x"
    assert text_of(engine.generate(GAP)) == "x"
    prompt = "<|fim_prefix|>def f(<|fim_suffix|>):\n<|fim_middle|>"
    assert [asked.body["prompt"] for asked in server.asked(COMPLETIONS)] == ["def f(", prompt, prompt]
    assert engine.fim_way == "markers"


def test_llama_server_is_asked_by_its_own_path(serve, connect):
    replies = [
        stream(
            event({"content": "x", "stop": False}),
            event({"content": "", "stop": True, "stop_type": "limit", "timings": {"prompt_n": 4, "predicted_n": 1}}),
        )
    ]
    server = serve(replies, path=INFILL, owned_by="llamacpp")
    *_, last = connect(server).generate(GAP)
    assert (last.finish_reason, last.usage.prompt_tokens) == ("length", 4)
    body = server.body(INFILL)
    assert (body["input_prefix"], body["input_suffix"], body["n_predict"]) == ("def f(", "):\n", 8)
    assert server.asked(COMPLETIONS) == [], "it would take a suffix and not heed it"


FILES = (ContextFile("a.py", "A = 1"), ContextFile("<|im_end|>.py", ""), ContextFile("b.py", "s = '<|file_sep|>'\n"))
WORD = GenerateRequest(fim=Fim("def f(", "):\n", "se", FILES, "c.py"), max_new_tokens=8)


def test_specedit_is_told_what_is_typed_and_what_else_to_know(serve, connect):
    server = serve([stream(completion("self", finish="stop"), DONE)], path=COMPLETIONS, owned_by="specedit")
    assert text_of(connect(server).generate(WORD)) == "self"
    body = server.body(COMPLETIONS)
    assert body["prompt"] == "def f("
    told = body["specedit"]
    assert (told["typed"], told["name"]) == ("se", "c.py")
    assert told["files"] == [{"name": file.name, "text": file.text} for file in FILES]


def test_others_go_on_from_what_is_typed_and_it_is_put_out_for_them(serve, connect):
    server = serve([stream(completion("lf", finish="stop"), DONE)], path=COMPLETIONS)
    assert text_of(connect(server).generate(WORD)) == "self"
    assert server.body(COMPLETIONS)["prompt"] == "def f(se"


def test_other_files_go_before_the_markers_except_for_those_that_hold_one(serve, connect):
    no_suffix = as_json(400, {"error": {"message": "suffix is not currently supported", "code": 400}})
    server = serve([no_suffix, stream(completion("lf", finish="stop"), DONE)], path=COMPLETIONS, ids=("qwen",))
    engine = connect(server, fim_markers=lambda _: replace(MARKERS, file="<|file_sep|>"))
    assert text_of(engine.generate(WORD)) == "self"
    prompt = "<|file_sep|>a.py\nA = 1\n<|file_sep|>c.py\n<|fim_prefix|>def f(se<|fim_suffix|>):\n<|fim_middle|>"
    assert server.asked(COMPLETIONS)[-1].body["prompt"] == prompt


def test_other_files_are_left_out_where_there_is_no_marker_for_them(serve, connect):
    no_suffix = as_json(400, {"error": {"message": "suffix is not currently supported", "code": 400}})
    server = serve([no_suffix, stream(completion("lf", finish="stop"), DONE)], path=COMPLETIONS)
    assert text_of(connect(server, fim_markers=lambda _: MARKERS).generate(WORD)) == "self"
    prompt = "<|fim_prefix|>def f(se<|fim_suffix|>):\n<|fim_middle|>"
    assert server.asked(COMPLETIONS)[-1].body["prompt"] == prompt


def test_llama_server_gets_other_files_and_what_is_typed(serve, connect):
    replies = [stream(event({"content": "lf", "stop": True, "stop_type": "eos"}))]
    server = serve(replies, path=INFILL, owned_by="llamacpp")
    assert text_of(connect(server).generate(WORD)) == "self"
    body = server.body(INFILL)
    assert body["input_prefix"] == "def f(se"
    assert body["input_extra"][0] == {"filename": "a.py", "text": "A = 1\n"}
    assert len(body["input_extra"]) == 3, "it encodes them plainly"


def test_without_any_way_there_is_one_message(serve, connect):
    refused = as_json(501, {"error": {"code": 501, "message": "Infill is not supported by this model"}})
    said = str(failure(connect(serve([refused], path=INFILL, owned_by="llamacpp")), GAP))
    assert said.startswith("inline completion is off: ")
    assert "Infill is not supported by this model" in said
    assert "specedit serve" in said
    unfit = as_json(400, {"error": {"message": "no FIM markers", "code": "unsupported_by_model"}})
    said = str(failure(connect(serve([unfit], path=COMPLETIONS, owned_by="specedit")), GAP))
    assert said.startswith("inline completion is off: ")
    assert "no FIM markers" in said


def test_a_gap_that_is_too_long_is_no_reason_to_try_another_way(serve, connect):
    too_long = as_json(400, {"error": {"message": "maximum context length is 64 tokens", "code": 400}})
    server = serve([too_long], path=COMPLETIONS)
    assert isinstance(failure(connect(server, fim_markers=lambda _: MARKERS), GAP), ContextOverflowError)
    assert len(server.asked(COMPLETIONS)) == 1


# --- marker strings


def test_a_marker_in_the_text_is_refused_with_its_line(serve, connect):
    code = "```python\na = 1\nb = '<|im_end|>'\n```"
    request = GenerateRequest((Message("user", code),), hints=Hints(opening="```python\n"))
    server = serve([HELLO], ids=("Qwen2.5-Coder",))
    error = failure(connect(server), request)
    assert isinstance(error, MarkerTextError)
    assert "line 2 (\"b = '<|im_end|>'\") holds <|im_end|>" in str(error)
    assert "specedit serve" in str(error)
    assert server.asked(CHAT) == [], "nothing was sent"
    ours = serve([HELLO], ids=("Qwen2.5-Coder",), owned_by="specedit")
    assert text_of(connect(ours).generate(request)) == "Hello", "there text stays text"


@pytest.mark.parametrize(
    ("model", "text", "refused"),
    [
        ("gemma-3-1b", "<start_of_turn>", True),
        ("gemma-3-1b", "<s>strike</s>", False),
        ("Mistral-7B", "<s>strike</s>", True),
        ("/models/phi/x.gguf", "<s>strike</s>", True),
        ("llama-3-8b", "<|eot_id|>", True),
        ("llama-3-8b", "<|im_end|>", True),
        ("codellama", "[INST]", True),
        ("deepseek-coder", "<｜fim▁hole｜>", True),
        ("dolphin-llama3", "<|user|>", False),
        ("unheard-of", "<｜User｜>", True),
        ("unheard-of", "a < b and b > c", False),
    ],
)
def test_which_markers_count_follows_the_models_name(serve, connect, model, text, refused):
    engine = connect(serve([HELLO], ids=(model,)))
    request = GenerateRequest((Message("user", text),))
    if refused:
        assert isinstance(failure(engine, request), MarkerTextError)
    else:
        assert text_of(engine.generate(request)) == "Hello"


def test_markers_are_refused_where_a_prompt_is_made_with_them(serve, connect):
    no_suffix = as_json(400, {"error": {"message": "suffix is not currently supported"}})
    engine = connect(
        serve([no_suffix], path=COMPLETIONS, ids=("x-gemma",)), fim_markers=lambda _: FimMarkers("<P>", "<S>", "<M>")
    )
    request = GenerateRequest(fim=Fim("one\ntwo\n", "three\n<M>\n"))
    assert "line 4 ('<M>')" in str(failure(engine, request))


# --- what goes wrong


def test_text_that_is_none_is_refused_before_it_is_sent(serve, connect):
    server = serve([HELLO])
    request = GenerateRequest((Message("user", "a \ud83d b"),))
    assert "half a character" in str(failure(connect(server), request))
    assert server.asked(CHAT) == []


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


def test_nobody_listens(connect):
    error = failure(connect(f"http://127.0.0.1:{free_port()}"))
    assert isinstance(error, UnreachableError)
    assert "connection was refused: start the server there" in str(error)


def test_no_such_host(connect):
    error = failure(connect("http://nowhere.invalid:8080"))
    assert isinstance(error, UnreachableError)
    assert "no host nowhere.invalid" in str(error)


def test_no_connection_in_time(connect):
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        port = full.getsockname()[1]
        error = failure(connect(f"http://127.0.0.1:{port}", timeouts=Timeouts(connect_seconds=0.2)))
        for one in waiting:
            one.close()
    assert isinstance(error, UnreachableError)
    assert "can't be reached within 0.2 s" in str(error)


@pytest.mark.parametrize("start", [stream_start(), stream_start() + chat("Hel")])
def test_a_server_that_falls_silent(serve, connect, start):
    server = serve()
    server.replies = {**server.replies, CHAT: [server.held(start)]}
    engine = connect(server, timeouts=Timeouts(read_seconds=0.7))
    engine.connect()
    error = failure(engine)
    assert isinstance(error, UnreachableError)
    assert "sent nothing for 0.7 s" in str(error)
    assert "SPECEDIT_ENGINE_TIMEOUT_SECONDS" in str(error)
    assert server.closed.wait(5)


def test_tls_that_is_none(serve, connect):
    def plainly(connection):
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as plain:

        def serve_plainly():
            connection, _ = plain.accept()
            connection.recv(1024)
            plainly(connection)
            connection.close()

        threading.Thread(target=serve_plainly, daemon=True).start()
        error = failure(connect(f"https://127.0.0.1:{plain.getsockname()[1]}"))
    assert isinstance(error, UnreachableError)
    assert "does not speak TLS" in str(error)
    assert "http://" in str(error)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    place = tmp_path_factory.mktemp("tls")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost", "-keyout", place / "key.pem", "-out", place / "cert.pem"]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl makes the certificate for this test, and is not installed")
    return place


def test_a_certificate_counts_only_once_it_is_trusted(certificate, connect, monkeypatch):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    with ScriptedServer({MODELS: [models("m")], CHAT: [HELLO]}) as server:
        server._socket = context.wrap_socket(server._socket, server_side=True)
        for _ in range(2):  # the first accept was under way before
            with socket.create_connection(("127.0.0.1", server.port)):
                pass
        threading.Thread(target=_serve_all, args=(server,), daemon=True).start()
        url = f"https://localhost:{server.port}"
        error = failure(connect(url))
        assert "certificate" in str(error)
        assert "SSL_CERT_FILE" in str(error)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "cert.pem"))
        assert text_of(connect(url).generate(ASK)) == "Hello"


def _serve_all(server):
    """Goes on where a refused handshake ended the server's own loop."""
    while server._socket.fileno() >= 0:
        server._serve()


@pytest.mark.parametrize("status", [401, 403])
def test_a_key_that_is_missing_or_wrong(serve, connect, status, monkeypatch):
    monkeypatch.setattr("platformdirs.user_config_dir", lambda name: f"/home/me/{name}")
    server = serve([as_json(status, {"error": {"message": "Invalid API Key"}})])
    said = str(failure(connect(server)))
    assert "wants a key: set SPECEDIT_API_KEY or api_key in /home/me/specedit/config.toml" in said
    said = str(failure(connect(server, api_key="sk-secret")))
    assert "does not accept your key" in said
    assert "Invalid API Key" in said
    assert "sk-secret" not in said
    assert server.asked(CHAT)[-1].headers["authorization"] == "Bearer sk-secret"


def test_a_model_that_is_gone(serve, connect):
    gone = as_json(404, {"error": {"message": "The model `m` does not exist.", "code": 404}})
    said = str(failure(connect(serve([gone]))))
    assert "no model 'm'" in said
    assert "--model" in said


def test_a_server_of_another_kind(serve, connect):
    page = answer(404, b"<html>nothing here</html>", "text/html")
    assert "no OpenAI-compatible server" in str(failure(connect(serve(listed=page))))
    page = answer(200, b"<html>welcome</html>", "text/html")
    said = str(failure(connect(serve(listed=page))))
    assert "a web page" in said
    assert "no OpenAI-compatible server" in said
    assert "lists no models" in str(failure(connect(serve(listed=as_json(200, {"hello": 1})))))
    assert "lists no models" in str(failure(connect(serve(listed=answer(200, b"{", "application/json")))))


def test_what_speaks_no_http(serve, connect):
    error = failure(connect(serve(listed=b"SSH-2.0-OpenSSH_9.6\r\n\r\n")))
    assert isinstance(error, UnreachableError)
    assert "does not answer as a web server does" in str(error)
    error = failure(connect(serve(listed=lambda connection: None)))
    assert "closed the connection before it answered" in str(error)


def test_a_refusal_says_what_the_server_says(serve, connect):
    refused = as_json(400, {"error": {"message": "temperature must be at most 2", "type": "BadRequestError"}})
    error = failure(connect(serve([refused])))
    assert isinstance(error, EngineError)
    assert "refused the request (400) and says: temperature must be at most 2" in str(error)
    assert isinstance(failure(connect(serve([refused], owned_by="specedit"))), UsageError)
    detail = as_json(422, {"detail": [{"loc": ["body"], "msg": "field required"}]})
    assert "field required" in str(failure(connect(serve([detail]))))


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, {"message": "too long", "type": "invalid_request_error", "code": "context_length_exceeded"}),
        (400, {"message": "This model's maximum context length is 2048 tokens. However, you requested 3000 tokens."}),
        (400, {"message": "The decoder prompt (length 3000) is longer than the maximum model length of 2048."}),
        (400, {"message": "The input (9 tokens) is longer than the model's context length (8 tokens)."}),
        (
            400,
            {"message": "request (9 tokens) exceeds the available context size", "type": "exceed_context_size_error"},
        ),
        (500, {"message": "the request exceeds the slots", "type": "exceed_context_size_error"}),
    ],
)
def test_too_long_is_told_in_several_ways(serve, connect, status, error):
    raised = failure(connect(serve([as_json(status, {"error": error})])))
    assert isinstance(raised, ContextOverflowError)
    assert "edit a smaller range" in str(raised)
    assert error["message"].rstrip(".") in str(raised)


@pytest.mark.parametrize(
    ("code", "kind"),
    [("overloaded", OverloadedError), ("shutting_down", ShuttingDownError), ("out_of_memory", OutOfMemoryError)],
)
def test_specedits_own_errors_come_through(serve, connect, code, kind):
    body = {"error": {"message": "so it is: do this", "type": "server_error", "code": code}}
    for reply in (as_json(503, body), stream(chat("Hel"), event(body))):
        error = failure(connect(serve([reply], owned_by="specedit")))
        assert type(error) is kind
        assert "so it is: do this" in str(error)


def test_too_many_requests(serve, connect):
    server = serve([as_json(429, {"error": {"message": "slow down"}}, retry_after="30")])
    error = failure(connect(server))
    assert isinstance(error, OverloadedError)
    assert "slow down: ask again in 30 s" in str(error)
    assert len(server.asked(CHAT)) == 1, "nobody wants to wait that long in silence"


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_what_passes_is_tried_again(serve, connect, status):
    server = serve([as_json(status, {}), as_json(status, {}), HELLO])
    assert text_of(connect(server).generate(ASK)) == "Hello"
    assert len(server.asked(CHAT)) == 3
    assert isinstance(failure(connect(serve([as_json(status, {})]))), EngineError)


@pytest.mark.parametrize(
    "reply", [as_json(500, {"error": {"message": "CUDA error"}}), answer(500, b"oops", "text/plain")]
)
def test_a_server_that_fails_is_not_asked_twice(serve, connect, reply):
    server = serve([reply])
    assert "failed (500)" in str(failure(connect(server)))
    assert len(server.asked(CHAT)) == 1


def test_a_server_that_comes_up_meanwhile_is_found(connect):
    port = free_port()
    found = []
    timeouts = Timeouts(read_seconds=5, pause_seconds=(0.1,) * 50)
    engine = connect(f"http://127.0.0.1:{port}", timeouts=timeouts)
    asking = threading.Thread(target=lambda: found.append(text_of(engine.generate(ASK))))
    asking.start()
    with ScriptedServer({MODELS: [models("m")], CHAT: [HELLO]}, port=port):
        asking.join(10)
    assert found == ["Hello"]


@pytest.mark.parametrize(
    "reply",
    [
        stream(chat("Hel")),
        stream(chat("Hel"), DONE),
        stream_start() + chat("Hel") + b'data: {"choices": [{"del',
        stream_start().replace(b"Connection", b"Content-Length: 9999\r\nConnection") + chat("Hel"),
        stream(),
    ],
)
def test_an_answer_that_breaks_off_is_no_answer(serve, connect, reply):
    server = serve([reply, HELLO])
    error = failure(connect(server))
    assert isinstance(error, UnreachableError)
    assert "broke off" in str(error)
    assert len(server.asked(CHAT)) == 1, "what has begun is never asked for twice"


def test_an_answer_whose_end_was_told_is_whole_without_counters(serve, connect):
    reply = stream_start().replace(b"Connection", b"Content-Length: 9999\r\nConnection") + chat("Hello", finish="stop")
    *_, last = connect(serve([reply])).generate(ASK)
    assert last.finish_reason == "stop"


@pytest.mark.parametrize(
    "failed", [event({"error": {"message": "CUDA is gone"}}), b'event: error\ndata: {"message": "CUDA is gone"}\n\n']
)
def test_an_error_in_mid_stream(serve, connect, failed):
    assert "failed in mid-answer and says: CUDA is gone" in str(failure(connect(serve([stream(chat("Hel"), failed)]))))


@pytest.mark.parametrize(
    "data",
    [
        b"data: {nonsense\n\n",
        b"data: [1]\n\n",
        b'data: {"choices": 3}\n\n',
        b'data: {"choices":[{"delta":{"content":"\xff"}}]}\n\n',
    ],
)
def test_garbage_in_a_stream(serve, connect, data):
    error = failure(connect(serve([stream(chat("Hel"), data, chat("lo", finish="stop"), DONE)])))
    assert "no part of an answer" in str(error)


def test_characters_beyond_ascii_arrive_as_they_are(serve, connect):
    raw = 'data: {"choices":[{"delta":{"content":"größe 😀\u2028\u0085x"},"finish_reason":"stop"}]}\n\n'.encode()
    assert text_of(connect(serve([stream(raw, DONE)])).generate(ASK)) == "größe 😀\u2028\u0085x"


def test_a_reason_that_is_no_end(serve, connect):
    assert "content_filter" in str(failure(connect(serve([stream(chat("x", finish="content_filter"), DONE)]))))


def test_nothing_is_read_without_end(serve, connect):
    def flood(start, piece):
        def send(connection):
            connection.sendall(start)
            for _ in range(200):
                connection.sendall(piece * 64)

        return send

    line = flood(stream_start() + b"data: ", b"x" * 1024)
    assert "too large" in str(failure(connect(serve([line]))))
    huge = flood(answer(200, b"", "application/json").replace(b"Content-Length: 0\r\n", b""), b" " * 1024)
    assert "more than 4 MiB" in str(failure(connect(serve(listed=huge))))
    page = flood(answer(500, b"", "text/html").replace(b"Content-Length: 0\r\n", b""), b"x" * 1024)
    assert "failed (500) with a web page" in str(failure(connect(serve([page]))))


def test_redirects_are_not_followed(serve, connect):
    elsewhere = serve([HELLO])
    server = serve([answer(307, b"", "text/plain", location=f"{elsewhere.url}{CHAT}")])
    said = str(failure(connect(server, api_key="sk-secret")))
    assert f"redirects to {elsewhere.url}" in said
    assert elsewhere.requests == []


@pytest.mark.parametrize("content_type", ["application/json", "text/html", "text/plain"])
def test_an_answer_that_is_no_stream(serve, connect, content_type):
    said = str(failure(connect(serve([answer(200, b"{}", content_type)]))))
    assert ("a web page" if content_type == "text/html" else content_type) in said


# --- addresses, keys and proxies


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("127.0.0.1:8080", "http://"),
        ("ftp://host", "http://"),
        ("http://", "http://"),
        ("http://me:pw@host", "user name or password"),
        ("http://host?x=1", "query"),
        ("http://host:port", "not an address"),
    ],
)
def test_addresses_that_are_none(url, said):
    with pytest.raises(ConfigError, match=said) as caught:
        RemoteEngine(url)
    assert "pw" not in str(caught.value)


def test_a_key_in_the_open_is_warned_about(connect):
    assert "unencrypted" in connect("http://gpu.example:8000", api_key="sk").warnings[0]
    assert connect("http://gpu.example:8000").warnings == []
    for near in ("http://localhost:1", "http://127.0.0.1:1", "http://[::1]:1"):
        assert connect(near, api_key="sk").warnings == []


def test_proxies_are_for_what_is_far_away(serve, connect, monkeypatch):
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    proxy = serve([HELLO])
    proxy.replies = {f"http://far.example{path}": replies for path, replies in proxy.replies.items()}
    monkeypatch.setenv("HTTP_PROXY", proxy.url)
    monkeypatch.setenv("http_proxy", proxy.url)
    assert text_of(connect("http://far.example").generate(ASK)) == "Hello"
    near = serve([HELLO])
    assert text_of(connect(near).generate(ASK)) == "Hello"
    assert text_of(connect(near.url.replace("127.0.0.1", "localhost")).generate(ASK)) == "Hello"
    assert len(proxy.requests) == 2
    dead = f"http://127.0.0.1:{free_port()}"
    monkeypatch.setenv("HTTP_PROXY", dead)
    monkeypatch.setenv("http_proxy", dead)
    assert "through the proxy that the environment names" in str(failure(connect("http://far.example")))


def test_a_proxy_that_can_not_be_used_is_named(connect, monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "gopher://proxy:70")
    monkeypatch.setenv("all_proxy", "gopher://proxy:70")
    with pytest.raises(ConfigError, match=r"proxy.*NO_PROXY"):
        connect("http://far.example")


# --- stopping


def test_a_cancel_closes_the_stream_and_ends_the_answer(serve, connect):
    server = serve()
    server.replies = {**server.replies, CHAT: [server.held(stream_start() + chat("Hel"))]}
    request = GenerateRequest(ASK.messages)
    chunks = connect(server).generate(request)
    assert next(chunks).text == "Hel"
    threading.Timer(0.05, request.cancel.cancel).start()
    assert [chunk.finish_reason for chunk in chunks] == ["cancelled"]
    assert server.closed.wait(5)


def test_a_cancel_before_the_first_byte(serve, connect):
    server = serve()
    server.replies = {**server.replies, CHAT: [server.held(b"")]}
    request = GenerateRequest(ASK.messages)
    threading.Timer(0.1, request.cancel.cancel).start()
    [only] = connect(server).generate(request)
    assert only.finish_reason == "cancelled"
    assert server.closed.wait(5)
    before = len(server.requests)
    [only] = connect(server).generate(request)
    assert only.finish_reason == "cancelled"
    assert len(server.requests) == before, "nothing is asked for what is cancelled already"


def test_closing_the_iterator_closes_the_stream(serve, connect):
    server = serve()
    server.replies = {**server.replies, CHAT: [server.held(stream_start() + chat("Hel"))]}
    chunks = connect(server).generate(ASK)
    next(chunks)
    chunks.close()
    assert server.closed.wait(5)


def test_closing_the_engine_ends_what_is_under_way(serve, connect):
    server = serve()
    server.replies = {**server.replies, CHAT: [server.held(stream_start() + chat("Hel"))]}
    engine = connect(server)
    chunks = engine.generate(ASK)
    next(chunks)
    engine.close()
    with pytest.raises(UnreachableError):
        next(chunks)
    assert server.closed.wait(5)
    assert "was closed" in str(failure(engine))


def test_ctrl_c_gets_through_while_it_waits(serve, tmp_path):
    server = serve()
    server.replies = {**server.replies, CHAT: [server.held(b"")]}
    code = (
        "import signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from specedit.engine.api import *\n"
        "from specedit.engine.remote import RemoteEngine\n"
        "print('asking', flush=True)\n"
        "try:\n"
        "    list(RemoteEngine(sys.argv[1]).generate(GenerateRequest((Message('user', 'x'),))))\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', flush=True)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, server.url], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "asking\n"
    deadline = time.monotonic() + 20
    while not server.asked(CHAT):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGINT)
    assert process.communicate(timeout=20)[0] == "interrupted\n"


def test_answers_of_several_threads_do_not_mix(serve, connect):
    def echo(connection):
        connection.sendall(stream(*(chat(str(n)) for n in range(50)), chat(finish="stop"), DONE))

    engine = connect(serve([echo]))
    texts = []
    threads = [threading.Thread(target=lambda: texts.append(text_of(engine.generate(ASK)))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert texts == ["".join(map(str, range(50)))] * 8


def test_it_loads_neither_torch_nor_numpy():
    heavy = "torch", "numpy", "transformers", "tokenizers"
    code = f"import sys, specedit.engine.remote\nprint([name for name in {heavy} if name in sys.modules])"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/").stdout
    assert output == "[]\n"
