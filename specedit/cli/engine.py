"""The engine that a command runs with: which model, whether it is there, and whether the user wants it pulled."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from specedit.config import Settings
from specedit.errors import ModelNotFoundError
from specedit.models import fetch, registry
from specedit.models.progress import readable_size

if TYPE_CHECKING:
    from specedit.engine.local import LocalEngine


def open_engine(
    model: str | None,
    *,
    settings: Settings,
    draft: bool = True,
    ask: Callable[[str], bool] | None = None,
) -> LocalEngine:
    """Load the model in this process.

    Args:
        model: name, hub id or path; None takes that of the settings, else the default for this machine.
        settings: device, dtype and draft budget come from here.
        draft: False decodes one token a step.
        ask: asked whether to pull a model that is not there; None never pulls.

    Raises:
        ModelError: there is no such model, it has not been pulled, it can't be loaded, or torch is missing.
    """
    fetch.require_local()
    from specedit.cli.progress import drawn_progress
    from specedit.engine.local import LocalEngine
    from specedit.engine.target import convert_gguf, cuda_memory_bytes

    name = model or settings.model or registry.default_model(cuda_memory_bytes())
    try:
        with drawn_progress() as progress:
            found = fetch.resolve_or_convert(name, convert_gguf, progress)
    except ModelNotFoundError:
        entry = registry.lookup(name)
        size = f" ({readable_size(entry.size_bytes)})" if entry.size_bytes else ""
        if ask is None or not ask(f"The model {name} is not on this machine. Pull it now{size}?"):
            raise
        with drawn_progress() as progress:
            found = fetch.pull(entry, convert_gguf, progress)
    return LocalEngine.load(
        found.path,
        model_name=found.name,
        device=settings.device,
        dtype=settings.dtype,
        draft_budget=settings.draft_budget if draft else 0,
        fim_markers=found.entry.fim,
        stop_tokens=found.entry.stop_tokens,
    )
