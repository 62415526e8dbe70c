"""The sets by their names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType

from specedit.bench.sets.lines import lines
from specedit.bench.sets.migrations import migrations
from specedit.bench.sets.parameters import parameters
from specedit.bench.sets.reindent import reindent
from specedit.bench.sets.renames import renames_named, renames_unnamed
from specedit.bench.sets.row import Row
from specedit.bench.sets.source import SourceFile

SETS: Mapping[str, Callable[[Iterable[SourceFile]], Iterator[Row]]] = MappingProxyType(
    {
        "lines": lines,
        "migrations": migrations,
        "parameters": parameters,
        "reindent": reindent,
        "renames-named": renames_named,
        "renames-unnamed": renames_unnamed,
    }
)
"""What makes each set, by its name, from the files of all packages."""
