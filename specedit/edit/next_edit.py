"""The next edit: after the user's own edits, the same change at the next places.

`repeats` asks no model. One example teaches too little to be believed anywhere: most places that look alike stay as
they are. So a change is proposed where two of the user's edits, each taught by itself, agree on the very text, and
where neither would have changed a line that the user went past; or where a name was changed at its declaration and its
old name is left without one.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from specedit.edit.document import Document, Span
from specedit.edit.example import Example, Fragment, contents, examples_for, place_of, prose_lines, word_around
from specedit.edit.lexemes import tokens_of, unmatched
from specedit.edit.recent import RecentEdit
from specedit.edit.renamed import uses_left

EXAMPLES = 8
MOST = 8
_MAX_EXAMPLE_LINES = 8
_LEAST_CHANCE = 0.3
_NEAR_LINES = 10
_FAR_LINES = 100

Declined = frozenset[tuple[str, str]]
"""Pairs (old line, new line), without their ends, that the user did not want."""


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
    found = _agreed(examples, lines, edited, prose, declined)
    for example in examples:
        found = {at: (text, example.number) for at, text in uses_left(example, lines, edited | prose).items()} | found
    here = document.line_number(cursor) - 1
    order = sorted(found, key=lambda at: (at < here, at))
    wanted = [at for at in order if (lines[at], found[at][0]) not in declined][:MOST]
    return [_next_edit(document, at, lines[at], *found[at]) for at in wanted]


def is_finished(document: Document, edit: RecentEdit, cursor: int) -> bool:
    """Whether the cursor is not in a word that `edit` wrote and that stands nowhere else."""
    span = word_around(document.text, cursor)
    word = document.text[span.start : span.end]
    if not word or document.line_number(span.start) - 1 not in Example(edit, document).lines:
        return True
    pattern = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")
    return bool(pattern.search(edit.before)) or len(pattern.findall(document.text)) > 1


def _agreed(
    examples: Sequence[Example],
    lines: Sequence[str],
    edited: frozenset[int],
    prose: frozenset[int],
    declined: Declined,
) -> dict[int, tuple[str, int]]:
    """Line, from 0 -> what it becomes by at least two edits, and the number of the newest of these."""
    ballots: dict[str, dict[str, list[int]]] = {}
    for at, line in enumerate(lines):
        if at not in edited and line not in ballots:
            ballots[line] = _ballot(examples, line)
    places = {at: ballots[line] for at, line in enumerate(lines) if at not in edited and ballots[line]}
    passed = _passed(examples, places) | {voter for old, new in declined for voter in ballots.get(old, {}).get(new, ())}
    found = {}
    for at, ballot in places.items():
        text, voters = max(ballot.items(), key=lambda vote: len(vote[1]))
        newest = min(voter for votes in ballot.values() for voter in votes)
        agreeing = [examples[voter] for voter in voters]
        if (
            newest not in voters
            or passed.intersection(voters)
            or len(voters) < _voters_needed(agreeing, at, lines[at], text)
        ):
            continue
        in_prose = [number in prose for example in agreeing for number in example.lines]
        if (not in_prose or (at in prose) in in_prose) and all(
            _alike(example, lines[at], text) for example in agreeing
        ):
            found[at] = (text, examples[newest].number)
    return found


def _voters_needed(agreeing: Sequence[Example], at: int, line: str, text: str) -> float:
    """How many edits have to agree: more of them further away, and where each one changed something else."""
    distance = min((abs(at - number) for example in agreeing for number in example.lines), default=_FAR_LINES + 1)
    change = Fragment.of(line, text)
    same = any(Fragment.of(old, new)[1:] == change[1:] for example in agreeing for old, new in example.changed)
    if not same:
        renames = any(example.renamed for example in agreeing)
        return 4 if distance < _NEAR_LINES and not renames else math.inf
    return 2 if distance < _NEAR_LINES else 3 if distance <= _FAR_LINES else 4


def _ballot(examples: Sequence[Example], line: str) -> dict[str, list[int]]:
    """What a line may become -> the examples that say so, the newest first."""
    votes = defaultdict(list)
    for voter, example in enumerate(examples):
        for prediction in example.predict(line):
            if prediction.confidence >= _LEAST_CHANCE:
                votes[prediction.text].append(voter)
    return votes


def _passed(examples: Sequence[Example], places: dict[int, dict[str, list[int]]]) -> set[int]:
    """The examples that would have changed a line between the user's edits, which was left as it is."""
    own = [example.lines[0] for example in examples if example.lines]
    between = range(min(own, default=0), max(own, default=0))
    return {voter for at in places if at in between for voters in places[at].values() for voter in voters}


def _alike(example: Example, line: str, text: str) -> bool:
    """Whether a line changes in the same kind of place as an example did, and no bracket loses its partner."""
    change = Fragment.of(line, text)
    if re.fullmatch(r"[\d.\s]+", change.old) and re.fullmatch(r"[\d.\s]+", change.new):
        return False
    return place_of(line, change.start) in example.places and unmatched(tokens_of(line)) == unmatched(tokens_of(text))


def _next_edit(document: Document, at: int, line: str, text: str, like: int) -> NextEdit:
    change = Fragment.of(line, text)
    start = document.line_spans[at].start + change.start
    return NextEdit(Span(start, start + len(change.old)), change.new, "repeat", like)
