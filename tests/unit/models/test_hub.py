from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from specedit.models import store
from tests.unit.models import fakes
from tests.unit.models.fakes import FakeHub

REPO = "org/tiny-coder"
FILES = {
    "config.json": b"{}",
    "tokenizer.json": b"{}",
    "model.safetensors": fakes.safetensors(b"first"),
    "pytorch_model.bin": b"pickled",
    "modeling_tiny.py": b"code",
    "onnx/config.json": b"{}",
}


@pytest.fixture
def hub(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    hub = FakeHub(REPO, dict(FILES))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HF_HUB_DISABLE_XET", "1")
    for name in ("HF_TOKEN", "HF_HUB_OFFLINE", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    with fakes.serving(hub.respond) as address:
        monkeypatch.setenv("HF_ENDPOINT", address)
        yield hub


def pull(name: str = REPO, **environment: str) -> subprocess.CompletedProcess[str]:
    """Pulls in a process of its own: the hub's library reads its environment when it is imported."""
    return subprocess.run(
        [sys.executable, "-m", "tests.unit.models.puller", name],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_a_repository_is_used_in_the_hubs_own_cache(hub: FakeHub, tmp_path: Path) -> None:
    pulled = pull()
    assert pulled.returncode == 0, pulled.stderr
    weights = Path(pulled.stdout.strip())
    assert tmp_path / "hf" in weights.parents
    assert sorted(path.name for path in weights.iterdir()) == ["config.json", "model.safetensors", "tokenizer.json"]
    stored = store.find("org--tiny-coder")
    assert stored is not None
    assert stored.manifest.revision in hub.commits
    assert f"downloading {REPO}/model.safetensors" in pulled.stderr


def test_the_commit_of_the_first_pull_is_held_to(hub: FakeHub, tmp_path: Path) -> None:
    first = pull()
    hub.push(dict(FILES) | {"model.safetensors": fakes.safetensors(b"changed upstream")})
    shutil.rmtree(tmp_path / "hf")
    again = pull()
    assert again.stdout == first.stdout
    assert (Path(again.stdout.strip()) / "model.safetensors").read_bytes() == FILES["model.safetensors"]


def test_what_another_program_fetched_needs_no_network(hub: FakeHub, cache: Path) -> None:
    weights = Path(pull().stdout.strip())
    refs = weights.parent.parent / "refs"
    refs.mkdir()
    (refs / "main").write_text(weights.name)
    shutil.rmtree(cache)
    hub.downloads.clear()
    offline = pull(HF_HUB_OFFLINE="1")
    assert offline.returncode == 0, offline.stderr
    assert hub.downloads == []


def test_offline_without_the_model_says_so(hub: FakeHub) -> None:
    offline = pull(HF_HUB_OFFLINE="1")
    assert offline.returncode == 1
    assert "FetchError: HF_HUB_OFFLINE is set" in offline.stderr


def test_no_network_says_so(hub: FakeHub) -> None:
    failed = pull(HF_ENDPOINT="http://127.0.0.1:9")
    assert failed.returncode == 1
    assert "FetchError: the hub can't be reached" in failed.stderr


def test_a_file_with_a_wrong_hash_is_deleted(hub: FakeHub, tmp_path: Path) -> None:
    hub.stated_sha256["model.safetensors"] = "0" * 64
    failed = pull()
    assert "IntegrityError" in failed.stderr
    assert not list((tmp_path / "hf").rglob("model.safetensors"))
    hub.stated_sha256.clear()
    assert pull().returncode == 0


def test_a_repository_of_pickles_is_refused_before_any_download(hub: FakeHub) -> None:
    hub.push({"config.json": b"{}", "pytorch_model.bin": b"pickled"})
    failed = pull()
    assert "UnsupportedModelError" in failed.stderr
    assert "never pickles" in failed.stderr
    assert hub.downloads == []


def test_a_gguf_file_of_a_repository_is_converted(hub: FakeHub, cache: Path) -> None:
    hub.push({"tiny-q4.gguf": fakes.GGUF})
    listed = pull()
    assert f"{REPO}/tiny-q4.gguf" in listed.stderr
    pulled = pull(f"{REPO}/tiny-q4.gguf")
    assert pulled.returncode == 0, pulled.stderr
    weights = Path(pulled.stdout.strip())
    assert weights.parent == cache
    assert (weights / "model.safetensors").read_bytes() == fakes.safetensors(fakes.GGUF)
    assert len(json.loads((weights / "specedit.json").read_text())["sha256"]) == 64
    assert not [path for path in cache.rglob("*.gguf") if path.is_file()]


def test_a_closed_repository_says_where_to_open_it(hub: FakeHub) -> None:
    hub.gated = True
    failed = pull()
    assert f"https://huggingface.co/{REPO}" in failed.stderr
    assert "HF_TOKEN" in failed.stderr


def test_an_unknown_repository_says_so(hub: FakeHub) -> None:
    assert "the hub has no org/other" in pull("org/other").stderr
