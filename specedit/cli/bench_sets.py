"""`specedit bench sets`: make our own sets of edits from pinned releases."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from specedit.cli.exits import ended_by_errors

if TYPE_CHECKING:
    from specedit.bench.sets.packages import Package

KINDS = ("lines", "migrations", "parameters", "reindent", "renames-named", "renames-unnamed")


@click.command()
@click.argument("kind", type=click.Choice(KINDS))
@click.option(
    "--out",
    metavar="FILE.jsonl",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="Where the edits go, one on a line.",
)
def sets(kind: str, out: Path) -> None:
    """Make one of our own sets of edits, for `specedit bench replay`.

    The files come from pinned releases of packages under permissive licences, which are downloaded once. The same
    command makes the same set.
    """
    from collections import Counter
    from statistics import quantiles

    from specedit.bench.sets.kinds import SETS
    from specedit.bench.sets.packages import pinned, source_files
    from specedit.bench.sets.row import write_rows

    with ended_by_errors("interrupted."):
        rows = list(SETS[kind](source_files(pinned(), on_package=_say)))
        write_rows(rows, out)
    sites = [row.sites for row in rows]
    low, middle, high = quantiles(sites, n=4)
    languages = ", ".join(f"{count} {name}" for name, count in sorted(Counter(row.language for row in rows).items()))
    click.echo(f"{out}: {len(rows)} edits ({languages})")
    click.echo(f"places that change alike: {min(sites)} to {max(sites)}, quartiles {low:.0f}, {middle:.0f}, {high:.0f}")


def _say(package: Package) -> None:
    click.echo(f"reading {package.name} {package.version} ({package.licence})", err=True)
