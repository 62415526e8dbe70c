"""What became of the files of a command, and the exit code that says so."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from specedit.cli import stats
from specedit.cli.exits import NOT_ALL_DONE, WOULD_CHANGE
from specedit.edit.document import Document
from specedit.edit.patch import patch_name, unified_patch
from specedit.edit.session import Status
from specedit.edit.stream import Hunk
from specedit.engine.api import Usage

NOT_BEGUN = "interrupted before its turn"


@dataclass(frozen=True)
class Outcome:
    """What became of one file.

    Attributes:
        path: as the user named it.
        status: as in an edit's result.
        reason: why it did not change, and what to do.
        hunks: what changed.
        usage: what the answer cost.
        old: the bytes that were read.
        new: the bytes with the edit made.
    """

    path: Path
    status: Status
    reason: str = ""
    hunks: tuple[Hunk, ...] = ()
    usage: Usage = field(default_factory=Usage)
    old: bytes = b""
    new: bytes = b""

    @property
    def is_done(self) -> bool:
        """Whether there is nothing left to do for this file."""
        return self.status in ("changed", "unchanged")

    @property
    def patch(self) -> bytes:
        """The change as `git apply` takes it; nothing if there is none."""
        return unified_patch(self.old, self.new, patch_name(self.path))

    @property
    def readable_patch(self) -> str:
        r"""The same as text, whatever the file's encoding; `\r` is left out where all lines of the file end with it."""
        old, new = (Document.from_bytes(data, self.path).text for data in (self.old, self.new))
        if "\n" not in (old + new).replace("\r\n", ""):
            old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
        patch = unified_patch(_utf8(old), _utf8(new), patch_name(self.path))
        return patch.decode("utf-8", "surrogateescape")

    def to_json(self) -> str:
        """One JSON object, on one line."""
        return json.dumps(
            {
                "path": str(self.path),
                "status": "failed" if self.status == "cancelled" else self.status,
                "reason": self.reason or None,
                "hunks": [{"start_line": h.start_line, "old": h.old, "new": h.new} for h in self.hunks],
                "stats": stats.as_json(self.usage),
            }
        )


def exit_code(outcomes: Sequence[Outcome], *, check: bool) -> int:
    """The exit code of a command that came to its end."""
    if not all(outcome.is_done for outcome in outcomes):
        return NOT_ALL_DONE
    return WOULD_CHANGE if check and any(outcome.status == "changed" for outcome in outcomes) else 0


def summary_of(outcomes: Sequence[Outcome], *, was_interrupted: bool) -> str:
    """What to say at the end; nothing about a single file that was not interrupted."""
    if was_interrupted:
        done = ", ".join(str(outcome.path) for outcome in outcomes if outcome.is_done) or "no file"
        left = ", ".join(str(outcome.path) for outcome in outcomes if not outcome.is_done) or "no file"
        return f"interrupted. Done: {done}. Not done: {left}."
    counts = Counter(outcome.status for outcome in outcomes)
    return ", ".join(f"{count} {status}" for status, count in counts.items()) if len(outcomes) > 1 else ""


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
