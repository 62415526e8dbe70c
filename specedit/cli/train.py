"""`specedit train`: make what drafting learns from beforehand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from specedit.cli.exits import ended_by_errors

if TYPE_CHECKING:
    from specedit.train.releases import Pair, SourceFile

_INTERRUPTED = "interrupted. What was downloaded is kept; the same command goes on from here."
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group(name="train", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Make what drafting learns from beforehand: edits and code of permissively licensed packages."""


@command.command()
@click.option(
    "--out", "folder", type=click.Path(file_okay=False, path_type=Path), required=True, help="Where to write."
)
@click.option("--only", metavar="PACKAGE", multiple=True, help="Only this package; may be given several times.")
def releases(folder: Path, only: tuple[str, ...]) -> None:
    """Collect edits from neighbouring releases of pinned packages.

    Writes pairs.jsonl, edits of one file each, and files.jsonl, the files of the latest releases. Downloads stay in
    downloads/, so that a second run fetches nothing. pip, npm and apt-get download; no code of a package runs.
    """
    with ended_by_errors(_INTERRUPTED):
        from specedit.errors import UsageError
        from specedit.train import packages
        from specedit.train.releases import collect, write

        table = packages.pinned()
        if unknown := set(only) - {package.name for package in table}:
            raise UsageError(f"not in the table of packages: {', '.join(sorted(unknown))}")
        chosen = [package for package in table if not only or package.name in only]
        pairs: dict[tuple[str, str], Pair] = {}
        files: dict[str, SourceFile] = {}
        for harvest in collect(chosen, folder / "downloads"):
            pairs |= {(pair.before, pair.after): pair for pair in harvest.pairs}
            files |= {file.text: file for file in harvest.sources}
            name, licence = harvest.package.name, harvest.package.licence
            click.echo(f"{name} ({licence}): {len(harvest.pairs)} edits, {len(harvest.sources)} files")
            for reason in harvest.refused:
                click.echo(f"  left out: {reason}", err=True)
        write(pairs.values(), folder / "pairs.jsonl")
        write(files.values(), folder / "files.jsonl")
        click.echo(f"{len(pairs)} edits, {len(files)} files in {folder}")
