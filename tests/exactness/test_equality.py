"""Exactness by equality, on a real model in float32: drafting changes no token, whatever the budget."""

from __future__ import annotations

import pytest
import torch

from specedit.draft.prompt_lookup import PromptLookup
from specedit.engine.api import Message, Sampling
from tests.exactness.prompts import COPYING, FREE
from tests.fake_models import run_loop, run_reference

NEW_TOKENS = 96
BUDGETS = (1, 4, 16, 64)
LEAST_ACCEPTED = 40

#: float32 rounding of a pass over many rows against one over a single row stays below this; see the README.
ROUNDING_LOGITS = 1e-3

GREEDY = Sampling()
NUCLEUS = Sampling(temperature=0.8, top_p=0.9)
PENALIZED = Sampling(temperature=0.8, top_p=0.9, repetition_penalty=1.1, presence_penalty=0.2, frequency_penalty=0.1)
#: Penalties push away from copying, so copying is sampled closer to greedy.
COPYING_SAMPLINGS = (GREEDY, Sampling(temperature=0.8, top_p=0.9))

#: (name, prompt, sampling, seed, whether the answer must copy): 50 that copy, 50 that do not.
PAIRS = [
    *((f"copying {i}", COPYING[i % len(COPYING)], COPYING_SAMPLINGS[i % 2], i, True) for i in range(50)),
    *((f"free {i}", FREE[i % len(FREE)], (GREEDY, NUCLEUS, PENALIZED)[i % 3], i, False) for i in range(50)),
]
FAST = {"copying 0", "copying 1", "free 1", "free 2"}


def parameters():
    for name, *pair in PAIRS:
        marks = [pytest.mark.smollm2] if name in FAST else [pytest.mark.real]
        yield pytest.param(*pair, id=name, marks=marks)


@pytest.mark.parametrize(("prompt", "sampling", "seed", "copies"), list(parameters()))
def test_drafting_gives_the_tokens_of_plain_decoding(smollm2, prompt, sampling, seed, copies):
    accepted = accepted_of_equal_answers(smollm2, prompt, sampling, seed, copies, BUDGETS)
    if copies:
        assert accepted >= LEAST_ACCEPTED


@pytest.mark.real
@pytest.mark.parametrize(("prompt", "sampling", "seed", "copies"), [pair[1:] for pair in PAIRS[:4] + PAIRS[50:54]])
def test_drafting_on_the_code_model_gives_the_tokens_of_plain_decoding(qwen, prompt, sampling, seed, copies):
    accepted_of_equal_answers(qwen, prompt, sampling, seed, copies, (16, 64))


def accepted_of_equal_answers(model, prompt, sampling, seed, copies, budgets):
    """Decode plainly and with each budget; the tokens accepted with the last budget."""
    target, tokenizer = model
    ids = tokenizer.encode(prompt) if copies else tokenizer.encode_chat([Message("user", prompt)])
    arguments = {"max_new_tokens": NEW_TOKENS, "sampling": sampling, "seed": seed}
    plain, _ = run_reference(target, ids, **arguments)
    assert len(plain) == NEW_TOKENS
    for budget in budgets:
        drafter = PromptLookup(target.vocab_size, tokenizer.special_ids, min_match=1)
        drafter.begin(ids, [])
        tokens, _, _, stats = run_loop(target, ids, drafter, budget=budget, **arguments)
        assert_equal_but_for_ties(target, ids, plain, tokens, sampling)
    return stats.accepted["lookup"]


def assert_equal_but_for_ties(target, ids, plain, tokens, sampling):
    """Equal; or, should a difference appear, shown to lie at a greedy tie within the rounding of the logits."""
    if tokens == plain:
        return
    at = next(i for i, (one, other) in enumerate(zip(tokens, plain, strict=True)) if one != other)
    row = target.plain_feed()([*ids, *plain[:at]])
    gap = float((row[plain[at]] - row[tokens[at]]).abs())
    assert sampling == GREEDY, f"token {at} differs: {plain[at]} became {tokens[at]}"
    assert gap < ROUNDING_LOGITS, f"token {at} differs: {plain[at]} became {tokens[at]}, {gap} apart in their logits"


@pytest.mark.smollm2
@pytest.mark.parametrize("prompt", [COPYING[0], FREE[0], FREE[3]])
def test_plain_greedy_decoding_is_transformers_generate(smollm2, prompt):
    target, tokenizer = smollm2
    ids = tokenizer.encode_chat([Message("user", prompt)])
    plain, _ = run_reference(target, ids, max_new_tokens=48, eos_ids=target.eos_ids)
    generated = target.model.generate(torch.tensor([ids]), do_sample=False, max_new_tokens=48)[0, len(ids) :]
    assert plain == generated.tolist()


@pytest.mark.smollm2
def test_ids_of_a_chat_are_those_of_the_models_own_template(smollm2, tmp_path):
    from transformers import AutoTokenizer

    from specedit.models.registry import resolve

    _, tokenizer = smollm2
    own = AutoTokenizer.from_pretrained(resolve("smollm2-135m").path)
    for prompt in (COPYING[0], COPYING[7], *FREE[:4]):
        chat = [{"role": "system", "content": "You edit code."}, {"role": "user", "content": prompt}]
        expected = own.apply_chat_template(chat, add_generation_prompt=True, return_dict=False)
        assert tokenizer.encode_chat([Message(**message) for message in chat]) == list(expected)
