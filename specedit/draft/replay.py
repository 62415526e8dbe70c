"""Replay: what the old text ahead may become, by changes made before in this answer and by another indent.

Changes are learned and predicted as text (`edit/repeat.py`), line by line, and the predicted line is tokenized anew,
for token boundaries move when text changes. What differs from the old line's tokens is a *patch*.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from specedit.draft.suffix_index import Tokens
from specedit.draft.vocabulary import FIRST_IN_LINE, Vocabulary
from specedit.edit.repeat import Repeats
from specedit.engine.api import Hints

#: Lines that are looked at ahead of the cursor, and the most tokens of them.
_LINES_AHEAD = 24
_TOKENS_AHEAD = 192
#: A shifted block is cut after so many lines.
_SHIFTED_LINES = 32
_BLOCK_LINES = 8
#: How many sites a rule's confidence counts for, and one where it was not followed.
_CONFIDENCE_COUNT = 2.0
_UNUSED_COUNT = 3.0


class Patch(NamedTuple):
    """What may replace the old tokens `start` to `end`, counted from the prediction's first.

    `site` are the old tokens with the one before them: what was kept or replaced once will be so again.
    """

    start: int
    end: int
    tokens: list[int]
    trust: float
    rule: int
    site: tuple[int, ...]


class Shifted(NamedTuple):
    """The old text from a line on with another indent; `stands_for` [tokens] are the old tokens they came from."""

    tokens: list[int]
    stands_for: list[int]
    end: int


class Replay:
    """Predicts changes of one prediction's lines."""

    def __init__(self, vocabulary: Vocabulary, prediction: Tokens, hints: Hints) -> None:
        """Start with what the hints name."""
        self._vocabulary = vocabulary
        self._tokens = prediction
        ends = np.flatnonzero(vocabulary.kinds[prediction] < FIRST_IN_LINE) + 1
        self._starts: list[int] = [0, *ends[ends < len(prediction)].tolist()]
        self._texts: dict[int, str] = {}
        self._repeats = Repeats()
        self._patches: dict[int, list[Patch]] = {}
        self._sites: dict[tuple[int, ...], tuple[int, int]] = {}
        self.active = False
        for old, new in hints.substitutions:
            self._repeats.hint(old, new)
            self.active = True

    @property
    def line_count(self) -> int:
        """How many lines the prediction has."""
        return len(self._starts)

    @cached_property
    def unit(self) -> str:
        """One step of indentation: what the first indented line has."""
        for line in range(min(len(self._starts), 200)):
            indent = _indent(self.line_text(line))
            if indent and self.line_text(line).strip():
                return "\t" if indent[0] == "\t" else " " * min(len(indent), 8)
        return "    "

    def line_of(self, place: int) -> int:
        """The line that holds the prediction's token `place`."""
        return bisect_right(self._starts, place) - 1

    def line_start(self, line: int) -> int:
        """The first token of a line; of the line after the last, the prediction's end."""
        return self._starts[line] if line < len(self._starts) else len(self._tokens)

    def line_text(self, line: int) -> str:
        """The text of a line's tokens, its line end included."""
        text = self._texts.get(line)
        if text is None:
            span = self._tokens[self.line_start(line) : self.line_start(line + 1)]
            text = self._texts[line] = self._vocabulary.text(span.tolist())
        return text

    def indent(self, line: int) -> str:
        """The white space that a line begins with."""
        return _indent(self.line_text(line))

    def first_token(self, line: int) -> str:
        """The text of a line's first token."""
        return self._vocabulary.text(self._tokens[self.line_start(line) : self.line_start(line) + 1].tolist())

    def learn(self, start: int, end: int, written: Sequence[int]) -> None:
        """Take note that the old tokens `start` to `end` became `written`."""
        first = self.line_of(start)
        last = self.line_of(end) if end > self.line_start(first) else first
        if end > start and end == self.line_start(last):
            last -= 1
        head = self._tokens[self.line_start(first) : start].tolist()
        tail = self._tokens[end : self.line_start(last + 1)].tolist()
        old = [self.line_text(line) for line in range(first, last + 1)]
        new = self._vocabulary.text([*head, *written, *tail])
        old_lines, new_lines = _lines("".join(old)), _lines(new)
        before = _body(self.line_text(first - 1)) if first else ""
        after = _body(self.line_text(last + 1)) if last + 1 < len(self._starts) else ""
        # Whole lines in common are no part of the change.
        while old_lines and new_lines and old_lines[-1] == new_lines[-1]:
            after = old_lines.pop()
            new_lines.pop()
        while old_lines and new_lines and old_lines[0] == new_lines[0]:
            before = old_lines.pop(0)
            new_lines.pop(0)
        if old_lines or new_lines:
            self._repeats.learn(old_lines, new_lines, before, after)
            self._patches.clear()
            self.active = True

    def confirm(self, patch: Patch, used: bool) -> None:
        """Take note that the answer did, or did not, what a patch predicted."""
        self._repeats.confirm(patch.rule, used)
        once, never = self._sites.get(patch.site, (0, 0))
        self._sites[patch.site] = (once + used, never + (not used))
        if not used:
            self._patches.clear()

    def ahead(self, place: int) -> Iterator[tuple[int, list[Patch]]]:
        """The patches of each line from the one that holds `place`, for as far as a draft may reach."""
        if not self.active:
            return
        first = self.line_of(place)
        for line in range(first, min(first + _LINES_AHEAD, len(self._starts))):
            if self.line_start(line) > place + _TOKENS_AHEAD:
                return
            known = self._patches.get(line)
            if known is None:
                known = self._patches[line] = list(self._patches_of(line))
            yield line, known

    def _patches_of(self, line: int) -> Iterator[Patch]:
        text = self.line_text(line)
        body = _body(text)
        taken = set()
        for prediction in self._repeats.predict(body):
            new = prediction.text + text[len(body) :]
            patch = self._patch(line, line + 1, new, prediction.confidence, prediction.rule)
            if patch is not None and patch.start not in taken:
                taken.add(patch.start)
                yield patch
        count = min(_BLOCK_LINES, len(self._starts) - line)
        bodies = [_body(self.line_text(line + offset)) for offset in range(count)]
        before = _body(self.line_text(line - 1)) if line else ""
        for block in self._repeats.predict_block(bodies, before):
            end = line + block.consumed
            text = "".join(f"{one}\n" for one in block.lines)
            patch = self._patch(line, end, text, block.confidence, block.rule) if end <= len(self._starts) else None
            if patch is not None and patch.start not in taken:
                taken.add(patch.start)
                yield patch

    def _patch(self, line: int, end_line: int, text: str, confidence: float, rule: int) -> Patch | None:
        start, end = self.line_start(line), self.line_start(end_line)
        old = self._tokens[start:end].tolist()
        new = self._vocabulary.codec.encode(text)
        shared = min(len(old), len(new))
        head = next((at for at in range(shared) if old[at] != new[at]), shared)
        tail = next((at for at in range(shared - head) if old[-1 - at] != new[-1 - at]), shared - head)
        if head == len(old) == len(new):
            return None
        tokens = new[head : len(new) - tail]
        site = tuple(self._tokens[max(0, start + head - 1) : end - tail].tolist())
        return Patch(start + head, end - tail, tokens, self._trust(site, confidence), rule, site)

    def _trust(self, site: tuple[int, ...], confidence: float) -> float:
        used, unused = self._sites.get(site, (0, 0))
        return (_CONFIDENCE_COUNT * confidence + used) / (_CONFIDENCE_COUNT + used + _UNUSED_COUNT * unused)

    def shifted(self, line: int, indent: str) -> Shifted | None:
        """The lines from `line` on, with its indent replaced by `indent`, until one is indented less."""
        own = _indent(self.line_text(line)) if line < len(self._starts) else indent
        if own == indent:
            return None
        tokens: list[int] = []
        stands_for: list[int] = []
        end = line
        while end < min(line + _SHIFTED_LINES, len(self._starts)):
            text = self.line_text(end)
            if text.strip() and not text.startswith(own):
                break
            new = text if not text.strip() else indent + text[len(own) :]
            start, stop = self.line_start(end), self.line_start(end + 1)
            encoded = self._vocabulary.codec.encode(new)
            longer = len(encoded) - (stop - start)
            tokens += encoded
            stands_for += [start + max(0, at - max(longer, 0)) for at in range(len(encoded))]
            end += 1
        return Shifted(tokens, stands_for, self.line_start(end)) if tokens else None


def _body(text: str) -> str:
    return text.partition("\n")[0]


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    return lines[:-1] if not lines[-1].strip() else lines


def _indent(text: str) -> str:
    body = _body(text)
    return body[: len(body) - len(body.lstrip(" \t"))]
