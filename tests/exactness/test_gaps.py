"""Exactness by equality in gaps to fill, on a real code model in float32."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from specedit.edit import stream
from specedit.engine.api import ContextFile, Fim, GenerateRequest, Sampling
from specedit.engine.local import LocalEngine

pytestmark = pytest.mark.real

SOURCE = Path(stream.__file__).read_text("utf-8")
FILES = (ContextFile("lib/outer.py", "def outer(block):\n    return block\n"),)


def written(chunks):
    return "".join(chunk.text for chunk in chunks)


@pytest.fixture(scope="module")
def engine(qwen):
    return LocalEngine(*qwen)


@pytest.mark.parametrize("cursor", [2100, 5200, 9100])
@pytest.mark.parametrize("num_typed", [0, 2])
@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_a_gap_is_filled_as_by_plain_decoding(engine, cursor, num_typed, temperature):
    begun = cursor - num_typed
    fim = Fim(SOURCE[cursor - 900 : begun], SOURCE[cursor : cursor + 200], SOURCE[begun:cursor], FILES, "stream.py")
    sampling = Sampling(temperature=temperature)
    request = GenerateRequest(fim=fim, sampling=sampling, seed=cursor, max_new_tokens=16)
    plain = written(engine.generate_plain(request))
    assert plain.startswith(fim.typed)
    assert written(engine.generate(request)) == plain
    assert written(engine.generate(replace(request, logprobs=2))) == plain, "to be told them changes nothing"
