r"""From the text of an answer to the new text of a region, and from two texts to hunks.

The model is shown `\n` as the only line end and answers in kind, so an answer is compared with the region line by
line, without line ends; a line that did not change keeps its own bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from specedit.edit.document import split_lines
from specedit.edit.fence import Fence, find_fences, pair
from specedit.edit.guard import Refusal
from specedit.edit.syntax import parses

_ASK_AGAIN = "ask again, or with another --seed or --model"
_NO_CODE = Refusal("the answer is not a code block", _ASK_AGAIN)
_UNCLEAR = Refusal("it can't be told where the code in the answer begins and ends", _ASK_AGAIN)
_ABOUT_FINAL_NEWLINE = re.compile(
    r"(?=.*\bnew ?lines?\b)(?=.*\b(?:final|trailing|missing|last|ends?|eof)\b)", re.IGNORECASE | re.DOTALL
)
_ABOUT_BLANK_LINES = re.compile(r"\b(?:blank|empty) lines?\b|\btrailing\b|\bwhitespace\b", re.IGNORECASE)
_ABOUT_INDENTATION = re.compile(r"(?:in|de|out)dent", re.IGNORECASE)
_CHATTER = re.compile(
    r"(?:sure|certainly|of course|okay|ok|here(?:'s| is| are)|below|i(?:'ve| have| hope)"
    r"|this (?:code|version|file|will)|the (?:\w+ )?(?:code|file|function|version)|let me know|note that"
    r"|explanation)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Hunk:
    """One contiguous replacement of whole lines, with their true line ends.

    Attributes:
        start_line: the 1-based line of the old text that `old` begins with, or before which `new` is inserted.
        old: what stands there.
        new: what will.
    """

    start_line: int
    old: str
    new: str


def to_lf(text: str) -> str:
    r"""`text` as the model is shown it: each `\r\n` and `\r` is `\n`."""
    return re.sub(r"\r\n?", "\n", text)


def answer_body(answer: str, *, region_text: str, language: str | None = None) -> str | Refusal:
    r"""The new text of the region that `answer` gives, line ends `\n`; or why it can't be told.

    The rule, in this order:

    1. Thinking, `<think>` to `</think>`, is dropped; thinking without an end is refused.
    2. An answer without fences is the new text if it is provably not talk: it shares most of its lines with the
       region, or shares some and parses.
    3. If the fences of the answer are exactly those of the region, there is no outer block: the answer is the text,
       if its first and last line are fences where the region's are, and it shares most of its lines with the region.
    4. Else the first fence must open and the last one close one outer block, and the lines between are the text, if
       the outer fence is provably not the file's:
       its closer can't be one of the lines between, nor any fence of the region one like it (so a longer fence
       always proves it); or the fences between are exactly those of the region; or, with nothing around the block,
       the fences between pair up as those of the region do, and each opener among them says what it opens.
       Text around the block is dropped, but no line of the region may be in it.
    5. Else the answer is the text if its fences pair up as the region's do, and what 3 asks for holds.
    6. Where both 4's last case and 5 fit, or nothing does, the end of the code can't be told: refused.
    """
    text = _without_thinking(to_lf(answer), region_text)
    if isinstance(text, Refusal):
        return text
    lines, before = _contents(text), _contents(region_text)
    fences, own = find_fences(lines), find_fences(before)
    if not fences:
        return text if _is_code(lines, before, language) else _NO_CODE
    bare = _is_bare(lines, fences, before, own)
    if own and _marks(fences) == _marks(own):
        return text if bare else _UNCLEAR
    if block := _outer_block(lines, fences, before):
        inner = fences[1:-1]
        if _is_own_wrapper(fences[0], inner, own) or (own and _marks(inner) == _marks(own)):
            return _joined(block.inside)
        if block.is_all and _nests(inner, own) and not bare:
            return _joined(block.inside)
    elif bare:
        return text
    return _several_or_unclosed(fences)


def region_after(body: str, before: str, *, line_ending: str, instruction: str = "") -> str:
    """The new text of a region, of the true text `before`, for which the model wrote `body`.

    * An answer indented less or more than the region as a whole is shifted back (unless indentation is the wish).
    * Blank lines at both edges, and whether the last line has an end, stay as they are (unless they are the wish).
    * A line that did not change keeps its bytes; a changed line keeps the end of the line in whose place it stands;
      a further line takes `line_ending`.
    """
    old = _contents(before)
    new = _contents(body)
    if not _ABOUT_INDENTATION.search(instruction):
        new = _shifted(new, old)
    if not (_ABOUT_BLANK_LINES.search(instruction) or _ABOUT_FINAL_NEWLINE.search(instruction)):
        new = _edged(new, old)
    ends_with_newline = (
        not before.strip() or before.endswith(("\n", "\r")) or bool(_ABOUT_FINAL_NEWLINE.search(instruction))
    )
    return "".join(_with_line_ends(new, split_lines(before), line_ending, ends_with_newline))


def hunks(old_lines: Sequence[str], new_lines: Sequence[str], *, first_line: int = 1) -> tuple[Hunk, ...]:
    """The replacements that make `new_lines` of `old_lines`, in order; lines carry their ends.

    `first_line` is the number of the first of `old_lines` in its file.
    """
    return tuple(
        Hunk(first_line + i1, "".join(old_lines[i1:i2]), "".join(new_lines[j1:j2]))
        for tag, i1, i2, j1, j2 in _opcodes(old_lines, new_lines)
        if tag != "equal"
    )


# --- the body of an answer


@dataclass(frozen=True, slots=True)
class _Block:
    inside: list[str]
    is_all: bool


def _without_thinking(answer: str, region_text: str) -> str | Refusal:
    start, end = "<think>", "</think>"
    head, found, rest = answer.partition(end)
    if answer.lstrip().startswith(start):
        unfinished = Refusal("the answer ends in the middle of the model's thinking", "raise --max-new-tokens")
        return rest if found else unfinished
    # Some templates open the thinking in the prompt; then the answer has only its end.
    opened_in_prompt = found and end not in region_text and not find_fences(head.split("\n"))
    return rest if opened_in_prompt else answer


def _outer_block(lines: list[str], fences: list[Fence], before: list[str]) -> _Block | None:
    """The lines from the first fence to the last, if those can be a pair and no line of the region lies outside."""
    first, last = fences[0], fences[-1]
    if first is last or not last.closes(first):
        return None
    around = _stripped(lines[: first.index] + lines[last.index + 1 :])
    if around & _stripped(before):
        return None
    return _Block(lines[first.index + 1 : last.index], is_all=not around)


def _is_own_wrapper(opener: Fence, inner: list[Fence], own: list[Fence]) -> bool:
    return not any(fence.char == opener.char and fence.length >= opener.length for fence in own) and not any(
        fence.closes(opener) for fence in inner
    )


def _nests(inner: list[Fence], own: list[Fence]) -> bool:
    openers, closed = pair(inner)
    return bool(own) and closed and pair(own)[1] and all(opener.info for opener in openers)


def _is_bare(lines: list[str], fences: list[Fence], before: list[str], own: list[Fence]) -> bool:
    if not own or pair(fences)[1] != pair(own)[1] or not _shares_most(lines, before):
        return False
    return _fenced_edges(lines, fences) == _fenced_edges(before, own)


def _fenced_edges(lines: list[str], fences: list[Fence]) -> tuple[bool, bool]:
    indexes = [index for index, line in enumerate(lines) if line.strip()]
    return indexes[0] == fences[0].index, indexes[-1] == fences[-1].index


def _marks(fences: Iterable[Fence]) -> list[tuple[str, int, str]]:
    return [fence.mark for fence in fences]


def _is_code(lines: list[str], before: list[str], language: str | None) -> bool:
    if _shares_most(lines, before):
        return True
    shares_some = bool(_stripped(lines) & _stripped(before)) or not _stripped(before)
    return shares_some and not _chats(lines, before) and parses("\n".join(lines), language) is True


def _shares_most(lines: list[str], before: list[str]) -> bool:
    known = _stripped(before)
    written = [line.strip() for line in lines if line.strip()]
    return 2 * sum(line in known for line in written) >= max(1, len(written)) and not _chats(lines, before)


def _chats(lines: list[str], before: list[str]) -> bool:
    """Whether the first or the last line is the model talking, not a line of the region."""
    written = [line.strip() for line in lines if line.strip()]
    return any(_CHATTER.match(line) and line not in _stripped(before) for line in written[:1] + written[-1:])


def _several_or_unclosed(fences: list[Fence]) -> Refusal:
    openers, closed = pair(fences)
    if not closed and len(openers) == 1:
        return Refusal("the answer's code block is not closed", _ASK_AGAIN)
    if closed and len(openers) > 1:
        return Refusal(f"the answer has {len(openers)} code blocks, not one", _ASK_AGAIN)
    return _UNCLEAR


# --- the body, fitted to the region


def _shifted(new: list[str], old: list[str]) -> list[str]:
    """`new` moved as a whole to the indentation of `old`, if that is what parts the lines they share."""
    was, is_now = _first_indent(old), _first_indent(new)
    if was == is_now:
        return new
    shared = {
        j: old[i]
        for tag, i1, i2, j1, j2 in _opcodes([line.strip() for line in old], [line.strip() for line in new])
        for i, j in zip(range(i1, i2), range(j1, j2), strict=False)
        if tag == "equal" and old[i].strip()
    }
    if was.startswith(is_now):
        return _indented(new, shared, by=was[len(is_now) :])
    if is_now.startswith(was):
        return _dedented(new, shared, by=is_now[len(was) :])
    return new


def _indented(new: list[str], shared: dict[int, str], *, by: str) -> list[str]:
    # A line of the region with less indentation than that stands in a string: it was never indented.
    fixed = {j: line for j, line in shared.items() if len(_indent(line)) < len(by)}
    moved = [len(_indent(shared[j])) - len(_indent(new[j])) for j in shared.keys() - fixed.keys()]
    if min(moved, default=0 if _first_indent(new) else len(by)) < len(by):
        return new
    return [fixed.get(j, by + line if line.strip() else line) for j, line in enumerate(new)]


def _dedented(new: list[str], shared: dict[int, str], *, by: str) -> list[str]:
    moved = [len(_indent(new[j])) - len(_indent(line)) for j, line in shared.items()]
    all_have_it = all(line.startswith(by) for line in new if line.strip())
    return [line.removeprefix(by) for line in new] if all_have_it and min(moved, default=0) >= len(by) else new


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def _first_indent(lines: list[str]) -> str:
    return next((_indent(line) for line in lines if line.strip()), "")


def _edged(new: list[str], old: list[str]) -> list[str]:
    """`new` between the blank lines that `old` begins and ends with."""
    _, inside, _ = _edges(new)
    head, old_inside, tail = _edges(old)
    return [*head, *inside, *tail] if inside and old_inside else inside


def _edges(lines: list[str]) -> tuple[list[str], list[str], list[str]]:
    """Leading blank lines, what is between, trailing blank lines."""
    filled = [index for index, line in enumerate(lines) if line.strip()]
    first, last = (filled[0], filled[-1] + 1) if filled else (len(lines), len(lines))
    return lines[:first], lines[first:last], lines[last:]


def _with_line_ends(new: list[str], old_lines: list[str], line_ending: str, final_newline: bool) -> Iterator[str]:
    old = [line.rstrip("\r\n") for line in old_lines]
    ends = [line[len(text) :] for line, text in zip(old_lines, old, strict=True)]
    for _, i1, i2, j1, j2 in _opcodes(old, new):
        for i, j in enumerate(range(j1, j2), start=i1):
            end = (ends[i] if i < i2 else "") or line_ending
            yield new[j] + (end if final_newline or j < len(new) - 1 else "")


# --- lines


def _contents(text: str) -> list[str]:
    return [line.rstrip("\r\n") for line in split_lines(text)]


def _joined(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _stripped(lines: Iterable[str]) -> set[str]:
    return {line.strip() for line in lines} - {""}


def _opcodes(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, int, int, int, int]]:
    """Difflib's opcodes, after what both begin and end with is set aside."""
    shorter = min(len(old), len(new))
    head = next((k for k in range(shorter) if old[k] != new[k]), shorter)
    tail = next((k for k in range(shorter - head) if old[-1 - k] != new[-1 - k]), shorter - head)
    if head:
        yield "equal", 0, head, 0, head
    old_middle, new_middle = old[head : len(old) - tail], new[head : len(new) - tail]
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, old_middle, new_middle, autojunk=False).get_opcodes():
        yield tag, head + i1, head + i2, head + j1, head + j2
    if tail:
        yield "equal", len(old) - tail, len(old), len(new) - tail, len(new)
