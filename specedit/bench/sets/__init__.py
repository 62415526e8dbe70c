"""Sets of edits of our own, made by a command from pinned releases of permissively licensed packages.

Each set is one kind of edit that repeats: `specedit bench replay` counts what drafting makes of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType

from specedit.bench.sets.renames import renames_named, renames_unnamed
from specedit.bench.sets.row import Row
from specedit.bench.sets.source import SourceFile

SETS: Mapping[str, Callable[[Iterable[SourceFile]], Iterator[Row]]] = MappingProxyType(
    {
        "renames-named": renames_named,
        "renames-unnamed": renames_unnamed,
    }
)
"""What makes each set, by its name, from the files of all packages."""
