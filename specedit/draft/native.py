"""Native speed for the drafting kernels: numba where it is installed, plain Python where not.

A kernel is an ordinary function over numpy arrays, so the plain run is also what the compiled one is tested against.
Machine code is kept in numba's own cache, so only the first run on a machine compiles.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

try:
    import numba
except ImportError:  # slower, same results
    numba = None

Kernel = TypeVar("Kernel", bound=Callable[..., object])

COMPILED = numba is not None


def jit(function: Kernel) -> Kernel:
    """`function` compiled at its first call; its plain form stays reachable through `plain`."""
    if numba is None:
        return function
    return cast(Kernel, numba.njit(cache=True, nogil=True, boundscheck=False)(function))


def plain(kernel: Kernel) -> Kernel:
    """The Python function that a kernel was compiled from."""
    return cast(Kernel, getattr(kernel, "py_func", kernel))
