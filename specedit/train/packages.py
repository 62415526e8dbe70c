"""The pinned table of packages that training text comes from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast, get_args

IndexName = Literal["pypi", "npm", "debian"]

#: Licences that allow use in anything that is shipped, by their SPDX names.
PERMISSIVE = frozenset({"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "PSF-2.0"})


@dataclass(frozen=True)
class Package:
    """Releases of one package.

    Attributes:
        index: where it comes from.
        name: as the index spells it.
        licence: the SPDX name that each release has to declare.
        languages: of its files, those that are taken.
        versions: oldest first, neighbours in the order of release. Debian's are upstream versions.
    """

    index: IndexName
    name: str
    licence: str
    languages: tuple[str, ...]
    versions: tuple[str, ...]


def pinned() -> tuple[Package, ...]:
    """All packages of the table `packages.txt`, in its order."""
    return tuple(_rows(Path(__file__).with_name("packages.txt").read_text(encoding="utf-8")))


def _rows(table: str) -> Iterator[Package]:
    for line in table.splitlines():
        if not line or line.startswith("#"):
            continue
        index, name, licence, languages, *versions = line.split()
        assert index in get_args(IndexName), line
        assert licence in PERMISSIVE, line
        assert versions, line
        yield Package(cast(IndexName, index), name, licence, tuple(languages.split(",")), tuple(versions))
