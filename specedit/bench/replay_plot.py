"""A picture of a replay: tokens per forward against how much of the text each edit changes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from specedit.bench.replay import DrafterReplay
from specedit.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SUFFIXES = (".png", ".svg", ".pdf")

#: Colours that are told apart with every kind of sight (Okabe and Ito, 2008), and marks for print without colour.
_COLOURS = ("#000000", "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#8A8A00", "#777777")
_MARKS = "os^DvPX*h"
_EDITS_PER_POINT = 10
_SMALLEST_SHARE = 0.001


def check_plot(file: Path) -> None:
    """Make sure, before a long run, that a picture can be written there.

    Raises:
        UsageError: another kind of file, no such directory, or matplotlib is missing.
    """
    if file.suffix.lower() not in SUFFIXES:
        raise UsageError(f"{file} is no picture that can be written here. Name a file that ends in .png, .svg or .pdf")
    if not file.parent.is_dir():
        raise UsageError(f"there is no directory {file.parent} for the picture. Make it first")
    try:
        import matplotlib  # noqa: F401 - only whether it is there
    except ImportError as error:
        raise UsageError("a picture needs matplotlib. Run: pip install 'specedit[plot]'") from error


def write_plot(results: Sequence[DrafterReplay], file: Path) -> None:
    """Write a series for each result of `measure`: faint points are edits, marks the total of neighbouring edits."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    # Nothing of the day or of chance goes into the file, and text in an SVG stays text.
    with mpl.rc_context({"svg.hashsalt": "specedit", "svg.fonttype": "none"}):
        figure = Figure(figsize=(9, 6), layout="constrained")
        axes = figure.add_subplot()
        for number, result in enumerate(results):
            _draw(axes, result, _COLOURS[number % len(_COLOURS)], _MARKS[number % len(_MARKS)])
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.xaxis.set_major_formatter(lambda share, _: f"{share:.3g}")
        axes.yaxis.set_major_formatter(lambda tokens, _: f"{tokens:g}")
        axes.set_xlabel("edited share: characters in lines that only one of the two texts has, %")
        axes.set_ylabel("tokens per forward")
        axes.set_title(f"{len(results[0].replayed)} recorded edits, replayed")
        axes.grid(which="major", alpha=0.3)
        figure.legend(loc="outside right upper", frameon=False)
        metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {}}[file.suffix.lower()]
        figure.savefig(file, dpi=150, metadata=metadata)


def _draw(axes: Axes, result: DrafterReplay, colour: str, mark: str) -> None:
    edits = sorted((one for one in result.replayed if one.forwards), key=lambda one: one.edited_share)
    if not edits:
        return
    shares = [100 * max(one.edited_share, _SMALLEST_SHARE) for one in edits]
    axes.scatter(shares, [one.tokens / one.forwards for one in edits], s=6, color=colour, alpha=0.2, linewidths=0)
    groups = np.array_split(np.arange(len(edits)), max(1, len(edits) // _EDITS_PER_POINT))
    axes.plot(
        [float(np.median([shares[at] for at in group])) for group in groups],
        [sum(edits[at].tokens for at in group) / sum(edits[at].forwards for at in group) for group in groups],
        color=colour,
        marker=mark,
        markersize=5,
        linewidth=1.3,
        linestyle="--" if result.cost is None else "-",
        label=result.name,
    )
