"""A case: a file, an instruction, and a check that says whether the edit was made and nothing was broken."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from specedit.bench.check import Verdict, run_program
from specedit.edit.document import Document
from specedit.edit.region import symbol, whole_file
from specedit.edit.session import EditRequest


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One edit and how to tell that it was made.

    Attributes:
        name: what the edit is called in reports.
        file_name: what the file is called in the prompt.
        before: the file's text.
        instruction: what to do to it.
        symbol: the part to edit; None is the whole file.
        must: patterns that the new text has.
        must_not: patterns that it does not have.
        check: Python code that runs after the new text and fails unless that works as it should.
        after: a right answer, where one is known.
    """

    name: str
    file_name: str
    before: str
    instruction: str
    check: str
    symbol: str | None = None
    must: tuple[str, ...] = ()
    must_not: tuple[str, ...] = ()
    after: str | None = None

    @property
    def lines(self) -> int:
        """How long the file is."""
        return self.before.count("\n")

    def request(self, max_new_tokens: int | None = None) -> EditRequest:
        """The edit as `run_edit` takes it; greedy, with the default guards."""
        document = Document.from_bytes(self.before.encode(), Path(self.file_name))
        region = symbol(document, self.symbol) if self.symbol else whole_file(document)
        return EditRequest(document, region, self.instruction, max_new_tokens=max_new_tokens)

    def can_pass(self) -> bool:
        """Whether the known right answer passes here; it does not where the check needs what is not installed."""
        return self.after is None or self.judge(self.after).passed

    def judge(self, after: str) -> Verdict:
        """Whether `after` is the file with the edit made. Runs `after` in a process of its own."""
        for pattern in self.must:
            if not re.search(pattern, after, re.MULTILINE):
                return Verdict(False, f"nothing matches {pattern}")
        for pattern in self.must_not:
            if re.search(pattern, after, re.MULTILINE):
                return Verdict(False, f"something matches {pattern}")
        return run_program(f"{after}\n\n{self.check}")
