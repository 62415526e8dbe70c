from __future__ import annotations

import math

import pytest
import torch

from specedit.engine.api import Sampling
from specedit.engine.healing import Healing, SpelledTokens
from specedit.engine.sampling import Sampler, check_sampling, keyed_uniform
from specedit.errors import UsageError

ROW = torch.tensor([2.0, 1.0, 0.0, -1.0, 1.0])


def support(sampling, row=ROW, prompt=(), path=()):
    token_ids, probs = Sampler(sampling, 0, prompt).processed(row, path)
    return dict(zip(token_ids.tolist(), probs.tolist(), strict=True))


def test_temperature_zero_takes_the_best_and_ties_go_to_the_lowest_id():
    assert Sampler(Sampling(), 0, []).draw(torch.tensor([1.0, 3.0, 3.0])) == 1


def test_temperature_scales_the_logits():
    probs = support(Sampling(temperature=0.5))
    assert probs[0] / probs[1] == pytest.approx(math.exp(2.0))


@pytest.mark.parametrize(
    ("sampling", "kept"),
    [
        (Sampling(temperature=1, top_k=1), {0}),
        (Sampling(temperature=1, top_k=2), {0, 1, 4}),
        (Sampling(temperature=1, top_k=99), {0, 1, 2, 3, 4}),
        (Sampling(temperature=1, top_p=0.3), {0}),
        (Sampling(temperature=1, top_p=0.7), {0, 1, 4}),
        (Sampling(temperature=1, top_p=1.0), {0, 1, 2, 3, 4}),
        (Sampling(temperature=1, min_p=0.3), {0, 1, 4}),
        (Sampling(temperature=1, min_p=0.1), {0, 1, 2, 4}),
    ],
)
def test_truncation_keeps_the_most_probable_and_all_that_tie_with_the_last(sampling, kept):
    probs = support(sampling)
    assert set(probs) == kept
    assert sum(probs.values()) == pytest.approx(1)


def test_top_p_agrees_with_a_full_sort_when_the_nucleus_is_wide():
    row = torch.randn(5000, generator=torch.Generator().manual_seed(0)) * 0.1
    ranked = row.double().softmax(0).sort(descending=True)
    size = int((ranked.values.cumsum(0) < 0.95).sum()) + 1
    assert set(support(Sampling(temperature=1, top_p=0.95), row)) == set(ranked.indices[:size].tolist())


def test_penalties_count_prompt_output_and_the_path_above_a_node():
    sampler = Sampler(
        Sampling(temperature=1, repetition_penalty=2, presence_penalty=0.5, frequency_penalty=0.25), 0, [3]
    )
    sampler.commit([1])
    token_ids, probs = sampler.processed(ROW, [1, 4])
    expected = torch.tensor([2.0, 0.5 - 0.5 - 2 * 0.25, 0.0, -2.0, 0.5 - 0.5 - 0.25]).double().softmax(0)
    assert token_ids.tolist() == [0, 1, 2, 3, 4]
    assert probs.tolist() == pytest.approx(expected.tolist())


def test_logit_bias_can_force_and_forbid_a_token():
    assert Sampler(Sampling(logit_bias={3: 100.0}), 0, []).draw(ROW) == 3
    assert 0 not in {Sampler(Sampling(temperature=5, logit_bias={0: -math.inf}), s, []).draw(ROW) for s in range(200)}


def test_what_is_typed_comes_before_what_truncates():
    tokens = SpelledTokens(enumerate([b"x", b"a", b"ab", b"abc", b"b"]))

    def sampler(**settings):
        return Sampler(Sampling(**settings), 0, [], Healing(tokens, b"ab", vocab_size=5))

    assert sampler().draw(ROW) == 1
    assert sampler().draw(ROW, [1]) == 4
    assert sampler().draw(ROW, [2]) == 0, "once it is covered any token may come"
    token_ids, probs = sampler(temperature=1, top_k=2).processed(ROW)
    assert token_ids.tolist() == [1, 2], "the best two of those that fit"
    assert probs.tolist() == pytest.approx(torch.tensor([1.0, 0.0]).double().softmax(0).tolist())
    forbidden = dict.fromkeys((1, 2, 3), -math.inf)
    assert sampler(logit_bias=forbidden).draw(ROW) == 0, (
        "where the bias forbids all that fit, it is the bias that holds"
    )


def test_a_draw_changes_neither_logits_nor_history():
    row = ROW.clone()
    sampler = Sampler(Sampling(temperature=1, repetition_penalty=2, logit_bias={0: 1.0}), 1, [0])
    assert sampler.draw(row, [2]) == sampler.draw(row, [2])
    assert torch.equal(row, ROW)


def test_a_draw_depends_on_seed_and_position_only():
    sampler = Sampler(Sampling(temperature=1), 5, [])
    ahead = sampler.draw(ROW, [1, 2, 3])
    sampler.commit([1, 2, 3])
    assert sampler.draw(ROW) == ahead


def test_keyed_uniforms_are_uniform_over_positions_and_over_seeds():
    for draws in ([keyed_uniform(3, i) for i in range(20_000)], [keyed_uniform(i, 3) for i in range(20_000)]):
        counts = [0] * 20
        for uniform in draws:
            counts[int(uniform * 20)] += 1
        chi_square = sum((count - 1000) ** 2 / 1000 for count in counts)
        assert chi_square < 43.8, "beyond the 0.1% quantile of chi-square with 19 degrees of freedom"


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(temperature=-1),
        Sampling(temperature=math.nan),
        Sampling(top_k=-1),
        Sampling(top_p=0),
        Sampling(top_p=1.1),
        Sampling(min_p=2),
        Sampling(repetition_penalty=0),
        Sampling(presence_penalty=math.inf),
        Sampling(logit_bias={5: 1.0}),
    ],
)
def test_values_without_a_meaning_are_refused(sampling):
    with pytest.raises(UsageError):
        check_sampling(sampling, vocab_size=5)
