"""`specedit bench`: measure what drafting gains, and whether edits are made."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from specedit.cli.bench_editor import editor
from specedit.cli.bench_load import load
from specedit.cli.bench_regret import regret
from specedit.cli.bench_replay import draft, replay
from specedit.cli.bench_serving import serving
from specedit.cli.bench_sets import sets
from specedit.cli.exits import ended_by_errors
from specedit.cli.figures import as_json, this_command

if TYPE_CHECKING:
    from specedit.bench.quality import Outcome

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_HUMANEVALFIX_CASES = 40
_CANITEDIT_CASES = 30


@click.group(name="bench", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Measure what drafting gains, and whether edits are made.

    `wallclock` and `edits` run programs that the model wrote, each in a process of its own with limits on time and
    memory, but not shut off from the network or your files. So they start only with --run-model-code. `replay` and
    `draft` run neither programs nor a model.
    """


command.add_command(replay)
command.add_command(draft)
command.add_command(sets)
command.add_command(regret)
command.add_command(serving)
command.add_command(load)
command.add_command(editor)

_run_model_code = click.option(
    "--run-model-code", is_flag=True, help="Confirm that programs written by the model may run here."
)


@command.command()
@click.option(
    "--model",
    "models",
    metavar="NAME",
    multiple=True,
    default=("smollm2-135m", "qwen2.5-coder-0.5b"),
    show_default=True,
    help="May be given several times.",
)
@click.option("--only", metavar="EDIT", multiple=True, help="Only this edit; may be given several times.")
@click.option(
    "--repeat", type=click.IntRange(min=1), default=1, show_default=True, help="Runs; seconds are their median."
)
@_run_model_code
@as_json
def wallclock(models: tuple[str, ...], only: tuple[str, ...], repeat: int, run_model_code: bool, as_json: bool) -> None:
    """Compare specedit with plain decoding and with transformers' prompt lookup, in the same run.

    Six edits of our own of 8 to 100 lines. Every answer starts with a cold cache.
    """
    _confirm(run_model_code)
    from specedit.bench import wallclock as clock
    from specedit.bench.corpus import own_edits

    cases = own_edits("speed")
    if unknown := set(only) - {case.name for case in cases}:
        raise click.UsageError(f"No edit {sorted(unknown)[0]}. There are: {', '.join(case.name for case in cases)}.")
    chosen = [case for case in cases if not only or case.name in only]
    with ended_by_errors("interrupted."):
        runs = [run for model in models for run in clock.measure(model, chosen, repeat=repeat, progress=_say)]
        click.echo(clock.to_json(runs) if as_json else f"{this_command()}\n\n{clock.markdown(runs)}")


@command.command()
@click.option("--own", is_flag=True, help="Our own small edits.")
@click.option("--humanevalfix", metavar="FILE", type=_FILE, help="HumanEvalFix, as JSON lines.")
@click.option("--canitedit", metavar="FILE", type=_FILE, help="CanItEdit, as JSON lines.")
@click.option("--canitedit-ids", metavar="FILE", type=_FILE, help="The ids to take, as a JSON array.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    help=f"The most cases of a set; without it {_HUMANEVALFIX_CASES} of HumanEvalFix, {_CANITEDIT_CASES} of CanItEdit.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Chooses the cases.")
@click.option("--model", metavar="NAME", help="Name, hub id or path of the model.")
@click.option("--way", type=click.Choice(["specedit", "plain"]), help="Only through specedit, or only plainly.")
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep each outcome here; the same command then goes on from there.",
)
@_run_model_code
@as_json
def edits(
    own: bool,
    humanevalfix: Path | None,
    canitedit: Path | None,
    canitedit_ids: Path | None,
    limit: int | None,
    seed: int,
    model: str | None,
    way: str | None,
    out: Path | None,
    run_model_code: bool,
    as_json: bool,
) -> None:
    """Count edits that are made, through specedit and by a plain "return the whole code" prompt.

    Lines of HumanEvalFix and CanItEdit have id, language, instruction, before, after and tests.
    """
    _confirm(run_model_code)
    if not (own or humanevalfix or canitedit):
        raise click.UsageError("Name at least one set: --own, --humanevalfix FILE, --canitedit FILE.")
    from specedit.bench import quality
    from specedit.bench.corpus import benchmark_edits, own_edits, sampled
    from specedit.cli.engine import find_model, load_engine
    from specedit.config import load_settings

    with ended_by_errors("interrupted."):
        settings = load_settings(Path.cwd())
        sets = {}
        if own:
            cases = own_edits("small")
            sets["own"] = sampled(cases, limit, seed) if limit else cases
        if humanevalfix:
            sets["HumanEvalFix"] = sampled(benchmark_edits(humanevalfix), limit or _HUMANEVALFIX_CASES, seed)
        if canitedit:
            found = benchmark_edits(canitedit, ids=canitedit_ids)
            sets["CanItEdit"] = sampled(found, limit or _CANITEDIT_CASES, seed)
        outcomes = quality.measure(
            sets,
            load_engine(find_model(model, settings=settings), settings=settings),
            ways=[one for one in quality.WAYS if way in (None, one)],
            ledger=quality.Ledger(out / "outcomes.jsonl" if out else None),
            on_outcome=_say_outcome,
        )
        found_summaries = list(quality.summaries(outcomes))
        if as_json:
            click.echo(quality.to_json(found_summaries, outcomes))
        else:
            click.echo(f"{this_command()}\n\n{quality.markdown(found_summaries)}")


def _confirm(run_model_code: bool) -> None:
    if not run_model_code:
        raise click.UsageError(
            "This runs programs that the model writes. They get little time and memory and a directory of their own, "
            "but could reach your files and network. If you agree, or in a container, add --run-model-code."
        )


def _say(line: str) -> None:
    click.echo(line, err=True)


def _say_outcome(outcome: Outcome) -> None:
    result = "passed" if outcome.passed else f"not passed ({outcome.reason})"
    status = f"{outcome.status}, though right" if outcome.refused_right else outcome.status
    _say(f"{outcome.set_name} {outcome.case}, {outcome.way}: {status}, {result}, {outcome.seconds:.1f} s")
