"""`specedit bench editor`: what an editor waits for."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from specedit.cli.exits import ended_by_errors
from specedit.cli.figures import as_json, this_command


@click.command()
@click.option("--runs", type=click.IntRange(min=1), default=5, show_default=True, help="Starts; the best one counts.")
@click.option("--lines", type=click.IntRange(min=10), default=10_000, show_default=True, help="Of the long file.")
@click.option("--keystrokes", type=click.IntRange(min=1), default=200, show_default=True, help="Typed into it.")
@click.option(
    "--complete",
    "source",
    metavar="FILE.py",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Also complete in this file, with the model that an editor would get.",
)
@click.option("--model", metavar="NAME", help="For --complete.")
@as_json
def editor(runs: int, lines: int, keystrokes: int, source: Path | None, model: str | None, as_json: bool) -> None:
    """Measure the language server from an editor's end: its start, a keystroke in a long file, completions."""
    from specedit.bench import editor as bench

    with ended_by_errors("interrupted."):
        start = bench.measure_start(runs)
        typed = bench.measure_keystrokes(lines, keystrokes)
        options = {"model": model} if model else {}
        found = list(bench.measure_completions(source.read_text("utf-8"), options, env={})) if source else []
        if as_json:
            figures: dict[str, Any] = {"start": asdict(start), "keystrokes": asdict(typed)}
            click.echo(json.dumps({**figures, "completions": [asdict(one) for one in found]}, indent=2))
            return
        click.echo(f"{this_command()}\n")
        click.echo(
            f"initialize answered after {start.answered:.2f} s (best of {runs}), of which Python itself "
            f"{start.interpreter:.2f}, pygls and LSP's types {start.libraries:.2f}, our modules {start.ours:.2f}"
        )
        click.echo(
            f"a keystroke in {typed.lines:,} lines: {typed.median_ms:.2f} ms of the server (median of {typed.typed}), "
            f"at most {typed.largest_ms:.2f}; an empty round trip takes {typed.round_trip_ms:.2f}"
        )
        for one in found:
            click.echo(f"completion, {one.what}: {one.seconds:.2f} s, {one.text!r}")
