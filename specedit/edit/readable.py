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


def is_readable(path: Path, root: Path | None, settings: Settings) -> bool:
    """Whether what stands under this name may be shown: it is no secret, nor ignored by git, nor a link to such a file.

    `path` is absolute, and need not exist; `root` is the project's, that of the file if not given.
    """
    return _is_readable(path, _rules(root, settings), _stamp(path))


def read_readable(path: Path, root: Path | None, settings: Settings) -> Document | None:
    """The file's text; None where there is none, it can't be decoded, or must not be shown. `path` is absolute."""
    # Most of the names that are asked for don't exist.
    if not os.path.isfile(path):  # noqa: PTH113 (this is asked often)
        return None
    return _read(path, _rules(root if root and path.is_relative_to(root) else None, settings), _stamp(path))


def _rules(root: Path | None, settings: Settings) -> _Rules:
    return root, settings.allow_ignored, settings.secret_patterns, settings.max_file_bytes


@lru_cache(maxsize=512)
def _is_readable(path: Path, rules: _Rules, _at: _Stamp) -> bool:
    root, allow_ignored, secret_patterns, _ = rules
    for name in dict.fromkeys((path, Path(os.path.realpath(path)))):
        if secret_rule(name, root or project_root(name), secret_patterns):
            return False
        if not allow_ignored and ignored_by(name, project_root(name)):
            return False
    return True


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
