"""Exactness on a real model with sliding-window layers and a sentencepiece tokenizer: Gemma 3, far past its window.

Set `SPECEDIT_TEST_GEMMA` to a Gemma 3 model, a .gguf file or a directory of safetensors. Its terms are no open-source
licence, so no model of that family is pulled by name.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from specedit.draft.prompt_lookup import PromptLookup
from specedit.engine.api import Sampling
from specedit.engine.target import Target, convert_gguf
from specedit.engine.tokens import Tokenizer
from tests.exactness.drafters import all_drafters, hints_around
from tests.exactness.prompts import COPYING
from tests.fake_models import RandomTreeDrafter, run_loop, run_reference

pytestmark = pytest.mark.real

PROMPT_TOKENS = 900
NEW_TOKENS = 64
BUDGET = 16
SAMPLINGS = {"greedy": Sampling(), "seeded": Sampling(temperature=0.8, top_p=0.9, repetition_penalty=1.05)}
HARD_TEXTS = (
    COPYING[0],
    "\n\n    def f(x):  # two  blanks\n\t\treturn x \r\n",
    " one leading blank, \u2581 the sign of a blank, <0x41> and <eos>",
    "\U0001f600 \u4e16\u754c caf\u00e9 cafe\u0301 \x00\x07\x7f",
)


@pytest.fixture(scope="module")
def gemma(tmp_path_factory):
    """(target, tokenizer) in float32 on the CPU."""
    name = os.environ.get("SPECEDIT_TEST_GEMMA")
    if not name:
        pytest.skip("set SPECEDIT_TEST_GEMMA to a Gemma 3 model: a .gguf file or a directory of safetensors")
    path = Path(name)
    if path.suffix == ".gguf":
        path = tmp_path_factory.mktemp("gemma")
        convert_gguf(Path(name), path)
    return Target.load(path, device="cpu", dtype="float32"), Tokenizer.load(path)


@pytest.fixture(scope="module")
def prompt_ids(gemma):
    """Code, then its beginning once more: it invites copying from far before the window."""
    target, tokenizer = gemma
    code = tokenizer.encode("\n".join(COPYING))
    again = code[: PROMPT_TOKENS // 8]
    ids = [*code[: PROMPT_TOKENS - len(again)], *again]
    assert len(ids) == PROMPT_TOKENS > 1.5 * target.model.config.sliding_window
    return ids


@pytest.mark.parametrize("text", HARD_TEXTS, ids=["code", "blanks", "look-alikes", "unicode"])
def test_text_comes_back_exactly(gemma, text):
    _, tokenizer = gemma
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    stream = tokenizer.stream()
    assert "".join(stream.push(token_id) for token_id in ids) + stream.flush() == text
    assert tokenizer.special_ids.isdisjoint(ids)


def test_its_windows_are_no_obstacle_to_trees(gemma):
    target, _ = gemma
    assert "sliding_attention" in target.model.config.layer_types
    assert target.plain_only is None


@pytest.mark.parametrize("sampling", SAMPLINGS.values(), ids=SAMPLINGS.keys())
def test_drafting_past_the_window_gives_the_tokens_of_plain_decoding(gemma, prompt_ids, sampling):
    target, tokenizer = gemma
    arguments = {"max_new_tokens": NEW_TOKENS, "sampling": sampling, "seed": 7}
    plain = run_reference(target, prompt_ids, **arguments)
    assert len(plain[0]) == NEW_TOKENS

    lookup = PromptLookup(target.vocab_size, tokenizer.special_ids, min_match=1)
    lookup.begin(prompt_ids, [])
    random_trees = RandomTreeDrafter(target.vocab_size, plain[0], seed=1)
    edit = all_drafters(tokenizer, target.vocab_size)["edit"]()
    edit.begin(prompt_ids, tokenizer.encode(COPYING[0]), hints_around(COPYING[0]))
    for drafter in (lookup, random_trees, edit):
        tokens, reason, cache, stats = run_loop(target, prompt_ids, drafter, budget=BUDGET, **arguments)
        assert (tokens, reason) == plain, _where(target, prompt_ids, plain[0], tokens)
        assert cache.length == len(prompt_ids) + NEW_TOKENS - 1
        assert sum(stats.accepted.values()) > 0, "some drafts were right, or this test shows nothing"


def _where(target, prompt_ids, plain, tokens):
    at = next(i for i, (one, other) in enumerate(zip(tokens, plain, strict=True)) if one != other)
    row = target.plain_feed()([*prompt_ids, *plain[:at]])
    gap = float((row[plain[at]] - row[tokens[at]]).abs())
    return f"token {at} differs, {gap:.2g} apart in their logits: a tie where that is within rounding, about 1e-4"
