"""Which open documents may be shown to a model: the rules of files on disk, for texts that an editor holds."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from specedit.config import Settings
from specedit.edit.access import secret_rule
from specedit.edit.readable import why_unreadable


def why_withheld(uri: str, path: Path | None, text: str, settings: Settings) -> str:
    """Why the document must not be shown to a model; nothing where it may be. Looks at the disk.

    Args:
        uri: the editor's name of it.
        path: its file, absolute; None where it has none.
        text: what it holds.
        settings: what counts as a secret, and what is allowed.
    """
    if why := why_unreadable(path, None, settings) if path else why_secret(uri, settings):
        return why
    if "\0" in text:
        return "it is binary"
    if _is_larger(text, settings.max_file_bytes):
        return f"it has more than {settings.max_file_bytes:,} bytes; max_file_bytes in your own settings lifts this"
    return ""


def why_secret(uri: str, settings: Settings) -> str:
    """Why a document that is no file here is a secret by its name; nothing where it is none."""
    name = Path("/", unquote(urlsplit(uri).path))
    rule = secret_rule(name, Path("/"), settings.secret_patterns)
    return f"by its name ({rule}) it is a secret" if rule else ""


def _is_larger(text: str, most_bytes: int) -> bool:
    if len(text) > most_bytes or 4 * len(text) <= most_bytes:
        return len(text) > most_bytes
    return len(text.encode("utf-8", "surrogatepass")) > most_bytes
