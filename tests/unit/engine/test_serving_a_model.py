"""The server with a model behind it, used by the official client: what drafting, interrupting and leaving change."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import openai
import pytest

from specedit.engine.local import LocalEngine
from specedit.engine.scheduler import Scheduler
from specedit.engine.server import ServedModel, create_app
from specedit.engine.serving.metrics import Metrics
from specedit.engine.target import Target
from specedit.engine.tokens import Tokenizer
from tests.tiny_model import EOS_ID, save_tiny_model
from tests.unit.engine.serving.loopback import TOKEN, serving

SOON = 30.0
FILE = "def area(width, height):\n    return width * height\n\n\ndef half(value):\n    return value / 2\n"
#: Random weights may end an answer at once.
ENDLESS = {str(EOS_ID): -100}
PREDICTION = {"type": "content", "content": FILE * 2}


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    path = save_tiny_model(tmp_path_factory.mktemp("llama"))
    return LocalEngine(Target.load(path, device="cpu"), Tokenizer.load(path), draft_budget=16)


@pytest.fixture(scope="module")
def scheduler(engine):
    scheduler = Scheduler(engine, max_waiting=8)
    yield scheduler
    scheduler.close()


@pytest.fixture(scope="module")
def client(engine, scheduler):
    model = ServedModel("tiny", engine.context_tokens, 1_700_000_000)
    with (
        serving(create_app(scheduler, model=model, token=TOKEN, metrics=Metrics())) as port,
        openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key=TOKEN, max_retries=0) as client,
    ):
        yield client


def ask(client, content=FILE, **changes):
    given = {"model": "tiny", "temperature": 0, "max_tokens": 60, "logit_bias": ENDLESS}
    return client.chat.completions.create(messages=[{"role": "user", "content": content}], **given | changes)


def text_of(answer):
    return answer.choices[0].message.content


def wait_until(condition):
    deadline = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.002)


def is_idle(scheduler):
    state = scheduler.state()
    return not (state.running or state.paused or any(state.waiting.values()))


@pytest.mark.parametrize("sampling", [{"temperature": 0}, {"temperature": 0.9, "top_p": 0.9, "seed": 3}])
def test_a_prediction_changes_the_speed_and_not_the_text(client, sampling):
    without = ask(client, **sampling)
    drafted = ask(client, prediction=PREDICTION, **sampling)
    right = ask(client, prediction={"type": "content", "content": text_of(without)}, **sampling)
    assert text_of(without) == text_of(drafted) == text_of(right)
    details = right.usage.completion_tokens_details
    assert details.accepted_prediction_tokens > 20
    assert right.usage.specedit["forwards"] < without.usage.specedit["forwards"]
    assert without.usage.completion_tokens_details.accepted_prediction_tokens == 0


def test_another_seed_gives_another_text_and_no_seed_is_random(client):
    texts = [text_of(ask(client, temperature=1, **seed)) for seed in ({"seed": 1}, {"seed": 1}, {"seed": 2}, {}, {})]
    assert texts[0] == texts[1]
    assert len(set(texts)) == 4


def test_streamed_and_whole_answers_are_the_same(client):
    whole = ask(client, temperature=0.8, seed=7)
    chunks = list(ask(client, temperature=0.8, seed=7, stream=True, stream_options={"include_usage": True}))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == text_of(whole)
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens == 60


def test_a_stop_string_within_a_draft_ends_the_answer_before_it(client):
    whole = text_of(ask(client))
    stop = whole[20:23]
    answer = ask(client, prediction={"type": "content", "content": whole}, stop=stop)
    assert text_of(answer) == whole[: whole.index(stop)]
    assert answer.choices[0].finish_reason == "stop"
    assert text_of(ask(client)) == whole


def test_nothing_follows_the_end_of_text_whatever_is_predicted(client):
    answer = ask(client, logit_bias={str(EOS_ID): 100}, prediction=PREDICTION)
    assert (text_of(answer), answer.choices[0].finish_reason, answer.usage.completion_tokens) == ("", "stop", 1)


@pytest.mark.parametrize("limit", [1, 2, 7])
def test_never_more_tokens_than_asked_for(client, limit):
    answer = ask(client, max_tokens=limit, prediction=PREDICTION, logprobs=True)
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage.completion_tokens == limit == len(answer.choices[0].logprobs.content)


def test_what_does_not_fit_is_refused_with_the_numbers(client, engine):
    with pytest.raises(openai.BadRequestError, match=str(engine.context_tokens)) as refused:
        ask(client, content="x" * engine.context_tokens)
    assert refused.value.code == "context_length_exceeded"


def test_text_that_looks_like_the_models_markers_stays_text(client):
    marked = ask(client, content="<|im_end|>", logprobs=True, max_tokens=1)
    assert marked.usage.prompt_tokens - ask(client, content="", max_tokens=1).usage.prompt_tokens == len("<|im_end|>")


@pytest.mark.parametrize("chunks", [0, 1, 3])
def test_a_client_that_leaves_stops_the_model(client, scheduler, chunks):
    stream = ask(client, stream=True, max_tokens=1500)
    for _ in range(chunks):
        next(stream)
    stream.close()
    wait_until(lambda: is_idle(scheduler))
    before = scheduler.state().steps
    assert text_of(ask(client))
    assert scheduler.state().steps - before < 100, "nobody works on for the one who left"


def test_an_interrupted_answer_is_the_same_as_alone(client, scheduler):
    def asked(number):
        priority = ("batch", "rewrite", "inline")[number % 3]
        return text_of(
            ask(
                client,
                FILE + str(number),
                temperature=0.8,
                seed=number,
                extra_body={"specedit": {"priority": priority}},
            )
        )

    alone = [asked(number) for number in range(6)]
    with ThreadPoolExecutor(6) as clients:
        assert list(clients.map(asked, range(6))) == alone
    wait_until(lambda: is_idle(scheduler))


def test_a_gap_is_filled_and_a_text_goes_on(client):
    gap = client.completions.create(
        model="tiny", prompt="def f(", suffix="):\n    pass\n", max_tokens=8, temperature=0, logit_bias=ENDLESS
    )
    assert gap.usage.completion_tokens == 8
    text = client.completions.create(model="tiny", prompt="def f(", max_tokens=8, temperature=0, logit_bias=ENDLESS)
    assert text.usage.prompt_tokens == len("def f(")
    assert text.choices[0].text != gap.choices[0].text


def test_a_gap_with_a_word_begun_and_other_files(client):
    def filled(**told):
        return client.completions.create(
            model="tiny",
            prompt="def f(",
            suffix="):\n    pass\n",
            max_tokens=8,
            temperature=0,
            logit_bias=ENDLESS,
            extra_body={"specedit": told},
        )

    begun = filled(typed="self")
    assert begun.choices[0].text.startswith("self")
    assert begun.usage.completion_tokens == 8
    shown = filled(files=[{"name": "a.py", "text": FILE}], name="b.py")
    assert shown.usage.prompt_tokens > filled().usage.prompt_tokens + len(FILE)
