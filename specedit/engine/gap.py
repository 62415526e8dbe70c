"""How a gap to fill is laid out for a model, in text: the same for a tokenizer here and for a prompt that is sent."""

from __future__ import annotations

from specedit.engine.api import ContextFile, Fim


def opened_files(fim: Fim) -> tuple[str, ...]:
    """The other files, each opened by its name on a line, then the name of the file with the gap, if it is known.

    Without other files there is nothing: what stands around the gap tells enough.
    """
    if not fim.files:
        return ()
    others = tuple(f"{file.name}\n{closed(file)}" for file in fim.files)
    return (*others, f"{fim.name}\n") if fim.name else others


def closed(file: ContextFile) -> str:
    """A file's text with a line end behind its last line."""
    return file.text if file.text.endswith("\n") else f"{file.text}\n"
