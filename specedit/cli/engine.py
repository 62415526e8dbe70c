"""The engine that a command runs with: which model, whether it is there, and whether the user wants it pulled."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from specedit.cli.progress import drawn_progress
from specedit.config import Settings, cache_dir
from specedit.errors import ModelNotFoundError
from specedit.models import fetch, registry
from specedit.models.progress import readable_size
from specedit.models.registry import ResolvedModel

if TYPE_CHECKING:
    from specedit.engine.local import LocalEngine


def find_model(model: str | None, *, settings: Settings, ask: Callable[[str], bool] | None = None) -> ResolvedModel:
    """Find the model on this machine; nothing is loaded yet.

    Args:
        model: name, hub id or path; None takes that of the settings, else the default for this machine.
        settings: may name the model.
        ask: asked whether to pull a model that is not there; None never pulls.

    Raises:
        ModelError: there is no such model, it has not been pulled, or torch is missing.
    """
    fetch.require_local()
    name = model or settings.model or registry.default_model(_cuda_memory_bytes())
    try:
        with drawn_progress() as progress:
            return fetch.resolve_or_convert(name, _convert_gguf, progress)
    except ModelNotFoundError:
        entry = registry.lookup(name)
        size = f" ({readable_size(entry.size_bytes)})" if entry.size_bytes else ""
        if ask is None or not ask(f"The model {name} is not on this machine. Pull it now{size}?"):
            raise
    with drawn_progress() as progress:
        return fetch.pull(entry, _convert_gguf, progress)


def load_engine(
    found: ResolvedModel,
    *,
    settings: Settings,
    draft: bool = True,
    kv_bytes: int | None = None,
    on_share: Callable[[float], None] = lambda _: None,
) -> LocalEngine:
    """Load a model in this process.

    Args:
        found: the model.
        settings: device, dtype, draft budget and drafters come from here.
        draft: False decodes one token a step.
        kv_bytes: what keys and values of recent and of paused answers may take; None chooses.
        on_share: told how much of the loading is done, 0 to 1.

    Raises:
        ModelError: it can't be loaded, or can't be driven exactly.
    """
    from specedit.engine.local import LocalEngine

    return LocalEngine.load(
        found.path,
        model_name=found.name,
        device=settings.device,
        dtype=settings.dtype,
        draft_budget=settings.draft_budget if draft else 0,
        drafters=settings.drafters,
        costs_dir=cache_dir() / "costs",
        kv_bytes=kv_bytes,
        fim_markers=found.entry.fim,
        stop_tokens=found.entry.stop_tokens,
        on_share=on_share,
    )


# Importing the engine takes seconds, so it waits until it is needed.


def _cuda_memory_bytes() -> int | None:
    from specedit.engine.target import cuda_memory_bytes

    return cuda_memory_bytes()


def _convert_gguf(gguf_path: Path, out_dir: Path) -> None:
    from specedit.engine.target import convert_gguf

    convert_gguf(gguf_path, out_dir)
