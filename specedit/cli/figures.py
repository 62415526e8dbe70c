"""What the commands that print figures share."""

from __future__ import annotations

import shlex
import sys

import click

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")


def this_command() -> str:
    """The command line that is running, to stand above its figures."""
    return f"`{shlex.join(['specedit', *sys.argv[1:]])}`"
