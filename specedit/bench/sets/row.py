"""A row of a set: one edit, with the text before and after it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from specedit.errors import UsageError

_SMALL_LINES, _MEDIUM_LINES = 20, 60


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One edit, as `specedit bench replay` reads it.

    Attributes:
        id: unique in its set.
        path: of the file in its package.
        language: one of `specedit.edit.syntax.GRAMMARS`.
        instruction: what a person would ask for.
        before: the file's text.
        after: the text with the edit made.
        size: `small` up to 20 lines removed or added, `medium` up to 60, else `large`; or the set's own class.
        sites: how many places the edit repeats at: names, calls or lines.
        licence: of the package, an SPDX name.
        package: name and version.
    """

    id: str
    path: str
    language: str
    instruction: str
    before: str
    after: str
    size: str
    sites: int
    licence: str
    package: str


def changed_lines(before: str, after: str) -> int:
    """How many lines a diff removes and adds, together."""
    old, new = before.split("\n"), after.split("\n")
    blocks = difflib.SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    return len(old) + len(new) - 2 * sum(block.size for block in blocks)


def size_class(lines: int) -> str:
    """`small`, `medium` or `large`, by the lines removed and added."""
    return "small" if lines <= _SMALL_LINES else "medium" if lines <= _MEDIUM_LINES else "large"


def write_rows(rows: Iterable[Row], out: Path) -> None:
    """Write the rows as JSON lines.

    Raises:
        UsageError: `out` can't be written.
    """
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_bytes(msgspec.json.Encoder().encode_lines(rows))
    except OSError as error:
        raise UsageError(f"{out} can't be written: {error.strerror}. Name another file with --out.") from error
