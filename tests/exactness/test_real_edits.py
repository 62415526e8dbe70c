"""Real edits, replayed: a target that writes the committed file, asked as `specedit edit` asks, with drafts.

Six pairs of our own always run. Set `SPECEDIT_TEST_EDITS` to a file of JSON lines with `before`, `after`, `path` and
`instruction` for a whole set of commits; the figures are printed under `pytest -s`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

import pytest

from specedit.draft.prompt_lookup import PromptLookup
from specedit.edit.document import Document
from specedit.edit.fence import fence_for
from specedit.edit.region import language_of, whole_file
from specedit.edit.session import EditRequest, generate_request
from specedit.engine.tokens import Tokenizer
from specedit.models.registry import resolve
from tests.exactness.edits import OWN_EDITS, Edit
from tests.fake_models import run_loop, scripted

BUDGETS = (32, 64, 128)
#: The promise is for this budget.
BUDGET = 64
TOKENS_PER_FORWARD = 10
TOKENS_PER_FORWARD_OF_SHORT_FILES = 6


class Script(NamedTuple):
    """One answer in tokens, renumbered from 0: a row of logits need only hold the tokens that occur."""

    vocab_size: int
    prompt: list[int]
    prediction: list[int]
    answer: list[int]
    eos_id: int
    special_ids: list[int]


def script_of(edit: Edit, tokenizer: Tokenizer) -> Script:
    """The whole-file request for an edit, and the new file in a code block as the answer to it."""
    document = Document.from_bytes(edit.before.encode(), Path(edit.path))
    request = generate_request(EditRequest(document, whole_file(document), edit.instruction))
    fence = fence_for(edit.before + edit.after)
    prompt = tokenizer.encode_chat(request.messages)
    prediction = tokenizer.encode(request.prediction)
    (eos_id,) = tokenizer.eos_ids
    answer = [*tokenizer.encode(f"{fence}{language_of(Path(edit.path))}\n{edit.after}{fence}"), eos_id]
    number = {token_id: at for at, token_id in enumerate(sorted({*prompt, *prediction, *answer}))}
    renumbered = ([number[token_id] for token_id in ids] for ids in (prompt, prediction, answer))
    special_ids = [number[token_id] for token_id in tokenizer.special_ids & number.keys()]
    return Script(len(number), *renumbered, number[eos_id], special_ids)


def forwards_to_write(script: Script, budget: int) -> int:
    """Decode the script drafted, as the local engine does; how many forwards that took."""
    target = scripted(script.vocab_size, script.prompt, script.answer, context_tokens=1 << 20)
    drafter = PromptLookup(script.vocab_size, script.special_ids)
    drafter.begin(script.prompt, script.prediction)
    tokens, reason, cache, stats = run_loop(
        target,
        script.prompt,
        drafter,
        budget=budget,
        max_new_tokens=len(script.answer) + budget,
        eos_ids=(script.eos_id,),
    )
    assert (tokens, reason) == (script.answer, "stop")
    assert cache.length == len(script.prompt) + len(script.answer) - 1
    assert stats.output_tokens == stats.forwards + stats.accepted["lookup"]
    return stats.forwards


def replayed(edits: list[Edit], tokenizer: Tokenizer) -> dict[int, float]:
    """Budget -> output tokens a forward over all edits; each answer must come out as scripted."""
    scripts = [script_of(edit, tokenizer) for edit in edits]
    output_tokens = sum(len(script.answer) for script in scripts)
    figures = {}
    for budget in BUDGETS:
        forwards = sum(forwards_to_write(script, budget) for script in scripts)
        figures[budget] = output_tokens / forwards
        cost = f"{output_tokens} tokens in {forwards} forwards, {figures[budget]:.1f} each"
        print(f"\n{len(edits)} edits, budget {budget}: {cost}")  # noqa: T201 - for who asks with -s
    return figures


@pytest.mark.smollm2
def test_our_own_edits_come_out_as_scripted_in_few_forwards():
    figures = replayed(OWN_EDITS, Tokenizer.load(resolve("smollm2-135m").path))
    assert figures[BUDGET] > TOKENS_PER_FORWARD_OF_SHORT_FILES


@pytest.mark.real
@pytest.mark.timeout(1800)
def test_real_commits_come_out_as_scripted_in_a_tenth_as_many_forwards_as_tokens():
    path = os.environ.get("SPECEDIT_TEST_EDITS")
    if not path:
        pytest.skip("set SPECEDIT_TEST_EDITS to a file of JSON lines with before, after, path and instruction")
    rows = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").split("\n") if line]
    edits = [Edit(row["path"], row["instruction"], row["before"], row["after"]) for row in rows]
    figures = replayed(edits, Tokenizer.load(resolve("qwen2.5-coder-0.5b").path))
    assert figures[BUDGET] > TOKENS_PER_FORWARD
