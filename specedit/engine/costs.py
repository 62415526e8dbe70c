"""What a target forward costs: seconds by its number of rows, measured on this device and corrected as it runs."""

from __future__ import annotations

import hashlib
import itertools
import math
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch

from specedit.draft.tree import DraftTree, FloatArray
from specedit.engine.kv_cache import KVCache

#: Rows of a forward that are timed, the most telling first: where time is short the last ones are left out.
#: One row more than a multiple of 16 is where GPU kernels begin another tile.
_TIMED_ROWS = (1, 32, 4, 8, 2, 128, 16, 64, 129, 65, 33, 17)
_NEEDED_SIZES = 2
_MOST_REPEATS = 5
_CONTEXT_TOKENS = 1024

#: How fast what a step really took moves the common scale, and the shape of the table around its row count.
_SCALE_RATE = 0.2
_SHAPE_RATE = 0.1
#: One step that took far longer says more about the machine's other work than about the model.
_LARGEST_SURPRISE = math.log(3.0)


class CostTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Seconds of a forward at some row counts; between them it is linear, beyond the last it goes on as before it.

    Attributes:
        rows: ascending, the first is 1.
        seconds: [len(rows)] of one forward, never falling.
        machine: what it was measured on, in words that differ where costs may.
    """

    rows: tuple[int, ...]
    seconds: tuple[float, ...]
    machine: str = ""

    @property
    def is_sound(self) -> bool:
        """Whether it is what `measure` can have made, as a file may have been changed."""
        pairs = list(zip(self.rows, self.seconds, strict=False))
        return (
            len(self.rows) == len(self.seconds) >= _NEEDED_SIZES
            and self.rows[0] == 1
            and all(math.isfinite(cost) and cost > 0 for cost in self.seconds)
            and all(low[0] < high[0] and low[1] <= high[1] for low, high in itertools.pairwise(pairs))
        )


class ForwardCosts:
    """A `CostTable` that follows what steps really take.

    A common scale follows fast, as when the machine gets busy; the shape around each row count follows slowly.
    """

    def __init__(self, table: CostTable) -> None:
        self._rows = np.array(table.rows, dtype=np.float64)
        self._log_seconds = np.log(table.seconds)

    def seconds(self, most_rows: int) -> FloatArray:
        """[most_rows] seconds of a forward over 1, 2, ... rows, never falling."""
        rows = np.arange(1, most_rows + 1, dtype=np.float64)
        knots = _rising(np.exp(self._log_seconds))
        within: FloatArray = np.interp(rows, self._rows, knots)
        slope = float((knots[-1] - knots[-2]) / (self._rows[-1] - self._rows[-2]))
        beyond: FloatArray = np.maximum(rows - self._rows[-1], 0)
        return within + slope * beyond

    def observe(self, rows: int, seconds: float) -> None:
        """Take note of a forward over `rows` rows that took `seconds`."""
        surprise = math.log(max(seconds, 1e-9) / float(self.seconds(rows)[-1]))
        surprise = min(max(surprise, -_LARGEST_SURPRISE), _LARGEST_SURPRISE)
        self._log_seconds += _SCALE_RATE * surprise
        above = min(max(int(np.searchsorted(self._rows, rows)), 1), len(self._rows) - 1)
        low, high = self._rows[above - 1], self._rows[above]
        share = min((rows - low) / (high - low), 1.0)
        rest = _SHAPE_RATE * (1 - _SCALE_RATE) * surprise
        self._log_seconds[above - 1] += (1 - share) * rest
        self._log_seconds[above] += share * rest


def measure(
    target: Any,
    *,
    limit_seconds: float = 2.0,
    clock: Callable[[], float] = time.perf_counter,
    machine: str = "",
) -> CostTable:
    """Time forwards of `target` over several numbers of rows, interleaved; the fastest of a few repeats counts.

    Args:
        target: as the loop takes it, with its `device`.
        limit_seconds: about how long it may take; a slow model is timed at fewer row counts, at least at two.
        clock: seconds that pass.
        machine: goes into the table.
    """
    context = min(_CONTEXT_TOKENS, target.context_tokens // 2)
    cache = _filled_cache(target, context)
    fastest: dict[int, float] = {}
    started = clock()
    for _ in range(_MOST_REPEATS):
        for place, rows in enumerate(_TIMED_ROWS):
            needed = place < _NEEDED_SIZES and rows not in fastest
            left = limit_seconds - (clock() - started)
            if context + rows > target.context_tokens or not (needed or _expected(fastest, rows) <= left):
                continue
            fastest[rows] = min(fastest.get(rows, math.inf), _timed(target, cache, rows, clock))
    sizes = sorted(fastest)
    seconds = _rising(np.array([max(fastest[rows], 1e-9) for rows in sizes]))
    return CostTable(tuple(sizes), tuple(seconds.tolist()), machine)


def measured_once(target: Any, model_path: Path, directory: Path) -> CostTable:
    """The costs as they were measured before on this machine, else measured now and kept.

    Args:
        target: loaded from `model_path`.
        model_path: a directory of weights with its config.json.
        directory: where the tables lie; made if it is not there. Where it can't be written nothing is kept.
    """
    machine = _machine(target, model_path)
    file = directory / f"{hashlib.sha256(machine.encode()).hexdigest()[:32]}.json"
    try:
        kept = msgspec.json.decode(file.read_bytes(), type=CostTable)
        if kept.is_sound and kept.machine == machine:
            return kept
    except (OSError, msgspec.DecodeError):
        pass  # What can't be read is measured anew.
    table = measure(target, machine=machine)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=directory, prefix=".costs-", delete=False) as temporary:
            temporary.write(msgspec.json.encode(table))
        Path(temporary.name).replace(file)
    except OSError:
        pass  # It only costs time again.
    return table


def wait_for(device: torch.device) -> None:
    """Return when all that was asked of `device` is done, so that a clock read then tells what it took."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def _machine(target: Any, model_path: Path) -> str:
    config = model_path / "config.json"
    digest = hashlib.sha256(config.read_bytes()).hexdigest()[:16] if config.exists() else "none"
    device = torch.cuda.get_device_name(target.device) if target.device.type == "cuda" else target.device.type
    return " | ".join(
        (
            str(model_path.resolve()),
            f"config {digest}",
            f"{sum(parameter.numel() for parameter in target.model.parameters())} parameters",
            f"{device}, {torch.get_num_threads()} threads",
            str(target.dtype),
            f"torch {torch.__version__}",
        )
    )


class _Stretched(KVCache):
    """Writes the rows of a forward into another cache many times over, as a real prefill would take long."""

    def __init__(self, cache: KVCache, times: int) -> None:
        super().__init__(0)
        self._cache = cache
        self._times = times

    @property
    def length(self) -> int:
        return self._cache.length

    def append(self, layer_index: int, keys: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        many = (rows.repeat(1, 1, self._times, 1) for rows in (keys, values))
        all_keys, all_values = self._cache.append(layer_index, *many)
        return all_keys[:, :, :1], all_values[:, :, :1]


def _filled_cache(target: Any, context: int) -> KVCache:
    """A cache in which `context` rows stand."""
    cache: KVCache = target.new_cache()
    _forward(target, _Stretched(cache, context), 1)
    return cache


def _timed(target: Any, cache: KVCache, rows: int, clock: Callable[[], float]) -> float:
    base = cache.length
    wait_for(target.device)
    started = clock()
    _forward(target, cache, rows)
    seconds = clock() - started
    cache.truncate(base)
    return seconds


def _forward(target: Any, cache: KVCache, rows: int) -> None:
    tree = DraftTree.chain([0] * (rows - 1))
    target.forward(cache, np.zeros(rows, dtype=np.int64), tree.positions(cache.length), tree.mask)
    wait_for(target.device)


def _expected(fastest: dict[int, float], rows: int) -> float:
    """Seconds that a forward over `rows` rows will take, from those that were timed."""
    sizes = sorted(fastest)
    return float(np.interp(rows, sizes, [fastest[size] for size in sizes])) * max(1.0, rows / sizes[-1])


def _rising(seconds: FloatArray) -> FloatArray:
    """Never falling: a clock errs upwards only, so a value above a later one is the wrong one."""
    return np.minimum.accumulate(seconds[::-1])[::-1]
