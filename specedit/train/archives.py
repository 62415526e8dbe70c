"""Reading wheels and tarballs in memory. Nothing is unpacked, so no path in an archive can lead anywhere."""

from __future__ import annotations

import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from specedit.errors import IntegrityError

_MOST_MEMBERS = 200_000
_MOST_BYTES = 2 << 30

Wanted = Callable[[str, int], bool]
"""Whether to read a member, from its path and its size in bytes."""


def members(archive: Path, wanted: Wanted) -> Iterator[tuple[str, bytes]]:
    """The wanted regular files of a zip or tar archive as (path, content); links and odd paths are left out.

    Raises:
        IntegrityError: the archive is damaged, or holds more than 200,000 members or 2 GiB.
    """
    entries = _zip_members if zipfile.is_zipfile(archive) else _tar_members
    try:
        yield from entries(archive, wanted)
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError) as error:
        raise IntegrityError(f"{archive} is damaged ({error}). Delete it and run again.") from error


def _zip_members(archive: Path, wanted: Wanted) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(archive) as opened:
        entries = opened.infolist()
        _require_bounded(archive, len(entries), sum(entry.file_size for entry in entries))
        for entry in entries:
            if not entry.is_dir() and _is_plain(entry.filename) and wanted(entry.filename, entry.file_size):
                yield entry.filename, opened.read(entry)


def _tar_members(archive: Path, wanted: Wanted) -> Iterator[tuple[str, bytes]]:
    total_bytes = 0
    with tarfile.open(archive, "r|*") as opened:
        for number, entry in enumerate(opened, start=1):
            total_bytes += entry.size
            _require_bounded(archive, number, total_bytes)
            if entry.isreg() and _is_plain(entry.name) and wanted(entry.name, entry.size):
                content = opened.extractfile(entry)
                assert content is not None
                yield entry.name, content.read()


def _is_plain(path: str) -> bool:
    return not path.startswith("/") and "\\" not in path and ".." not in PurePosixPath(path).parts


def _require_bounded(archive: Path, count: int, total_bytes: int) -> None:
    if count > _MOST_MEMBERS or total_bytes > _MOST_BYTES:
        raise IntegrityError(
            f"{archive} unpacks to more than any source release should. Delete it and check its origin."
        )
