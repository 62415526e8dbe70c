"""The exit codes of all commands, and the errors and interruptions that lead to them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from specedit.errors import EngineError, ModelError, SpecEditError

WOULD_CHANGE = 1
WRONG_USAGE = 2
NOT_ALL_DONE = 3
NO_ENGINE = 4
INTERRUPTED = 130


def code_of(error: SpecEditError) -> int:
    """The exit code for an error that ends a command."""
    return NO_ENGINE if isinstance(error, ModelError | EngineError) else WRONG_USAGE


@contextmanager
def ended_by_errors(when_interrupted: str) -> Iterator[None]:
    """Say an error or interruption within on stderr, and exit with its code."""
    try:
        yield
    except SpecEditError as error:
        click.echo(f"specedit: {error}", err=True)
        sys.exit(code_of(error))
    except (KeyboardInterrupt, click.Abort):
        click.echo(f"specedit: {when_interrupted}", err=True)
        sys.exit(INTERRUPTED)
