"""Unified diffs of bytes, as `git apply` takes them: what is shown is what is written."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from pathlib import Path

from specedit.edit.files import project_root

_LINE = re.compile(rb"[^\n]*\n|[^\n]+")
_NEEDS_QUOTES = re.compile(rb'[\x00-\x1f\x7f"\\]')
_ESCAPES = {0x07: b"\\a", 0x08: b"\\b", 0x09: b"\\t", 0x0A: b"\\n", 0x0B: b"\\v", 0x0C: b"\\f", 0x0D: b"\\r"}
_CONTEXT_LINES = 3


def unified_patch(old: bytes, new: bytes, name: str) -> bytes:
    r"""The patch of one file, with its header; nothing if `old` and `new` are equal. `\n` alone ends a line, as in git.

    `name` is the file's path in its repository, with slashes.
    """
    if old == new:
        return b""
    path = os.fsencode(name)
    header = b"diff --git %b %b\n" % (_quoted(b"a/" + path), _quoted(b"b/" + path))
    # Without the tab, a reader would take what follows a blank in the name for a date.
    tab = b"\t" if b" " in path else b""
    files = b"--- %b%b\n+++ %b%b\n" % (_quoted(b"a/" + path), tab, _quoted(b"b/" + path), tab)
    return header + files + b"".join(_hunks(_LINE.findall(old), _LINE.findall(new)))


def patch_name(path: Path) -> str:
    """The name of a file in a patch: its path from the git root, else from the current directory."""
    target = Path(os.path.realpath(path))
    root = project_root(target)
    base = root if os.path.lexists(root / ".git") else Path.cwd()
    return target.relative_to(base).as_posix() if target.is_relative_to(base) else target.name


def _hunks(old: list[bytes], new: list[bytes]) -> Iterator[bytes]:
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for group in matcher.get_grouped_opcodes(_CONTEXT_LINES):
        (_, i1, _, j1, _), (_, _, i2, _, j2) = group[0], group[-1]
        yield b"@@ -%b +%b @@\n" % (_range(i1, i2), _range(j1, j2))
        for tag, a1, a2, b1, b2 in group:
            if tag == "equal":
                yield from map(b" ".__add__, map(_ended, old[a1:a2]))
                continue
            yield from map(b"-".__add__, map(_ended, old[a1:a2]))
            yield from map(b"+".__add__, map(_ended, new[b1:b2]))


def _range(start: int, end: int) -> bytes:
    length = end - start
    if length == 1:
        return b"%d" % (start + 1)
    return b"%d,%d" % (start + 1 if length else start, length)


def _ended(line: bytes) -> bytes:
    return line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n"


def _quoted(path: bytes) -> bytes:
    """A path as git writes it: in C quotes where it holds quotes, backslashes or control characters."""
    if not _NEEDS_QUOTES.search(path):
        return path
    return b'"%b"' % b"".join(map(_escaped, path))


def _escaped(byte: int) -> bytes:
    if byte in _ESCAPES:
        return _ESCAPES[byte]
    if byte in b'"\\':
        return b"\\" + bytes([byte])
    return b"\\%03o" % byte if byte < 0x20 or byte == 0x7F else bytes([byte])
