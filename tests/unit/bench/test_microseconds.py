import pytest

from specedit.bench.baselines import EarliestNgram, SuffixTree
from specedit.bench.microseconds import made_up_edit, markdown, measure
from specedit.engine.tokens import Tokenizer
from tests.tiny_model import BYTE_VOCAB, byte_level


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer(byte_level())


def test_a_made_up_edit_has_the_size_asked_for_and_is_the_same_in_every_run(tokenizer):
    edit = made_up_edit(3_000, tokenizer, 1)
    assert len(edit.prompt_ids) == len(edit.prediction_ids) == 3_000
    assert edit == made_up_edit(3_000, tokenizer, 1)
    assert edit != made_up_edit(3_000, tokenizer, 2)


def test_the_answer_of_a_made_up_edit_follows_the_file_with_changes(tokenizer):
    edit = made_up_edit(8_000, tokenizer, 1)
    answer, file = (set(tokenizer.decode(ids).split("\n")[:-1]) for ids in (edit.answer_ids, edit.prediction_ids))
    assert 0.02 < len(answer - file) / len(answer) < 0.3


def test_each_part_is_measured_at_each_size(tokenizer):
    class Weighed(SuffixTree):
        memory_bytes = 3_000_000

    makers = {"ngram": lambda: EarliestNgram("ngram", (2, 1), 10), "tree": lambda: Weighed("tree")}
    costs = list(measure(makers, tokenizer, vocab_size=BYTE_VOCAB, budget=16, context_tokens=(500, 2_000), calls=200))
    assert [(one.part, one.context_tokens) for one in costs] == [
        ("ngram", 500),
        ("tree", 500),
        ("ngram", 2_000),
        ("tree", 2_000),
    ]
    assert all(len(one.cost.propose_ns) >= 200 for one in costs)
    assert [one.memory_bytes for one in costs] == [None, 3_000_000] * 2
    *_, ngram, tree = markdown(costs).split("\n")
    assert ngram.startswith("| ngram | 2,000 | ")
    assert ngram.endswith(" |  |")
    assert tree.endswith(" | 3.0 |")
