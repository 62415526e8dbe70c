"""Exactness by enumeration: over all small trees, the emitted tokens are distributed exactly as the target's."""

from __future__ import annotations

import itertools
import math
import random
from collections import defaultdict
from functools import cache

import pytest
import torch

from specedit.draft.merge import EditDrafter
from specedit.draft.tree import DraftTree
from specedit.draft.vocabulary import Vocabulary
from specedit.engine.api import Hints, Sampling
from specedit.engine.healing import Healing, SpelledTokens
from specedit.engine.sampling import Sampler
from specedit.engine.verify import residual_rejection, sample_and_match

TOLERANCE = 1e-12

#: Three tokens and all trees in each run; larger vocabularies over all trees belong to the long runs.
SIZES = [
    (3, 5),
    (4, 4),
    (5, 3),
    pytest.param(4, 5, marks=pytest.mark.real),
    pytest.param(5, 5, marks=pytest.mark.real),
]


@cache
def distribution(kind: str, vocab_size: int, context: tuple[int, ...]) -> torch.Tensor:
    """A fixed random distribution for each context; some tokens have probability 0, as after top-k."""
    seed = sum((token + 1) * 31**place for place, token in enumerate((len(kind), vocab_size, *context)))
    generator = torch.Generator().manual_seed(seed)
    weights = torch.rand(vocab_size, generator=generator, dtype=torch.float64) + 0.05
    if kind == "target" and seed % 3 == 0:
        weights[seed % vocab_size] = 0
    return weights / weights.sum()


@cache
def probabilities(kind: str, vocab_size: int, context: tuple[int, ...]) -> list[float]:
    return distribution(kind, vocab_size, context).tolist()


def contexts(tree: DraftTree) -> list[tuple[int, ...]]:
    """The tokens on the path to each row."""
    found: list[tuple[int, ...]] = [()]
    for node, parent in enumerate(tree.parents.tolist()):
        found.append((*found[parent + 1], int(tree.token_ids[node])))
    return found


def all_shapes(most_nodes: int) -> list[tuple[int, ...]]:
    """The parent arrays of all ordered trees of up to `most_nodes` nodes: each once, its nodes in preorder."""
    shapes: list[tuple[int, ...]] = [()]
    last = shapes
    for size in range(1, most_nodes + 1):
        # In preorder a node hangs on the last one, or on one of the nodes above that.
        last = [(*parents, parent) for parents in last for parent in [*lineage(parents, size - 2), -1]]
        shapes += last
    return shapes


def lineage(parents: tuple[int, ...], node: int) -> list[int]:
    """A node and the nodes above it."""
    found = []
    while node >= 0:
        found.append(node)
        node = parents[node]
    return found


def all_trees(vocab_size: int, most_nodes: int):
    """All trees: every shape, every choice of tokens with distinct siblings."""
    for parents in all_shapes(most_nodes):
        for tokens in itertools.product(range(vocab_size), repeat=len(parents)):
            if len(set(zip(parents, tokens, strict=True))) == len(parents):
                yield DraftTree.of(tokens, parents)


def test_all_shapes_are_there():
    assert [sum(len(shape) == size for shape in all_shapes(5)) for size in range(6)] == [1, 1, 2, 5, 14, 42]


def test_numbering_the_nodes_otherwise_changes_nothing():
    by_depth = DraftTree.of([0, 1, 1, 0, 2], parents=[-1, -1, 0, 0, 2])
    preorder = DraftTree.of([0, 1, 2, 0, 1], parents=[-1, 0, 1, 0, -1])
    assert sorted(contexts(preorder)) == sorted(contexts(by_depth))
    assert emissions(3, preorder) == pytest.approx(emissions(3, by_depth), abs=TOLERANCE)


class Unwound(Exception):
    """A choice without an answer yet was reached."""


class Script:
    """Plays back choices; `branches` explores all of them with their probabilities."""

    def __init__(self, answers: list) -> None:
        self.answers = answers
        self.used = 0
        self.options: list[tuple[object, float]] = []

    def choose(self, options: list[tuple[object, float]]):
        if self.used == len(self.answers):
            self.options = options
            raise Unwound
        self.used += 1
        return self.answers[self.used - 1]

    def accept(self, probability: float) -> bool:
        return self.choose([(True, probability), (False, 1 - probability)])

    def pick(self, probs: torch.Tensor) -> int:
        return self.choose(list(enumerate(probs.tolist())))


def branches(run):
    """(probability, result) of every way that `run(script)` can go."""
    open_ends = [([], 1.0)]
    while open_ends:
        answers, probability = open_ends.pop()
        script = Script(answers)
        try:
            yield probability, run(script)
        except Unwound:
            open_ends += [([*answers, value], probability * p) for value, p in script.options if p > 0]


def target_probabilities(vocab_size: int, context: tuple[int, ...]) -> list[float]:
    return probabilities("target", vocab_size, context)


def assert_is_target(vocab_size: int, emitted: dict[tuple[int, ...], float], probs_of=target_probabilities) -> None:
    """The emitted sequences, each continued by plain draws, have the target's joint distribution.

    A sequence is emitted and then continued by the target itself, so the joint distribution of all continuations is
    the target's if and only if it is so at every prefix: the mass that reaches a prefix, through it or stopping short
    of it and going on plainly, must be the target's probability of the prefix.
    """
    through: dict[tuple[int, ...], float] = defaultdict(float)
    for sequence, probability in emitted.items():
        for length in range(len(sequence) + 1):
            through[sequence[:length]] += probability
    stopped, expected = {(): 0.0}, {(): 1.0}
    for prefix in sorted(through, key=len):
        if prefix:
            above = prefix[:-1]
            share = probs_of(vocab_size, above)[prefix[-1]]
            stopped[prefix] = (stopped[above] + emitted.get(above, 0.0)) * share
            expected[prefix] = expected[above] * share
        assert math.isclose(through[prefix] + stopped[prefix], expected[prefix], rel_tol=0, abs_tol=TOLERANCE), prefix


LETTERS = "abc\n"


class Letters:
    """A tokenizer of four letters; it takes no notice of others."""

    def encode(self, text: str) -> list[int]:
        return [LETTERS.index(letter) for letter in text if letter in LETTERS]

    def token_bytes(self, token_id: int) -> bytes:
        return LETTERS[token_id].encode()


def merged_trees(most_nodes: int):
    """Trees of the merged drafter while short files of few letters are edited; larger ones than `all_trees` has."""
    source = random.Random(0)
    for number in range(40):
        lines = ["".join(source.choices("abc", k=source.randrange(1, 4))) for _ in range(6)]
        written = [line.replace("b", "a") if source.random() < 0.3 else line for line in lines]
        codec = Letters()
        drafter = EditDrafter(Vocabulary.of(codec, len(LETTERS), ()), wide=number % 4 > 0)
        file = codec.encode("\n".join(lines))
        drafter.begin(file, file, Hints(substitutions=(("b", "a"),), resume_offsets=(2, 4), opening="a\n"))
        for token_id in codec.encode("a\n" + "\n".join(written)):
            yield drafter.propose(most_nodes)
            drafter.commit([token_id])


def emissions(vocab_size: int, tree: DraftTree, target=None) -> dict[tuple[int, ...], float]:
    """What sample and match emits for a tree, with its probabilities."""
    target = target or (lambda path: distribution("target", vocab_size, path))

    def run(script):
        verdict = sample_and_match(tree, lambda _, path: script.pick(target((*path,))))
        return emitted_tokens(tree, verdict)

    emitted: dict[tuple[int, ...], float] = defaultdict(float)
    for probability, sequence in branches(run):
        emitted[sequence] += probability
    return emitted


def emitted_tokens(tree, verdict):
    return (*(int(tree.token_ids[node]) for node in verdict.path), verdict.next_token)


@pytest.mark.parametrize(("vocab_size", "most_nodes"), SIZES)
def test_sample_and_match_emits_the_targets_distribution(vocab_size, most_nodes):
    for tree in all_trees(vocab_size, most_nodes):
        assert_is_target(vocab_size, emissions(vocab_size, tree))


#: The last one ends a text.
SPELLED = ("ab", "a", "b", "")
BEGUN = "aba"


def healed_probabilities(vocab_size: int, context: tuple[int, ...]) -> list[float]:
    """The target's, given that the text of the tokens agrees with `BEGUN` for as long as that reaches."""
    probs = target_probabilities(vocab_size, context)
    written = "".join(SPELLED[token] for token in context)
    if written.startswith(BEGUN):
        return probs
    rest = BEGUN.removeprefix(written)
    agreeing = [piece != "" and (rest.startswith(piece) or piece.startswith(rest)) for piece in SPELLED]
    weights = [prob * agrees for prob, agrees in zip(probs, agreeing, strict=True)]
    # As in `Sampler`, where the target itself forbids all of them.
    return [weight / sum(weights) for weight in weights] if sum(weights) else probs


def healed_distribution(path: tuple[int, ...]) -> torch.Tensor:
    """What the sampler draws from at a node of an answer that is begun."""
    tokens = SpelledTokens((token, piece.encode()) for token, piece in enumerate(SPELLED))
    healing = Healing(tokens, BEGUN.encode(), vocab_size=len(SPELLED), barred=(3,))
    sampler = Sampler(Sampling(temperature=1.0), 0, [], healing)
    token_ids, probs = sampler.processed(distribution("target", len(SPELLED), path).log(), path)
    whole = torch.zeros(len(SPELLED), dtype=torch.float64)
    whole[token_ids] = probs
    return whole


def test_an_answer_that_is_begun_is_distributed_as_the_target_given_its_beginning():
    trees = list(all_trees(len(SPELLED), 4))
    seen: set[tuple[int, ...]] = set()
    for tree in trees:
        emitted = emissions(len(SPELLED), tree, healed_distribution)
        assert_is_target(len(SPELLED), emitted, healed_probabilities)
        seen.update(emitted)
    begun = {tokens for tokens in seen if "".join(SPELLED[token] for token in tokens).startswith(BEGUN)}
    assert {(1, 2, 1), (0, 1), (0, 0)} <= begun, "in every way of spelling it"
    assert all(SPELLED[tokens[0]] in ("a", "ab") for tokens in seen)


def test_merged_trees_emit_the_targets_distribution():
    trees = list(merged_trees(8))
    for tree in trees:
        tree.check(len(LETTERS), 8)
        assert_is_target(len(LETTERS), emissions(len(LETTERS), tree))
    shapes = {tuple(tree.parents.tolist()) for tree in trees}
    assert any(len(shape) == 8 for shape in shapes)
    assert len(shapes) > 20, "trees of many shapes, or this test shows little"


@pytest.mark.parametrize(("vocab_size", "most_nodes"), SIZES)
def test_residual_rejection_emits_the_targets_distribution(vocab_size, most_nodes):
    for parents in all_shapes(most_nodes):
        emitted: dict[tuple[int, ...], float] = defaultdict(float)
        for tokens in itertools.product(range(vocab_size), repeat=len(parents)):
            if len(set(zip(parents, tokens, strict=True))) != len(parents):
                continue
            tree = DraftTree.of(tokens, parents)
            rows = contexts(tree)
            target_probs = torch.stack([distribution("target", vocab_size, context) for context in rows])
            draft_probs = torch.stack([distribution("draft", vocab_size, context) for context in rows])
            drafted = drafting_probability(tree, draft_probs)

            def run(script, tree=tree, target_probs=target_probs, draft_probs=draft_probs):
                return emitted_tokens(tree, residual_rejection(tree, target_probs, draft_probs, script))

            for probability, sequence in branches(run):
                emitted[sequence] += drafted * probability
        assert_is_target(vocab_size, emitted)


def drafting_probability(tree: DraftTree, draft_probs: torch.Tensor) -> float:
    """How probable these tokens are as a draft: siblings are drawn one after the other, without replacement."""
    product = 1.0
    for parent in range(-1, len(tree)):
        left = 1.0
        for node in tree.children(parent):
            share = float(draft_probs[parent + 1][tree.token_ids[node]])
            product *= share / left
            left -= share
    return product


def test_one_hot_drafts_are_kept_with_the_targets_probability():
    target = torch.tensor([[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]], dtype=torch.float64)
    draft = torch.tensor([[1.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3]], dtype=torch.float64)
    tree = DraftTree.chain([0])

    outcomes: dict[bool, float] = defaultdict(float)
    recovered: dict[int, float] = defaultdict(float)
    for probability, verdict in branches(lambda script: residual_rejection(tree, target, draft, script)):
        outcomes[bool(verdict.path)] += probability
        if not verdict.path:
            recovered[verdict.next_token] += probability

    assert outcomes[True] == pytest.approx(0.5, abs=TOLERANCE)
    assert recovered == pytest.approx({1: 0.3, 2: 0.2}, abs=TOLERANCE)


def test_verification_changes_none_of_its_inputs():
    tree = DraftTree.of([0, 1, 2], [-1, -1, 0])
    target = torch.tensor([[0.1, 0.1, 0.8]] * 4, dtype=torch.float64)
    draft = torch.tensor([[0.8, 0.1, 0.1]] * 4, dtype=torch.float64)
    before = target.clone(), draft.clone()
    list(branches(lambda script: residual_rejection(tree, target, draft, script)))
    assert torch.equal(target, before[0])
    assert torch.equal(draft, before[1])
