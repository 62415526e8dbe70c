"""How many nodes are verified: as many as give the most tokens a second, found by trying all numbers."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest

from specedit.draft.tree import DraftTree
from specedit.engine.api import Sampling
from specedit.engine.budget import DraftBudget, FixedBudget, best_size
from specedit.engine.costs import CostTable, ForwardCosts
from tests.fake_models import RandomTreeDrafter, hashed, run_loop, run_reference

#: A forward over more rows takes longer, as on a CPU: 128 rows five times as long as one.
CPU = CostTable((1, 2, 4, 8, 32, 128), (0.080, 0.090, 0.125, 0.160, 0.200, 0.450))
#: A forward takes the same whatever its rows, as on a GPU with a small model.
FLAT = CostTable((1, 128), (0.020, 0.020001))
STEEP = CostTable((1, 2), (0.010, 0.020))


def chain(tokens, belief=1.0, origin="cursor"):
    logs = [math.log(belief)] * len(tokens)
    return DraftTree.of(tokens, range(-1, len(tokens) - 1), logs, [origin] * len(tokens))


class Answer:
    """Steps of an answer that the target is known to write, drafted by `propose(rest, nodes)`."""

    def __init__(self, table, nodes=128):
        self.costs = ForwardCosts(table)
        self.budget = DraftBudget(self.costs, nodes)
        self.allowance = self.budget.begin()

    def step(self, rest, propose, draft_seconds=0.0):
        """Nodes verified and tokens emitted by one step."""
        room = self.allowance.room(len(rest) - 1)
        tree = self.allowance.trim(propose(rest, room))
        tree.check(1000, room)
        node, emitted = -1, []
        for token in rest:
            emitted.append(token)
            node = tree.child(node, token)
            if node is None:
                break
        seconds = float(self.costs.seconds(1 + len(tree))[-1])
        self.allowance.observe(emitted, forward_seconds=seconds, draft_seconds=draft_seconds)
        return len(tree), len(emitted)

    def write(self, text, propose):
        """[(nodes, tokens)] of all steps."""
        steps = []
        while len(text) > 1:
            steps.append(self.step(text, propose))
            text = text[steps[-1][1] :]
        return steps


def copies(rest, nodes):
    return chain(rest[:nodes])


def is_wrong(rest, nodes):
    return chain([token + 1 for token in rest[:nodes]])


TEXT = [random.Random(1).randrange(900) for _ in range(900)]


@pytest.mark.parametrize("seed", range(40))
def test_the_size_is_the_best_of_all_sizes(seed):
    rng = random.Random(seed)
    probs = sorted((rng.random() ** rng.choice([0.2, 1, 4]) for _ in range(rng.randint(0, 12))), reverse=True)
    seconds = np.array(list(itertools.accumulate([rng.random() for _ in range(len(probs) + 1)])))
    size = best_size(np.array(probs), seconds)
    rates = [(1 + sum(probs[:nodes])) / seconds[nodes] for nodes in range(len(probs) + 1)]
    assert rates[size] == pytest.approx(max(rates))


def test_time_spent_on_drafting_makes_longer_drafts_pay():
    tree = chain(range(8), belief=0.6)
    cheap, dear = Answer(STEEP), Answer(STEEP)
    rest = list(range(9))
    assert cheap.step(rest, lambda *_: tree)[0] == 0
    for _ in range(20):
        nodes, _ = dear.step(rest, lambda *_: tree, draft_seconds=0.2)
    assert nodes > 0


def test_what_is_copied_is_drafted_as_far_as_allowed():
    for table in (CPU, FLAT):
        steps = Answer(table, nodes=64).write(TEXT, copies)
        assert {nodes for nodes, _ in steps[3:-1]} == {64}
    assert {nodes for nodes, _ in Answer(CPU, nodes=5).write(TEXT, copies)[3:-1]} == {5}


def test_the_first_draft_of_a_drafter_that_is_certain_is_short():
    assert 0 < Answer(CPU).step(TEXT, is_wrong)[0] <= 32
    assert Answer(CPU).write(TEXT, copies)[2][0] == 128


def test_where_drafts_are_wrong_nothing_is_verified_and_little_is_asked_for():
    answer = Answer(CPU)
    steps = answer.write(TEXT[:200], is_wrong)
    assert [nodes for nodes, _ in steps[10:]] == [0] * (len(steps) - 10)
    seconds = sum(float(answer.costs.seconds(1 + nodes)[-1]) for nodes, _ in steps)
    assert seconds < 1.06 * len(steps) * 0.080, "the whole answer takes hardly longer than without drafts"
    assert answer.allowance.room(128) < 128


def test_it_trusts_again_when_copying_begins_again():
    answer = Answer(CPU)
    answer.write(TEXT[:300], is_wrong)
    steps = answer.write(TEXT[300:], copies)
    assert next(place for place, (nodes, _) in enumerate(steps) if nodes > 0) < 12
    assert next(place for place, (nodes, _) in enumerate(steps) if nodes == 128) < 40


def test_only_the_part_that_is_wrong_loses_trust():
    def both(rest, nodes):
        good = rest[: nodes // 2]
        bad = [token + 1 for token in rest[: nodes - len(good)]]
        parents = [
            *range(-1, len(bad) - 1),
            *(-1 if place == 0 else len(bad) + place - 1 for place in range(len(good))),
        ]
        logs = [math.log(0.5) if parent == -1 else 0.0 for parent in parents]
        origins = ["ngram"] * len(bad) + ["cursor"] * len(good)
        return DraftTree.of([*bad, *good], parents, logs, origins)

    answer = Answer(CPU, nodes=32)
    steps = answer.write(TEXT, both)
    late = steps[10:]
    assert all(tokens == nodes + 1 for nodes, tokens in late), "only right nodes are verified"
    assert max(nodes for nodes, _ in late) == 16


def test_a_part_that_says_how_sure_it_is_is_believed():
    rng = random.Random(3)

    def sure_as_said(rest, nodes):
        wrong = [token if rng.random() < 0.8 else token + 1 for token in rest[:nodes]]
        return chain(wrong, belief=0.8)

    answer = Answer(CPU)
    answer.write(TEXT, sure_as_said)
    probs = answer.budget.trust.path_probs(chain(range(4), belief=0.8))
    assert probs == pytest.approx([0.8, 0.64, 0.51, 0.41], rel=0.35)


@pytest.mark.parametrize("seed", range(20))
def test_a_trimmed_tree_is_a_tree_and_no_node_is_believed_more_than_its_parent(seed):
    rng = random.Random(seed)
    answer = Answer(rng.choice([CPU, FLAT, STEEP]), nodes=24)

    def bushy(rest, nodes):
        tree = RandomTreeDrafter(1000, rest, rng.randrange(10**6)).propose(nodes)
        logs = [-rng.random() for _ in range(len(tree))]
        origins = [rng.choice(["cursor", "lookup"]) for _ in range(len(tree))]
        return DraftTree.of(tree.token_ids.tolist(), tree.parents.tolist(), logs, origins)

    answer.write(TEXT[:300], bushy)
    tree = bushy(TEXT, 24)
    probs = answer.budget.trust.path_probs(tree)
    assert all(
        0 <= prob <= (probs[parent] if parent >= 0 else 1) for prob, parent in zip(probs, tree.parents, strict=True)
    )


@pytest.mark.parametrize("limit", [0, 1, 3])
def test_never_more_nodes_than_there_is_room_for(limit):
    assert DraftBudget(ForwardCosts(FLAT), 128).begin().room(limit) <= limit
    assert FixedBudget(8).room(limit) <= limit
    assert DraftBudget(ForwardCosts(FLAT), 2).begin().room(100) == 2


@pytest.mark.parametrize("table", [CPU, FLAT, STEEP])
@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=0.8, top_p=0.9, repetition_penalty=1.2)])
def test_whatever_is_trimmed_changes_no_token(table, sampling):
    target = hashed(12)
    arguments = {"max_new_tokens": 60, "eos_ids": (11,), "sampling": sampling, "seed": 5}
    plain = run_reference(target, [1, 2], **arguments)
    budget = DraftBudget(ForwardCosts(table), 16)
    for seed in range(6):
        drafter = RandomTreeDrafter(12, plain[0], seed)
        tokens, reason, cache, _ = run_loop(target, [1, 2], drafter, budget=budget, **arguments)
        assert (tokens, reason) == plain
        assert cache.length == 2 + len(tokens) - 1
