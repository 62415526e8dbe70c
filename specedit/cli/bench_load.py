"""`specedit bench load`: whether a server holds under mixed load."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from specedit.cli.exits import ended_by_errors
from specedit.cli.figures import as_json, this_command
from specedit.cli.interrupt import Interrupt

if TYPE_CHECKING:
    from specedit.bench.load import Report
    from specedit.bench.load_server import Address

_DID_NOT_HOLD = 1


@click.command()
@click.option("--clients", type=click.IntRange(min=1), default=50, show_default=True)
@click.option(
    "--minutes",
    type=click.FloatRange(min=0, min_open=True),
    default=10.0,
    show_default=True,
    help="For so long they begin anything; memory is judged from 5 on.",
)
@click.option("--model", metavar="NAME", default="smollm2-135m", show_default=True, help="Name, hub id or path.")
@click.option(
    "--kv-cache-mb",
    type=click.FloatRange(min=0),
    default=256.0,
    show_default=True,
    help="Memory for keys and values; little, so that it is full soon.",
)
@click.option(
    "--engine",
    "url",
    metavar="URL",
    help="A `specedit serve` of this user's that runs already, in place of one that is started with the two above.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Decides who does what in which order.")
@as_json
def load(
    clients: int, minutes: float, model: str, kv_cache_mb: float, url: str | None, seed: int, as_json: bool
) -> None:
    """Put `specedit serve` under mixed load over loopback, and see whether it holds.

    Clients of all priorities ask, wait, leave at every stage, read slowly or not at all, send half a request, and send
    wrong ones. Equal requests must get equal answers, everything must end, inline requests must start within two steps,
    and memory must stay flat.

    Exit code: 0 it held, 1 it did not.
    """
    from specedit.bench import load as bench
    from specedit.bench.load_report import markdown, to_json
    from specedit.bench.load_server import running

    if clients < bench.FEWEST_CLIENTS:
        raise click.UsageError(f"{bench.FEWEST_CLIENTS} clients are the fewest: with fewer not every behaviour occurs.")

    def measured(address: Address) -> Report:
        return bench.measure(address, clients=clients, seconds=minutes * 60, seed=seed, progress=_say)

    # Also a SIGTERM ends the server that was started for this.
    with ended_by_errors("interrupted."), Interrupt().caught():
        if url is not None:
            report = measured(_address(url))
        else:
            with running(model, kv_cache_mb=kv_cache_mb) as server:
                report = measured(server.address)
                alarms = server.alarms()
                report = report.also(bench.drained(server.stop()), bench.unalarmed(alarms))
        click.echo(to_json(report) if as_json else f"{this_command()}\n\n{markdown(report)}")
        if not report.held:
            sys.exit(_DID_NOT_HOLD)


def _address(url: str) -> Address:
    """The server at this address, with its token and process where it runs here."""
    from pathlib import Path

    from specedit.bench.load_server import Address
    from specedit.config import load_settings, server_url
    from specedit.engine.discovery import servers
    from specedit.engine.runtime import read_token

    wanted = server_url(url)
    for record in servers():
        if record.url == wanted:
            return Address(wanted, read_token(Path(record.token_file)), record.pid)
    return Address(wanted, load_settings(Path.cwd()).api_key or "", None)


def _say(line: str) -> None:
    click.echo(line, err=True)
