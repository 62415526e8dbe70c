"""What several edits agree on, each of them taught by itself: the lines that they would all change in the same way.

One example teaches too little to be believed anywhere: most places that look alike stay as they are. Two that agree on
the very text of a line near by are right mostly, further away it takes more; and none is believed that would have
changed a line that the user went past. How many it takes was counted on edits between releases of packages.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from specedit.edit.example import Example, Fragment, place_of
from specedit.edit.lexemes import tokens_of, unmatched

Declined = frozenset[tuple[str, str]]
"""Pairs (old line, new line), without their ends, that the user did not want."""

_LEAST_CHANCE, _LEAST_CHANCE_OF_NAME = 0.3, 0.25
_NEAR_LINES = 10
_FAR_LINES = 100


def agreed(
    examples: Sequence[Example],
    lines: Sequence[str],
    within: Iterable[int],
    prose: frozenset[int],
    declined: Declined,
) -> dict[int, tuple[str, int]]:
    """Line, from 0 -> what it becomes by at least two edits, and the number of the newest of these.

    Args:
        examples: the newest first.
        lines: of the text, without their ends.
        within: the lines that may change; not those that the examples made.
        prose: lines in strings or comments of several lines; they are not taken for code, nor code for them.
        declined: pairs (old line, new line) that the user did not want; who says so is not believed elsewhere.
    """
    if len(examples) < 2:
        return {}
    ballots = _Ballots(examples)
    places = {at: ballot for at in within if (ballot := ballots[lines[at]])}
    passed = _passed(examples, places) | {voter for old, new in declined for voter in ballots[old].get(new, ())}
    found = {}
    for at, ballot in places.items():
        text, voters = max(ballot.items(), key=lambda vote: len(vote[1]))
        newest = min(voter for votes in ballot.values() for voter in votes)
        if newest not in voters or passed.intersection(voters):
            continue
        agreeing = [examples[voter] for voter in voters]
        needed = _voters_needed(agreeing, at, lines[at], text)
        if len(voters) >= needed and all(_alike(example, lines[at], text, at in prose, prose) for example in agreeing):
            found[at] = (text, examples[newest].number)
    return found


class _Ballots(dict[str, dict[str, list[int]]]):
    """For each line that is looked up: what it may become -> the examples that say so, the newest first."""

    def __init__(self, examples: Sequence[Example]) -> None:
        super().__init__()
        self._examples = examples

    def __missing__(self, line: str) -> dict[str, list[int]]:
        votes = defaultdict(list)
        for voter, example in enumerate(self._examples):
            least = _LEAST_CHANCE_OF_NAME if example.renamed else _LEAST_CHANCE
            for prediction in example.predict(line):
                if prediction.confidence >= least:
                    votes[prediction.text].append(voter)
        self[line] = dict(votes)
        return self[line]


def _voters_needed(agreeing: Sequence[Example], at: int, line: str, text: str) -> float:
    """How many edits have to agree: more of them further away, and where each one changed something else."""
    distance = min((abs(at - number) for example in agreeing for number in example.lines), default=_FAR_LINES + 1)
    change = Fragment.of(line, text)
    same = any(Fragment.of(old, new)[1:] == change[1:] for example in agreeing for old, new in example.changed)
    if not same:
        renames = any(example.renamed for example in agreeing)
        return 4 if distance < _NEAR_LINES and not renames else math.inf
    return 2 if distance < _NEAR_LINES else 3 if distance <= _FAR_LINES else 4


def _passed(examples: Sequence[Example], places: dict[int, dict[str, list[int]]]) -> set[int]:
    """The examples that would have changed a line between the user's edits, which was left as it is."""
    own = [example.lines[0] for example in examples if example.lines]
    between = range(min(own, default=0), max(own, default=0))
    return {voter for at in places if at in between for voters in places[at].values() for voter in voters}


def _alike(example: Example, line: str, text: str, is_prose: bool, prose: frozenset[int]) -> bool:
    """Whether a line changes in the same kind of place as an example did, and no bracket loses its partner."""
    change = Fragment.of(line, text)
    if re.fullmatch(r"[\d.\s]+", change.old) and re.fullmatch(r"[\d.\s]+", change.new):
        return False
    if example.lines and is_prose is prose.isdisjoint(example.lines):
        return False
    return place_of(line, change.start) in example.places and unmatched(tokens_of(line)) == unmatched(tokens_of(text))
