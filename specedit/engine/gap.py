"""How a gap to fill is laid out for a model, in text: the same for a tokenizer here and for a prompt that is sent."""

from __future__ import annotations

from specedit.engine.api import ContextFile, Fim

#: The last lines before a gap are counted to the answer, as if the model had written them itself: as the cursor moves
#: on, what it has read of the text after the gap still stands. They begin at every so many lines.
_BLOCK_LINES = 8
_MOST_BEGUN_CHARS = 2_000


def opened_files(fim: Fim) -> tuple[str, ...]:
    """The other files, each opened by its name on a line, then the name of the file with the gap, if it is known.

    Without other files there is nothing: what stands around the gap tells enough.
    """
    if not fim.files:
        return ()
    others = tuple(f"{file.name}\n{closed(file)}" for file in fim.files)
    return (*others, f"{fim.name}\n") if fim.name else others


def begun_at(prefix: str) -> int:
    """Where the lines begin that are counted to the answer; the end of the prefix where they would be too long.

    That place moves only every few lines, as long as the prefix begins at the same place.
    """
    lines = prefix.split("\n")
    begun = len("\n".join(lines[(len(lines) - 1) // _BLOCK_LINES * _BLOCK_LINES :]))
    return len(prefix) - (begun if begun <= _MOST_BEGUN_CHARS else 0)


def closed(file: ContextFile) -> str:
    """A file's text with a line end behind its last line."""
    return file.text if file.text.endswith("\n") else f"{file.text}\n"
