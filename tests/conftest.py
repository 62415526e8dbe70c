"""Models that tests share. They are pulled by `make test` and `make test-real`, never by a test."""

from __future__ import annotations

import pytest

from specedit.errors import ModelNotFoundError


def _loaded(name):
    from specedit.engine.target import Target
    from specedit.engine.tokens import Tokenizer
    from specedit.models.registry import resolve

    try:
        path = resolve(name).path
    except ModelNotFoundError as error:
        pytest.fail(f"{error} (`make test` and `make test-real` do that first)")
    return Target.load(path, device="cpu", dtype="float32"), Tokenizer.load(path)


@pytest.fixture(scope="session")
def smollm2():
    """(target, tokenizer) of SmolLM2-135M in float32 on the CPU."""
    return _loaded("smollm2-135m")


@pytest.fixture(scope="session")
def qwen():
    """(target, tokenizer) of Qwen2.5-Coder-0.5B in float32 on the CPU."""
    return _loaded("qwen2.5-coder-0.5b")
