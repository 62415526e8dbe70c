"""Files that may be shown to a model, remembered until they or the rules for them change.

A completion looks at a dozen files at each pause in typing, and asking the rules anew takes longer than all else.
"""

from __future__ import annotations

import os
import stat
from functools import lru_cache
from pathlib import Path

from specedit.config import Settings
from specedit.edit.access import ignored_by, secret_rule
from specedit.edit.document import Document
from specedit.edit.files import project_root, read_file
from specedit.errors import FileError

_Rules = tuple[Path | None, bool, tuple[str, ...], int]
_Stamp = tuple[object, ...]


def why_unreadable(path: Path, root: Path | None, settings: Settings) -> str:
    """Why what stands under this name must not be shown; nothing where it may be.

    It is a secret, ignored by git, or a link to such a file.

    Args:
        path: absolute; it need not exist.
        root: the project's; that of the file if not given.
        settings: what counts as a secret, and what is allowed.
    """
    return _why_unreadable(path, _rules(root, settings), _stamp(path))


def read_readable(path: Path, root: Path | None, settings: Settings) -> Document | None:
    """The file's text; None where there is none, it can't be decoded, or must not be shown. `path` is absolute."""
    # Most of the names that are asked for don't exist.
    if not os.path.isfile(path):  # noqa: PTH113 (this is asked often)
        return None
    return _read(path, _rules(root if root and path.is_relative_to(root) else None, settings), _stamp(path))


def _rules(root: Path | None, settings: Settings) -> _Rules:
    return root, settings.allow_ignored, settings.secret_patterns, settings.max_file_bytes


@lru_cache(maxsize=512)
def _why_unreadable(path: Path, rules: _Rules, _at: _Stamp) -> str:
    root, allow_ignored, secret_patterns, _ = rules
    for name in dict.fromkeys((path, Path(os.path.realpath(path)))):
        if rule := secret_rule(name, root or project_root(name), secret_patterns):
            return f"by its name ({rule}) it is a secret"
        if not allow_ignored and (source := ignored_by(name, project_root(name))):
            return f"it is ignored by {source}; allow_ignored in your own settings lifts this"
    return ""


@lru_cache(maxsize=64)
def _read(path: Path, rules: _Rules, _at: _Stamp) -> Document | None:
    root, allow_ignored, secret_patterns, max_file_bytes = rules
    try:
        snapshot = read_file(
            path,
            root=root,
            allow_ignored=allow_ignored,
            secret_patterns=secret_patterns,
            max_file_bytes=max_file_bytes,
        )
        return Document.from_bytes(snapshot.data, path)
    except FileError:
        return None


def _stamp(path: Path) -> _Stamp:
    """What changes when the file does, or a file that says what git ignores, or where a project begins."""
    real = os.path.realpath(path)
    stamps: list[object] = [real, _state(real)]
    for name in dict.fromkeys((str(path), real)):
        directory = os.path.dirname(name)  # noqa: PTH120 (paths as objects take ten times as long)
        while True:
            stamps += (_state(f"{directory}/{file}") for file in (".gitignore", ".git", ".git/info/exclude"))
            above = os.path.dirname(directory)  # noqa: PTH120
            if above == directory:
                break
            directory = above
    return tuple(stamps)


def _state(name: str) -> object:
    try:
        status = os.lstat(name)
    except OSError:
        return None
    # The times of a directory change with every file in it.
    if stat.S_ISDIR(status.st_mode):
        return status.st_ino
    return status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size
