import json
import re

import pytest

from specedit.bench.baselines import EarliestNgram
from specedit.bench.recorded import TokenizedEdit
from specedit.bench.replay import by_size, figures, measure, replay
from specedit.bench.replay_report import markdown, to_json
from specedit.draft.base import NO_HINTS
from specedit.draft.tree import DraftTree
from specedit.engine.api import Hints
from specedit.errors import EngineError

VOCAB_SIZE = 100


def edit(prompt, answer, *, prediction=(), name="an edit", size="small", hints=NO_HINTS):
    return TokenizedEdit(name, size, 0.1, list(prompt), list(prediction), hints, list(answer))


class Scripted:
    """A drafter that proposes what it is told to, and remembers what it was told."""

    name = "scripted"

    def __init__(self, *trees):
        self.trees = list(trees)
        self.told = []
        self.budgets = []

    def begin(self, prompt_ids, prediction_ids, hints=NO_HINTS):
        self.told = [("begin", list(prompt_ids), list(prediction_ids), hints)]

    def commit(self, token_ids):
        self.told.append(("commit", list(token_ids)))

    def propose(self, budget):
        self.budgets.append(budget)
        return self.trees.pop(0) if self.trees else DraftTree.chain([])


def test_a_tree_is_walked_along_the_answer_and_one_token_is_free():
    # 1 and 9 stand side by side; below 1 comes 2, below 2 the wrong 7.
    drafter = Scripted(DraftTree.of([9, 1, 2, 7], parents=[-1, -1, 1, 2]), DraftTree.chain([5]))
    hints = Hints(substitutions=(("a", "b"),))
    nodes = replay(drafter, edit([3], [1, 2, 4, 5, 6], prediction=[8], hints=hints), vocab_size=VOCAB_SIZE, budget=16)
    assert nodes == [4, 1]
    assert drafter.told == [("begin", [3], [8], hints), ("commit", [1, 2, 4]), ("commit", [5, 6])]
    # As in the engine's loop there is room for all of the answer but its last token.
    assert drafter.budgets == [4, 1]


def test_a_wrong_draft_costs_a_forward_for_one_token():
    drafter = Scripted(DraftTree.chain([9, 9]))
    assert replay(drafter, edit([3], [1, 2, 4]), vocab_size=VOCAB_SIZE, budget=2) == [2, 0, 0]
    assert replay(Scripted(), edit([3], []), vocab_size=VOCAB_SIZE, budget=2) == []


def test_a_drafter_that_fails_is_named_with_the_edit():
    edits = [edit([1], [1, 2]), edit([1], range(9), name="the long one")]
    makers = {"wild": lambda: Scripted(DraftTree.chain([1]), DraftTree.chain([VOCAB_SIZE]))}
    with pytest.raises(EngineError, match=r"drafter wild failed on the edit the long one.*outside the vocabulary"):
        measure(edits, makers, vocab_size=VOCAB_SIZE, budget=4)

    def unmade():
        raise FileNotFoundError("no table")

    with pytest.raises(EngineError, match=r"drafter unmade failed.*no table"):
        measure(edits, {"unmade": unmade}, vocab_size=VOCAB_SIZE, budget=4)


def test_a_drafter_that_spends_more_than_its_budget_fails():
    greedy = {"greedy": lambda: Scripted(DraftTree.chain([1, 2]))}
    with pytest.raises(EngineError, match="2 nodes exceed the draft budget of 1"):
        measure([edit([1], [1, 2, 3])], greedy, vocab_size=VOCAB_SIZE, budget=1)


EDITS = [
    edit([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6], size="large"),
    edit([1, 2, 3, 4, 5, 6], [1, 2, 9, 4, 5, 6]),
]
MAKERS = {"ngram": lambda: EarliestNgram("ngram", (2, 1), 10), "none": Scripted}


@pytest.fixture(scope="module")
def results():
    return measure(EDITS, MAKERS, vocab_size=VOCAB_SIZE, budget=128)


def test_figures_by_hand(results):
    oracle, ngram, none = results
    # Oracle: 1 2 3 4 5 | 6 free; 1 2 | 9 free, 4 5 | 6 free. N-grams need a token first: 1, 2-6; 1, 2 9, 4, 5 6.
    assert [one.forwards for one in oracle.replayed] == [1, 2]
    assert [one.forwards for one in none.replayed] == [6, 6]
    total = figures(ngram.replayed, oracle.replayed)
    assert total.forwards == sum(one.forwards for one in ngram.replayed) == 2 + 4
    assert total.tokens_per_forward == 12 / 6
    assert total.ratio_to_copy_oracle == 6 / 3
    assert total.nodes_per_forward_max == 4
    sizes = by_size(ngram, oracle)
    assert list(sizes) == ["small", "large"]
    assert (sizes["small"].forwards, sizes["small"].ratio_to_copy_oracle) == (4, 2.0)
    assert (sizes["large"].edits, sizes["large"].tokens_per_forward) == (1, 3.0)


def test_a_small_budget_is_set_against_both_oracles():
    names = [one.name for one in measure(EDITS, MAKERS, vocab_size=VOCAB_SIZE, budget=2)]
    assert names == ["copy-oracle", "copy-oracle-128", "ngram", "none"]
    own, full, *_ = measure(EDITS, MAKERS, vocab_size=VOCAB_SIZE, budget=2)
    assert [one.forwards for one in own.replayed] == [2, 2]
    assert [one.forwards for one in full.replayed] == [1, 2]


def test_json_is_the_same_in_every_run_and_holds_no_seconds(results):
    again = measure(EDITS, MAKERS, vocab_size=VOCAB_SIZE, budget=128)
    assert to_json(results) == to_json(again)
    entries = json.loads(to_json(results))["drafters"]
    assert [entry["name"] for entry in entries] == ["copy-oracle", "ngram", "none"]
    assert set(entries[1]) == {
        "name",
        "forwards",
        "tokens_per_forward",
        "nodes_per_forward_mean",
        "nodes_per_forward_max",
        "ratio_to_copy_oracle",
        "by_size",
    }
    assert entries[0]["ratio_to_copy_oracle"] == 1.0
    assert entries[1]["by_size"]["small"]["forwards"] == 4


def test_the_tables_have_a_cell_for_each_column(results):
    table = markdown(results, budget=128)
    assert table.startswith("2 edits, 12 tokens, at most 128 nodes a forward.")
    lines = [line for line in table.split("\n") if line.startswith("| ngram")]
    assert lines[0].startswith("| ngram | 6 | 2.00 |")
    assert re.search(r"\| \d+\.\d \| \d+\.\d \| \S+ \| \d+\.\d\d \|$", lines[0]), "draft calls, index, updates"
    assert lines[1] == "| ngram | 1.50 | 2.000 | 3.00 | 2.000 |"


def test_costs_are_counted_over_all_edits(results):
    cost = results[1].cost
    assert len(cost.propose_ns) == 6
    assert (cost.begun_tokens, cost.committed_tokens) == (12, 12)
    assert cost.propose_us(50) > 0
    assert cost.index_tokens_per_second > 0
    assert cost.update_us_per_token > 0
