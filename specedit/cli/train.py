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


@command.command()
@click.argument("files", type=_FILE)
@click.option("--model", metavar="NAME", required=True, help="The model whose tokenizer counts; it has to be pulled.")
@click.option("--out", "table", type=click.Path(dir_okay=False, path_type=Path), required=True, help="Where to write.")
@click.option(
    "--chars-a-language",
    type=click.IntRange(min=1),
    default=45_000_000,
    show_default=True,
    help="Text counted of each language.",
)
def ngrams(files: Path, model: str, table: Path, chars_a_language: int) -> None:
    """Count a static n-gram table over FILES, the files.jsonl of `specedit train releases`.

    Each tenth package is held out; the figures say how well the table predicts its tokens.
    """
    with ended_by_errors("interrupted; nothing was written."):
        from specedit.errors import FileError, UsageError
        from specedit.models import registry

        place = registry.resolve(model).path
        from specedit.draft.ngram_file import fingerprint, unpack
        from specedit.engine.tokens import Tokenizer
        from specedit.train.ngrams import HELD_OUT, MOST_TOKENS, Corpus, balanced, build, measure
        from specedit.train.releases import SourceFile, load

        tokenizer = Tokenizer.load(place)
        corpus = Corpus.of(balanced(load(files, SourceFile), chars_a_language), tokenizer.encode)
        if len(corpus.packages) < 2:
            raise UsageError(f"{files} has files of {len(corpus.packages)} packages; to count and to measure takes two")
        counted, held_out = corpus.split(HELD_OUT)
        content = build(counted, fingerprint(tokenizer.token_bytes, MOST_TOKENS))
        try:
            table.parent.mkdir(parents=True, exist_ok=True)
            table.write_bytes(content)
        except OSError as error:
            raise FileError(f"can't write {table}: {error.strerror}. Choose another --out.") from error
        quality = measure(unpack(table), held_out)
        click.echo(f"{table}: {len(content):,} bytes, {len(counted.tokens):,} tokens, {len(counted.packages)} packages")
        click.echo(
            f"{quality.positions:,} tokens of {len(held_out.packages)} other packages: {quality.known:.1%} among the "
            f"followers, mean probability {quality.mean_prob:.3f}, mean log where known {quality.mean_log_prob:.2f}"
        )


@command.command()
@click.argument("pairs", type=_FILE)
@click.option("--model", metavar="NAME", required=True, help="The model whose tokenizer is used; it is not run.")
@click.option(
    "--table", type=_FILE, help="The static n-gram table that is used beside what is fitted; none without it."
)
@click.option("--limit", type=click.IntRange(min=1), help="Only the first so many edits.")
@click.option("--out", "file", type=click.Path(dir_okay=False, path_type=Path), required=True, help="Where to write.")
def priors(pairs: Path, model: str, table: Path | None, limit: int | None, file: Path) -> None:
    """Fit what drafting believes beforehand on PAIRS, the pairs.jsonl of `specedit train releases`.

    Each edit is replayed as the answer to the request for it. The edits of each eighth package are held out; the
    figures say how many forwards those take. 4 GB of memory are enough for 20,000 edits.
    """
    with ended_by_errors("interrupted; nothing was written."):
        from specedit.models.fetch import require_local

        require_local()
        import msgspec
        from rich.console import Console
        from rich.progress import Progress

        from specedit.bench.drafters import LoadedTokenizer
        from specedit.draft.ngram_file import unpack
        from specedit.draft.ngrams import Table
        from specedit.errors import FileError
        from specedit.train.priors import Fitting

        loaded = LoadedTokenizer.load(model)
        ngrams = Table.of(unpack(table)) if table else None
        fitting = Fitting.of(pairs, limit, loaded.tokenizer)
        console = Console(stderr=True)
        with Progress(console=console, transient=True, disable=not console.is_terminal) as bars:
            task = bars.add_task("edits", total=fitting.replays)
            result = fitting.run(loaded.vocabulary, ngrams, lambda: bars.update(task, advance=1))
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(msgspec.json.encode(result.file))
        except OSError as error:
            raise FileError(f"can't write {file}: {error.strerror}. Choose another --out.") from error
        click.echo(f"{file}: {result.file.fitted_on}")
        click.echo(
            f"{len(fitting.held_out)} edits of other packages: {result.forwards_before:,} forwards untrained, "
            f"{result.forwards_after:,} fitted, ratio {result.forwards_after / result.forwards_before:.3f}"
        )
