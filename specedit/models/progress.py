"""How a long job on model files reports what it is doing, without knowing who draws it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """A moment of a long job.

    Attributes:
        label: what is going on, in a few words; a new label is a new step.
        done_bytes: how much of this step is done.
        total_bytes: how much there is to do; None where it isn't counted in bytes.
    """

    label: str
    done_bytes: int = 0
    total_bytes: int | None = None


Progress = Callable[[Step], None]


def silent(step: Step) -> None:
    """Draw nothing."""


def readable_size(size_bytes: int) -> str:
    """`size_bytes` in decimal units: 92871040 is `93 MB`, 15231233024 is `15.2 GB`."""
    if size_bytes < 1_000_000:
        return f"{size_bytes / 1_000:.0f} kB"
    if size_bytes < 1_000_000_000:
        return f"{size_bytes / 1_000_000:.0f} MB"
    return f"{size_bytes / 1_000_000_000:.1f} GB"
