"""The cache of models that are ready to load: a directory each, with a manifest that says where it came from.

A model's directory appears by one rename once it is whole, so whatever has a manifest is ready. Work in
progress lies beside it under names that start with a dot.
"""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from specedit.config import cache_dir
from specedit.errors import FetchError, IntegrityError, ModelNotFoundError, UnsupportedModelError
from specedit.models.progress import readable_size

MANIFEST = "specedit.json"
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt")


@dataclass(frozen=True, slots=True)
class Origin:
    """A local file as it was when it was converted: the same size and time of change mean the same file."""

    path: str
    size_bytes: int
    modified_ns: int

    @classmethod
    def of(cls, file: Path) -> Origin:
        """The origin that `file` is now."""
        stat = file.stat()
        return cls(str(file.resolve()), stat.st_size, stat.st_mtime_ns)


@dataclass(frozen=True, slots=True)
class Manifest:
    """What stands in a model's `specedit.json`.

    Attributes:
        name: what the user calls the model.
        source: where it came from, in words.
        weights: their directory where it is another one (in the hub's own cache); None: the manifest's.
        revision: the hub commit.
        sha256: of the GGUF file that was converted.
        origin: that file, where it was a local one.
        versions: the packages that converted it.
    """

    name: str
    source: str
    weights: str | None = None
    revision: str | None = None
    sha256: str | None = None
    origin: Origin | None = None
    versions: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoredModel:
    """A model in the cache."""

    key: str
    directory: Path
    manifest: Manifest

    @property
    def weights(self) -> Path:
        """The directory to load from."""
        return Path(self.manifest.weights) if self.manifest.weights else self.directory

    @property
    def size_bytes(self) -> int:
        """What the files of `weights` take together."""
        return sum(file.stat().st_size for file in self.weights.iterdir() if file.is_file())


def models_dir() -> Path:
    """Where models lie in the cache. It need not exist yet."""
    return cache_dir() / "models"


def directory_of(key: str) -> Path:
    """Where the model of this key stands once it is ready."""
    return models_dir() / key


def downloads_of(key: str) -> Path:
    """Where what was downloaded for this key waits until the model is ready; kept when a pull is cut off."""
    return models_dir() / ".downloads" / key


def find(key: str) -> StoredModel | None:
    """The model of this key if it is ready to load, else None."""
    stored = recorded(key)
    return stored if stored and (stored.weights / "config.json").is_file() else None


def recorded(key: str) -> StoredModel | None:
    """The model of this key, even where the weights that its manifest points to are gone; else None."""
    directory = directory_of(key)
    try:
        manifest = msgspec.json.decode((directory / MANIFEST).read_bytes(), type=Manifest)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except msgspec.DecodeError as error:
        raise IntegrityError(
            f"{directory / MANIFEST} can't be read ({error}). "
            f"Remove the directory {directory} and pull the model again."
        ) from error
    return StoredModel(key, directory, manifest)


def installed() -> list[StoredModel]:
    """All models that are ready to load, by key."""
    if not models_dir().is_dir():
        return []
    keys = sorted(entry.name for entry in models_dir().iterdir() if not entry.name.startswith("."))
    return [stored for stored in map(find, keys) if stored]


@contextmanager
def building(key: str) -> Iterator[Path]:
    """An empty directory to build the model in: the model when the block ends, gone if it fails.

    The caller holds the key's lock.
    """
    workshop = models_dir() / ".building" / key
    shutil.rmtree(workshop, ignore_errors=True)
    workshop.mkdir(parents=True)
    try:
        yield workshop
        final = directory_of(key)
        if final.exists():
            shutil.rmtree(final)
        workshop.rename(final)
    finally:
        shutil.rmtree(workshop, ignore_errors=True)


def write_manifest(directory: Path, manifest: Manifest) -> None:
    """Put the manifest into a directory that is being built."""
    (directory / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")


def remove(key: str) -> None:
    """Delete the model and what was downloaded for it. Weights in the hub's own cache stay.

    The caller holds the key's lock.
    """
    directory = directory_of(key)
    if directory.exists():
        doomed = models_dir() / ".building" / key
        shutil.rmtree(doomed, ignore_errors=True)
        doomed.parent.mkdir(parents=True, exist_ok=True)
        directory.rename(doomed)
        shutil.rmtree(doomed)
    shutil.rmtree(downloads_of(key), ignore_errors=True)


@contextmanager
def lock(key: str, on_wait: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold the key among all processes; `on_wait` is called once if another one has it."""
    from filelock import FileLock, Timeout

    locks = models_dir() / ".locks"
    locks.mkdir(parents=True, exist_ok=True)
    held = FileLock(locks / f"{key}.lock")
    try:
        held.acquire(timeout=0)
    except Timeout:
        on_wait()
        held.acquire()
    try:
        yield
    finally:
        held.release()


def require_space(directory: Path, needed_bytes: int, variable: str = "SPECEDIT_CACHE") -> None:
    """Make sure that the disk of `directory` holds `needed_bytes` more.

    Raises:
        FetchError: it does not; names `variable` as the way to another disk.
    """
    existing = next(path for path in (directory, *directory.parents) if path.exists())
    free_bytes = shutil.disk_usage(existing).free
    if free_bytes < needed_bytes:
        raise FetchError(
            f"not enough disk space: {readable_size(needed_bytes)} needed, "
            f"{readable_size(free_bytes)} free at {existing}. "
            f"Free some space, or set {variable} to a directory on a larger disk."
        )


def check_weights(directory: Path) -> None:
    """Make sure that a directory holds a whole model as safetensors; reads the files' headers only.

    Raises:
        ModelNotFoundError: there is no model in it.
        UnsupportedModelError: its weights are pickles, which can run code when they are loaded.
        IntegrityError: a file is missing or cut short.
    """
    index = directory / "model.safetensors.index.json"
    files = sorted(directory.glob("*.safetensors"))
    if not files and any(any(directory.glob(pattern)) for pattern in _PICKLES):
        raise UnsupportedModelError(
            f"{directory} holds pickled weights only. They can run code when loaded, so specedit never "
            "loads them. Take the model's safetensors, or convert it in a sandbox with `save_pretrained`."
        )
    if not files or not (directory / "config.json").is_file():
        raise ModelNotFoundError(
            f"{directory} holds no model: a config.json and *.safetensors are needed. Give the directory that has them."
        )
    if index.is_file():
        named = {directory / name for name in json.loads(index.read_bytes())["weight_map"].values()}
        if missing := sorted(path.name for path in named if not path.is_file()):
            raise IntegrityError(f"{directory} lacks {', '.join(missing)}. Fetch the missing files again.")
    for file in files:
        if not _is_whole(file):
            raise IntegrityError(f"{file} is cut short or damaged. Delete it and fetch it again.")


def _is_whole(safetensors: Path) -> bool:
    size_bytes = safetensors.stat().st_size
    with safetensors.open("rb") as stream:
        prefix = stream.read(8)
        if len(prefix) < 8:
            return False
        (header_bytes,) = struct.unpack("<Q", prefix)
        if header_bytes > size_bytes - 8:
            return False
        try:
            header = json.loads(stream.read(header_bytes))
        except ValueError:
            return False
    ends = [tensor["data_offsets"][1] for name, tensor in header.items() if name != "__metadata__"]
    return size_bytes == 8 + int(header_bytes) + max(ends, default=0)
