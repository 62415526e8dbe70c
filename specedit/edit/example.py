"""A recent edit as an example to learn from, and where on a line it changed something."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from specedit.edit.document import Document, Span, split_lines
from specedit.edit.lexemes import is_string, tokens_of
from specedit.edit.recent import RecentEdit
from specedit.edit.repeat import Prediction, Repeats

Place = Literal["code", "string", "comment"]

_TOKEN = re.compile(r"\w+|\W")
_BLOCKS = {'"""': '"""', "'''": "'''", "/*": "*/"}
_BLOCK_END = re.compile(r'"""|\'\'\'|/\*|\*/')
_COMMENT = ("#", "//", "/*")
_COMMENT_LINE = (*_COMMENT, "*", "--")


class Fragment(NamedTuple):
    """The tokens of a line that change: the offset where they start, what they are, what they become."""

    start: int
    old: str
    new: str

    @classmethod
    def of(cls, line: str, text: str) -> Fragment:
        """What parts a line from what it becomes, as whole names and single characters."""
        one, other = _TOKEN.findall(line), _TOKEN.findall(text)
        head = common(one, other)
        tail = common(one[head:][::-1], other[head:][::-1])
        old, new = one[head : len(one) - tail], other[head : len(other) - tail]
        return cls(sum(map(len, one[:head])), "".join(old), "".join(new))


@dataclass(frozen=True)
class Example:
    """One edit and the document that it may be applied to.

    Attributes:
        edit: what was done.
        document: the text as it is now; the edit may have been made in another one.
    """

    edit: RecentEdit
    document: Document

    @cached_property
    def lines(self) -> range:
        """Which lines of the document it made, from 0; empty where it is not in this document."""
        after, first = split_lines(self.edit.after), self.edit.line - 1
        there = self.document.line_spans[first : first + len(after)]
        stands = bool(there) and self.document.text[there[0].start : there[-1].end] == self.edit.after
        return range(first, first + len(after)) if stands else range(0)

    @property
    def number(self) -> int:
        """The 1-based line where it stands; 0 where it is not in this document."""
        return self.lines[0] + 1 if self.lines else 0

    @cached_property
    def old(self) -> list[str]:
        """The lines before, without their ends."""
        return contents(self.edit.before)

    @cached_property
    def new(self) -> list[str]:
        """The lines after, without their ends."""
        return contents(self.edit.after)

    @cached_property
    def changed(self) -> tuple[tuple[str, str], ...]:
        """Old and new of each line that changed, where no lines came or went; else nothing."""
        if len(self.old) != len(self.new):
            return ()
        return tuple((old, new) for old, new in zip(self.old, self.new, strict=True) if old != new)

    @cached_property
    def renamed(self) -> tuple[str, str] | None:
        """The old and the new name, where nothing but one name changed."""
        pairs = {pair for old, new in self.changed for pair in _changed_tokens(old, new)}
        return pairs.pop() if len(pairs) == 1 and all(name.isidentifier() for pair in pairs for name in pair) else None

    @cached_property
    def places(self) -> frozenset[Place]:
        """In what kinds of place its lines changed; all of them where lines came or went."""
        if not self.changed:
            return frozenset(("code", "string", "comment"))
        return frozenset(place_of(old, Fragment.of(old, new).start) for old, new in self.changed)

    def predict(self, line: str) -> list[Prediction]:
        """What a line becomes by this edit alone."""
        return self._learnt.predict(line)

    @cached_property
    def _learnt(self) -> Repeats:
        learnt = Repeats()
        before, after = contents(self.edit.context_before), contents(self.edit.context_after)
        learnt.learn(self.old, self.new, before[-1] if before else "", after[0] if after else "")
        return learnt


def examples_for(document: Document, recent: Sequence[RecentEdit], most_lines: int) -> Iterator[Example]:
    """The user's own small edits in files of the document's language, the newest first."""
    for edit in recent:
        longest = max(len(split_lines(edit.before)), len(split_lines(edit.after)))
        same_language = edit.path is None or document.path is None or edit.path.suffix == document.path.suffix
        if edit.source == "user" and same_language and longest <= most_lines:
            yield Example(edit, document)


def word_around(text: str, offset: int) -> Span:
    """The name or number that an offset stands in or beside; may be empty."""
    start = end = offset
    while start and (text[start - 1].isalnum() or text[start - 1] == "_"):
        start -= 1
    while end < len(text) and (text[end].isalnum() or text[end] == "_"):
        end += 1
    return Span(start, end)


def place_of(line: str, offset: int) -> Place:
    """What stands at an offset of a line; a string's quotes count as code."""
    at = 0
    for token in tokens_of(line):
        if opens_comment(line, at):
            return "comment"
        if at <= offset < at + len(token):
            return "string" if is_string(token) and at < offset < at + len(token) - 1 else "code"
        at += len(token)
    return "comment" if opens_comment(line, at) else "code"


def opens_comment(line: str, offset: int) -> bool:
    """Whether a comment begins at an offset, as far as one line tells."""
    return line.startswith(_COMMENT if line[:offset].strip() else _COMMENT_LINE, offset)


def prose_lines(lines: Sequence[str]) -> frozenset[int]:
    """Lines, from 0, that lie in a string or comment of several lines, those that open and close it among them."""
    found = []
    closer = ""
    for at, line in enumerate(lines):
        inside, offset = bool(closer), 0
        while opened := _BLOCK_END.search(line, offset):
            mark, offset = opened[0], opened.end()
            if not closer and mark in _BLOCKS:
                closer = _BLOCKS[mark]
            elif mark == closer:
                closer = ""
        if inside or closer:
            found.append(at)
    return frozenset(found)


def contents(text: str) -> list[str]:
    """The lines of a text without their ends."""
    return [line.rstrip("\r\n") for line in split_lines(text)]


def common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many items both begin with."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _changed_tokens(old: str, new: str) -> set[tuple[str, str]]:
    one, other = _TOKEN.findall(old), _TOKEN.findall(new)
    if len(one) != len(other):
        return {("", "")}
    return {(a, b) for a, b in zip(one, other, strict=True) if a != b}
