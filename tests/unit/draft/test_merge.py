from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specedit.draft.merge import PARTS, EditDrafter
from specedit.engine.api import Hints
from tests.unit.draft.drafting import Edit
from tests.unit.draft.streams import codec, streams, trees

VOCABULARY = codec().vocabulary()
SUBSETS = [parts for size in range(len(PARTS) + 1) for parts in itertools.combinations(PARTS, size)]

BEFORE = "def f(old):\n    use(old)\n    if old:\n        call(old, 1)\n    return old\n"
AFTER = "def f(new):\n    use(new)\n    log()\n    if new:\n        call(new, 1)\n    return new\n"


def arrays(tree):
    return tree.token_ids.tolist(), tree.parents.tolist(), tree.log_probs.tolist(), tree.origins


def check(tree, budget, wide):
    tree.check(VOCABULARY.size, budget)
    assert not VOCABULARY.barred[tree.token_ids].any()
    assert set(tree.origins) <= set(PARTS)
    assert len(tree.origins) == len(tree)
    assert (tree.path_probs > 0).all()
    assert (tree.path_probs <= 1 + 1e-9).all()
    for parent in set(tree.parents.tolist()):
        assert np.exp(tree.log_probs[tree.parents == parent]).sum() <= 1 + 1e-6
    if not wide:
        assert tree.parents.tolist() == list(range(-1, len(tree) - 1))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1 << 30), st.integers(0, 600), st.sampled_from(SUBSETS), st.booleans(), st.data())
def test_whatever_is_committed_the_tree_keeps_the_rules(seed, budget, parts, wide, data):
    [stream] = streams(seed, 1)
    drafter = EditDrafter(VOCABULARY, parts=parts, wide=wide)
    drafter.begin(stream.prompt, stream.prediction, stream.hints)
    done = 0
    while done < len(stream.answer):
        check(drafter.propose(budget), budget, wide)
        size = data.draw(st.integers(1, 60))
        drafter.commit(stream.answer[done : done + size])
        done += size
    check(drafter.propose(budget), budget, wide)


@pytest.mark.parametrize("seed", range(30))
def test_proposing_changes_nothing(seed):
    """So no drafter sees a token that was drafted and not committed."""
    [stream] = streams(seed, 1)
    asked, silent = (EditDrafter(VOCABULARY, parts=stream.parts, wide=stream.wide) for _ in range(2))
    for drafter in (asked, silent):
        drafter.begin(stream.prompt, stream.prediction, stream.hints)
    for done in range(0, len(stream.answer), 5):
        first = asked.propose(64)
        asked.propose(seed)
        asked.propose(1)
        assert arrays(asked.propose(64)) == arrays(first)
        if done % 4 == 0:
            assert arrays(silent.propose(64)) == arrays(first)
        for drafter in (asked, silent):
            drafter.commit(stream.answer[done : done + 5])


@pytest.mark.parametrize("seed", range(30, 40))
def test_the_same_answer_is_drafted_the_same_again(seed):
    [stream] = streams(seed, 1)
    drafter = EditDrafter(VOCABULARY, parts=stream.parts, wide=stream.wide)
    runs = []
    for _ in range(2):
        drafter.begin(stream.prompt, stream.prediction, stream.hints)
        drafts = []
        for token in stream.answer:
            drafts.append(arrays(drafter.propose(16)))
            drafter.commit([token])
        runs.append(drafts)
    assert runs[0] == runs[1]
    assert trees(stream, seed) == trees(stream, seed)


@pytest.mark.parametrize("parts", SUBSETS)
def test_every_choice_of_parts_decodes_the_answer(parts):
    edit = Edit(BEFORE, AFTER, Hints((("old", "new"),), opening="```python\n", closing="```"))
    for wide in (True, False):
        for tree in edit.steps(32, parts, wide=wide):
            assert set(tree.origins) <= set(PARTS)
            assert wide or tree.parents.tolist() == list(range(-1, len(tree) - 1))


def test_parts_together_take_fewer_forwards_than_each_alone():
    edit = Edit(BEFORE, AFTER, Hints((("old", "new"),)))
    alone = [len(edit.steps(32, (part,))) for part in PARTS]
    assert len(edit.steps(32)) < min(alone)
    assert len(edit.steps(32, ())) == len(edit.answer)


def test_each_part_is_named_at_its_tokens():
    edit = Edit(BEFORE, BEFORE.replace("old", "new"), Hints((("old", "new"),)))
    tree = edit.drafter().propose(32)
    node, named = -1, {}
    for token in edit.answer:
        if (node := tree.child(node, token)) is None:
            break
        named.setdefault(edit.codec.decode([token]).strip(), set()).add(tree.origins[node])
    assert named["new"] == {"replay"}
    assert named["def"] == {"cursor"}


def test_a_larger_budget_adds_nodes_and_changes_none():
    edit = Edit(BEFORE, AFTER)
    drafter = edit.drafter()
    drafter.commit(edit.answer[:5])
    small, large = drafter.propose(9), drafter.propose(60)
    assert arrays(large.prefix(9)) == arrays(small)


def test_a_new_answer_forgets_the_last_one():
    edit = Edit(BEFORE, AFTER)
    used = edit.drafter()
    used.commit(edit.answer)
    used.propose(30)
    used.begin(edit.prompt, edit.prediction, edit.hints)
    assert arrays(used.propose(60)) == arrays(edit.drafter().propose(60))


def test_a_special_token_of_the_prompt_is_never_drafted():
    edit = Edit(BEFORE, BEFORE)
    drafter = edit.drafter()
    drafter.commit(edit.answer)
    tokens = edit.codec.encode("```\n")
    drafter.commit(tokens)  # in the prompt a special token follows
    assert edit.codec.special_id not in drafter.propose(64).token_ids


@pytest.mark.parametrize("size", [0, 1, 2])
def test_there_may_be_hardly_a_prompt(size):
    drafter = EditDrafter(VOCABULARY)
    drafter.begin([7] * size, [1, 2, 3, 4])
    assert (len(drafter.propose(8)) > 0) == (size > 1)
    drafter.commit([9, 1, 2])
    drafter.propose(8).check(VOCABULARY.size, 8)


def test_there_may_be_no_prediction():
    drafter = EditDrafter(VOCABULARY)
    drafter.begin([5, 6, 7, 8, 5, 6], [])
    tree = drafter.propose(8)
    assert tree.child(-1, 7) is not None
    assert set(tree.origins) <= {"lookup", "ngram"}


def test_a_prompt_shorter_than_the_prediction_may_show_part_of_it():
    prediction = list(range(100, 120))
    drafter = EditDrafter(VOCABULARY)
    for prompt in ([105] * 10, prediction[10:], prediction[:10], prediction[5:15]):
        drafter.begin(prompt, prediction)
        assert drafter.propose(8).child(-1, 100) is not None


def test_memory_is_reported_and_grows_with_the_texts():
    drafter = EditDrafter(VOCABULARY)
    drafter.begin([1, 2, 3], [4] * 100)
    small = drafter.memory_bytes
    drafter.begin([1, 2, 3], [4] * 10_000)
    assert small + 10_000 * 40 < drafter.memory_bytes < small + 10_000 * 200
