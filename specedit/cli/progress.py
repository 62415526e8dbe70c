"""Drawing a long job on stderr."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.progress import Progress as Bars

from specedit.models.progress import Progress, Step, readable_size


@contextmanager
def drawn_progress() -> Iterator[Progress]:
    """A callback that draws steps: on a terminal a bar with size and rate, elsewhere a line a step."""
    console = Console(stderr=True, highlight=False)
    label = ""
    with Bars(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bars:
        task = bars.add_task("", total=None, visible=False)

        def draw(step: Step) -> None:
            nonlocal label
            counted = step.total_bytes is not None
            if step.label != label:
                label = step.label
                size = f", {readable_size(step.total_bytes)}" if step.total_bytes is not None else ""
                if not counted or not console.is_terminal:
                    console.print(f"{label}{size}", markup=False, soft_wrap=True)
                bars.reset(task, total=step.total_bytes, description=label, visible=counted)
            bars.update(task, completed=step.done_bytes)

        yield draw
