"""The engine on a tiny model: the text of plain decoding whatever happened before, counters, limits, threads."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import replace

import pytest
import torch
from transformers import MambaConfig

from specedit.engine.api import CancelToken, ContextFile, Fim, GenerateRequest, Hints, Message, Sampling
from specedit.engine.costs import CostTable
from specedit.engine.local import LocalEngine
from specedit.engine.target import Target
from specedit.engine.tokens import Tokenizer
from specedit.errors import ContextOverflowError, EngineError, UsageError
from tests.tiny_model import BYTE_VOCAB, EOS_ID, save_tiny_model

FILE = "def area(width, height):\n    return width * height\n\n\ndef half(value):\n    return value / 2\n"
#: Random weights may end an answer at once; without the end-of-text token every answer is as long as asked for.
ENDLESS = Sampling(logit_bias={EOS_ID: -1e4})
SEEDED = Sampling(temperature=0.8, top_p=0.9, repetition_penalty=1.1, logit_bias={EOS_ID: -1e4})
PREFILL_CHUNK_TOKENS = 128


@pytest.fixture(scope="module")
def model_path(tmp_path_factory):
    return save_tiny_model(tmp_path_factory.mktemp("llama"))


@pytest.fixture(scope="module")
def target(model_path):
    return Target.load(model_path, device="cpu")


@pytest.fixture(scope="module")
def tokenizer(model_path):
    return Tokenizer.load(model_path)


@pytest.fixture
def engine(target, tokenizer):
    return LocalEngine(target, tokenizer, draft_budget=16)


def ask(content=FILE, **changes):
    settings = {"prediction": FILE, "sampling": ENDLESS, "max_new_tokens": 60} | changes
    return GenerateRequest(messages=(Message("user", content),), **settings)


def answer(chunks):
    """Text, last chunk and the usage of an answer that came to its end."""
    chunks = list(chunks)
    assert all(chunk.finish_reason is None for chunk in chunks[:-1]), "something came after the end"
    assert chunks[-1].finish_reason is not None
    return "".join(chunk.text for chunk in chunks), chunks[-1].finish_reason, chunks[-1].usage


def assert_right(engine, request):
    """The engine's answer is that of plain decoding; returns its usage."""
    text, reason, usage = answer(engine.generate(request))
    assert (text, reason) == answer(engine.generate_plain(request))[:2]
    return usage


def fail(number):
    raise AssertionError("the model was run")


@contextmanager
def forwards_of(target, before):
    """Call `before(number)` within each forward, when the first layer's rows already stand in the cache."""
    count = 0

    def hook(module, args):
        nonlocal count
        count += 1
        before(count)

    handle = target.model.model.layers[1].register_forward_pre_hook(hook)
    try:
        yield
    finally:
        handle.remove()


@pytest.mark.parametrize("sampling", [ENDLESS, SEEDED, Sampling()])
@pytest.mark.parametrize("budget", [None, 1, 16])
def test_the_text_is_that_of_plain_decoding(target, tokenizer, sampling, budget):
    engine = LocalEngine(target, tokenizer, draft_budget=budget)
    for seed in range(3):
        assert_right(engine, ask(sampling=sampling, seed=seed))


def test_drafts_are_accepted_and_the_counters_add_up(engine):
    drafted = accepted = 0
    for content in (FILE, "x = 1", "a b a b a b"):
        before = 0
        for chunk in engine.generate(ask(content)):
            usage = chunk.usage
            assert usage.output_tokens == usage.forwards + usage.accepted
            assert usage.output_tokens > before or (before == 0 and chunk.text == ""), "only reading gives nothing"
            before = usage.output_tokens
        assert usage.output_tokens == 60
        assert usage.accepted <= usage.drafted
        drafted, accepted = drafted + usage.drafted, accepted + usage.accepted
    assert 0 < accepted < drafted, "right and wrong drafts, or this test shows little"


def test_plain_decoding_takes_a_forward_a_token_and_drafts_nothing(engine):
    _, _, usage = answer(engine.generate_plain(ask()))
    assert (usage.output_tokens, usage.forwards, usage.drafted) == (60, 60, 0)


def test_a_draft_budget_of_zero_drafts_nothing(target, tokenizer):
    usage = assert_right(LocalEngine(target, tokenizer, draft_budget=0), ask())
    assert (usage.output_tokens, usage.forwards, usage.drafted) == (60, 60, 0)


def test_the_next_request_on_the_same_file_reuses_its_start(engine):
    assert assert_right(engine, ask(FILE + "\nrename width")).cached_tokens == 0
    again = ask(FILE + "\nrename height", seed=3, sampling=SEEDED)
    assert assert_right(engine, again).cached_tokens == len(["<|im_start|>", *"user\n", *FILE, *"\nrename "])
    usage = assert_right(engine, again)
    assert usage.cached_tokens == usage.prompt_tokens - 1, "the last token is run again for its logits"
    assert assert_right(engine, ask("something else")).cached_tokens == len(["<|im_start|>", *"user\n"])
    usage = assert_right(engine, again)
    assert usage.cached_tokens == usage.prompt_tokens - 1, "another file in between costs nothing"


def test_after_an_abandoned_request_the_next_is_right(engine):
    for taken in (1, 3, 7):
        abandoned = engine.generate(ask())
        for _ in range(taken):
            next(abandoned)
        abandoned.close()
        assert_right(engine, ask(FILE[:40]))
        assert assert_right(engine, ask()).cached_tokens >= 40


def test_after_a_cancel_in_the_prefill_the_next_is_right_and_reuses_what_was_read(engine, target):
    cancel = CancelToken()
    content = FILE * 12
    with forwards_of(target, before=lambda number: cancel.cancel()):
        text, reason, usage = answer(engine.generate(ask(content, cancel=cancel)))
    assert (text, reason, usage.output_tokens, usage.prefill_forwards) == ("", "cancelled", 0, 1)
    assert usage.prompt_tokens > 2 * PREFILL_CHUNK_TOKENS
    assert assert_right(engine, ask(content)).cached_tokens == PREFILL_CHUNK_TOKENS


def test_after_a_cancel_while_decoding_the_next_is_right(engine):
    cancel = CancelToken()
    chunks = engine.generate(ask(cancel=cancel))
    taken = [next(chunks) for _ in range(3)]
    cancel.cancel()
    rest = list(chunks)
    assert [chunk.finish_reason for chunk in rest] == ["cancelled"]
    plain, *_ = answer(engine.generate_plain(ask()))
    assert plain.startswith("".join(chunk.text for chunk in taken))
    usage = assert_right(engine, ask())
    assert usage.cached_tokens == usage.prompt_tokens - 1


def test_a_request_cancelled_beforehand_runs_no_model(engine, target):
    cancel = CancelToken()
    cancel.cancel()
    with forwards_of(target, before=fail):
        assert answer(engine.generate(ask(cancel=cancel)))[:2] == ("", "cancelled")


@pytest.mark.parametrize("failing", [1, 2, 4, 6])
@pytest.mark.parametrize(
    ("error", "raised"), [(RuntimeError, EngineError), (torch.OutOfMemoryError, EngineError), (KeyboardInterrupt,) * 2]
)
def test_after_a_failed_forward_the_next_request_is_right(engine, target, failing, error, raised):
    content = FILE * 8

    def fail_once(number):
        if number == failing:
            raise error("the device is gone")

    with forwards_of(target, before=fail_once), pytest.raises(raised, match="the device is gone"):
        answer(engine.generate(ask(content)))
    assert_right(engine, ask(content))
    assert_right(engine, ask(content[:300], seed=1, sampling=SEEDED))


def test_what_does_not_fit_the_context_is_refused_with_the_numbers_before_any_forward(engine, target, tokenizer):
    content = "x" * (target.context_tokens - 500)
    prompt_tokens = len(tokenizer.encode_chat([Message("user", content)]))
    request = ask(content, max_new_tokens=501)
    with forwards_of(target, before=fail), pytest.raises(ContextOverflowError) as caught:
        answer(engine.generate(request))
    for number in (prompt_tokens, 501, target.context_tokens):
        assert str(number) in str(caught.value)


def test_an_answer_may_fill_the_context_to_the_last_token(engine, target, tokenizer):
    content = "x = 1\n" * 330
    room = target.context_tokens - len(tokenizer.encode_chat([Message("user", content)]))
    assert 0 < room < 100
    assert assert_right(engine, ask(content, max_new_tokens=room)).output_tokens == room


@pytest.mark.parametrize(("prediction", "limit"), [("", 256), ("a b\n" * 10 + "c", 61 + 256)])
def test_without_a_limit_the_answer_may_be_one_and_a_half_predictions_and_256_tokens(engine, prediction, limit):
    _, reason, usage = answer(engine.generate(ask(prediction=prediction, max_new_tokens=None)))
    assert (reason, usage.output_tokens) == ("length", limit)


def test_no_tokens_wanted_gives_nothing_and_runs_no_model(engine, target):
    with forwards_of(target, before=fail):
        text, reason, usage = answer(engine.generate(ask(max_new_tokens=0)))
    assert (text, reason, usage.output_tokens, usage.forwards) == ("", "length", 0, 0)


def test_a_negative_limit_is_refused(engine):
    with pytest.raises(UsageError, match="negative"):
        answer(engine.generate(ask(max_new_tokens=-1)))


CHAT = (Message("user", "x"),)


@pytest.mark.parametrize(
    "given", [{}, {"messages": CHAT, "fim": Fim("a", "b")}, {"messages": CHAT, "prompt": "a"}], ids=["none", "two", "2"]
)
def test_a_request_is_one_of_a_chat_a_gap_and_a_text(engine, given):
    with pytest.raises(UsageError, match="exactly one of messages, fim and prompt"):
        answer(engine.generate(GenerateRequest(**given)))


@pytest.mark.parametrize(
    "given",
    [
        {"messages": (Message("user", "a \ud83d b"),)},
        {"messages": CHAT, "prediction": "\ud83d"},
        {"messages": CHAT, "stop": ("\ud83d",)},
        {"messages": CHAT, "hints": Hints(substitutions=(("a", "\ud83d"),))},
        {"fim": Fim("\ud83d", "b")},
        {"fim": Fim("a", "b", files=(ContextFile("a.py", "\ud83d"),))},
        {"prompt": "\ud83d"},
    ],
    ids=lambda given: "-".join(given),
)
def test_half_a_character_is_refused(engine, given):
    with pytest.raises(UsageError, match="half a character"):
        engine.prepare(GenerateRequest(**given))


def test_a_gap_is_filled_as_by_plain_decoding(engine):
    fim = Fim("def area(width, height):\n    return ", "\n")
    usage = assert_right(engine, GenerateRequest(fim=fim, sampling=ENDLESS, max_new_tokens=40))
    assert usage.output_tokens == 40
    assert usage.forwards + usage.accepted == 41, "the last token of the prefix is written again"


@pytest.mark.parametrize("sampling", [ENDLESS, SEEDED, Sampling(logit_bias={EOS_ID: 1e4})])
def test_an_answer_begins_with_what_is_typed(engine, sampling):
    for typed in ("w", "width * he", "\u00e9"):
        fim = Fim("def area(width, height):\n    return ", "\n", typed)
        request = GenerateRequest(fim=fim, sampling=sampling, max_new_tokens=40)
        assert_right(engine, request)
        assert answer(engine.generate(request))[0].startswith(typed)


def test_what_is_typed_holds_no_stop(engine):
    fim = Fim("def area(width, height):\n    return ", "\n", "width")
    request = GenerateRequest(fim=fim, sampling=ENDLESS, max_new_tokens=40, stop=("width", "w"))
    assert_right(engine, request)
    assert answer(engine.generate(request))[0].startswith("width")


def test_tokens_with_their_probabilities_spell_the_answer_and_nothing_before_it(engine):
    fim = Fim("def area(width, height):\n    return ", "\n")
    request = GenerateRequest(fim=fim, sampling=ENDLESS, max_new_tokens=9, logprobs=0)
    chunks = list(engine.generate(request))
    text = "".join(chunk.text for chunk in chunks)
    assert text == answer(engine.generate(replace(request, logprobs=None)))[0], "to be told them changes no answer"
    spelled = b"".join(token.token_bytes for chunk in chunks for token in chunk.tokens)
    assert text == spelled.decode(errors="replace")
    assert chunks[-1].usage.output_tokens == 9


def read(engine, fim):
    *_, last = engine.generate(GenerateRequest(fim=fim, sampling=ENDLESS, max_new_tokens=1))
    return last.usage.prompt_tokens - last.usage.cached_tokens


def test_a_gap_asked_for_again_is_read_from_the_change_on(engine):
    files = (ContextFile("a.py", "A = 1\n" * 20), ContextFile("b.py", "B = 2\n" * 20))
    lines = [f"x{number} = {number}\n" for number in range(30)]

    def gap(prefix, files=files):
        return Fim(prefix, "\nafter = 1\n" * 5, files=files, name="c.py")

    read(engine, gap("".join(lines[:25])))
    assert read(engine, gap("".join(lines[:25]) + "x25")) <= 4, "typed on in the line"
    assert read(engine, gap("".join(lines[:26]) + "x")) <= 9, "and in the next one"
    further = read(engine, gap("".join(lines[:29])))
    assert further <= len("".join(lines[24:29])) + len(gap("").suffix) + 4, "from the change on, and what follows it"
    other = (files[0], ContextFile("b.py", "B = 3\n"))
    assert read(engine, gap("".join(lines[:29]), other)) <= len("".join(lines[:29])) + len(gap("").suffix) + 30
    assert read(engine, gap("".join(lines[:29]), other)) <= 1


@pytest.mark.parametrize("place", [0, 9, 25])
def test_a_stop_string_ends_the_answer_and_is_not_part_of_it(engine, place):
    whole, *_ = answer(engine.generate_plain(ask()))
    stop = whole[place : place + 3]
    text, reason, usage = answer(engine.generate(ask(stop=(stop,))))
    assert (text, reason) == (whole[: whole.index(stop)], "stop")
    assert usage.output_tokens < 60
    assert usage.forwards + usage.accepted - usage.output_tokens in (0, 1), "a stop within a draft saves the next token"
    assert_right(engine, ask(stop=(stop,)))
    assert_right(engine, ask())


def test_the_end_marker_ends_the_answer_and_is_not_shown(engine):
    wanted = Sampling(logit_bias={EOS_ID: 1e4})
    text, reason, usage = answer(engine.generate(ask(sampling=wanted)))
    assert (text, reason, usage.output_tokens) == ("", "stop", 1)


def test_stop_tokens_that_the_caller_knows_end_the_answer(target, tokenizer):
    marker = "<|fim_middle|>"
    always = Sampling(logit_bias={tokenizer.token_id(marker): 1e4})
    engine = LocalEngine(target, tokenizer, stop_tokens=[marker, "<|not in this vocabulary|>"])
    assert answer(engine.generate(ask(sampling=always)))[:2] == ("", "stop")
    assert answer(LocalEngine(target, tokenizer).generate(ask(sampling=always)))[1] == "length"


def test_a_request_that_is_never_started_holds_nothing_up(engine):
    pending = engine.generate(ask("later"))
    done = threading.Thread(target=lambda: list(engine.generate(ask())), daemon=True)
    done.start()
    done.join(timeout=60)
    assert not done.is_alive(), "a request that nobody reads keeps others waiting"
    assert "".join(chunk.text for chunk in pending) == answer(engine.generate_plain(ask("later")))[0]


def test_a_second_answer_within_the_first_is_an_error_and_not_a_deadlock(engine):
    first = engine.generate(ask())
    next(first)
    with pytest.raises(EngineError, match="close"):
        next(engine.generate(ask()))
    first.close()
    assert list(engine.generate(ask()))


def test_requests_from_several_threads_wait_for_each_other(engine):
    requests = [ask(FILE + str(number), seed=number, sampling=SEEDED) for number in range(4)]
    expected = [answer(engine.generate_plain(request))[0] for request in requests]
    start = threading.Barrier(len(requests))
    texts: dict[int, str] = {}

    def run(number):
        start.wait(timeout=60)
        texts[number] = answer(engine.generate(requests[number]))[0]

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(len(requests))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert [texts.get(number) for number in range(len(requests))] == expected


def test_a_directory_loads_as_an_engine(model_path):
    engine = LocalEngine.load(model_path, device="cpu", draft_budget=4)
    assert engine.model_name == model_path.name
    assert engine.warnings == []
    assert_right(engine, ask())


def test_loading_says_how_far_it_is(model_path):
    shares: list[float] = []
    LocalEngine.load(model_path, device="cpu", draft_budget=0, on_share=shares.append)
    assert shares == sorted(shares)
    assert shares[0] > 0
    assert shares[-1] < 1
    assert len(set(shares)) > 5, "the weights are counted one by one"


def test_a_recurrent_model_decodes_plainly_and_says_so_in_one_line(tmp_path):
    config = MambaConfig(
        vocab_size=BYTE_VOCAB, hidden_size=32, num_hidden_layers=2, state_size=4, bos_token_id=0, eos_token_id=EOS_ID
    )
    engine = LocalEngine.load(save_tiny_model(tmp_path, config), device="cpu")
    assert len(engine.warnings) == 1
    assert "no drafting" in engine.warnings[0]
    assert "\n" not in engine.warnings[0]
    for request in (ask(max_new_tokens=20), ask("other", max_new_tokens=20)):
        usage = assert_right(engine, request)
        assert (usage.output_tokens, usage.forwards, usage.drafted) == (20, 20, 0)


def test_a_trace_shows_each_step_and_is_collected_only_when_asked(engine):
    content = FILE + "naïve 世界"
    chunks = list(engine.generate(ask(content, trace=True)))
    steps = [chunk.step for chunk in chunks if chunk.step]
    usage = chunks[-1].usage
    assert len(steps) == usage.forwards
    assert sum(len(step.emitted) for step in steps) == usage.output_tokens
    # A character that the answer's end cuts off belongs to no token.
    shown = "".join(chunk.text for chunk in chunks).removesuffix("\ufffd")
    assert "".join(text for step in steps for text in step.emitted).removesuffix("\ufffd") == shown
    assert sum(len(step.drafted) for step in steps) == usage.drafted > 0
    assert sum(len(step.accepted) for step in steps) == usage.accepted > 0
    for step in steps:
        path = [step.drafted[node] for node in step.accepted]
        assert [token.parent for token in path] == [-1, *step.accepted][: len(path)]
        assert tuple(token.text for token in path if token.text != "\ufffd") == tuple(
            text for token, text in zip(path, step.emitted, strict=False) if token.text != "\ufffd"
        )
        assert {token.origin for token in step.drafted} <= set(usage.drafters)
        assert step.proposed >= len(step.drafted)
        assert step.forward_seconds > 0
    assert all(chunk.step is None for chunk in engine.generate(ask(content)))


def test_a_plain_answer_has_steps_without_drafts(engine):
    steps = [chunk.step for chunk in engine.generate_plain(ask(trace=True))]
    assert all(len(step.emitted) == 1 and not step.drafted for step in steps)


def test_the_time_of_drafting_and_of_forwards_is_part_of_the_decode_time(engine):
    _, _, usage = answer(engine.generate(ask()))
    assert usage.draft_seconds > 0
    assert usage.forward_seconds > 0
    assert usage.draft_seconds + usage.forward_seconds <= usage.decode_seconds
    assert sum(depth.drafted for depth in usage.depths.values()) == usage.drafted
    assert sum(depth.accepted for depth in usage.depths.values()) == usage.accepted
    assert 0 < usage.largest_draft <= 16


@pytest.mark.parametrize("seconds", [(0.01, 0.01), (0.01, 1.0)])
def test_with_measured_costs_the_text_is_that_of_plain_decoding(target, tokenizer, seconds):
    engine = LocalEngine(target, tokenizer, costs=CostTable((1, 129), seconds))
    for seed, content in enumerate((FILE, "x = 1", FILE)):
        assert_right(engine, ask(content, seed=seed, sampling=SEEDED))


def test_where_forwards_over_many_rows_are_dear_few_nodes_are_verified(target, tokenizer):
    dear = LocalEngine(target, tokenizer, costs=CostTable((1, 2, 129), (1e-9, 1.0, 129.0)))
    assert answer(dear.generate(ask()))[2].drafted == 0


def test_loading_measures_costs_once(model_path, tmp_path):
    for _ in range(2):
        assert_right(LocalEngine.load(model_path, device="cpu", costs_dir=tmp_path), ask())
        assert len(list(tmp_path.iterdir())) == 1
    LocalEngine.load(model_path, device="cpu", draft_budget=0, costs_dir=tmp_path / "none")
    assert not (tmp_path / "none").exists(), "what drafts nothing needs no costs"


@pytest.mark.smollm2
def test_the_tokenizers_own_n_grams_draft_unless_they_are_left_out(smollm2):
    request = GenerateRequest(messages=(Message("user", "Write a Python class."),), max_new_tokens=24)
    drafted = {}
    for drafters in (("ngram",), ("cursor", "replay", "lookup")):
        engine = LocalEngine(*smollm2, draft_budget=8, drafters=drafters)
        drafted[drafters] = set(assert_right(engine, request).drafters)
    assert "ngram" in drafted[("ngram",)]
    assert "ngram" not in drafted[("cursor", "replay", "lookup")]
