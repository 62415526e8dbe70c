"""What one example teaches: the rewrites that turn old lines into the new ones, and how often each is right again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from functools import lru_cache
from typing import NamedTuple

from specedit.edit.change import Change, Run, one_name_each
from specedit.edit.lexemes import (
    BEFORE_BRACKETS,
    DECLARING,
    KEYWORDS,
    OPENERS,
    arguments_of,
    closing,
    common,
    is_operand,
    is_string,
    opening,
    pieces_of,
    tokens_of,
)
from specedit.edit.line_rewrite import (
    Block,
    Hole,
    Insertion,
    LineRewrite,
    Literally,
    Parts,
    Rename,
    Requote,
    Tail,
    Template,
    dedented,
    joined,
    longest_word,
    pattern_of,
    tail_kind,
)
from specedit.edit.names import is_name

MAX_CHARS = 400
_MAX_TOKENS = 120
_MAX_LITERAL = 120

# How often a rewrite learnt from one example is right at its next chance, counted on edits between releases of
# packages and on made sets of renames, parameters and line edits, where it is right far more often; set in between.
_ALIKE, _UNLIKE = 0.56, 0.26
_UNLIKE_TEXT = 0.12
_ANCHORED, _ANCHORED_ON_ONE_SIDE = 0.5, 0.12
_ARGUMENTS, _SHAPED, _ANY_DECLARATION = 0.45, 0.3, 0.12
_REMOVED_TEXT = 0.12
_REMOVED_LINES, _REMOVED_SHAPE = 0.45, 0.15
_BLOCK, _BLOCK_SHAPE = 0.45, 0.3
_INSERTED, _INSERTED_AT_SHAPE = 0.05, 0.12
_TAIL, _QUOTES = 0.45, 0.6


class Lesson(NamedTuple):
    """A rewrite and the chance that it is right where it applies next."""

    rewrite: LineRewrite | Block | Insertion
    chance: float


@lru_cache(maxsize=256)
def line_lessons(old: str, new: str) -> tuple[Lesson, ...]:
    """What a changed line teaches, both without indentation and trailing blanks."""
    if not old or not new or old == new or max(len(old), len(new)) > MAX_CHARS:
        return ()
    if requoted := _requote(old, new):
        return (Lesson(requoted, _QUOTES),)
    if tail := _tail(old, new):
        return (Lesson(tail, _TAIL),)
    change = Change.of(old, new)
    if max(len(change.old), len(change.new)) > _MAX_TOKENS:
        return ()
    runs = change.runs()
    lessons = [lesson for run in runs for lesson in _run_lessons(change, run)]
    if not all(one_name_each(change.texts(run)) for run in runs):
        lessons += _template_lessons(change)
    return tuple({lesson.rewrite: lesson for lesson in lessons}.values())


def block_lessons(old_lines: list[str], new_lines: list[str]) -> list[Lesson]:
    """What the replacement of whole lines by another number of lines teaches; no new lines: their deletion."""
    indent, old = dedented(old_lines)
    if not longest_word((old,)) or len(old) > 2 * MAX_CHARS:
        return []
    if not new_lines:
        lessons = [Lesson(Block((old,), None), _REMOVED_LINES)]
        shape = shape_of(old) if len(old_lines) == 1 else None
        return lessons + ([Lesson(Block(shape, None), _REMOVED_SHAPE)] if shape and shape != (old,) else [])
    new = "\n".join(line.removeprefix(indent).rstrip() for line in new_lines)
    if len(new) > 2 * MAX_CHARS:
        return []
    lessons = [Lesson(Block((old,), (new,)), _BLOCK)]
    change = Change.of(old, new)
    if max(len(change.old), len(change.new)) <= _MAX_TOKENS:
        shaped = change.with_holes(0, len(change.old), 0, len(change.new))
        if shaped and longest_word(shaped[0]):
            lessons.append(Lesson(Block(*shaped), _BLOCK_SHAPE))
    return lessons


def insertion_lessons(before: str, new_lines: list[str], after: str) -> list[Lesson]:
    """What lines that came in between `before` and `after` teach; either may be empty."""
    lessons = []
    for anchor, is_before in ((before, True), (after, False)):
        indent, text = dedented([anchor])
        told = [line for line in new_lines if line.strip()]
        if not longest_word((text,)) or len(text) > MAX_CHARS or not told:
            continue
        if not all(line.startswith(indent) for line in told):
            continue
        new = "\n".join(line.removeprefix(indent).rstrip() for line in new_lines)
        if len(new) > 2 * MAX_CHARS:
            continue
        lessons.append(Lesson(Insertion((text,), (new,), is_before), _INSERTED))
        if shape := shape_of(text):
            holes = {name: part for part, name in zip(shape, _names_of(text, shape), strict=True) if name}
            parts: Parts = tuple(holes.get(piece, piece) for piece in pieces_of(new))
            lessons.append(Lesson(Insertion(shape, joined(parts), is_before), _INSERTED_AT_SHAPE))
    return lessons


def shape_of(line: str) -> Parts | None:
    """What lines of the same make have in common: keywords, punctuation and who is called; names are holes.

    None where nothing but holes and punctuation would be left.
    """
    tokens = tokens_of(line)
    parts: list[str | Hole] = []
    at = 0
    while at < len(tokens):
        token, following = tokens[at], tokens[at + 1 : at + 2]
        if token in OPENERS and (end := closing(tokens, at)) and end > at + 1:
            parts += [token, Hole(len(parts), "arguments")]
            at = end
            continue
        called = following == ["("] or following == ["!"]
        literal = token in KEYWORDS or (called and tokens[0] not in DECLARING) or not is_operand(token)
        parts.append(token if literal else Hole(len(parts), "argument" if is_string(token) else "name"))
        at += 1
    shape = joined(tuple(parts))
    return shape if longest_word(shape) and any(isinstance(part, Hole) for part in shape) else None


def _names_of(line: str, shape: Parts) -> list[str]:
    """Which name of `line` fills each hole of its shape; empty for text, and for holes that are no name."""
    match = re.fullmatch(pattern_of(shape), line)
    if match is None:
        return [""] * len(shape)
    texts = [match[f"h{part.index}"] if isinstance(part, Hole) else "" for part in shape]
    return [text if text.isidentifier() else "" for text in texts]


def _requote(old: str, new: str) -> Requote | None:
    for one, other in (("'", '"'), ('"', "'")):
        if one in old and old != new and old.replace(one, other) == new.replace(one, other):
            rewrite = Requote(one, other)
            if rewrite.edits(old) and new.count(one) < old.count(one):
                return rewrite
    return None


def _tail(old: str, new: str) -> Tail | None:
    at = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    old_tail, new_tail = old[at:], new[at:]
    if at == 0 or any(char not in ";,." for char in old_tail + new_tail):
        return None
    return Tail(old_tail, new_tail, "" if old_tail else tail_kind(old[:at]))


def _run_lessons(change: Change, run: Run) -> Iterator[Lesson]:
    """What one run teaches without its surroundings, or with no more of them than it needs."""
    old, new = change.texts(run)
    if one_name_each((old, new)):
        yield Lesson(Rename(old, new), _likeness(old, new))
        if run.start > 1 and change.old[run.start - 1] in (".", "::") and is_name(change.old[run.start - 2]):
            qualifier = "".join(change.old[run.start - 2 : run.start])
            yield Lesson(Literally(qualifier + old, qualifier + new), _likeness(old, new))
        return
    if change.breaks_brackets(run):
        return
    telling = max(map(len, re.findall(r"[\w.]+", old)), default=0)
    if telling and new.strip() and old.strip() == old and len(old) <= _MAX_LITERAL and (telling > 1 or len(old) > 2):
        yield Lesson(Literally(old, new), _likeness(old, new))
        yield from _dotted_renames(change, run)
    elif telling > 1 and not new.strip() and len(old) <= _MAX_LITERAL:
        yield Lesson(Literally(old, new), _REMOVED_TEXT)
    yield from _anchored(change, run)


def _dotted_renames(change: Change, run: Run) -> Iterator[Lesson]:
    """`a.b` that became `c.d` may rename each part."""
    old, new = change.old[run.start : run.end], change.new[run.new_start : run.new_end]
    if len(old) == len(new) > 1 and all(a == b or (is_name(a) and is_name(b)) for a, b in zip(old, new, strict=True)):
        for one, other in zip(old, new, strict=True):
            if one != other and one_name_each((one, other)):
                yield Lesson(Rename(one, other), _UNLIKE)


def _anchored(change: Change, run: Run) -> Iterator[Lesson]:
    """The run with what stands beside it, up to a name: on both sides, on the right, on the left."""
    old, new = change.texts(run)
    left = _reach(change, run.start - 1, -1)
    right = _reach(change, run.end, 1)
    before, after = "".join(change.old[left : run.start]), "".join(change.old[run.end : right])
    at_start, at_end = run.start == 0, run.end == len(change.old)
    sides = (
        (before, after, at_start, at_end, _ANCHORED),
        ("", after, at_start, False, _ANCHORED_ON_ONE_SIDE),
        (before, "", False, at_end, _ANCHORED_ON_ONE_SIDE),
    )
    for head, tail, starts, ends, chance in sides:
        whole = head + old + tail
        wordy = any(len(token) > 1 and is_name(token) for token in pieces_of(whole))
        if (head or tail) and wordy and len(whole) <= _MAX_LITERAL:
            yield Lesson(Literally(whole, head + new + tail, starts, ends), chance)


def _reach(change: Change, at: int, step: int) -> int:
    """How far from `at` a name stands: the bound of the tokens up to it, or of the one beside `at` if none."""
    first = at
    while 0 <= at < len(change.old) and abs(at - first) < 4:
        if is_name(change.old[at]):
            return at + max(step, 0)
        at += step
    return first + (1 if step < 0 else 0)


def _template_lessons(change: Change) -> Iterator[Lesson]:
    """What the change teaches as text with holes."""
    arguments = list(_argument_lessons(change))
    yield from arguments
    if arguments:
        return
    if (after_call := _after_call(change)) is not None:
        yield from after_call
        return
    region = change.balanced_region()
    shaped = region and change.with_holes(*region)
    if shaped:
        yield Lesson(Template(*shaped), _SHAPED)


def _argument_lessons(change: Change) -> Iterator[Lesson]:
    """Arguments or parameters that came or went within one pair of brackets."""
    found = change.brackets()
    if found is None:
        return
    start, end, new_end = found
    old_list, new_list = arguments_of(change.old[start + 1 : end]), arguments_of(change.new[start + 1 : new_end])
    same_head = common(old_list, new_list)
    same_tail = common(old_list[same_head:][::-1], new_list[same_head:][::-1])
    gone = old_list[same_head : len(old_list) - same_tail]
    come = new_list[same_head : len(new_list) - same_tail]
    if not (gone or come) or (gone and come) or any("\n" in argument for argument in old_list + new_list):
        return
    inner = _with_list(same_head, same_tail, gone, come)
    if inner is None:
        return
    opener, closer = change.old[start], change.old[end]
    for callee, chance in _callees(change, start):
        old = joined((*callee, opener, *inner[0], closer))
        new = joined((*callee, opener, *inner[1], closer))
        if longest_word(old) and old != new:
            yield Lesson(Template(old, new), chance)


def _callees(change: Change, opener: int) -> Iterator[tuple[Parts, float]]:
    """What stands before an opening bracket, told exactly, and for a declaration with any name."""
    name = change.old[opener - 1] if opener else ""
    if not is_name(name) or name in BEFORE_BRACKETS:
        return
    declares = change.old[opener - 3] if opener >= 3 and change.old[opener - 2].isspace() else ""
    if declares in DECLARING:
        yield (f"{declares} {name}",), _ARGUMENTS
        yield (f"{declares} ", Hole(90, "name")), _ANY_DECLARATION
    else:
        dot = change.old[opener - 2] if opener >= 2 and change.old[opener - 2] in (".", "::", "->") else ""
        yield (dot + name,), _ARGUMENTS


def _after_call(change: Change) -> Iterator[Lesson] | None:
    """Text that came in right behind a call or a parameter list."""
    head = common(change.old, change.new)
    tail = common(change.old[head:][::-1], change.new[head:][::-1])
    if head + tail != len(change.old) or not head or change.old[head - 1] != ")":
        return None
    opener = opening(change.old, head - 1)
    if opener is None or not any(True for _ in _callees(change, opener)):
        return None
    come, following = "".join(change.new[head : len(change.new) - tail]), "".join(change.old[head : head + 1])
    empty = opener == head - 2
    return (
        Lesson(
            Template(
                joined((*callee, "(", Hole(0, "arguments"), ")" + following)),
                joined((*callee, "(", Hole(0, "arguments"), ")" + come + following)),
            ),
            chance * (0.8 if empty else 1.0),
        )
        for callee, chance in _callees(change, opener)
    )


def _likeness(old: str, new: str, unlike: float = _UNLIKE) -> float:
    return _ALIKE if SequenceMatcher(None, old, new, autojunk=False).ratio() >= 0.5 else unlike


def _with_list(head: int, tail: int, gone: list[str], come: list[str]) -> tuple[Parts, Parts] | None:
    """The arguments with holes, before and after: any number of them where that tells the place."""
    change = gone or come
    if not tail:
        kept: list[Parts] = [(Hole(0, "arguments"),)] if head else []
        if not head and come:
            kept = [(Hole(0, "arguments"),)]
        if gone and not all(re.match(r"\w+\s*[=:]", argument) for argument in gone):
            kept = [(Hole(at, "argument"),) for at in range(head)]
        changed = [_told(argument, 50 + at) if gone else (argument,) for at, argument in enumerate(change)]
        whole, short = [*kept, *changed], kept
    elif not head:
        whole, short = [*((argument,) for argument in change), (Hole(0, "arguments"),)], [(Hole(0, "arguments"),)]
    else:
        first: list[Parts] = [(Hole(at, "argument"),) for at in range(head)]
        last: list[Parts] = [(Hole(head, "arguments"),)]
        changed = [_told(argument, 50 + at) if gone else (argument,) for at, argument in enumerate(change)]
        whole, short = [*first, *changed, *last], [*first, *last]
    listed = (_listed(whole), _listed(short)) if gone else (_listed(short), _listed(whole))
    return listed if listed[0] != listed[1] else None


def _told(argument: str, hole: int) -> Parts:
    """An argument that goes: its name, if it has one, and any value."""
    named = re.match(r"\w+\s*[=:]\s*", argument)
    return (named.group(), Hole(hole, "argument")) if named else (Hole(hole, "argument"),)


def _listed(arguments: list[Parts]) -> Parts:
    parts: list[str | Hole] = []
    for argument in arguments:
        parts += [", ", *argument] if parts else argument
    return joined(tuple(parts))
