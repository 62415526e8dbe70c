"""Making a set: patterns of change, tried on file after file until each has its rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from specedit.bench.sets.row import Row, changed_lines, size_class
from specedit.bench.sets.source import SourceFile, shuffled
from specedit.edit.syntax import parses


@dataclass(frozen=True, slots=True)
class Change:
    """What became of one file.

    Attributes:
        after: its new text.
        sites: how many places changed alike.
        wordings: ways to ask for it; a set takes them in turn.
        size: the set's own size class; None takes that of the changed lines.
    """

    after: str
    sites: int
    wordings: tuple[str, ...]
    size: str | None = None


@dataclass(frozen=True, slots=True)
class Pattern:
    """One kind of change.

    Attributes:
        name: in the rows' ids.
        languages: where it is tried.
        rows: how many rows to make of it in each language.
        change: makes the change, or returns None where the file gives no occasion.
    """

    name: str
    languages: tuple[str, ...]
    rows: int
    change: Callable[[SourceFile], Change | None]


def make(patterns: Iterable[Pattern], files: Iterable[SourceFile]) -> Iterator[Row]:
    """The rows of a set, the same for the same files.

    A file is in at most one row. Of a pattern's rows in one language at most half come from one package. Where the
    files give too few occasions, there are fewer rows.
    """
    usable = [file for file in files if file.usable]
    used: set[SourceFile] = set()
    number = 0
    for pattern in patterns:
        order = shuffled(usable, pattern.name)
        for language in pattern.languages:
            taken: Counter[str] = Counter()
            for file in order:
                if taken.total() == pattern.rows:
                    break
                if file.language != language or file in used or taken[file.package] >= (pattern.rows + 1) // 2:
                    continue
                change = pattern.change(file)
                if change is None or change.after == file.text or not parses(change.after, language):
                    continue
                used.add(file)
                taken[file.package] += 1
                yield _row(f"{pattern.name}-{number:03}", file, change, number)
                number += 1


def _row(row_id: str, file: SourceFile, change: Change, number: int) -> Row:
    return Row(
        id=row_id,
        path=file.path,
        language=file.language,
        instruction=change.wordings[number % len(change.wordings)],
        before=file.text,
        after=change.after,
        size=change.size or size_class(changed_lines(file.text, change.after)),
        sites=change.sites,
        licence=file.licence,
        package=file.package,
    )
