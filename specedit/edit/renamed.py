"""A name that was changed where it is declared: the uses that are left with the old one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from specedit.edit.example import Example, opens_comment
from specedit.edit.lexemes import KEYWORDS, tokens_of

_DECLARING = re.compile(
    r"(?:^|[\s(])(?P<word>def|class|fn|func|function|struct|enum|trait|interface|type|let|const|var|mut)\s+"
    r"(?:\([^)]*\)\s*)?$"
)
_LOCAL = frozenset(("let", "const", "var", "mut", "="))


def uses_left(example: Example, lines: Sequence[str], edited: frozenset[int]) -> dict[int, str]:
    """Line, from 0 -> what it becomes, for each use of a name whose declaration this edit changed.

    Empty where the edit changed more than that name, where the old name is declared elsewhere still, or where the new
    one stood in the text before: then it is another thing, not a new name for the same.
    """
    if example.renamed is None or KEYWORDS.intersection(example.renamed):
        return {}
    old, new = example.renamed
    found: dict[int, str] = {}
    for number, line, before in zip(example.lines, example.new, example.old, strict=False):
        word = declared_by(line, new)
        if not word or declared_by(before, old) != word:
            continue
        scope = [at for at in _scope(lines, number, word) if at not in edited]
        if any(_occurs(lines[at], new) or declared_by(lines[at], old) for at in scope):
            continue
        uses = ((at, with_name(lines[at], old, new)) for at in scope if old in lines[at])
        found.update((at, text) for at, text in uses if text != lines[at])
    return found


def declared_by(line: str, name: str) -> str:
    """The word that declares `name` on a line, "=" where it is what is assigned to; empty where it is not declared."""
    if name not in line:
        return ""
    for match in re.finditer(rf"(?<![\w.]){re.escape(name)}(?!\w)", line):
        before, after = line[: match.start()], line[match.end() :]
        if declaring := _DECLARING.search(before):
            return declaring["word"]
        if not before.strip() and re.match(r"\s*(?::[^=]*)?:?=(?!=)", after):
            return "="
    return ""


def with_name(line: str, old: str, new: str) -> str:
    """A line with each use of a name as it is called now; string literals and comments stay."""
    pieces = []
    at = 0
    for token in tokens_of(line):
        if opens_comment(line, at):
            break
        pieces.append(new if token == old else token)
        at += len(token)
    return "".join(pieces) + line[at:]


def _scope(lines: Sequence[str], number: int, word: str) -> Iterator[int]:
    """Where a name that is declared on a line is known: for what is local, lines indented at least as much."""
    depth = _indent(lines[number])
    if not depth or word not in _LOCAL:
        yield from range(len(lines))
        return
    for steps in (range(number - 1, -1, -1), range(number, len(lines))):
        for at in steps:
            if lines[at].strip() and _indent(lines[at]) < depth:
                break
            yield at


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _occurs(line: str, name: str) -> bool:
    return name in line and bool(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", line))
