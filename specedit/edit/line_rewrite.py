"""Rewrites: how a line may change, each one learnt from an example and applied to lines that resemble it.

A rewrite is a value: two examples that teach the same thing give equal rewrites. It says where it would change a
line and into what; how far it is to be believed is the business of `specedit.edit.repeat`. All patterns are
possessive, so that a hostile line costs no more than a long one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, Protocol

from specedit.edit.names import Spelling, camel, spellings, words_of

HoleKind = Literal["argument", "arguments", "operand", "rest", "string", "name"]


class Edit(NamedTuple):
    """`line[start:end]` becomes `text`. `spelling` tells the occurrences of one renamed thing apart."""

    start: int
    end: int
    text: str
    spelling: Spelling = "exact"


@dataclass(frozen=True, slots=True)
class Hole:
    """A place in a template that stands for any text of its kind.

    Attributes:
        index: equal indices stand for the same text.
        kind: argument (balanced, no comma of its own), arguments (with commas, or nothing), operand (a name with its
            calls and subscripts), rest (up to what ends the line), string (within quotes) or name.
    """

    index: int
    kind: HoleKind


Parts = tuple["str | Hole", ...]


class LineRewrite(Protocol):
    """What changes a line within.

    Attributes:
        key: stands in lower case in each line that the rewrite applies to.
        replaced: the old text; rewrites with the same one contradict each other.
    """

    @property
    def key(self) -> str: ...  # noqa: D102

    @property
    def replaced(self) -> str: ...  # noqa: D102

    def edits(self, line: str) -> list[Edit]:
        """Where `line` changes, in order, without overlap; empty where the rewrite does not apply."""
        ...


@dataclass(frozen=True)
class Rename:
    """One name becomes another, in each spelling and within longer names."""

    old: str
    new: str

    @property
    def replaced(self) -> str:
        """The old name."""
        return self.old

    @cached_property
    def key(self) -> str:
        """The longest word of the old name."""
        return max(words_of(self.old), key=len, default=self.old.lower())

    @cached_property
    def _meanings(self) -> dict[str, tuple[str, Spelling]]:
        return spellings(self.old, self.new)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile("|".join(map(re.escape, sorted(self._meanings, key=len, reverse=True))))

    def edits(self, line: str) -> list[Edit]:
        """Every occurrence at the boundaries of a name, or of a word within a name."""
        found = (self._edit(line, match) for match in self._pattern.finditer(line))
        return [edit for edit in found if edit]

    def _edit(self, line: str, match: re.Match[str]) -> Edit | None:
        start, end = match.span()
        old = match.group()
        new, spelling = self._meanings[old]
        if _stands(line, start, old, new):
            return None
        left, right = line[start - 1 : start], line[end : end + 1]
        if not (_is_word(left) or _is_word(right)):
            return Edit(start, end, new, spelling)
        if len(self._meanings) == 1 or spelling == "prose":
            return None
        if not _begins_word(left, old) or not _ends_word(line, old, end):
            return None
        if right.isupper() and old[0].islower():
            new = camel(words_of(self.new))
        return Edit(start, end, new, "compound")


@dataclass(frozen=True)
class Literally:
    """A run of text becomes another, wherever it stands at the boundaries of a name.

    Attributes:
        at_start: only as the first thing on a line.
        at_end: only as the last thing on a line.
    """

    old: str
    new: str
    at_start: bool = False
    at_end: bool = False

    @property
    def replaced(self) -> str:
        """The old text."""
        return self.old

    @cached_property
    def key(self) -> str:
        """The old text."""
        return self.old.lower()

    def edits(self, line: str) -> list[Edit]:
        """Every occurrence."""
        old, new = self.old, self.new
        first, last = len(line) - len(line.lstrip()), len(line.rstrip())
        found = []
        start = line.find(old)
        while start >= 0:
            end = start + len(old)
            placed = (not self.at_start or start == first) and (not self.at_end or end == last)
            if placed and _bounded(line, start, end) and not _stands(line, start, old, new):
                found.append(Edit(start, end, new))
            start = line.find(old, end)
        return found


@dataclass(frozen=True)
class Tail:
    """The punctuation at the end of a line changes, as when semicolons are dropped or commas added.

    Attributes:
        after: what `tail_kind` says of the text before it; empty for any text.
    """

    old: str
    new: str
    after: str

    @property
    def replaced(self) -> str:
        """The old punctuation with what it follows."""
        return f"{self.after}{self.old}$"

    @property
    def key(self) -> str:
        """The old punctuation."""
        return self.old

    def edits(self, line: str) -> list[Edit]:
        """One at the end of the line, if it ends so and is no comment."""
        text = line.rstrip()
        kept = text.removesuffix(self.old)
        if text.lstrip().startswith(("#", "//", "*", "/*")) or not text.endswith(self.old) or not kept:
            return []
        fits = not self.after or tail_kind(kept) == self.after
        return [Edit(len(kept), len(text), self.new)] if fits else []


@dataclass(frozen=True)
class Requote:
    """String literals change their quotes where they hold neither kind."""

    old: str
    new: str

    @property
    def replaced(self) -> str:
        """The old quote."""
        return self.old

    @property
    def key(self) -> str:
        """The old quote."""
        return self.old

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        quote = re.escape(self.old)
        return re.compile(rf"(?<!\w)([rbfuRBFU]{{0,2}}){quote}([^'\"`\\\n]*+){quote}(?!\w)")

    def edits(self, line: str) -> list[Edit]:
        """Both quotes of each literal."""
        return [
            edit
            for match in self._pattern.finditer(line)
            for edit in (
                Edit(match.start(2) - 1, match.start(2), self.new),
                Edit(match.end() - 1, match.end(), self.new),
            )
        ]


@dataclass(frozen=True)
class Template:
    """Text with holes becomes text with the same holes: `assertEqual(A, B)` becomes `assert A == B`."""

    old: Parts
    new: Parts

    @cached_property
    def replaced(self) -> str:
        """The old text, its holes unnamed."""
        return "".join(part if isinstance(part, str) else "\0" for part in self.old)

    @cached_property
    def key(self) -> str:
        """The longest word of the old text."""
        return longest_word(self.old)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(pattern_of(self.old))

    def edits(self, line: str) -> list[Edit]:
        """Each match: its text between the holes where they keep their order, else all of it."""
        return [edit for match in self._pattern.finditer(line) for edit in self._matched(line, match)]

    def _matched(self, line: str, match: re.Match[str]) -> list[Edit]:
        filled = match_holes(match)
        if any(
            added in text if kind == "arguments" else text.startswith(added)
            for added in self._added
            for kind, text in ((hole.kind, filled[hole.index]) for hole in self._holes)
        ):
            return []
        start, end = match.span()
        if self._in_order and all(filled.values()):
            cuts = [start, *(at for hole in self._holes for at in match.span(f"h{hole.index}")), end]
            gaps = zip(cuts[::2], cuts[1::2], self._new_gaps, strict=True)
            return [Edit(left, right, text) for left, right, text in gaps if line[left:right] != text]
        new = render(self.new, filled)
        return [] if _stands(line, start, match.group(), new) else [Edit(start, end, new)]

    @cached_property
    def _holes(self) -> list[Hole]:
        return [part for part in self.old if isinstance(part, Hole)]

    @cached_property
    def _in_order(self) -> bool:
        wraps = self.replaced in "".join(part if isinstance(part, str) else "\0" for part in self.new)
        return not wraps and self._holes == [part for part in self.new if isinstance(part, Hole)]

    @cached_property
    def _new_gaps(self) -> list[str]:
        return list(_gaps(self.new))

    @cached_property
    def _added(self) -> list[str]:
        """What comes in beside the holes: not to be added where it stands already."""
        gaps = zip(_gaps(self.old), self._new_gaps, strict=False)
        added = (new.removeprefix(old).removesuffix(old) for old, new in gaps if new != old)
        return [text for gap in added if (text := gap.strip(" ,()[]{}"))] if self._in_order else []


@dataclass(frozen=True)
class Block:
    """Lines become other lines, or none where they are deleted.

    Both are joined by line feeds, without the indentation of the first old line.
    """

    old: Parts
    new: Parts | None

    @cached_property
    def replaced(self) -> str:
        """The old lines, their holes unnamed."""
        return "".join(part if isinstance(part, str) else "\0" for part in self.old)

    @cached_property
    def key(self) -> str:
        """The longest word of the old lines' first."""
        return longest_word(first_line(self.old))

    @cached_property
    def line_count(self) -> int:
        """How many old lines there are."""
        return 1 + self.replaced.count("\n")

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(pattern_of(self.old))

    def lines(self, old_lines: list[str]) -> list[str] | None:
        """What the first `line_count` of `old_lines` become, or None where the rewrite does not apply."""
        if len(old_lines) < self.line_count:
            return None
        indent, text = dedented(old_lines[: self.line_count])
        match = self._pattern.fullmatch(text)
        if match is None:
            return None
        return [] if self.new is None else indented(render(self.new, match_holes(match)), indent)


@dataclass(frozen=True)
class Insertion:
    """Lines come in after, or before, a line like `anchor`; their indentation is relative to the anchor's."""

    anchor: Parts
    new: Parts
    after: bool

    @cached_property
    def replaced(self) -> str:
        """The anchor, its holes unnamed, and the side."""
        text = "".join(part if isinstance(part, str) else "\0" for part in self.anchor)
        return f"{text}\n" if self.after else f"\n{text}"

    @cached_property
    def key(self) -> str:
        """The longest word of the anchor."""
        return longest_word(self.anchor)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(pattern_of(self.anchor))

    def lines(self, before: str, line: str) -> list[str] | None:
        """What comes in between `before` and `line`, or None where the rewrite does not apply."""
        indent, text = dedented([before if self.after else line])
        match = self._pattern.fullmatch(text)
        if match is None:
            return None
        new = indented(render(self.new, match_holes(match)), indent)
        return None if new[0].strip() == line.strip() or new[-1].strip() == before.strip() else new


def tail_kind(text: str) -> str:
    """What kind of text ends here: `value` after a name, a number, a string or a call, else the last character."""
    return "value" if _is_word(text[-1]) or text[-1] in ")]\"'`" else text[-1]


def match_holes(match: re.Match[str]) -> dict[int, str]:
    """The text of each hole in a match of `pattern_of`."""
    return {int(name[1:]): text or "" for name, text in match.groupdict().items()}


def first_line(parts: Parts) -> Parts:
    """The parts up to the first line end."""
    found: list[str | Hole] = []
    for part in parts:
        if isinstance(part, str) and "\n" in part:
            return (*found, part[: part.index("\n")])
        found.append(part)
    return tuple(found)


def dedented(lines: list[str]) -> tuple[str, str]:
    """The indentation of the first line, and the lines joined by line feeds without it; trailing blanks are dropped."""
    indent = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    return indent, "\n".join(line.removeprefix(indent).rstrip() for line in lines)


def indented(text: str, indent: str) -> list[str]:
    """The lines of `text`, `indent` before each that is not empty."""
    return [line and indent + line for line in text.split("\n")]


def render(parts: Parts, holes: Mapping[int, str]) -> str:
    """The text with its holes filled. Where arguments are none, the comma beside them goes too."""
    pieces = [part if isinstance(part, str) else holes[part.index] for part in parts]
    for at, part in enumerate(parts):
        if isinstance(part, Hole) and not pieces[at]:
            if pieces[at + 1 : at + 2] and pieces[at + 1].startswith(","):
                pieces[at + 1] = pieces[at + 1][1:].lstrip()
            elif at and pieces[at - 1].rstrip().endswith(","):
                pieces[at - 1] = pieces[at - 1].rstrip()[:-1]
    return "".join(pieces)


def joined(parts: Parts) -> Parts:
    """The parts with neighbouring text made one."""
    found: list[str | Hole] = []
    for part in parts:
        if isinstance(part, str) and found and isinstance(found[-1], str):
            found[-1] += part
        elif part != "":
            found.append(part)
    return tuple(found)


def longest_word(parts: Parts) -> str:
    """The longest word of the text between the holes, in lower case; empty where there is none."""
    words = (word for part in parts if isinstance(part, str) for word in re.findall(r"\w+", part))
    return max(words, key=len, default="").lower()


def _gaps(parts: Parts) -> Iterator[str]:
    """The text before, between and after the holes."""
    text = ""
    for part in parts:
        if isinstance(part, str):
            text += part
        else:
            yield text
            text = ""
    yield text


# A text with balanced brackets, to a depth that code on one line has.
def _group(opener: str, closer: str, depth: int) -> str:
    inner = rf"[^\{opener}\{closer}\n]" + (f"|{_group(opener, closer, depth - 1)}" if depth else "")
    return rf"\{opener}(?:{inner})*+\{closer}"


_GROUPS = "|".join(_group(opener, closer, 2) for opener, closer in ("()", "[]", "{}"))
_STRINGS = r"\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+'|`(?:[^`\\\n]|\\.)*+`"
_UNITS: dict[HoleKind, str] = {
    "argument": rf"{_STRINGS}|{_GROUPS}|[^,()\[\]{{}}\n]",
    "arguments": rf"{_STRINGS}|{_GROUPS}|[^()\[\]{{}}\n]",
    "operand": rf"{_STRINGS}|{_GROUPS}|::|->|[\w.?!]",
    "rest": rf"{_STRINGS}|{_GROUPS}|[^()\[\]{{}}\n]",
    "string": r"[^\"'`\\\n]|\\.",
    "name": r"[\w.]",
}
_LINE_TAIL = r"[ \t;,:{]*+(?:\n|\Z)"


def pattern_of(parts: Parts) -> str:
    """A regular expression for the text with holes, which are its groups `h0`, `h1`, ...

    A hole ends before the first place where the text after it stands; nothing is tried again from there.
    """
    pieces = []
    seen: set[int] = set()
    for at, part in enumerate(parts):
        if isinstance(part, str):
            pieces.append(_literal(part))
            continue
        if part.index in seen:
            pieces.append(f"(?P=h{part.index})")
            continue
        seen.add(part.index)
        following = parts[at + 1] if at + 1 < len(parts) else ""
        stop = _literal(following) if isinstance(following, str) and following else ""
        if part.kind == "rest":
            stop = _LINE_TAIL
        count = "*+" if part.kind in ("arguments", "string") else "++"
        start = r"(?<![\w.)\]])" if at == 0 else ""
        until = f"(?!{stop})" if stop else ""
        pieces.append(f"{start}(?P<h{part.index}>(?:{until}(?:{_UNITS[part.kind]})){count})")
    return "".join(pieces)


def _literal(text: str) -> str:
    before = r"(?<!\w)" if _is_word(text[:1]) else ""
    after = r"(?!\w)" if _is_word(text[-1:]) else ""
    spaced = (
        "[ \\t]++" if piece.isspace() and "\n" not in piece else re.escape(piece)
        for piece in re.split(r"((?<=\S)[ \t]+(?=\S))", text)
        if piece
    )
    return before + "".join(spaced) + after


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def _begins_word(left: str, old: str) -> bool:
    """Whether a word within a longer name may begin after `left`."""
    return not left.isalnum() or (old[0].isupper() and not left.isupper() and not (old.isupper() and len(old) > 1))


def _ends_word(line: str, old: str, end: int) -> bool:
    """Whether a word within a longer name may end at `end`; a plural s belongs to the word."""
    right, beyond = line[end : end + 1], line[end + 1 : end + 2]
    if right in ("s", "S") and old[-1] not in "sS" and right.isupper() == old.isupper():
        right = beyond
        return not right.isalnum() or (right.isupper() and not old.isupper())
    return not right.isalpha() or (right.isupper() and old[-1].islower())


def _bounded(line: str, start: int, end: int) -> bool:
    """Whether no name and no number is cut at either end of `line[start:end]`."""
    first, last = line[start], line[end - 1]
    left, right = line[start - 1 : start], line[end : end + 1]
    if (_is_word(first) and _is_word(left)) or (_is_word(last) and _is_word(right)):
        return False
    return not (first.isdigit() and left == ".") and not (
        last.isdigit() and right == "." and line[end + 1 :][:1].isdigit()
    )


def _stands(line: str, start: int, old: str, new: str) -> bool:
    """Whether `new` stands there already, around the `old` that it contains."""
    at = new.find(old)
    return at >= 0 and start >= at and line.startswith(new, start - at)
