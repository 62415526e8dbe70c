"""Real edits, replayed: a target that writes the committed file, asked as `specedit edit` asks, with drafts.

Six pairs of our own always run. Set `SPECEDIT_TEST_EDITS` to a file of JSON lines with `before`, `after`, `path` and
`instruction` for a whole set of commits; the figures are printed under `pytest -s`.
"""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path
from typing import NamedTuple

import pytest

from specedit.bench.drafters import LoadedTokenizer
from specedit.draft.base import Drafter
from specedit.edit.document import Document
from specedit.edit.fence import fence_for
from specedit.edit.region import whole_file
from specedit.edit.session import EditRequest, generate_request
from specedit.edit.syntax import language_of
from specedit.engine.api import Hints
from specedit.engine.tokens import Tokenizer
from tests.exactness.drafters import Renumbered, all_drafters
from tests.exactness.edits import OWN_EDITS, Edit
from tests.fake_models import run_loop, scripted

DRAFTERS = ("edit", "edit, no table", "edit, chains", "cursor", "replay", "lookup", "ngram", "prompt lookup")
BUDGETS = (16, 64, 128)
#: The promise is for this budget.
BUDGET = 64
TOKENS_PER_FORWARD = 30
TOKENS_PER_FORWARD_OF_SHORT_FILES = {"edit": 17, "edit, no table": 16, "edit, chains": 15, "prompt lookup": 9}


class Script(NamedTuple):
    """One answer in tokens, renumbered from 0: a row of logits need only hold the tokens that occur.

    Attributes:
        token_ids: the tokenizer's ids, by number.
        prompt, prediction, answer: in numbers.
        eos: the number of the end-of-text token.
        hints: what the request says about the answer.
    """

    token_ids: list[int]
    prompt: list[int]
    prediction: list[int]
    answer: list[int]
    eos: int
    hints: Hints


def script_of(edit: Edit, tokenizer: Tokenizer) -> Script:
    """The whole-file request for an edit, and the new file in a code block as the answer to it."""
    document = Document.from_bytes(edit.before.encode(), Path(edit.path))
    request = generate_request(EditRequest(document, whole_file(document), edit.instruction))
    assert request.hints.opening
    assert request.hints.closing
    assert request.hints.resume_offsets
    fence = fence_for(edit.before + edit.after)
    prompt = tokenizer.encode_chat(request.messages)
    prediction = tokenizer.encode(request.prediction)
    (eos_id,) = tokenizer.eos_ids
    answer = [*tokenizer.encode(f"{fence}{language_of(Path(edit.path))}\n{edit.after}{fence}"), eos_id]
    token_ids = sorted({*prompt, *prediction, *answer})
    number = {token_id: at for at, token_id in enumerate(token_ids)}
    renumbered = ([number[token_id] for token_id in ids] for ids in (prompt, prediction, answer))
    return Script(token_ids, *renumbered, number[eos_id], request.hints)


def forwards_to_write(script: Script, drafter: Drafter, budget: int) -> int:
    """Decode the script drafted, as the local engine does; how many forwards that took."""
    vocab_size = len(script.token_ids) + budget
    target = scripted(vocab_size, script.prompt, script.answer, context_tokens=1 << 20)
    renumbered = Renumbered(drafter, script.token_ids)
    renumbered.begin(script.prompt, script.prediction, script.hints)
    tokens, reason, cache, stats = run_loop(
        target,
        script.prompt,
        renumbered,
        budget=budget,
        max_new_tokens=len(script.answer) + budget,
        eos_ids=(script.eos,),
    )
    assert (tokens, reason) == (script.answer, "stop")
    assert cache.length == len(script.prompt) + len(script.answer) - 1
    assert stats.output_tokens == stats.forwards + sum(stats.accepted.values())
    return stats.forwards


def replayed(edits: list[Edit], model: LoadedTokenizer, names: tuple[str, ...]) -> dict[tuple[str, int], float]:
    """(drafter, budget) -> output tokens a forward over all edits; each answer must come out as scripted."""
    makers = all_drafters(model.tokenizer, model.vocab_size)
    scripts = [script_of(edit, model.tokenizer) for edit in edits]
    output_tokens = sum(len(script.answer) for script in scripts)
    figures = {}
    for name, budget in itertools.product(names, BUDGETS):
        drafter = makers[name]()
        forwards = sum(forwards_to_write(script, drafter, budget) for script in scripts)
        figures[name, budget] = output_tokens / forwards
        cost = f"{output_tokens} tokens in {forwards} forwards, {figures[name, budget]:.1f} each"
        print(f"\n{len(edits)} edits, {name}, budget {budget}: {cost}")  # noqa: T201 - for who asks with -s
    return figures


@pytest.mark.smollm2
def test_our_own_edits_come_out_as_scripted_in_few_forwards():
    figures = replayed(OWN_EDITS, LoadedTokenizer.load("smollm2-135m"), DRAFTERS)
    for name, tokens_per_forward in TOKENS_PER_FORWARD_OF_SHORT_FILES.items():
        assert figures[name, BUDGET] > tokens_per_forward, name


@pytest.mark.real
@pytest.mark.timeout(1800)
def test_real_commits_come_out_as_scripted_in_a_thirtieth_as_many_forwards_as_tokens():
    path = os.environ.get("SPECEDIT_TEST_EDITS")
    if not path:
        pytest.skip("set SPECEDIT_TEST_EDITS to a file of JSON lines with before, after, path and instruction")
    rows = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").split("\n") if line]
    edits = [Edit(row["path"], row["instruction"], row["before"], row["after"]) for row in rows]
    figures = replayed(edits, LoadedTokenizer.load("qwen2.5-coder-0.5b"), ("edit",))
    assert figures["edit", BUDGET] > TOKENS_PER_FORWARD
