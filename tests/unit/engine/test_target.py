"""Real transformers architectures, tiny and with random weights: trees, windows, recurrent layers."""

from __future__ import annotations

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    BloomConfig,
    Gemma2Config,
    Gemma3TextConfig,
    GptOssConfig,
    LlamaConfig,
    MambaConfig,
    MistralConfig,
    Qwen2Config,
    Qwen3NextConfig,
)

from specedit.draft.tree import DraftTree
from specedit.engine.api import Sampling
from specedit.engine.target import Target
from specedit.errors import ModelError
from tests.fake_models import RandomTreeDrafter, run_loop, run_reference
from tests.tiny_model import random_target

VOCAB = 61
WINDOW = 8
COMMON = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 4,
    "max_position_embeddings": 256,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 0,
}
ALTERNATING = ["sliding_attention", "full_attention"] * 2
CONFIGS = {
    "full": LlamaConfig(**COMMON),
    "sliding": MistralConfig(**COMMON, sliding_window=WINDOW),
    "unused window": Qwen2Config(**COMMON, use_sliding_window=False, sliding_window=WINDOW),
    "mixed": Gemma3TextConfig(**COMMON, head_dim=8, sliding_window=WINDOW, layer_types=ALTERNATING),
    "mixed, soft-capped": Gemma2Config(**COMMON, head_dim=8, sliding_window=WINDOW, layer_types=ALTERNATING),
    "late window": Qwen2Config(**COMMON, use_sliding_window=True, sliding_window=WINDOW, max_window_layers=2),
}


@pytest.fixture(scope="module", params=CONFIGS)
def target(request):
    return random_target(CONFIGS[request.param])


SAMPLINGS = [Sampling(), Sampling(temperature=0.8, top_p=0.9, repetition_penalty=1.2, presence_penalty=0.3)]


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("budget", [1, 5, 24])
def test_random_trees_give_the_tokens_of_plain_decoding(target, sampling, budget):
    assert target.plain_only is None
    for seed in range(3):
        prompt = [(seed * 7 + place * place) % VOCAB for place in range(3 + 9 * seed)]
        arguments = {"max_new_tokens": 40, "sampling": sampling, "seed": seed, "eos_ids": (1,)}
        plain = run_reference(target, prompt, **arguments)
        drafter = RandomTreeDrafter(VOCAB, plain[0], seed)
        tokens, reason, cache, stats = run_loop(target, prompt, drafter, budget=budget, **arguments)
        assert (tokens, reason) == plain
        assert cache.length == len(prompt) + len(tokens) - 1
        assert sum(stats.accepted.values()) > 0, "some drafts were right, or this test shows nothing"


def test_the_next_logits_after_a_rejected_draft_are_those_of_a_fresh_run(target):
    prompt = list(range(2, 40))
    plain, _ = run_reference(target, prompt, max_new_tokens=12)
    drafter = RandomTreeDrafter(VOCAB, [], 3)
    _, _, cache, _ = run_loop(target, prompt, drafter, budget=16, max_new_tokens=12)
    row = target.plain_feed()([*prompt, *plain])
    step = DraftTree.chain([])
    again = target.forward(cache, torch.tensor(plain[-1:]).numpy(), step.positions(cache.length), step.mask)
    assert torch.allclose(row, again[0], atol=1e-9)


def test_eager_attention_is_given_a_mask_that_it_understands():
    target = random_target(CONFIGS["full"], attention="eager")
    assert target.plain_only is None
    plain, _ = run_reference(target, [5, 6, 7], max_new_tokens=20)
    tokens, *_ = run_loop(target, [5, 6, 7], RandomTreeDrafter(VOCAB, plain, 1), budget=8, max_new_tokens=20)
    assert tokens == plain


def test_a_model_with_attention_sinks_runs_on_eager_attention():
    config = GptOssConfig(
        **COMMON,
        head_dim=8,
        sliding_window=WINDOW,
        layer_types=ALTERNATING,
        num_local_experts=2,
        num_experts_per_tok=1,
    )
    target = random_target(config, dtype=torch.float32)
    assert target.plain_only is None
    prompt = list(range(2, 20))
    plain, _ = run_reference(target, prompt, max_new_tokens=20)
    tokens, *_ = run_loop(target, prompt, RandomTreeDrafter(VOCAB, plain, 1), budget=8, max_new_tokens=20)
    assert tokens == plain


@pytest.mark.parametrize(
    "config",
    [
        MambaConfig(vocab_size=VOCAB, hidden_size=32, num_hidden_layers=2, state_size=4),
        Qwen3NextConfig(
            **COMMON,
            head_dim=8,
            linear_num_key_heads=2,
            linear_num_value_heads=2,
            linear_key_head_dim=8,
            linear_value_head_dim=8,
            num_experts=2,
            num_experts_per_tok=1,
            moe_intermediate_size=16,
            shared_expert_intermediate_size=16,
            layer_types=["linear_attention", "full_attention"] * 2,
        ),
    ],
    ids=["recurrent", "hybrid"],
)
def test_recurrent_layers_are_found_and_said_plainly(config):
    target = random_target(config, dtype=torch.float32)
    assert target.plain_only is not None
    assert "can't be cut back" in target.plain_only
    tokens, reason = run_reference(target, [5, 6, 7], max_new_tokens=8)
    assert (len(tokens), reason) == (8, "length")


def test_a_model_that_ignores_position_ids_is_not_trusted_with_trees():
    config = BloomConfig(vocab_size=VOCAB, hidden_size=32, n_layer=2, n_head=4)
    assert random_target(config, dtype=torch.float32, attention="eager").plain_only is not None


def test_low_precision_parts_ways_only_at_near_ties():
    target = random_target(CONFIGS["full"], dtype=torch.bfloat16)
    for seed in range(12):
        prompt = [(seed * 11 + 3 * place) % VOCAB for place in range(10)]
        plain, _ = run_reference(target, prompt, max_new_tokens=24)
        drafter = RandomTreeDrafter(VOCAB, plain, seed)
        tokens, *_ = run_loop(target, prompt, drafter, budget=12, max_new_tokens=24)
        if tokens != plain:
            at = next(i for i, (one, other) in enumerate(zip(tokens, plain, strict=True)) if one != other)
            row = target.plain_feed()([*prompt, *plain[:at]]).float()
            best_two = row.topk(2).values
            assert best_two[0] - best_two[1] < 0.05 * (row.max() - row.min()), "a difference that is no near tie"


@pytest.mark.parametrize("place", ["embedding", "head"])
def test_a_forward_that_fails_leaves_the_cache_as_it_was(place):
    target = random_target(CONFIGS["full"])
    _, _, cache, _ = run_loop(target, [2, 3, 4], RandomTreeDrafter(VOCAB, [], 0), budget=4, max_new_tokens=4)
    length = cache.length
    module = {"embedding": target.model.get_input_embeddings(), "head": target.model.lm_head}[place]
    module.register_forward_pre_hook(lambda module, args: {}["the device is gone"])
    chain = DraftTree.chain([5])
    with pytest.raises(KeyError, match="the device is gone"):
        target.forward(cache, torch.tensor([2, 5]).numpy(), chain.positions(length), chain.mask)
    assert cache.length == length


@pytest.fixture
def saved(tmp_path):
    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(CONFIGS["full"]).save_pretrained(tmp_path)
    return tmp_path


def test_a_saved_model_loads_in_the_dtype_for_the_device(saved):
    target = Target.load(saved, device="cpu")
    assert (target.dtype, target.device.type) == (torch.float32, "cpu")
    assert target.eos_ids == {1}
    assert target.context_tokens == 256
    assert Target.load(saved, device="cpu", dtype="bfloat16").dtype == torch.bfloat16


def test_missing_and_unexpected_weights_are_named(saved):
    from safetensors.torch import load_file, save_file

    weights = load_file(saved / "model.safetensors")
    weights["model.layers.0.strange.weight"] = weights.pop("model.layers.1.mlp.up_proj.weight").clone()
    save_file(weights, saved / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"layers\.1\.mlp\.up_proj\.weight.*layers\.0\.strange\.weight"):
        Target.load(saved, device="cpu")


def test_a_device_that_is_not_there_is_a_clear_error(saved):
    with pytest.raises(ModelError, match="can't be used here"):
        Target.load(saved, device="cuda:7")
    with pytest.raises(ModelError, match="can't be used here"):
        Target.load(saved, device="toaster")


def test_files_that_are_no_model_are_a_clear_error(tmp_path):
    with pytest.raises(ModelError, match="can't load the model"):
        Target.load(tmp_path, device="cpu")
