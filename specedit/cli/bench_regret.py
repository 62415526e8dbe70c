"""`specedit bench regret`: what drafting costs where there is nothing to copy."""

from __future__ import annotations

from pathlib import Path

import click

from specedit.cli.exits import ended_by_errors
from specedit.cli.figures import as_json, this_command


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--prompts", type=click.IntRange(min=1), default=40, show_default=True, help="How many of the file.")
@click.option("--tokens", type=click.IntRange(min=2), default=64, show_default=True, help="The most of an answer.")
@click.option("--edits", type=click.IntRange(min=0), default=6, show_default=True, help="Own edits among them.")
@click.option("--edit-tokens", type=click.IntRange(min=2), default=192, show_default=True, help="The most of an edit.")
@click.option("--model", metavar="NAME", default="smollm2-135m", show_default=True, help="Name, hub id or path.")
@as_json
def regret(file: Path, prompts: int, tokens: int, edits: int, edit_tokens: int, model: str, as_json: bool) -> None:
    """Compare drafted with plain decoding on prompts that have nothing to copy.

    FILE has a prompt a line, as JSON with `turns`. Edits of our own, which are mostly copied, are mixed in.
    """
    from specedit.bench import regret as bench
    from specedit.bench.corpus import own_edits
    from specedit.cli.engine import find_model, load_engine
    from specedit.config import load_settings

    with ended_by_errors("interrupted."):
        asked = bench.prompts(file, prompts, tokens)
        tasks = bench.mixed(asked, bench.edits(own_edits("speed")[:edits], edit_tokens))
        settings = load_settings(Path.cwd())
        engine = load_engine(find_model(model, settings=settings), settings=settings)
        pairs = []
        for pair in bench.measure(engine, tasks):
            pairs.append(pair)
            speed = f"{pair.plain_ms:.0f} ms a token plainly, {pair.drafted_ms:.0f} ms drafted, {pair.ratio:.2f}x"
            click.echo(f"{pair.kind} {pair.name}: {pair.output_tokens} tokens, {speed}", err=True)
        if not pairs:
            raise click.UsageError("No answer had two tokens. Choose another model or file.")
        click.echo(bench.to_json(pairs) if as_json else f"{this_command()}\n\n{bench.markdown(pairs)}")
