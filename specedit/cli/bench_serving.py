"""`specedit bench serving`: specedit's drafting inside vLLM, beside vLLM's own."""

from __future__ import annotations

from pathlib import Path

import click

from specedit.cli.exits import ended_by_errors
from specedit.cli.figures import as_json, this_command
from specedit.cli.interrupt import Interrupt


@click.command()
@click.option(
    "--vllm",
    metavar="FILE",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The command vllm, in an environment where specedit is installed too.",
)
@click.option("--model", metavar="NAME", default="smollm2-135m", show_default=True, help="Name, hub id or path.")
@click.option("--edits", "kind", type=click.Choice(["speed", "small"]), default="speed", show_default=True)
@click.option("--limit", type=click.IntRange(min=1), help="The most edits.")
@click.option("--draft-tokens", type=click.IntRange(min=1), default=16, show_default=True, help="The most a step.")
@click.option("--clients", type=click.IntRange(min=1), default=1, show_default=True, help="Requests at once.")
@click.option("--way", "chosen", metavar="NAME", multiple=True, help="Only this one; may be given several times.")
@as_json
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def serving(
    vllm: Path,
    model: str,
    kind: str,
    limit: int | None,
    draft_tokens: int,
    clients: int,
    chosen: tuple[str, ...],
    as_json: bool,
    arguments: tuple[str, ...],
) -> None:
    """Compare ways of drafting inside vLLM: none, ngram, suffix, specedit, and none again.

    What follows `--` goes to `vllm serve`. Each way is a server of its own, started and stopped here.
    """
    from specedit.bench import serving as bench
    from specedit.bench.corpus import own_edits
    from specedit.cli.engine import find_model
    from specedit.config import load_settings

    ways = bench.ways(draft_tokens)
    if unknown := set(chosen) - set(ways):
        raise click.UsageError(f"No way {sorted(unknown)[0]}. There are: {', '.join(ways)}.")
    # Also a SIGTERM ends the server that is running.
    with ended_by_errors("interrupted."), Interrupt().caught():
        path = find_model(model, settings=load_settings(Path.cwd())).path
        served = list(
            bench.measure(
                vllm,
                path,
                own_edits("small" if kind == "small" else "speed")[:limit],
                speculative={way: config for way, config in ways.items() if way in (bench.FIRST, *(chosen or ways))},
                clients=clients,
                arguments=arguments,
                progress=lambda line: click.echo(line, err=True),
            )
        )
        click.echo(bench.to_json(served) if as_json else f"{this_command()}\n\n{bench.markdown(served)}")
