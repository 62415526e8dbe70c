"""Where cases come from: our own edits, and files of public benchmarks that the user has.

Our own lie in `edits/`, each as a TOML file beside the code it is about. `speed` holds six edits of files of 8 to 100
lines, for the speed table; `small` holds edits of single functions, on which the prompt was tuned.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from importlib import resources
from itertools import islice
from pathlib import Path
from typing import Literal

import msgspec

from specedit.bench.case import Case
from specedit.errors import UsageError

Kind = Literal["speed", "small"]


class _Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of our own edits, as its TOML file says it; the fields are those of `Case`."""

    instruction: str
    check: str
    file: str | None = None
    symbol: str | None = None
    must: tuple[str, ...] = ()
    must_not: tuple[str, ...] = ()


class _Row(msgspec.Struct, frozen=True, kw_only=True):
    """What both benchmarks' files say of an edit."""

    id: str
    language: str
    instruction: str
    before: str
    after: str
    tests: str


def own_edits(kind: Kind) -> list[Case]:
    """Our own edits of a kind, the shortest files first."""
    folder = resources.files("specedit.bench") / "edits" / kind
    cases = []
    for place in folder.iterdir():
        name, _, suffix = place.name.partition(".")
        if suffix == "toml":
            entry = msgspec.toml.decode(place.read_bytes(), type=_Entry)
            file_name = entry.file or f"{name}.py"
            cases.append(
                Case(
                    name=name,
                    file_name=file_name,
                    before=(folder / file_name).read_text(encoding="utf-8"),
                    instruction=entry.instruction,
                    check=entry.check,
                    symbol=entry.symbol,
                    must=entry.must,
                    must_not=entry.must_not,
                )
            )
    return sorted(cases, key=lambda case: (case.lines, case.name))


def benchmark_edits(file: Path, *, ids: Path | None = None) -> list[Case]:
    """The Python edits of HumanEvalFix or CanItEdit, in the file's order.

    Args:
        file: JSON lines with `id, language, instruction, before, after, tests`.
        ids: a JSON array of the ids to take; None takes all.

    Raises:
        UsageError: a file is not of that form.
    """
    try:
        rows = msgspec.json.Decoder(_Row).decode_lines(file.read_bytes())
        wanted = None if ids is None else msgspec.json.decode(ids.read_bytes(), type=set[str])
    except (msgspec.DecodeError, OSError) as error:
        raise UsageError(f"{file} is no file of edits that this benchmark reads: {error}") from error
    cases = [
        Case(
            name=row.id,
            file_name=_file_name(row.id),
            before=row.before,
            instruction=row.instruction,
            check=row.tests,
            after=row.after,
        )
        for row in rows
        if row.language == "python" and (wanted is None or row.id in wanted)
    ]
    if not cases:
        raise UsageError(f"{file} has no Python edit{'' if ids is None else f' whose id stands in {ids}'}")
    return cases


def sampled(cases: Sequence[Case], count: int, seed: int) -> list[Case]:
    """`count` of the cases that can pass here, or all if there are fewer, chosen by `seed`."""
    shuffled = random.Random(seed).sample(cases, len(cases))  # noqa: S311 - no secret
    return list(islice(filter(Case.can_pass, shuffled), count))


def _file_name(row_id: str) -> str:
    """A plain name for the prompt: what an id ends in, if that is a word."""
    word = re.search(r"[a-z][a-z0-9_]*$", row_id)
    return f"{word[0]}.py" if word else "solution.py"
