"""Which open documents may be shown to a model: the rules of files on disk, for texts that an editor holds."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from specedit.config import Settings
from specedit.edit.access import ignored_by, secret_rule
from specedit.edit.files import project_root


def why_withheld(uri: str, path: Path | None, text: str, settings: Settings) -> str:
    """Why the document must not be shown to a model; nothing where it may be. Looks at the disk.

    Args:
        uri: the editor's name of it.
        path: its file, absolute; None where it has none.
        text: what it holds.
        settings: what counts as a secret, and what is allowed.
    """
    # A link is judged by what it leads to, too.
    for name in dict.fromkeys([path, path.resolve()]) if path else [Path("/", unquote(urlsplit(uri).path))]:
        root = project_root(name) if path else Path("/")
        if rule := secret_rule(name, root, settings.secret_patterns):
            return f"by its name ({rule}) it is a secret"
        if path and not settings.allow_ignored and (source := ignored_by(name, root)):
            return f"it is ignored by {source}; allow_ignored in your own settings lifts this"
    if "\0" in text:
        return "it is binary"
    if _is_larger(text, settings.max_file_bytes):
        return f"it has more than {settings.max_file_bytes:,} bytes; max_file_bytes in your own settings lifts this"
    return ""


def _is_larger(text: str, most_bytes: int) -> bool:
    if len(text) > most_bytes or 4 * len(text) <= most_bytes:
        return len(text) > most_bytes
    return len(text.encode("utf-8", "surrogatepass")) > most_bytes
