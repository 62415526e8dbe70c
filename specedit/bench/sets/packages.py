"""The pinned releases that the sets are made from, and the source files in them.

None of their code lies in this project: an archive is downloaded once, checked against its hash, and read.
"""

from __future__ import annotations

import hashlib
import os
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from specedit.bench.sets.source import SourceFile
from specedit.config import cache_dir
from specedit.edit.syntax import language_of
from specedit.errors import FetchError, IntegrityError
from specedit.train import archives

_INDEXES = {
    "pypi": "https://files.pythonhosted.org/packages",
    "npm": "https://registry.npmjs.org",
    "debian": "https://deb.debian.org/debian/pool/main",
}
_TIMEOUT_SECONDS = 60
_LARGEST_FILE_BYTES = 60_000

# Folders of what nobody edits by hand, or what belongs to another project.
_NOT_OURS = frozenset({"build", "dist", "es5", "generated", "node_modules", "test262", "third_party", "vendor"})


@dataclass(frozen=True, slots=True)
class Package:
    """One release of a package.

    Attributes:
        index: where it comes from: pypi, npm or debian.
        name: as the index spells it.
        version: the release; Debian's are upstream versions.
        licence: an SPDX name; all are permissive.
        languages: whose files are taken from it.
        path: of its archive in the index.
        sha256: of that archive.
    """

    index: str
    name: str
    version: str
    licence: str
    languages: tuple[str, ...]
    path: str
    sha256: str

    @property
    def url(self) -> str:
        """Where the archive lies."""
        return f"{_INDEXES[self.index]}/{self.path}"


def pinned() -> tuple[Package, ...]:
    """All releases of the table `packages.txt`, in its order."""
    table = Path(__file__).with_name("packages.txt").read_text(encoding="utf-8")
    rows = [line.split() for line in table.split("\n") if line and not line.startswith("#")]
    return tuple(
        Package(index, name, version, licence, tuple(languages.split(",")), path, sha256)
        for index, name, version, licence, languages, path, sha256 in rows
    )


def source_files(
    packages: Iterable[Package], on_package: Callable[[Package], Any] = lambda _: None
) -> Iterator[SourceFile]:
    """The packages' ASCII files with plain line ends, in the order of the packages and of their paths.

    Args:
        packages: the releases to read.
        on_package: told of each release before it is downloaded or read.

    Raises:
        FetchError: an index can't be reached.
        IntegrityError: an archive isn't the pinned one, or is damaged; it was not kept.
    """
    for package in packages:
        on_package(package)
        for path, data in sorted(archives.members(_archive(package), _is_wanted)):
            language = language_of(Path(path))
            if language in package.languages and data.isascii() and b"\r" not in data:
                name = f"{package.name} {package.version}"
                yield SourceFile(name, package.licence, path.partition("/")[2], language, data.decode("ascii"))


def _is_wanted(path: str, size_bytes: int) -> bool:
    return (
        size_bytes <= _LARGEST_FILE_BYTES
        and language_of(Path(path)) is not None
        and not _NOT_OURS & set(PurePosixPath(path).parts)
    )


def _archive(package: Package) -> Path:
    """The release's archive in the cache, downloaded where it isn't there."""
    kept = cache_dir() / "packages" / package.sha256
    if not kept.is_file():
        data = _downloaded(package.url)
        found = hashlib.sha256(data).hexdigest()
        if found != package.sha256:
            raise IntegrityError(
                f"{package.url} has the SHA-256 {found}, but {package.sha256} is pinned. It was not kept. "
                "Run the command again; if it happens again, the index serves something else."
            )
        kept.parent.mkdir(parents=True, exist_ok=True)
        unfinished = kept.with_suffix(f".{os.getpid()}")
        unfinished.write_bytes(data)
        unfinished.replace(kept)
    return kept


def _downloaded(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_SECONDS) as response:  # noqa: S310 - the indexes are https
            return bytes(response.read())
    except OSError as error:
        raise FetchError(
            f"{url} could not be downloaded: {error}. Check the network and run the command again; "
            "what has arrived is kept."
        ) from error
