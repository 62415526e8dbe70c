"""Answers that repeat what stands around the part they were to rewrite: the whole file, or the class of a method.

Applied as they are, they would put that text into the file a second time, often without a syntax error.
"""

from __future__ import annotations

from specedit.edit.document import split_lines
from specedit.edit.guard import Refusal


def without_echo(body: str, head: str, tail: str, region_text: str) -> str | Refusal:
    """`body` without the text around the region that it repeats, or why that text can't be told from the rest.

    `head` and `tail` are the file before and after the region. Dropped are: all of `head` and `tail`, where the body
    begins and ends with all of them; and the lines that open the blocks around the region (`class Basket:`), where
    the body begins with them, together with as many closing lines at its end as they open with a bracket; and the
    lines next to the region, where the body runs on into them: at least two, or all that stand there, or one after the
    line that the region itself ends with. Blank lines don't count.
    """
    rest = _without_surroundings(body, head, tail, region_text)
    return rest if isinstance(rest, Refusal) else _without_neighbours(rest, head, tail, region_text)


def _without_surroundings(body: str, head: str, tail: str, region_text: str) -> str | Refusal:
    lines, region = split_lines(body), _filled(split_lines(region_text))
    before, after = _filled(split_lines(head)), _filled(split_lines(tail))
    filled = [index for index, line in enumerate(lines) if line.strip()]
    texts = [lines[index].rstrip() for index in filled]
    if not texts or not region or texts[0].strip() == region[0].strip():
        return body
    begins, ends = texts[: len(before)] == before, not after or texts[-len(after) :] == after
    if begins and ends and before and len(texts) >= len(before) + len(after):
        return _between(lines, filled, len(before), len(after))
    opened = _repeated_openers(texts, _openers(before, _indent(region[0])))
    bracketed = [line for line in texts[:opened] if line.endswith(("{", "(", "["))]
    closers = texts[len(texts) - len(bracketed) :]
    if opened and all(map(_closes, reversed(closers), bracketed)):
        return _between(lines, filled, opened, len(bracketed))
    if opened or (len(before) > 1 and texts[:2] == before[:2]):
        return Refusal(
            "the answer repeats text that stands outside the part to change",
            "ask again, choose a larger part, or the whole file",
        )
    return body


def _without_neighbours(body: str, head: str, tail: str, region_text: str) -> str:
    lines, region = split_lines(body), _filled(split_lines(region_text))
    before, after = _filled(split_lines(head)), _filled(split_lines(tail))
    filled = [index for index, line in enumerate(lines) if line.strip()]
    texts = [lines[index].rstrip() for index in filled]
    first = _run_on(texts[::-1], before[::-1], region[::-1])
    last = _run_on(texts, after, region)
    return _between(lines, filled, first, last) if first + last < len(texts) else body


def _run_on(texts: list[str], after: list[str], region: list[str]) -> int:
    """How many lines at the end of `texts` are those that `after` begins with, and not the region's own end."""
    for count in range(min(len(texts), len(after)), 0, -1):
        neighbours = after[:count]
        is_past_end = texts[-count - 1 : -count] == region[-1:]
        enough = (count > 1 or count == len(after) or is_past_end) and any(map(str.isalnum, "".join(neighbours)))
        if enough and texts[-count:] == neighbours and region[-count:] != neighbours:
            return count
    return 0


def _filled(lines: list[str]) -> list[str]:
    return [line.rstrip() for line in lines if line.strip()]


def _between(lines: list[str], filled: list[int], first: int, last: int) -> str:
    """The lines without the `first` and the `last` filled ones at their edges."""
    start = filled[first] if first < len(filled) else len(lines)
    end = filled[len(filled) - last] if last else len(lines)
    return "".join(lines[start:end])


def _closes(line: str, opener: str) -> bool:
    return _indent(line) == _indent(opener) and not any(map(str.isalnum, line))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _openers(before: list[str], indent: int) -> list[str]:
    """The lines that open the blocks around a line of this indentation, outermost first, without theirs."""
    found: list[str] = []
    for line in reversed(before):
        if _indent(line) < indent:
            indent = _indent(line)
            found.insert(0, line.strip())
    return found


def _repeated_openers(texts: list[str], openers: list[str]) -> int:
    """How many lines `texts` begins with that are the innermost of `openers`, in order."""
    stripped = [line.strip() for line in texts]
    return next((n for n in range(len(openers), 0, -1) if stripped[:n] == openers[-n:]), 0)
