"""Memory of devices and of the machine: how much there is, how it runs out, and how it is given back."""

from __future__ import annotations

import ctypes
import gc
import sys

import torch


def free_memory_bytes(device: torch.device) -> int | None:
    """Memory that is free on a device of its own, or None where it is the machine's."""
    return int(torch.cuda.mem_get_info(device)[0]) if device.type == "cuda" else None


def is_out_of_memory(error: RuntimeError) -> bool:
    """Whether torch failed for want of memory; on the CPU it knows no error of its own for that."""
    return isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error)


def release_memory() -> None:
    """Give memory that torch keeps for itself back to the device, as far as that can be done."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    trim_heap()


def trim_heap() -> None:
    """Give freed memory back to the machine: glibc keeps slabs for itself that are freed in another order than made."""
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)
