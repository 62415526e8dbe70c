"""`specedit bench replay` and `specedit bench draft`: what drafting gains and costs, without a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from specedit.cli.exits import ended_by_errors
from specedit.cli.figures import as_json, this_command

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)

_model = click.option(
    "--model",
    "--tokenizer",
    "model",
    metavar="NAME",
    default="qwen2.5-coder-0.5b",
    show_default=True,
    help="The model whose tokenizer is used; it is not run.",
)
_budget = click.option(
    "--budget", type=click.IntRange(min=1), default=128, show_default=True, help="The most drafted tokens of a forward."
)


@click.command()
@click.argument("file", type=_FILE)
@_budget
@click.option("--drafters", metavar="A,B", help="Only these, by name; all without it.")
@click.option("--limit", type=click.IntRange(min=1), help="Only the first so many edits.")
@click.option(
    "--plot",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write a picture (.png, .svg or .pdf): tokens per forward against the edited share.",
)
@_model
@as_json
def replay(
    file: Path, budget: int, drafters: str | None, limit: int | None, plot: Path | None, model: str, as_json: bool
) -> None:
    """Count the forwards that recorded edits take, drafter by drafter. No model runs.

    FILE has JSON lines with before and after; id, path, instruction and size are taken where they are there. The answer
    is taken to be the new file. The copy oracle always knows the best copy of at most --budget tokens, and gets one
    token free; with another budget than 128, that of 128 tokens stands beside it as copy-oracle-128.
    """
    with ended_by_errors("interrupted."):
        _require_local()
        from specedit.bench import replay as replaying
        from specedit.bench import replay_plot, replay_report
        from specedit.bench.drafters import LoadedTokenizer, makers
        from specedit.bench.recorded import read_edits, tokenized

        edits = read_edits(file, limit)
        if plot:
            replay_plot.check_plot(plot)
        loaded = LoadedTokenizer.load(model)
        chosen = makers(loaded, drafters.split(",") if drafters else None)
        with _counted(len(edits) * len(chosen)) as on_edit:
            results = replaying.measure(
                [tokenized(edit, loaded.tokenizer) for edit in edits],
                chosen,
                vocab_size=loaded.vocab_size,
                budget=budget,
                on_edit=on_edit,
            )
        if plot:
            replay_plot.write_plot(results, plot)
        if as_json:
            click.echo(replay_report.to_json(results))
        else:
            click.echo(f"{this_command()}\n\n{replay_report.markdown(results, budget=budget)}")


@click.command()
@_budget
@_model
def draft(budget: int, model: str) -> None:
    """Time draft calls, index and updates at 1,000 to 200,000 tokens of context. No model runs."""
    with ended_by_errors("interrupted."):
        _require_local()
        from specedit.bench import microseconds
        from specedit.bench.drafters import LoadedTokenizer, part_makers

        loaded = LoadedTokenizer.load(model)
        chosen = part_makers(loaded)
        with _counted(len(chosen) * len(microseconds.CONTEXT_TOKENS)) as on_part:
            costs = []
            for cost in microseconds.measure(chosen, loaded.tokenizer, vocab_size=loaded.vocab_size, budget=budget):
                on_part(cost.part)
                costs.append(cost)
        click.echo(f"{this_command()}\n\n{microseconds.markdown(costs)}")


def _require_local() -> None:
    from specedit.models.fetch import require_local

    require_local()


@contextmanager
def _counted(total: int) -> Iterator[Callable[[str], None]]:
    """A bar on stderr, if that is a terminal, that goes on by one each time it is told what was done."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bars:
        task = bars.add_task("", total=total)
        yield lambda done: bars.update(task, advance=1, description=done)
