"""What of a prompt is read again, with prompts as specedit builds them and a real tokenizer."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import LlamaConfig

from specedit.edit.document import Document
from specedit.edit.region import line_range
from specedit.edit.session import EditRequest, generate_request
from specedit.engine.local import LocalEngine
from tests.tiny_model import random_target

pytestmark = pytest.mark.smollm2

EDITS = Path(__file__).parents[3] / "specedit" / "bench" / "edits"


@pytest.fixture(scope="module")
def lines():
    """A file of 400 lines."""
    texts = (file.read_text("utf-8") for file in sorted(EDITS.rglob("*.py")))
    return "".join(texts).splitlines(keepends=True)[:400]


@pytest.fixture
def engine(smollm2):
    # What is read again depends on the tokens alone, so a tiny model will do.
    config = LlamaConfig(
        vocab_size=smollm2[0].vocab_size,
        hidden_size=8,
        intermediate_size=8,
        num_attention_heads=1,
        num_hidden_layers=1,
        max_position_embeddings=8192,
    )
    return LocalEngine(random_target(config, torch.float32), smollm2[1], draft_budget=0)


def read_again(engine, lines, region, instruction):
    """Prompt tokens, and how many of them were not reused."""
    document = Document.from_bytes("".join(lines).encode(), Path("shop.py"))
    request = EditRequest(document, line_range(document, *region), instruction, max_new_tokens=1)
    *_, last = engine.generate(generate_request(request))
    return last.usage.prompt_tokens, last.usage.prompt_tokens - last.usage.cached_tokens


def test_another_instruction_for_another_region_reads_little_and_an_edit_only_what_follows_it(engine, lines, smollm2):
    assert len(lines) == 400
    tokens, read = read_again(engine, lines, (11, 30), "Rename total to amount.")
    assert read == tokens

    tokens, read = read_again(engine, lines, (301, 320), "Add a docstring to the function, and type hints.")
    assert read <= 0.15 * tokens

    edited = [*lines[:299], "    checked = True\n", *lines[300:]]
    after = len(smollm2[1].encode("".join(lines[299:])))
    tokens, read = read_again(engine, edited, (301, 320), "Add a docstring to the function, and type hints.")
    part_and_instruction = len(smollm2[1].encode("".join(edited[300:320]))) + 100
    assert after <= read <= after + part_and_instruction, "only from line 300 on"
