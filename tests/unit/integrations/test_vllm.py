"""The proposer with a real tokenizer, called as vLLM calls it; `tests/engines` runs it inside vLLM."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from specedit.edit.document import Document
from specedit.edit.region import symbol, whole_file
from specedit.edit.session import EditRequest, generate_request
from specedit.errors import ModelError
from specedit.integrations.vllm import EditProposer
from specedit.models.registry import resolve
from tests.fakes import fenced
from tests.unit.integrations.batch import Batch, Scripted

CODE = "".join(f"def area_{n}(width, height):\n    return {n} * width * height\n\n\n" for n in range(8))


def config(path, context=2048):
    """What the proposer reads of vLLM's configuration; as vLLM does, logits are wider than the tokenizer."""
    return SimpleNamespace(
        model_config=SimpleNamespace(tokenizer=str(path), max_model_len=context, get_vocab_size=lambda: 49_152 + 64),
        speculative_config=SimpleNamespace(num_speculative_tokens=16),
    )


@pytest.fixture(scope="module")
def proposer():
    made = EditProposer(config(resolve("smollm2-135m").path))
    made.load_model(object())
    return made


@pytest.fixture
def propose(proposer):
    return lambda emitted, lengths, table: proposer.propose(emitted, lengths, table, slot_mappings=None)


def scripted(tokenizer, region_of, old, new):
    document = Document.from_bytes(CODE.encode(), Path("areas.py"))
    region = region_of(document)
    request = generate_request(EditRequest(document, region, f"Rename {old} to {new}."))
    after = document.text[region.span.start : region.span.end].replace(old, new)
    answer = [*tokenizer.encode(fenced(after, "python")), *tokenizer.eos_ids]
    return Scripted(tokenizer.encode_chat(request.messages), answer)


@pytest.mark.smollm2
def test_whole_files_and_parts_are_drafted_from_the_prompt(propose, smollm2):
    tokenizer = smollm2[1]
    whole = scripted(tokenizer, whole_file, "width", "breadth")
    part = scripted(tokenizer, lambda document: symbol(document, "area_3"), "height", "depth")
    Batch(propose, whole, part).run()
    assert len(whole.drafts) < len(whole.answer) / 9
    assert len(part.drafts) <= 5  # 26 tokens, and the rename is known before it is seen


@pytest.mark.smollm2
def test_a_context_that_is_full_gets_no_draft(smollm2):
    tokenizer = smollm2[1]
    one = scripted(tokenizer, whole_file, "width", "breadth")
    full = EditProposer(config(resolve("smollm2-135m").path, context=len(one.prompt) + 2))
    batch = Batch(full.propose, one)
    batch.step()
    assert one.drafts == [[]]


@pytest.mark.smollm2
def test_rows_may_be_longer_than_there_are_requests(propose):
    assert propose([], np.zeros(8, dtype=np.int32), np.zeros((8, 100), dtype=np.int32)) == []
    assert propose([[], []], np.zeros(8, dtype=np.int32), np.zeros((8, 100), dtype=np.int32)) == [[], []]


def test_a_model_without_a_tokenizer_is_refused_when_the_server_starts(tmp_path):
    with pytest.raises(ModelError, match="tokenizer"):
        EditProposer(config(tmp_path))
