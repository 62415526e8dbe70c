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
_FUNCTION = re.compile(r"(?:^|\s)(?:def|fn|func|function)\b[^(]*\((?:[^()]*\)\s*\w+\()?(?P<parameters>.*)$")
_LOCAL = frozenset(("let", "const", "var", "mut", "=", "("))


def uses_left(example: Example, lines: Sequence[str], without: frozenset[int]) -> dict[int, str]:
    """Line, from 0 -> what it becomes, for each use of a name whose declaration this edit changed.

    Lines of `without` are not looked at: what was just edited, and prose.
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
        scope = [at for at in _scope(lines, number, word) if at not in without]
        if any(_occurs(lines[at], new) or declared_by(lines[at], old) for at in scope):
            continue
        uses = ((at, with_name(lines[at], old, new, local=word in _LOCAL)) for at in scope if old in lines[at])
        found.update((at, text) for at, text in uses if text != lines[at])
    return found


def declared_by(line: str, name: str) -> str:
    """The word that declares `name` on a line; "=" where it is what is assigned to, "(" where it is a parameter.

    Empty where it is not declared.
    """
    if name not in line:
        return ""
    for match in re.finditer(rf"(?<![\w.]){re.escape(name)}(?!\w)", line):
        before, after = line[: match.start()], line[match.end() :]
        if declaring := _DECLARING.search(before):
            return declaring["word"]
        if not before.strip() and re.match(r"\s*(?::[^=]*)?:?=(?!=)", after):
            return "="
        if (function := _FUNCTION.search(before)) and _is_parameter(function["parameters"], after):
            return "("
    return ""


def with_name(line: str, old: str, new: str, *, local: bool = False) -> str:
    """A line with each use of a name as it is called now; string literals, comments and keyword arguments stay.

    What is `local` is no member of anything, and no key.
    """
    tokens = tokens_of(line)
    pieces = []
    at = 0
    for index, token in enumerate(tokens):
        if opens_comment(line, at):
            break
        uses = token == old and not (line[:at].strip() and tokens[index + 1 : index + 2] == ["="])
        if uses and local:
            uses = not line[:at].endswith((".", "->", "::")) and not _is_key(line[:at], line[at + len(token) :])
        pieces.append(new if uses else token)
        at += len(token)
    return "".join(pieces) + line[at:]


def _is_parameter(before: str, after: str) -> bool:
    nested = any(before.count(opener) > before.count(closer) for opener, closer in ("[]", "{}", "<>", "()"))
    return not nested and before.rstrip(" *&")[-1:] in ("", ",") and bool(re.match(r"\s*[:=,)]|\s+[\w\[*.]", after))


def _is_key(before: str, after: str) -> bool:
    return before.rstrip()[-1:] in ("", "{", ",") and after.startswith(":") and not after.startswith((":=", "::"))


def _scope(lines: Sequence[str], number: int, word: str) -> Iterator[int]:
    """Where a name that is declared on a line is known, as the indentation tells."""
    depth = _indent(lines[number])
    if word == "(":
        yield from _while(lines, range(number + 1, len(lines)), depth + 1, goes_on=")]{")
    elif depth and word in _LOCAL:
        yield from _while(lines, range(number - 1, -1, -1), depth)
        yield from _while(lines, range(number, len(lines)), depth)
    else:
        yield from range(len(lines))


def _while(lines: Sequence[str], steps: range, depth: int, goes_on: str = "") -> Iterator[int]:
    """The steps up to a line with less indentation; one that begins with a character of `goes_on` ends nothing."""
    for at in steps:
        if lines[at].strip() and _indent(lines[at]) < depth and lines[at].lstrip()[0] not in goes_on:
            return
        yield at


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _occurs(line: str, name: str) -> bool:
    return name in line and bool(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", line))
