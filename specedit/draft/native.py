"""Native speed for the drafting kernels: numba where it is installed, plain Python where not.

A kernel is an ordinary function over numpy arrays, so the plain run is also what the compiled one is tested against.
Machine code is kept in the user's cache, so only the first run on a machine compiles. It is kept under a digest of all
kernels' sources: numba itself looks at one function's file only, and would go on using what other files used to say.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TypeVar, cast

from specedit.config import cache_dir

try:
    import numba
except ImportError:  # slower, same results
    numba = None

Kernel = TypeVar("Kernel", bound=Callable[..., object])

COMPILED = numba is not None


def jit(function: Kernel) -> Kernel:
    """`function`, compiled at its first call."""
    if numba is None or numba.config.DISABLE_JIT:
        return function
    compiled = numba.njit(nogil=True)(function)
    # Where code is kept is a setting of all numba, read when caching is switched on.
    others, numba.config.CACHE_DIR = numba.config.CACHE_DIR, _cache_folder()
    try:
        compiled.enable_caching()
    except RuntimeError:  # nowhere to write: each run compiles
        pass
    finally:
        numba.config.CACHE_DIR = others
    return cast(Kernel, compiled)


def inline(function: Kernel) -> Kernel:
    """Like `jit`, for small functions that other kernels call often: their body takes the place of each call.

    A call hands over all arrays of its arguments, and counting the references to them costs more than such a body.
    """
    if numba is None:
        return function
    return cast(Kernel, numba.njit(nogil=True, inline="always")(function))


@cache
def _cache_folder() -> str:
    digest = hashlib.sha256(numba.__version__.encode() if numba is not None else b"")
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    return str(cache_dir() / "kernels" / digest.hexdigest()[:16])
