"""`specedit lsp`: the language server for editors."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(name="lsp", context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--stdio",
    is_flag=True,
    expose_value=False,
    help="Speak over stdin and stdout; that is all there is, and need not be said.",
)
@click.option(
    "--log-file",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to log; else a file in the user's log directory.",
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    help="How much to log; never code.",
)
def command(log_file: Path | None, log_level: str | None) -> None:
    """Serve an editor over the Language Server Protocol.

    Editors start this themselves. It finds the `specedit serve` that runs on this machine, or starts one.
    """
    from specedit_lsp.server import run

    run(log_file=log_file, log_level=log_level)
