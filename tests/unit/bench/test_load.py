import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from specedit.bench import load, load_report
from specedit.bench.load_asks import LONG_TOKENS, asks, wrong_asks
from specedit.bench.load_clients import Ledger, Visit
from specedit.bench.load_server import Address, Counted, Queue, Sample, steps_before_start
from specedit.cli import main
from specedit.engine.api import Usage
from specedit.engine.scheduler import Scheduler
from specedit.engine.server import ServedModel, create_app
from specedit.engine.serving.metrics import Metrics
from specedit.errors import ContextOverflowError, EngineError, UsageError
from tests.fakes import ScriptedEngine
from tests.unit.engine.serving.loopback import TOKEN, serving

MIB = 1 << 20
CONTEXT_TOKENS = 4096


class Stepped(ScriptedEngine):
    """A scripted engine as a scheduler takes it, with answers that go on until their limit."""

    pool = SimpleNamespace(num_bytes=0)
    ignores_cancel = False

    def prepare(self, request, *, plain=False):
        if len(request.prompt or "") > CONTEXT_TOKENS:
            raise ContextOverflowError("the prompt is too long: shorten it")
        engine = replace(self, chunk_chars=1, finish_reason="length", seconds_per_chunk=0.001)
        if self.ignores_cancel:
            request = replace(request, cancel=type(request.cancel)())
        return engine.generate(request)


def same_answer(request):
    return ("once upon a time " * 20)[: request.max_new_tokens]


def loaded(engine, *, token=TOKEN, context_tokens=CONTEXT_TOKENS):
    """A load of a second against a real server and scheduler."""
    metrics = Metrics()
    scheduler = Scheduler(engine, observer=metrics)
    app = create_app(scheduler, model=ServedModel("scripted", context_tokens, 0), token=TOKEN, metrics=metrics)
    try:
        with serving(app) as port:
            address = Address(f"http://127.0.0.1:{port}", token, None)
            return load.measure(address, clients=16, seconds=1.0, seed=3)
    finally:
        scheduler.close()


def check(report, name):
    [found] = [check for check in report.checks if name in check.name]
    return found


def test_a_server_that_does_all_right_holds():
    report = loaded(Stepped([same_answer]))
    assert report.held, report.checks
    assert {(check.name, check.held) for check in report.checks} == {
        ("same request, same answer", True),
        ("everything ended as it should", True),
        ("inline starts within two steps", True),
        ("an answer ends when its client leaves", True),
        ("nothing is left at the end", True),
        ("memory is flat", None),
        ("connections are closed", None),
    }
    assert {kind for kind, *_ in report.visits} == {"inline", "rewrite", "batch", "wrong", "half-open"}
    did = {behaviour for _, behaviour, _, _ in report.visits}
    assert did >= {"streamed", "whole", "reads slowly", "leaves in mid-stream", "is reset in mid-stream", "never reads"}
    assert did >= {"leaves before its turn", "leaves in the prefill", "says nothing", "half a head", "half a body"}
    assert all(waits.answers for waits in report.waits if waits.priority != "batch")
    assert report.output_tokens > 0
    assert "The server held." in load_report.markdown(report)


def test_answers_that_change_are_found():
    numbers = iter(range(100_000))
    report = loaded(Stepped([lambda request: f"{next(numbers):05}" + same_answer(request)]))
    assert not report.held
    found = check(report, "same answer")
    assert found.held is False
    assert "after " in found.told
    assert "did NOT hold" in load_report.markdown(report)


def test_work_for_clients_that_left_is_found():
    engine = Stepped([same_answer])
    engine.ignores_cancel = True
    assert check(loaded(engine), "client leaves").held is False


def test_failures_are_found_with_the_request_that_failed():
    def fails(request):
        if request.priority == "rewrite" and request.max_new_tokens != 4:
            raise EngineError("the engine failed")
        return same_answer(request)

    report = loaded(Stepped([fails]))
    found = check(report, "everything ended")
    assert found.held is False
    assert "the engine failed" in found.told
    assert "rewrite " in found.told


def test_a_server_with_another_token_is_not_loaded():
    with pytest.raises(EngineError, match="401"):
        loaded(Stepped([same_answer]), token="another-token-of-somebody")


def test_a_model_with_too_small_a_context_is_not_loaded():
    with pytest.raises(UsageError, match="need 2048"):
        loaded(Stepped([same_answer]), context_tokens=1024)


def test_an_address_that_nobody_listens_at_or_with_a_certificate_is_told():
    with pytest.raises(EngineError, match="does not answer"):
        load.measure(Address("http://127.0.0.1:9", "", None), clients=16, seconds=1)
    with pytest.raises(UsageError, match="http://"):
        load.measure(Address("https://127.0.0.1:9", "", None), clients=16, seconds=1)


# --- what is asked for


def test_a_seed_asks_for_the_same_and_another_for_something_else():
    def bodies(seed):
        return [ask.body(stream=True) for some in asks("m", 4096, seed, fills=True).values() for ask in some]

    assert bodies(1) == bodies(1)
    assert bodies(1) != bodies(2)


@pytest.mark.parametrize("context", [2048, 8192])
def test_all_that_is_asked_for_fits_the_context_and_has_a_name_of_its_own(context):
    made = [ask for some in asks("m", context, 0, fills=False).values() for ask in some]
    assert len({ask.name for ask in made}) == len(made) == 22
    assert {ask.request.sampling.temperature for ask in made} == {0.0, 0.8}
    for ask in made:
        for asked in (ask, ask.long(), ask.fresh(2**64 - 1)):
            body = asked.body(stream=False)
            told = [body.get(field) for field in ("messages", "prompt", "suffix")]
            assert len(json.dumps(told)) + LONG_TOKENS < context


def test_models_that_fill_in_the_middle_are_asked_to():
    assert sum("suffix" in ask.body(stream=True) for ask in asks("m", 4096, 0, fills=True)["inline"]) == 5
    assert not any("suffix" in ask.body(stream=True) for ask in asks("m", 4096, 0, fills=False)["inline"])


def test_wrong_requests_differ_from_the_right_one_in_what_they_say():
    assert len({wrong.name for wrong in wrong_asks("m", 10)}) == len(wrong_asks("m", 10))
    assert {wrong.status for wrong in wrong_asks("m", 10)} == {400, 401, 403, 404, 405, 413, 415, 421}


# --- what is judged


@pytest.mark.parametrize(
    ("answers", "differs"),
    [
        ([("abc", "stop"), ("abc", "stop")], False),
        ([("abc", "stop"), ("abd", "stop")], True),
        ([("abc", "stop"), ("abcd", "stop")], True),
        ([("abc", "stop"), ("ab", "stop")], True),
        ([("abc", "stop"), ("abc", "length")], True),
        ([("ab", None), ("abc", "stop"), ("a", None)], False),
        ([("abc", "stop"), ("abcd", None)], True),
        ([("ab", None), ("abcd", None), ("abc", "stop")], True),
        ([("ab", None), ("x", None)], True),
    ],
)
def test_an_answer_must_equal_the_first_and_its_beginning_begin_it(answers, differs):
    ledger = Ledger()
    found = [ledger.difference("one", text, finish) for text, finish in answers]
    assert not any(found[:-1])
    assert bool(found[-1]) == differs
    assert ledger.difference("another", "xyz", "stop") == ""


def sample(seconds, mib, fds=10, queue=(0, 0, 0)):
    return Sample(seconds=seconds, rss_bytes=mib * MIB, fds=fds, threads=5, kv_bytes=0, queue=Queue(*queue))


@pytest.mark.parametrize(
    ("mib", "held"),
    [
        (lambda second: 1000, True),
        (lambda second: min(1000, 500 + 5 * second), True),  # warm-up
        (lambda second: 1000 + 300 * (second == 550), True),  # one peak
        (lambda second: 500 + second // 5, False),
        (lambda second: 2000 + 80 * (second > 400), False),
    ],
)
def test_memory_may_grow_while_it_warms_up_and_not_afterwards(mib, held):
    assert load.flat([sample(second, mib(second)) for second in range(0, 600, 5)], 600.0).held is held


def test_memory_is_not_judged_by_a_short_load_nor_of_a_server_elsewhere():
    assert load.flat([sample(second, 100 + second) for second in range(60)], 60.0).held is None
    assert load.flat([sample(second, 0) for second in range(600)], 600.0).held is None


def test_an_inline_request_that_waited_for_three_steps_is_late():
    metrics = Metrics()
    metrics.started("inline", waited_seconds=9.0, lower_steps=100)
    before = Counted(metrics.text().decode())
    metrics.started("inline", waited_seconds=0.1, lower_steps=2)
    metrics.started("batch", waited_seconds=0.1, lower_steps=50)
    after = Counted(metrics.text().decode())
    assert load.started_in_time(steps_before_start(before, after)["inline"]).held is True
    metrics.started("inline", waited_seconds=0.1, lower_steps=3)
    late = load.started_in_time(steps_before_start(before, Counted(metrics.text().decode()))["inline"])
    assert late.held is False
    assert "2 inline requests, 1 of them" in late.told
    assert load.started_in_time(steps_before_start(after, after)["inline"]).held is None


def test_what_is_left_at_the_end_is_told():
    assert load.emptied(sample(1, 1)).held is True
    assert load.emptied(sample(1, 1, queue=(0, 1, 0))).held is False
    assert load.closed([sample(0, 1, fds=9), sample(1, 1, fds=60), sample(2, 1, fds=11)]).held is True
    assert load.closed([sample(0, 1, fds=9), sample(1, 1, fds=60), sample(2, 1, fds=59)]).held is False
    assert load.drained(None).held is False
    assert load.unalarmed(["Traceback (most recent call last):"]).held is False


def test_a_request_that_is_stuck_is_no_difference_but_a_failure():
    stuck = Visit(kind="batch", behaviour="whole", outcome="stuck", wrong="batch 1: not over after 600 seconds")
    assert load.ended([stuck], "").held is False
    assert "1 of them stuck" in load.ended([stuck], "").told
    assert load.exact([stuck], 0, []).held is True
    assert load.exact([], 1, ["batch 1: after 3 characters ..."]).held is False


def test_counters_with_labels_are_summed():
    metrics = Metrics()
    for priority, outcome in (("inline", "stop"), ("batch", "stop"), ("inline", "cancelled")):
        metrics.ended(priority, outcome, Usage(output_tokens=5), seconds=1.0)
    counted = Counted(metrics.text().decode())
    assert counted.total("specedit_answers_total") == 3
    assert counted.total("specedit_answers_total", outcome="stop") == 2
    assert counted.total("specedit_output_tokens_total") == 15


def test_the_command_says_what_it_needs():
    few = CliRunner().invoke(main, ["bench", "load", "--clients", "3"])
    assert few.exit_code == 2
    assert "16 clients" in few.stderr
    nobody = CliRunner().invoke(main, ["bench", "load", "--engine", "http://127.0.0.1:9"])
    assert nobody.exit_code == 4
    assert "does not answer" in nobody.stderr
