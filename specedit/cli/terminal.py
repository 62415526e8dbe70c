"""What may reach a terminal: text that can't drive it, diffs in colour."""

from __future__ import annotations

import os
import re
from typing import IO, Any

import click

# C0 and C1 controls but tab and newline, what turns the reading direction, and halves of characters.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def harmless(text: str) -> str:
    r"""`text` with control characters written out: escape is `\x1b`."""
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape", "surrogatepass").decode("ascii"), text)


def wants_colour(stream: IO[Any]) -> bool:
    """Whether colour belongs there: it is a terminal that can, and NO_COLOR is not set."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def shown_diff(patch: str, *, colour: bool) -> str:
    """A unified diff for the eye."""
    lines = harmless(patch).split("\n")
    return "\n".join(_painted(lines) if colour else lines)


def _painted(lines: list[str]) -> list[str]:
    in_header = True
    painted = []
    for line in lines:
        in_header = not line.startswith("@@") and (in_header or line.startswith("diff --git "))
        if in_header:
            painted.append(click.style(line, bold=True))
        elif line.startswith("@@"):
            painted.append(click.style(line, fg="cyan"))
        elif line.startswith(("+", "-")):
            painted.append(click.style(line, fg="green" if line[0] == "+" else "red"))
        else:
            painted.append(line)
    return painted
