"""Edits as package releases show them: what changed in a file between two neighbouring releases.

The nearest thing to commits that package indexes serve. A pair of files is kept where it looks like one: hand-written
code, few lines changed, not only the version number.
"""

from __future__ import annotations

import difflib
import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TypeVar

import msgspec

from specedit.errors import SpecEditError
from specedit.train import indexes
from specedit.train.indexes import Release
from specedit.train.packages import Package

LANGUAGES = {
    ".c": "c",
    ".go": "go",
    ".h": "c",
    ".js": "javascript",
    ".mjs": "javascript",
    ".py": "python",
    ".rs": "rust",
    ".ts": "typescript",
    ".tsx": "typescript",
}
LEAST_BYTES, MOST_BYTES = 300, 60_000
MOST_CHANGED_LINES = 150
MOST_CHANGED_SHARE = 0.4
PAIRS_A_RELEASE = 14
SOURCE_BYTES_A_PACKAGE = 1_500_000

_DOWNLOADS_AT_ONCE = 4
_LONGEST_LINE = 400
_FOREIGN_FOLDERS = re.compile(
    r"(^|/)(_?vendor(ed|ized)?|_?vendored_packages|third[-_]?party|extern(al|als)?|node_modules|dist|build|bundled?|umd|min"
    r"|generated|gen|deps|testdata|fixtures|locales?|i18n)/",
    re.IGNORECASE,
)
_FOREIGN_NAMES = re.compile(
    r"(\.min\.|\.bundle\.|\.d\.ts$|\.pb\.|_pb2|_pb\.|bindata|[-_.]generated|^zz_|-lock\.|mozilla)", re.IGNORECASE
)
_GENERATED = re.compile(
    r"@generated|do not (edit|modify)|auto-?\s?generated|generated (by|from|using)|machine generated"
    r"|GNU (Lesser |Affero |Library )?General Public|SPDX-License-Identifier:\s*[AL]?GPL|Mozilla Public",
    re.IGNORECASE,
)
_HEAD_CHARS = 3000


class Pair(msgspec.Struct, frozen=True):
    """One file in two neighbouring releases. The texts have LF line ends and are in NFC."""

    id: str
    package: str
    versions: tuple[str, str]
    licence: str
    path: str
    language: str
    before: str
    after: str


class SourceFile(msgspec.Struct, frozen=True):
    """One file of a package's latest release."""

    package: str
    version: str
    licence: str
    path: str
    language: str
    text: str


@dataclass(frozen=True)
class Harvest:
    """What one package gave.

    Attributes:
        package: the package.
        pairs: edits between its releases.
        sources: files of its latest release.
        refused: why releases were left out; empty where all is well.
    """

    package: Package
    pairs: tuple[Pair, ...] = ()
    sources: tuple[SourceFile, ...] = ()
    refused: tuple[str, ...] = ()


def collect(packages: Sequence[Package], downloads: Path) -> Iterator[Harvest]:
    """Download what is missing under `downloads`; yield what each package gives, in order.

    A release that can't be had, or whose licence isn't the pinned one, is left out and said so in `Harvest.refused`.

    Raises:
        FetchError: Debian's sources are wanted and can't be listed.
    """
    downloads.mkdir(parents=True, exist_ok=True)
    if any(package.index == "debian" for package in packages):
        indexes.prepare_debian(downloads)
    with ThreadPoolExecutor(_DOWNLOADS_AT_ONCE) as pool:
        waiting = [
            [pool.submit(indexes.download, package, version, downloads) for version in package.versions]
            for package in packages
        ]
        try:
            for package, folders in zip(packages, waiting, strict=True):
                yield _harvest(package, folders)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def pairs(older: Release, newer: Release, most: int = PAIRS_A_RELEASE) -> list[Pair]:
    """The edits between two releases of a package, at most `most` of them, drawn evenly by a hash of their paths."""
    kept: list[Pair] = []
    for path in _shuffled(older.files.keys() & newer.files.keys(), older.version):
        if len(kept) == most:
            break
        if older.files[path] == newer.files[path]:
            continue
        before, after = code(older.files[path]), code(newer.files[path])
        if before and after and looks_like_an_edit(before, after, older.version, newer.version):
            name, versions = older.package.name, (older.version, newer.version)
            identity = f"{name}:{versions[0]}:{versions[1]}:{path}"
            kept.append(Pair(identity, name, versions, older.package.licence, path, _language(path), before, after))
    return kept


def sources(release: Release, most_bytes: int = SOURCE_BYTES_A_PACKAGE) -> list[SourceFile]:
    """Files of a release, at most `most_bytes` together, drawn evenly by a hash of their paths."""
    kept, left = [], most_bytes
    for path in _shuffled(release.files, release.version):
        size = len(release.files[path])
        text = code(release.files[path]) if size <= left else None
        if text:
            left -= size
            package = release.package
            kept.append(SourceFile(package.name, release.version, package.licence, path, _language(path), text))
    return kept


def code(content: bytes) -> str | None:
    """The text of a hand-written source file, or None: generated, minified, copyleft, or not UTF-8, LF and NFC."""
    if b"\r" in content or b"\0" in content or content.startswith(b"\xef\xbb\xbf"):
        return None
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    if not unicodedata.is_normalized("NFC", text) or _GENERATED.search(text[:_HEAD_CHARS]):
        return None
    return text if max(map(len, text.split("\n"))) <= _LONGEST_LINE else None


def looks_like_an_edit(before: str, after: str, old_version: str = "", new_version: str = "") -> bool:
    """Whether few enough lines change, and more than the version number does."""
    if old_version and before.replace(old_version, new_version) == after:
        return False
    old, new = Counter(before.split("\n")), Counter(after.split("\n"))
    most = min(MOST_CHANGED_LINES, int(MOST_CHANGED_SHARE * (old.total() + new.total())))
    # Lines that only one side has are cheap to count, and few files are left to compare in order.
    return before != after and ((old - new) + (new - old)).total() <= most and _changed_lines(before, after) <= most


def _changed_lines(before: str, after: str) -> int:
    old, new = before.split("\n"), after.split("\n")
    for _ in range(2):  # cut what is equal at the start, turned round; then at the end
        same = next((at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
        old, new = old[same:][::-1], new[same:][::-1]
    blocks = difflib.SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    return len(old) + len(new) - 2 * sum(block.size for block in blocks)


def write(rows: Iterable[Pair | SourceFile], file: Path) -> None:
    """Write JSON lines, whole or not at all."""
    unfinished = file.with_suffix(".part")
    with unfinished.open("wb") as out:
        for row in rows:
            out.write(msgspec.json.encode(row) + b"\n")
    unfinished.replace(file)


Row = TypeVar("Row", Pair, SourceFile)


def load(file: Path, kind: type[Row]) -> Iterator[Row]:
    """The rows that `write` wrote."""
    decoder = msgspec.json.Decoder(kind)
    with file.open("rb") as lines:
        for line in lines:
            yield decoder.decode(line)


def _harvest(package: Package, folders: Sequence[Future[Path]]) -> Harvest:
    edits: list[Pair] = []
    refused: list[str] = []
    previous: Release | None = None
    for version, folder in zip(package.versions, folders, strict=True):
        try:
            release = indexes.read(package, version, folder.result(), lambda path, size: _wanted(package, path, size))
        except SpecEditError as error:
            refused.append(str(error))
            continue
        if previous:
            edits += pairs(previous, release)
        previous = release
    return Harvest(package, tuple(edits), tuple(sources(previous)) if previous else (), tuple(refused))


def _wanted(package: Package, path: str, size: int) -> bool:
    return (
        LEAST_BYTES <= size <= MOST_BYTES
        and _language(path) in package.languages
        and not _FOREIGN_FOLDERS.search(path)
        and not _FOREIGN_NAMES.search(PurePosixPath(path).name)
    )


def _language(path: str) -> str:
    return LANGUAGES.get(PurePosixPath(path).suffix, "")


def _shuffled(paths: Iterable[str], salt: str) -> list[str]:
    return sorted(paths, key=lambda path: hashlib.sha256(f"{salt}:{path}".encode()).digest())
