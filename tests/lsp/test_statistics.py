from __future__ import annotations

import json

import pytest

from specedit.engine.api import Usage
from specedit_lsp.statistics import KINDS, Statistics


def usage(**changes) -> Usage:
    """Twenty tokens in four forwards of 0.1 s, in half a second."""
    told = {"output_tokens": 20, "forwards": 4, "forward_seconds": 0.4, "decode_seconds": 0.5}
    return Usage(**(told | changes))


def test_nothing_yet():
    report = Statistics().report()
    assert report["total"]["shown"] == 0
    assert report["total"]["tokensPerForward"] is None
    assert "Nothing was asked yet" in report["summary"]


def test_each_kind_is_counted_apart_and_in_total():
    statistics = Statistics()
    for _ in range(3):
        statistics.shown("inline")
    statistics.accepted("inline", 12)
    statistics.rejected("inline")
    statistics.shown("nextEdit")
    statistics.accepted("nextEdit", 5)
    report = statistics.report()
    assert (report["inline"]["shown"], report["inline"]["accepted"], report["inline"]["rejected"]) == (3, 1, 1)
    assert report["nextEdit"]["acceptedChars"] == 5
    assert report["rewrite"]["shown"] == 0
    assert (report["total"]["shown"], report["total"]["accepted"], report["total"]["acceptedChars"]) == (4, 2, 17)
    assert "inline completions: 3 shown, 1 accepted (33%), 1 rejected, 12 characters taken" in report["summary"]
    assert "rewrites" not in report["summary"]


def test_answers_cost_tokens_forwards_and_seconds():
    statistics = Statistics()
    statistics.answered("rewrite", usage(), 0.75)
    statistics.answered("inline", usage(output_tokens=4, forward_seconds=0.4, decode_seconds=0.4), 0.5)
    total = statistics.report()["total"]
    assert (total["answers"], total["outputTokens"], total["forwards"], total["seconds"]) == (2, 24, 8, 1.25)
    assert total["tokensPerForward"] == 3.0


@pytest.mark.parametrize(
    ("told", "saved"),
    [
        ({}, 1.5),  # 20 forwards of 0.1 s would have taken 2 s
        ({"output_tokens": 4, "decode_seconds": 0.4}, 0.0),  # nothing was accepted, and drafting cost nothing
        ({"output_tokens": 4, "decode_seconds": 0.9}, -0.5),  # drafting cost half a second
        ({"forwards": 0, "forward_seconds": 0.0}, 0.0),  # a server that doesn't tell
        ({"forward_seconds": 0.0}, 0.0),
    ],
)
def test_time_saved_is_what_plain_forwards_would_have_taken_less_what_was_taken(told, saved):
    statistics = Statistics()
    statistics.answered("rewrite", usage(**told), 1.0)
    assert statistics.report()["rewrite"]["secondsSaved"] == pytest.approx(saved)


def test_a_server_that_tells_no_forwards_leaves_the_ratio_as_it_is():
    statistics = Statistics()
    statistics.answered("inline", usage(), 1.0)
    statistics.answered("inline", usage(output_tokens=100, forwards=0), 1.0)
    assert statistics.report()["inline"]["tokensPerForward"] == 5.0
    assert statistics.report()["inline"]["outputTokens"] == 120


def test_the_summary_says_what_drafting_gave_or_cost():
    saved, cost, untold = Statistics(), Statistics(), Statistics()
    saved.answered("rewrite", usage(), 1.0)
    cost.answered("rewrite", usage(output_tokens=4, decode_seconds=0.9), 1.0)
    untold.answered("rewrite", usage(forwards=0), 1.0)
    assert "drafting saved at most 1.5 s" in saved.summary()
    assert "20 tokens in 4 forwards (5.0 tokens per forward)" in saved.summary()
    assert "drafting cost 0.5 s" in cost.summary()
    assert "drafting" not in untold.summary()


def test_the_report_says_how_long_it_was_counted():
    now = [1000.0]
    statistics = Statistics(clock=lambda: now[0])
    now[0] += 7200
    assert statistics.report()["countedSeconds"] == 7200
    assert "In the last 2.0 hours" in statistics.summary()
    now[0] = 1100.0
    assert "In the last 2 minutes" in statistics.summary()
    now[0] = 1010.0
    assert "In the last minute" in statistics.summary()


def test_the_report_is_json_with_all_kinds():
    statistics = Statistics()
    statistics.answered("nextEdit", usage(), 1.0)
    report = json.loads(json.dumps(statistics.report()))
    assert {*KINDS, "total", "summary", "countedSeconds"} == set(report)
