from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from specedit.errors import IntegrityError, ModelNotFoundError, UnsupportedModelError
from specedit.models import registry
from specedit.models.registry import MODELS, default_model, lookup, resolve
from specedit.models.sources import GgufFile, HubGguf, HubRepo, LocalDir, WheelParts
from tests.unit.models import fakes


def model_at(directory: Path) -> Path:
    directory.mkdir(parents=True)
    (directory / "config.json").write_text("{}")
    (directory / "model.safetensors").write_bytes(fakes.safetensors())
    return directory


def test_every_named_model_is_pinned() -> None:
    for entry in MODELS.values():
        assert entry.license
        assert entry.stop_tokens
        for source in entry.sources:
            if isinstance(source, HubRepo):
                assert re.fullmatch(r"[0-9a-f]{40}", source.revision or "")
            else:
                assert isinstance(source, WheelParts)
                assert re.fullmatch(r"[0-9a-f]{64}", source.sha256)
                assert all("==" in part.requirement for part in source.parts)


@pytest.mark.parametrize(
    ("memory_gb", "expected"),
    [(None, "qwen2.5-coder-0.5b"), (8, "qwen2.5-coder-0.5b"), (16, "qwen2.5-coder-0.5b"), (24, "qwen2.5-coder-7b")],
)
def test_the_default_model_fits_the_machine(memory_gb: int | None, expected: str) -> None:
    assert default_model(None if memory_gb is None else memory_gb * 10**9) == expected
    assert expected in MODELS


def test_a_name_a_path_and_an_id_are_told_apart(tmp_path: Path) -> None:
    gguf = tmp_path / "m.gguf"
    gguf.write_bytes(b"GGUF")
    assert lookup("SmolLM2-135M").name == "smollm2-135m"
    assert lookup(str(tmp_path)).sources == (LocalDir(tmp_path),)
    assert lookup(str(gguf)).sources == (GgufFile(gguf),)
    assert lookup("Qwen/Qwen3-8B").sources == (HubRepo("Qwen/Qwen3-8B"),)
    assert lookup("org/name/sub/m-q4.gguf").sources == (HubGguf("org/name", "sub/m-q4.gguf"),)


@pytest.mark.parametrize("name", ["./absent", "/absent/model", "~/absent", "../x", "absent.gguf", "a/absent.gguf"])
def test_a_path_that_is_not_there_is_no_hub_id(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(ModelNotFoundError, match="Check the path"):
        lookup(name)


def test_a_misspelt_name_gets_a_suggestion() -> None:
    with pytest.raises(ModelNotFoundError, match=r"Did you mean qwen2\.5-coder-0\.5b\?"):
        lookup("qwen2.5-coder0.5b")


def test_a_directory_in_an_untrusted_repository_does_not_take_the_place_of_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    model_at(tmp_path / "smollm2-135m")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelNotFoundError, match="specedit models pull smollm2-135m"):
        resolve("smollm2-135m")


def test_a_directory_of_safetensors_is_used_where_it_lies(tmp_path: Path, cache: Path) -> None:
    directory = model_at(tmp_path / "mine")
    assert resolve(str(directory)).path == directory
    assert not cache.exists()


def test_pickled_weights_are_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "pytorch_model.bin").write_bytes(b"pickled")
    with pytest.raises(UnsupportedModelError, match="They can run code"):
        resolve(str(tmp_path))


def test_an_empty_directory_says_what_a_model_has(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match=r"config\.json and \*\.safetensors"):
        resolve(str(tmp_path))


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    directory = model_at(tmp_path / "mine")
    index = {"weight_map": {"a": "model.safetensors", "b": "model-2.safetensors"}}
    (directory / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(IntegrityError, match=r"lacks model-2\.safetensors"):
        resolve(str(directory))


@pytest.mark.parametrize("kept_bytes", [0, 5, 20, -1])
def test_truncated_weights_are_seen(tmp_path: Path, kept_bytes: int) -> None:
    directory = model_at(tmp_path / "mine")
    weights = directory / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:kept_bytes])
    with pytest.raises(IntegrityError, match="cut short"):
        resolve(str(directory))


def test_the_hash_is_sha256(tmp_path: Path) -> None:
    (tmp_path / "abc").write_bytes(b"abc")
    assert registry.sha256_of(tmp_path / "abc").startswith("ba7816bf8f01cfea414140de5dae2223")
