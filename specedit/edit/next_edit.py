"""The next edit: after the user's own edits, the same change at the next places.

`repeats` asks no model: it proposes what at least two of the edits agree on, and the uses of a name that was changed
at its declaration. `ask` has a model rewrite the place that is most like the one that was changed last.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from specedit.edit.agreed import Declined, agreed
from specedit.edit.document import Document, Span, split_lines
from specedit.edit.example import Example, Fragment, contents, examples_for, prose_lines, word_around
from specedit.edit.prompt import code_block_ends, shown_text
from specedit.edit.recent import RecentEdit
from specedit.edit.region import line_range
from specedit.edit.renamed import uses_left
from specedit.edit.session import EditRequest, run_edit
from specedit.edit.stream import Hunk
from specedit.engine.api import CancelToken, Engine, GenerateRequest, Message, TextChunk, Usage

EXAMPLES = 8
MOST = 8
_MAX_EXAMPLE_LINES = 8
_MAX_CHANGED_LINES = 6
_MAX_DISTANCE = 500
_LEAST_ALIKE = 0.5
_SHOWN_EXAMPLES = 3
_MAX_LINE_CHARS = 400

FIRST = "Edit this code:"
THEN = "Edit this code in the same way:"


@dataclass(frozen=True, slots=True)
class NextEdit:
    """A change that the user may want next.

    Attributes:
        span: what is replaced: of one line the tokens that change, else whole lines.
        new_text: by what.
        source: "repeat" where it follows from the user's edits alone, "model" where the model wrote it.
        like: the 1-based line of the edit that it repeats; 0 where that is in another document.
    """

    span: Span
    new_text: str
    source: Literal["repeat", "model"]
    like: int = 0


def repeats(
    document: Document,
    recent: Sequence[RecentEdit],
    cursor: int,
    *,
    finished: bool = False,
    declined: Declined = frozenset(),
) -> list[NextEdit]:
    """The places where `recent` edits are likely to be made again: ahead of the cursor first, then from the top.

    Nothing is proposed while the cursor stands in a word that the last edit wrote, for it may be half typed, unless
    that word stands elsewhere too.

    Args:
        document: the text as it is now.
        recent: the last edits, the newest first; of other documents too.
        cursor: offset in the text.
        finished: take the last edit for finished wherever the cursor stands.
        declined: what the user did not want; what would lead there again is not believed.
    """
    examples = list(examples_for(document, recent[:EXAMPLES], _MAX_EXAMPLE_LINES))
    if not examples or not (finished or is_finished(document, recent[0], cursor)):
        return []
    lines = contents(document.text)
    edited = frozenset(number for example in examples for number in example.lines)
    prose = prose_lines(lines)
    here = document.line_number(cursor) - 1
    found = agreed(examples, lines, [at for at in _near(here, lines) if at not in edited], prose, declined)
    for example in examples:
        found = {at: (text, example.number) for at, text in uses_left(example, lines, edited | prose).items()} | found
    order = sorted(found, key=lambda at: (at < here, at))
    wanted = [at for at in order if (lines[at], found[at][0]) not in declined][:MOST]
    return [_next_edit(document, at, lines[at], *found[at]) for at in wanted]


def _near(here: int, lines: Sequence[str]) -> range:
    """The lines that are looked at: in long files those within 500 lines, for the time that it takes."""
    return range(max(0, here - _MAX_DISTANCE), min(len(lines), here + _MAX_DISTANCE))


def is_finished(document: Document, edit: RecentEdit, cursor: int) -> bool:
    """Whether the cursor is not in a word that `edit` wrote and that stands nowhere else."""
    span = word_around(document.text, cursor)
    word = document.text[span.start : span.end]
    if not word or document.line_number(span.start) - 1 not in Example(edit, document).lines:
        return True
    pattern = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")
    return bool(pattern.search(edit.before)) or len(pattern.findall(document.text)) > 1


@dataclass(frozen=True, slots=True)
class Asked:
    """What a model proposed.

    Attributes:
        edits: in the order of the text; none where it would change nothing, or what it wrote is not to be trusted.
        usage: what the answer cost.
        failure: why there is no answer, for the user; empty where there is one, or the model was not needed.
    """

    edits: tuple[NextEdit, ...] = ()
    usage: Usage = field(default_factory=Usage)
    failure: str = ""


def place_to_ask_about(
    document: Document, recent: Sequence[RecentEdit], cursor: int, *, finished: bool = False
) -> tuple[int, int] | None:
    """The first and last line, 1-based, of the place that is most like the one that was changed last.

    Places ahead of the cursor go first. None where nothing is much like it, or where lines only came in or went: that
    is new code mostly, and nothing tells what it would be elsewhere.
    """
    examples = list(examples_for(document, recent[:EXAMPLES], _MAX_EXAMPLE_LINES))
    if not examples or examples[0].edit != recent[0] or not (finished or is_finished(document, recent[0], cursor)):
        return None
    example = examples[0]
    told = next((number for number, line in enumerate(example.old) if line.strip()), None)
    if told is None or not example.edit.after.strip():
        return None
    edited = {number for one in examples for number in one.lines}
    lines, here, wanted = contents(document.text), document.line_number(cursor) - 1, _words(example.old[told])
    best, found = _LEAST_ALIKE, None
    near = _near(here, lines)
    for at in sorted(near, key=lambda at: (at < here, at)):
        first, last = at - told, at - told + len(example.old) - 1
        if first < 0 or last >= len(lines) or lines[at] in example.new:
            continue
        likeness = _likeness(wanted, lines[at])
        if likeness > best and edited.isdisjoint(range(first, last + 1)):
            best, found = likeness, (first + 1, last + 1)
    return found


def ask(
    document: Document,
    recent: Sequence[RecentEdit],
    cursor: int,
    engine: Engine,
    cancel: CancelToken,
    *,
    finished: bool = False,
    declined: Declined = frozenset(),
) -> Asked:
    """Have the model make the last edit's change at the place that is most like it.

    The model is shown the user's edits as if they were its own answers, then that place; nothing else, for small models
    do as they did before far better than as they are told. What it writes is proposed only if it changes few lines,
    puts in or takes out a word that the user's last edit did, and passes the guards.

    Raises:
        UsageError: the engine finds the request itself wrong.
    """
    place = place_to_ask_about(document, recent, cursor, finished=finished)
    if place is None:
        return Asked()
    examples = list(examples_for(document, recent[:_SHOWN_EXAMPLES], _MAX_EXAMPLE_LINES))
    changes = [example for example in reversed(examples) if example.edit.before.strip() and example.edit.after.strip()]
    request = EditRequest(document, line_range(document, *place), THEN, cancel=cancel)
    result = run_edit(request, _WithExamples(engine, document, changes))
    if result.status == "failed":
        return Asked(failure=result.reason)
    if result.status != "changed" or not _is_small(result.hunks) or not _is_same_change(result.hunks, examples[0]):
        return Asked(usage=result.usage)
    edits = [
        _of_hunk(document, hunk, examples[0].number)
        for hunk in result.hunks
        if (hunk.old.rstrip("\r\n"), hunk.new.rstrip("\r\n")) not in declined
    ]
    return Asked(tuple(edits), result.usage)


@dataclass(frozen=True)
class _WithExamples:
    """An engine that is asked about code with examples of how it was edited, the oldest first."""

    engine: Engine
    document: Document
    examples: Sequence[Example]

    def generate(self, request: GenerateRequest) -> Iterator[TextChunk]:
        """Stream the answer of the engine that is asked in the place of this one."""
        messages = []
        for number, example in enumerate(self.examples):
            wish = THEN if number else FIRST
            messages.append(Message("user", f"{wish}\n\n{self._block(example.edit.before)}"))
            messages.append(Message("assistant", self._block(example.edit.after)))
        messages.append(Message("user", f"{THEN}\n\n{self._block(request.prediction)}"))
        return self.engine.generate(replace(request, messages=tuple(messages)))

    def _block(self, code: str) -> str:
        opening, closing = code_block_ends(self.document)
        text = shown_text(code)
        return f"{opening}{text}{'' if text.endswith(chr(10)) else chr(10)}{closing}"


def _is_small(hunks: Sequence[Hunk]) -> bool:
    return sum(max(len(split_lines(hunk.old)), len(split_lines(hunk.new))) for hunk in hunks) <= _MAX_CHANGED_LINES


def _is_same_change(hunks: Sequence[Hunk], example: Example) -> bool:
    """Whether each hunk puts in, or takes out, something that the example did."""
    gone, come = _difference("\n".join(example.old), "\n".join(example.new))
    for hunk in hunks:
        hunk_gone, hunk_come = _difference(hunk.old, hunk.new)
        if not (come & hunk_come or (gone & hunk_gone and not come)):
            return False
    return bool(hunks)


def _difference(old: str, new: str) -> tuple[frozenset[str], frozenset[str]]:
    one, other = frozenset(re.findall(r"\w+|[^\w\s]", old)), frozenset(re.findall(r"\w+|[^\w\s]", new))
    return one - other, other - one


def _of_hunk(document: Document, hunk: Hunk, like: int) -> NextEdit:
    start = (
        document.line_spans[hunk.start_line - 1].start
        if hunk.start_line <= len(document.line_spans)
        else len(document.text)
    )
    if len(split_lines(hunk.old)) == len(split_lines(hunk.new)) == 1:
        change = Fragment.of(hunk.old, hunk.new)
        span = Span(start + change.start, start + change.start + len(change.old))
        return NextEdit(span, change.new, "model", like)
    return NextEdit(Span(start, start + len(hunk.old)), hunk.new, "model", like)


def _words(line: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+|[^\w\s]", line[:_MAX_LINE_CHARS]))


def _likeness(wanted: frozenset[str], line: str) -> float:
    words = _words(line)
    return 2 * len(wanted & words) / (len(wanted) + len(words)) if wanted and words else 0.0


def _next_edit(document: Document, at: int, line: str, text: str, like: int) -> NextEdit:
    change = Fragment.of(line, text)
    start = document.line_spans[at].start + change.start
    return NextEdit(Span(start, start + len(change.old)), change.new, "repeat", like)
