from __future__ import annotations

import itertools
import math
import random

import pytest
import torch

from specedit.draft.prompt_lookup import PromptLookup
from specedit.draft.tree import DraftTree
from specedit.engine import loop
from specedit.engine.api import CancelToken, Sampling
from specedit.engine.budget import FixedBudget
from specedit.engine.healing import Healing, SpelledTokens
from specedit.engine.sampling import Sampler
from specedit.engine.stats import DecodeStats
from specedit.engine.stops import StopRule
from tests.fake_models import (
    FunctionTarget,
    IdsAsText,
    ListedDrafter,
    RandomTreeDrafter,
    hashed,
    run_loop,
    run_reference,
    scripted,
)

EOS, OTHER_EOS = 9, 8
PENALTIES = Sampling(temperature=0.8, repetition_penalty=1.3, presence_penalty=1.3, frequency_penalty=1.3)


def lookup(prompt, vocab_size=10, special_ids=()):
    drafter = PromptLookup(vocab_size, special_ids)
    drafter.begin(prompt, [])
    return drafter


@pytest.mark.parametrize("end", range(8))
@pytest.mark.parametrize("drafted", range(9))
@pytest.mark.parametrize("eos", [EOS, OTHER_EOS])
def test_nothing_follows_the_end_of_text_wherever_it_stands_in_a_draft(end, drafted, eos):
    script = [*([1, 2, 3, 4, 5, 6, 7][:end]), eos, 1, 2, 3, 4, 5, 6, 7, 1, 2]
    target = scripted(10, [0], script)

    tokens, reason, cache, _ = run_loop(
        target, [0], ListedDrafter(script[:drafted]), budget=8, max_new_tokens=16, eos_ids=(EOS, OTHER_EOS)
    )

    assert tokens == script[: end + 1]
    assert reason == "stop"
    assert cache.length == 1 + end, "the cache holds the prompt and all tokens but the last"


@pytest.mark.parametrize("limit", [0, 1, 2, 3, 7])
def test_never_more_tokens_than_asked_for(limit):
    prompt = [1, 2, 3, 1, 2, 3, 1, 2]
    target = scripted(10, prompt, [3, 1, 2, 3, 1, 2, 3, 1])
    plain, _ = run_reference(target, prompt, max_new_tokens=limit)

    tokens, reason, _, _ = run_loop(target, prompt, lookup(prompt), budget=3, max_new_tokens=limit)

    assert tokens == plain == [3, 1, 2, 3, 1, 2, 3, 1][:limit]
    assert reason == "length"


def test_asking_for_no_tokens_runs_no_model():
    target = scripted(10, [1], [2])
    run_loop(target, [1], lookup([1]), budget=4, max_new_tokens=0)
    assert target.rows_per_forward == []


def test_one_token_repeated_many_times_decodes_as_without_drafts():
    prompt = [5] * 48
    for answer in ([5] * 20, [5] * 7 + [3] + [5] * 12):
        target = scripted(10, prompt, answer)
        tokens, _, _, _ = run_loop(target, prompt, lookup(prompt), budget=4, max_new_tokens=20)
        assert tokens == answer


@pytest.mark.parametrize("prompt", [[4], [1, 2, 3, 4], [7, 7]])
def test_nothing_to_copy_is_a_plain_step(prompt):
    target = scripted(10, prompt, [6, 5, 0, 8])
    tokens, _, _, stats = run_loop(target, prompt, lookup(prompt), budget=8, max_new_tokens=4)
    assert tokens == [6, 5, 0, 8]
    assert stats.forwards == 4


def test_a_right_draft_of_many_tokens_costs_one_forward():
    script = list(range(1, 9)) * 4
    target = scripted(10, [0], script)
    tokens, _, _, stats = run_loop(target, [0], ListedDrafter(script), budget=64, max_new_tokens=32)
    assert tokens == script
    assert stats.forwards == 1
    assert stats.mean_accepted_length == 32
    assert stats.accepted["listed"] == 31, "the next token is not an accepted one"


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=0.8, top_p=0.9), PENALTIES])
@pytest.mark.parametrize("budget", [1, 4, 16])
@pytest.mark.parametrize("seed", range(8))
def test_random_trees_change_no_token(sampling, budget, seed):
    vocab_size = 12
    prompt = [(seed * 5 + place) % vocab_size for place in range(1 + seed)]
    target = hashed(vocab_size)
    arguments = {"max_new_tokens": 40, "eos_ids": (11,), "sampling": sampling, "seed": seed}
    plain = run_reference(target, prompt, **arguments)

    drafter = RandomTreeDrafter(vocab_size, plain[0], seed)
    tokens, reason, cache, stats = run_loop(target, prompt, drafter, budget=budget, **arguments)

    assert (tokens, reason) == plain
    assert cache.length == len(prompt) + len(tokens) - 1
    assert stats.output_tokens == len(tokens)


SPELLED = [b"", b"a", b"b", b"ab", b"ba", b"aba", b"bab", b"abab", b"c", b"abc", b"bac", b"end"]


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=1.5), PENALTIES])
@pytest.mark.parametrize("typed", ["a", "abab", "abababab", "bacbac"])
@pytest.mark.parametrize("seed", range(4))
def test_an_answer_that_is_begun_is_the_same_with_any_tree_and_begins_so(sampling, typed, seed):
    def healing():
        tokens = SpelledTokens(enumerate(SPELLED))
        return Healing(tokens, typed.encode(), vocab_size=len(SPELLED), barred=(11,))

    target = hashed(len(SPELLED))
    arguments = {"max_new_tokens": 20, "eos_ids": (11,), "sampling": sampling, "seed": seed}
    plain = run_reference(target, [seed, 3], healing=healing(), **arguments)
    assert b"".join(SPELLED[token] for token in plain[0]).startswith(typed.encode())

    for budget in (0, 1, 4, 16):
        drafter = RandomTreeDrafter(len(SPELLED), plain[0], seed)
        assert run_loop(target, [seed, 3], drafter, budget=budget, healing=healing(), **arguments)[:2] == plain


@pytest.mark.parametrize("unread", [1, 2, 9, 33, 34, 50])
def test_the_end_of_a_prompt_is_read_along_with_the_first_step(unread):
    prompt = [place % 7 for place in range(60)]
    target = hashed(8)
    plain, _ = run_reference(target, prompt, max_new_tokens=12)
    cache = target.new_cache()
    run_loop(target, prompt, ListedDrafter([]), budget=0, max_new_tokens=1, cache=cache)
    cache.truncate(len(prompt) - unread)
    target.rows_per_forward.clear()

    tokens, _, cache, stats = run_loop(
        target, prompt, RandomTreeDrafter(8, plain, 1), budget=8, max_new_tokens=12, cache=cache
    )

    assert tokens == plain
    assert cache.length == len(prompt) + len(tokens) - 1
    assert stats.prefill_forwards == (1 if unread > 33 else 0)
    assert target.rows_per_forward[0] >= min(unread, 33)


@pytest.mark.parametrize("block", [2, 8])
def test_rejected_drafts_leave_no_trace_in_penalties(block):
    target = hashed(6, order=1, sharpness=1.0)
    plain, _ = run_reference(target, [1, 2], max_new_tokens=60, sampling=PENALTIES, seed=3)
    for seed in range(6):
        drafter = RandomTreeDrafter(6, plain, seed)
        tokens, *_ = run_loop(target, [1, 2], drafter, budget=block, max_new_tokens=60, sampling=PENALTIES, seed=3)
        assert tokens == plain


def test_sampled_frequencies_are_the_targets_when_one_token_is_always_drafted():
    probs = torch.tensor([0.5, 0.3, 0.2])
    target = FunctionTarget(3, lambda history: probs.log(), context_tokens=10**6)

    class AlwaysZero(ListedDrafter):
        def commit(self, token_ids):
            pass

    draws = 12_000
    tokens, *_ = run_loop(
        target, [0], AlwaysZero([0, 0]), budget=2, max_new_tokens=draws, sampling=Sampling(temperature=1.0), seed=7
    )
    expected = (probs * draws).tolist()
    chi_square = sum((tokens.count(token) - expected[token]) ** 2 / expected[token] for token in range(3))
    assert chi_square < 13.8, "beyond the 0.1% quantile of chi-square with two degrees of freedom"


def test_the_context_end_bounds_what_is_drafted():
    prompt = [0, 1]
    target = scripted(10, prompt, [2] * 20, context_tokens=8)
    tokens, _, _, _ = run_loop(target, prompt, ListedDrafter([2] * 20), budget=20, max_new_tokens=6)
    assert tokens == [2] * 6
    assert max(target.rows_per_forward) <= 8 - 1


def test_a_cancel_during_the_prefill_stops_before_the_next_chunk():
    cancel = CancelToken()
    target = scripted(10, [1] * 2000, [2] * 5)
    forward = target.forward

    def forward_and_cancel(*args, **kwargs):
        cancel.cancel()
        return forward(*args, **kwargs)

    target.forward = forward_and_cancel
    tokens, reason, cache, _ = run_loop(target, [1] * 2000, lookup([1]), budget=4, max_new_tokens=5, cancel=cancel)
    assert (tokens, reason) == ([], "cancelled")
    assert len(target.rows_per_forward) == 1
    assert 0 < cache.length < 1999, "what was read stays usable"


def test_a_cancel_while_decoding_stops_after_the_step():
    cancel = CancelToken()
    prompt = [0]

    def logits_of(history):
        if len(history) == 4:
            cancel.cancel()
        return torch.eye(10)[len(history) % 10]

    target = FunctionTarget(10, logits_of)
    tokens, reason, _, _ = run_loop(target, prompt, lookup(prompt), budget=4, max_new_tokens=50, cancel=cancel)
    assert reason == "cancelled"
    assert tokens == [1, 2, 3, 4]


def test_a_malformed_draft_is_an_error_not_a_wrong_answer():
    class Malformed(ListedDrafter):
        def propose(self, budget):
            return DraftTree.of([1, 1], [-1, -1])

    with pytest.raises(ValueError, match="siblings"):
        run_loop(scripted(10, [0], [1]), [0], Malformed([]), budget=4, max_new_tokens=4)


def test_a_prompt_that_stands_in_the_cache_is_not_read_again():
    prompt = [1, 2, 3, 4, 5]
    target = scripted(10, prompt, [6, 7, 9])
    first, _, cache, _ = run_loop(target, prompt, lookup(prompt), budget=4, max_new_tokens=3)
    cache.truncate(4)
    target.rows_per_forward.clear()
    again, _, _, stats = run_loop(target, prompt, lookup(prompt), budget=0, max_new_tokens=3, cache=cache)
    assert first == again == [6, 7, 9]
    assert stats.prefill_forwards == 0
    assert target.rows_per_forward == [1, 1, 1]


@pytest.mark.parametrize("seed", range(10))
def test_a_cache_that_is_cut_between_steps_is_filled_again(seed):
    rng = random.Random(seed)
    prompt, vocab_size = [rng.randrange(8) for _ in range(20)], 10
    truth, _ = run_reference(hashed(vocab_size), prompt, max_new_tokens=30, sampling=PENALTIES, seed=seed)
    target = hashed(vocab_size)
    target.prefill_chunk_tokens = 6
    cache = target.new_cache()
    emissions = loop.decode(
        target,
        cache,
        prompt,
        drafter=RandomTreeDrafter(vocab_size, truth, seed),
        sampler=Sampler(PENALTIES, seed, prompt),
        stop_rule=StopRule(IdsAsText(), eos_ids=(), max_new_tokens=30),
        budget=FixedBudget(8),
        cancel=CancelToken(),
        stats=DecodeStats(),
    )
    tokens = []
    for emission in emissions:
        tokens.extend(emission.token_ids)
        if rng.random() < 0.4:
            cache.truncate(rng.choice([0, cache.length // 2, cache.length]))
    assert tokens == truth


def test_depth_counts_show_where_drafts_fail():
    script = [1, 2, 3, 4, 5, 6]
    target = scripted(10, [0], script)
    _, _, _, stats = run_loop(target, [0], ListedDrafter([1, 2, 9, 9]), budget=8, max_new_tokens=6)
    assert [stats.acceptance_rate(depth) for depth in (1, 2, 3, 4, 5)] == [1, 1, 0, 0, 0]
    assert math.isclose(stats.mean_accepted_length, 6 / 4)


@pytest.mark.parametrize(
    "tree",
    [
        DraftTree.of([1, 4, 4, 5, 6], parents=[-1, 0, 1, 0, 3]),
        DraftTree.of([1, 5, 6, 4, 4], parents=[-1, 0, 1, 0, 3]),
        DraftTree.of([7, 1, 4, 5, 6], parents=[-1, -1, 1, 1, 3]),
    ],
)
def test_a_tree_with_two_beliefs_keeps_the_right_branch(tree):
    class Fixed(ListedDrafter):
        def propose(self, budget):
            return tree.prefix(budget) if self._token_ids else DraftTree.chain([])

    script = [1, 5, 6, 2, 3, 3]
    tokens, _, cache, stats = run_loop(scripted(10, [0], script), [0], Fixed([1]), budget=8, max_new_tokens=6)
    assert tokens == script
    assert stats.accepted["listed"] == 3
    assert cache.length == 6


def test_the_same_seed_gives_the_same_tokens_and_another_seed_others():
    target = hashed(12, sharpness=1.0)
    sampling = Sampling(temperature=1.0)
    answers = [
        tuple(run_reference(target, [1], max_new_tokens=30, sampling=sampling, seed=seed)[0]) for seed in (1, 1, 2, 3)
    ]
    assert answers[0] == answers[1]
    assert all(one != other for one, other in itertools.combinations(answers[1:], 2))
