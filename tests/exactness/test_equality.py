"""Exactness by equality, on a real model in float32: drafting changes no token, whatever the budget."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch

from specedit.draft.prompt_lookup import PromptLookup
from specedit.edit.document import Document
from specedit.edit.region import whole_file
from specedit.edit.session import EditRequest, generate_request
from specedit.engine.api import Message, Sampling
from specedit.engine.budget import DraftBudget
from specedit.engine.costs import CostTable, ForwardCosts
from specedit.engine.local import LocalEngine
from tests.exactness.drafters import all_drafters, hints_around
from tests.exactness.edits import OWN_EDITS
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

#: What there is besides the whole merged drafter.
OTHERS = ("edit, chains", "edit, no table", "cursor", "replay", "lookup", "ngram")
MERGED_BUDGET = 32
#: An answer is shorter where many drafters take their turn.
FEW_TOKENS = 32
#: Seconds of forwards over 1 and 129 rows: where more rows cost little, and where they are dear.
COSTS = {"cheap rows": (0.05, 0.06), "dear rows": (0.05, 2.0)}

_plain_tokens: dict[object, list[int]] = {}


def parameters(fast=FAST):
    for name, *pair in PAIRS:
        marks = [pytest.mark.smollm2] if name in fast else [pytest.mark.real]
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


def plain_tokens(target, ids, sampling, seed):
    """The tokens of plain decoding; each answer is decoded once."""
    asked = target, tuple(ids), repr(sampling), seed
    if asked not in _plain_tokens:
        tokens, _ = run_reference(target, ids, max_new_tokens=NEW_TOKENS, sampling=sampling, seed=seed)
        assert len(tokens) == NEW_TOKENS
        _plain_tokens[asked] = tokens
    return _plain_tokens[asked]


def accepted_of_equal_answers(model, prompt, sampling, seed, copies, budgets):
    """Decode plainly and with each budget; the tokens accepted with the last budget."""
    target, tokenizer = model
    ids = tokenizer.encode(prompt) if copies else tokenizer.encode_chat([Message("user", prompt)])
    arguments = {"max_new_tokens": NEW_TOKENS, "sampling": sampling, "seed": seed}
    plain = plain_tokens(target, ids, sampling, seed)
    for budget in budgets:
        drafter = PromptLookup(target.vocab_size, tokenizer.special_ids, min_match=1)
        drafter.begin(ids, [])
        tokens, _, _, stats = run_loop(target, ids, drafter, budget=budget, **arguments)
        assert_equal_but_for_ties(target, ids, plain, tokens, sampling)
    return stats.accepted["lookup"]


@cache
def drafters_of(target, tokenizer):
    return all_drafters(tokenizer, target.vocab_size)


def begun(model, name, prompt, ids):
    """A drafter that takes the prompt's first code for what the answer follows, right or wrong."""
    target, tokenizer = model
    prediction = COPYING[len(prompt) % len(COPYING)] if prompt in FREE else prompt
    prediction = prediction[: prediction.index("\n\n") + 1]
    drafter = drafters_of(target, tokenizer)[name]()
    old, new = prediction.split("(")[0].split()[-1], "renamed"
    drafter.begin(ids, tokenizer.encode(prediction), hints_around(prediction, substitutions=((old, new),)))
    return drafter


def accepted_of_merged_drafters(model, pair, names, budgets, new_tokens=NEW_TOKENS):
    """Decode plainly, and drafted by each drafter with each budget; the tokens accepted of each."""
    target, tokenizer = model
    prompt, sampling, seed, copies = pair
    ids = tokenizer.encode(prompt) if copies else tokenizer.encode_chat([Message("user", prompt)])
    plain = plain_tokens(target, ids, sampling, seed)[:new_tokens]
    accepted = {}
    for name, budget in itertools.product(names, budgets):
        drafter = begun(model, name, prompt, ids)
        arguments = {"max_new_tokens": new_tokens, "sampling": sampling, "seed": seed}
        tokens, _, _, stats = run_loop(target, ids, drafter, budget=budget, **arguments)
        assert_equal_but_for_ties(target, ids, plain, tokens, sampling)
        accepted[name, budget] = sum(stats.accepted.values())
    return accepted


@pytest.mark.parametrize(("prompt", "sampling", "seed", "copies"), list(parameters({"copying 1", "free 1"})))
def test_merged_trees_give_the_tokens_of_plain_decoding(smollm2, prompt, sampling, seed, copies):
    pair = prompt, sampling, seed, copies
    accepted = accepted_of_merged_drafters(smollm2, pair, ("edit",), (MERGED_BUDGET,))
    if copies:
        assert accepted["edit", MERGED_BUDGET] >= LEAST_ACCEPTED


@pytest.mark.smollm2
def test_every_part_alone_gives_the_tokens_of_plain_decoding(smollm2):
    accepted = accepted_of_merged_drafters(smollm2, PAIRS[1][1:], OTHERS, (MERGED_BUDGET,), FEW_TOKENS)
    assert all(accepted[name, MERGED_BUDGET] for name in OTHERS if name != "replay"), "right drafts, or it shows little"


@pytest.mark.real
@pytest.mark.parametrize("name", ["edit", *OTHERS])
@pytest.mark.parametrize("pair", [pair[1:] for pair in PAIRS[:4] + PAIRS[50:54]])
def test_every_drafter_with_every_budget_gives_the_tokens_of_plain_decoding(smollm2, pair, name):
    accepted_of_merged_drafters(smollm2, pair, (name,), BUDGETS)


@pytest.mark.real
@pytest.mark.parametrize("pair", [pair[1:] for pair in PAIRS[:4] + PAIRS[50:54]])
def test_merged_trees_on_the_code_model_give_the_tokens_of_plain_decoding(qwen, pair):
    accepted_of_merged_drafters(qwen, pair, ("edit", "edit, chains"), (MERGED_BUDGET,))


@pytest.mark.parametrize("seconds", COSTS.values(), ids=COSTS.keys())
@pytest.mark.parametrize(
    ("pairs", "new_tokens"),
    [
        pytest.param([PAIRS[1][1:], PAIRS[51][1:]], FEW_TOKENS, id="few", marks=pytest.mark.smollm2),
        pytest.param([pair[1:] for pair in PAIRS[::9]], NEW_TOKENS, id="many", marks=pytest.mark.real),
    ],
)
def test_whatever_a_learned_budget_does_the_tokens_are_those_of_plain_decoding(smollm2, pairs, new_tokens, seconds):
    """One budget learns over all pairs, as in an engine."""
    budget = DraftBudget(ForwardCosts(CostTable((1, 129), seconds)), 64)
    accepted = [
        accepted_of_merged_drafters(smollm2, pair, ("edit",), (budget,), new_tokens)["edit", budget] for pair in pairs
    ]
    assert max(accepted) > min(accepted), "it accepted now more and now less, or the budget had nothing to do"


def assert_same_edit(engine, edit, sampling, max_new_tokens):
    """The request that an edit sends, drafted and plain: the same text; returns the usage of the drafted one."""
    document = Document.from_bytes(edit.before.encode(), Path(edit.path))
    request = replace(
        generate_request(EditRequest(document, whole_file(document), edit.instruction)),
        sampling=sampling,
        seed=7,
        max_new_tokens=max_new_tokens,
    )
    hints = request.hints
    assert hints.opening
    assert hints.closing
    assert hints.resume_offsets
    drafted, plain = list(engine.generate(request)), list(engine.generate_plain(request))
    assert "".join(chunk.text for chunk in drafted) == "".join(chunk.text for chunk in plain)
    assert drafted[-1].finish_reason == plain[-1].finish_reason
    assert drafted[-1].usage.output_tokens == plain[-1].usage.output_tokens
    return drafted[-1].usage


@pytest.mark.smollm2
def test_an_edit_is_written_as_by_plain_decoding(smollm2):
    engine = LocalEngine(*smollm2, draft_budget=MERGED_BUDGET)
    usage = assert_same_edit(engine, OWN_EDITS[2], NUCLEUS, FEW_TOKENS)
    assert usage.output_tokens == FEW_TOKENS
    assert usage.accepted > 0


@pytest.mark.real
@pytest.mark.parametrize("costs", [None, CostTable((1, 129), COSTS["cheap rows"])], ids=["fixed", "learned"])
def test_edits_are_written_as_by_plain_decoding(smollm2, costs):
    engine = LocalEngine(*smollm2, costs=costs)
    usages = [
        assert_same_edit(engine, edit, sampling, 256) for edit in OWN_EDITS for sampling in (GREEDY, NUCLEUS, PENALIZED)
    ]
    assert sum(usage.accepted for usage in usages) > 0.5 * sum(usage.output_tokens for usage in usages)


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
