"""Where the answer may go on: every place worth copying from, each with the features that its weight comes from.

A belief is a place in a text and a reason to read on there: the cursor, a run of tokens that ends as the answer does
(near the cursor, elsewhere in the prompt, in the output, in a made text), or a hypothesis about a divergence (inserted:
the old text goes on where it was left; replaced: a token, an identifier, a statement or a line further; deleted: at the
next lines). Its weight is exp of the sum of its features' parameters, a conditional logit over all beliefs and "none of
them" (McFadden, 1974), fitted beforehand on releases of packages; see `priors.py`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from specedit.draft.edit_cursor import (
    CURSOR,
    DIVERGED_AT,
    END,
    FOLLOWING,
    LENGTH,
    MADE,
    MADE_LENGTH,
    OUTPUT,
    SINCE,
    START,
    Texts,
    settle,
    token_of,
)
from specedit.draft.native import jit
from specedit.draft.ngrams import Table, belief_in
from specedit.draft.suffix_index import IndexArrays, find_matches, match_length
from specedit.draft.tree import IntArray
from specedit.draft.vocabulary import BLANK, FAMILIES, FIRST_IN_LINE, NUM_KINDS

# Groups of beliefs: what they copy from, and why.
NEAR = 0  # the prediction, by the cursor or a matching run
GUESS = 1  # the prediction, by a hypothesis
WRITTEN = 2  # the output
PROMPT = 3  # the rest of the prompt
MADE_UP = 4  # a made text
NUM_GROUPS = 5

# What the answer is doing.
FOLLOW = 0
LOST = 1
LOST_AT_LINE = 2  # the last token ended a line
LOST_AT_INDENT = 3  # the last token is the white space at a line's start
NUM_STATES = 4

# Hypotheses; resume points of the text come last.
STAY, SKIP_1, SKIP_2, SKIP_3, SKIP_SINCE, LINE_END, OWN_LINE, LINE_1, LINE_2, LINE_3, RESUME_1, RESUME_2 = range(12)
NUM_GUESSES = 12

MAX_BELIEFS = 112
NUM_FEATURES = 6
MATCH_BUCKETS = 9
DISTANCE_BUCKETS = 11
_SINCE_BUCKETS = 6
_EVIDENCE_BUCKETS = 7

# Where each feature's parameters begin.
_NEAR_AT = 0
_SPAN_AT = _NEAR_AT + NUM_STATES * MATCH_BUCKETS * DISTANCE_BUCKETS
GUESS_AT = _SPAN_AT + NUM_STATES * MATCH_BUCKETS * 2
WRITTEN_AT = GUESS_AT + NUM_STATES * NUM_GUESSES * _SINCE_BUCKETS
PROMPT_AT = WRITTEN_AT + NUM_STATES * MATCH_BUCKETS * 2
MADE_AT = PROMPT_AT + NUM_STATES * MATCH_BUCKETS
_KINDS_AT = MADE_AT + NUM_STATES * MATCH_BUCKETS
_EVIDENCE_AT = _KINDS_AT + NUM_GROUPS * NUM_KINDS * NUM_KINDS
_NONE_AT = _EVIDENCE_AT + NUM_GROUPS * NUM_STATES * _EVIDENCE_BUCKETS
_NONE_KIND_AT = _NONE_AT + NUM_STATES * MATCH_BUCKETS * _SINCE_BUCKETS
_KIN_AT = _NONE_KIND_AT + NUM_STATES * NUM_KINDS
_SAME_KIND_AT = _KIN_AT + NUM_STATES * 2 * 9
NUM_PARAMETERS = _SAME_KIND_AT + NUM_STATES * 2 * 2

_WINDOW_BEHIND = 80
_WINDOW_AHEAD = 320
_NEAREST = 10
_LINKS = 6
_SURE_MATCH = 12
_SCAN_MADE = 2000
_KIN_WINDOW = 300
_KIN_NEAR = 40
NOT_KIN = -1


class Beliefs(NamedTuple):
    """Room for the beliefs about one next token.

    Attributes:
        places: [MAX_BELIEFS] settled places, each once.
        groups: [MAX_BELIEFS] what each belief copies from.
        matches: [MAX_BELIEFS] how many tokens before the place match the answer's end.
        features: [MAX_BELIEFS, NUM_FEATURES] parameter numbers, -1 for none.
        none: [2] the parameter numbers of "none of them".
        weights: [MAX_BELIEFS] probabilities.
    """

    places: IntArray
    groups: IntArray
    matches: IntArray
    features: IntArray
    none: IntArray
    weights: npt.NDArray[np.float64]

    @classmethod
    def empty(cls) -> Beliefs:
        """Room, with nothing in it."""
        return cls(
            np.empty(MAX_BELIEFS, dtype=np.int64),
            np.empty(MAX_BELIEFS, dtype=np.int64),
            np.empty(MAX_BELIEFS, dtype=np.int64),
            np.empty((MAX_BELIEFS, NUM_FEATURES), dtype=np.int64),
            np.empty(2, dtype=np.int64),
            np.empty(MAX_BELIEFS),
        )


@jit
def match_bucket(length: int) -> int:
    """0, 1, 2, 3, 4, 5 to 7, 8 to 15, 16 to 31, 32."""
    if length <= 4:
        return length
    if length < 8:
        return 5
    if length < 16:
        return 6
    return 7 if length < 32 else 8


@jit
def _distance_bucket(distance: int) -> int:
    if distance < 0:
        return 10 if distance < -30 else 9
    if distance <= 3:
        return distance
    if distance <= 8:
        return 4
    if distance <= 30:
        return 5
    if distance <= 100:
        return 6
    return 7 if distance <= 320 else 8


@jit
def _since_bucket(since: int) -> int:
    if since <= 3:
        return max(since - 1, 0)
    if since < 8:
        return 3
    return 4 if since < 16 else 5


@jit
def answer_state(texts: Texts, state: IntArray) -> int:
    """What the answer is doing: FOLLOW, LOST, LOST_AT_LINE or LOST_AT_INDENT."""
    if state[FOLLOWING] == 1:
        return FOLLOW
    last = texts.kinds[texts.output[state[LENGTH] - 1]]
    if last < FIRST_IN_LINE:
        return LOST_AT_LINE
    if last == BLANK and texts.kinds[texts.output[state[LENGTH] - 2]] < FIRST_IN_LINE:
        return LOST_AT_INDENT
    return LOST


@jit
def _add(places: IntArray, groups: IntArray, matches: IntArray, features: IntArray, count: int, place: int) -> int:
    """The row of `place`, new or known, or -1 where there is no room."""
    for row in range(count):
        if places[row] == place:
            return row
    if count == len(places):
        return -1
    places[count] = place
    groups[count] = -1
    matches[count] = 0
    features[count, :] = -1
    return count


@jit
def _copy(
    places: IntArray,
    groups: IntArray,
    matches: IntArray,
    features: IntArray,
    count: int,
    place: int,
    group: int,
    match: int,
    feature: int,
) -> int:
    """Add a place that copies from `group`, unless it is known or there is no room; return the new count."""
    row = _add(places, groups, matches, features, count, place)
    if row >= 0 and groups[row] < 0:
        groups[row] = group
        matches[row] = match
        features[row, 0] = feature
    return max(count, row + 1)


@jit
def gather(
    texts: Texts,
    state: IntArray,
    index: IndexArrays,
    written: IndexArrays,
    resume: IntArray,
    table: Table,
    parts: int,
    beliefs: Beliefs,
) -> int:
    """Collect the beliefs about the next token.

    Args:
        texts, state: where the answer stands.
        index: over the ground.
        written: the same over the output array.
        resume: ground places, ascending, where the text half expects the answer to rejoin the prediction.
        table: static n-grams; may be empty.
        parts: which drafters may take part, as bits 1 (cursor), 2 (replay), 4 (lookup).
        beliefs: receives them, all but their weights.

    Returns:
        How many beliefs there are.
    """
    places, groups, matches, features, none = (
        beliefs.places,
        beliefs.groups,
        beliefs.matches,
        beliefs.features,
        beliefs.none,
    )
    length = state[LENGTH]
    ground, output, made = texts.ground, texts.output, texts.made
    last = int(output[length - 1])
    doing = answer_state(texts, state)
    since = _since_bucket(state[SINCE]) if doing != FOLLOW else 0
    start, end = state[START], state[END]
    count = 0
    longest = 0
    reference = state[DIVERGED_AT]

    if doing == FOLLOW:
        cursor = settle(texts, state, state[CURSOR])
        if state[CURSOR] >= MADE:
            reference = texts.stands_for[state[CURSOR] - MADE]
        elif start <= state[CURSOR] <= end:
            reference = state[CURSOR]
        if cursor >= 0 and parts & 1:
            row = _add(places, groups, matches, features, count, cursor)
            count = max(count, row + 1)
            if cursor >= MADE:
                longest = match_length(texts.made, cursor - MADE, output, length, 32)
                groups[row] = MADE_UP
                features[row, 0] = MADE_AT + doing * MATCH_BUCKETS + match_bucket(longest)
            else:
                longest = match_length(texts.ground, cursor, output, length, 32)
                groups[row] = NEAR
                features[row, 0] = _NEAR_AT + (doing * MATCH_BUCKETS + match_bucket(longest)) * DISTANCE_BUCKETS
                features[row, 1] = _SPAN_AT + (doing * MATCH_BUCKETS + match_bucket(longest)) * 2
            matches[row] = longest
    sure = doing == FOLLOW and longest >= _SURE_MATCH

    # The prediction around the cursor: the nearest places and every longer match.
    if parts & 1 and not sure:
        nearest = 0
        for step in range(1, _WINDOW_AHEAD + _WINDOW_BEHIND):
            # Outward: three places ahead for each one behind, while both sides last.
            if step <= _WINDOW_BEHIND * 4:
                behind = step % 4 == 0
                offset = -(step // 4) if behind else step - 1 - step // 4
            else:
                behind = False
                offset = step - 1 - _WINDOW_BEHIND
            place = reference + offset
            if place <= start or place > end or ground[place - 1] != last:
                continue
            match = match_length(ground, place, output, length, 32)
            if match < 2 and nearest >= _NEAREST:
                continue
            nearest += 1
            count = _near(texts, state, places, groups, matches, features, count, place, match, doing, reference)
            longest = max(longest, match)

    if parts & 4 and not sure:
        ends = np.empty(32, dtype=np.int64)
        lengths = np.empty(32, dtype=np.int64)
        found = find_matches(index, output, length, _LINKS, ends, lengths)
        for at in range(found):
            place, match = ends[at], lengths[at]
            if place == end:
                place = settle(texts, state, place)
                if place < 0:
                    continue
            if start < place < end:
                count = _near(texts, state, places, groups, matches, features, count, place, match, doing, reference)
            else:
                feature = PROMPT_AT + doing * MATCH_BUCKETS + match_bucket(match)
                count = _copy(places, groups, matches, features, count, place, PROMPT, match, feature)
            longest = max(longest, match)
        found = find_matches(written, output, length, _LINKS, ends, lengths)
        latest = 0
        for at in range(found):
            latest = max(latest, ends[at])
        for at in range(found):
            place, match = OUTPUT + ends[at], lengths[at]
            feature = WRITTEN_AT + (doing * MATCH_BUCKETS + match_bucket(match)) * 2 + (ends[at] == latest)
            count = _copy(places, groups, matches, features, count, place, WRITTEN, match, feature)
            longest = max(longest, match)

    if parts & 2 and doing != FOLLOW:
        for place in range(state[MADE_LENGTH] - 1, max(0, state[MADE_LENGTH] - _SCAN_MADE), -1):
            if made[place - 1] != last or made[place] < 0:
                continue
            match = match_length(made, place, output, length, 32)
            feature = MADE_AT + doing * MATCH_BUCKETS + match_bucket(match)
            count = _copy(places, groups, matches, features, count, MADE + place, MADE_UP, match, feature)
            longest = max(longest, match)

    if parts & 1 and doing != FOLLOW:
        count = _guess(texts, state, resume, places, groups, matches, features, count, doing, since)

    last_kind = int(texts.kinds[last])
    if parts & 1 and doing != FOLLOW:
        count = _kin(texts, state, places, groups, matches, features, count, doing, last_kind)
    kinds = texts.kinds
    for row in range(count):
        token = token_of(ground, output, made, places[row])
        features[row, 4] = _KINDS_AT + (groups[row] * NUM_KINDS + last_kind) * NUM_KINDS + int(kinds[token])
        evidence = belief_in(table, int(output[length - 2]), last, token)
        features[row, 5] = _EVIDENCE_AT + (groups[row] * NUM_STATES + doing) * _EVIDENCE_BUCKETS + evidence
    none[0] = _NONE_AT + (doing * MATCH_BUCKETS + match_bucket(min(longest, 32))) * _SINCE_BUCKETS + since
    none[1] = _NONE_KIND_AT + doing * NUM_KINDS + last_kind
    return count


@jit
def _near(
    texts: Texts,
    state: IntArray,
    places: IntArray,
    groups: IntArray,
    matches: IntArray,
    features: IntArray,
    count: int,
    place: int,
    match: int,
    doing: int,
    reference: int,
) -> int:
    distance = place - reference
    place = settle(texts, state, place)
    if place < 0:
        return count
    row = _add(places, groups, matches, features, count, place)
    if row < 0:
        return count
    if features[row, 0] < 0:
        groups[row] = NEAR
        matches[row] = match
        spans = 1 if doing != FOLLOW and match > state[SINCE] else 0
        bucket = doing * MATCH_BUCKETS + match_bucket(match)
        features[row, 0] = _NEAR_AT + bucket * DISTANCE_BUCKETS + _distance_bucket(distance)
        features[row, 1] = _SPAN_AT + bucket * 2 + spans
    return max(count, row + 1)


@jit
def _kin(
    texts: Texts,
    state: IntArray,
    places: IntArray,
    groups: IntArray,
    matches: IntArray,
    features: IntArray,
    count: int,
    doing: int,
    kind: int,
) -> int:
    """Add tokens that follow a token of the same kind nearby, each once, at its nearest place."""
    start, end, left, length = state[START], state[END], state[DIVERGED_AT], state[LENGTH]
    row_of = texts.scratch
    family = FAMILIES[kind]
    ground, output, made, kinds = texts.ground, texts.output, texts.made, texts.kinds
    for row in range(count):
        row_of[token_of(ground, output, made, places[row])] = NOT_KIN
    first = count
    for step in range(2 * _KIN_WINDOW):
        offset = step >> 1
        if step & 1:
            # Two places ahead for each one behind.
            place = left + (-(offset // 3) if offset % 3 == 2 else offset - offset // 3)
            if place <= start or place >= end or FAMILIES[kinds[ground[place - 1]]] != family:
                continue
            token, group, same = ground[place], NEAR, kinds[ground[place - 1]] == kind
        else:
            place = length - 1 - offset
            if place < 1 or output[place - 1] < 0 or FAMILIES[kinds[output[place - 1]]] != family:
                continue
            token, group, same = output[place], WRITTEN, kinds[output[place - 1]] == kind
            place += OUTPUT
        row = row_of[token]
        if row == NOT_KIN:
            continue
        if row > 0:
            matches[row - 1] -= 1
            continue
        if count == len(places):
            continue
        row_of[token] = count + 1
        places[count], groups[count], matches[count] = place, group, -1
        features[count, :] = -1
        features[count, 2] = _SAME_KIND_AT + (doing * 2 + (1 if group == WRITTEN else 0)) * 2 + (1 if same else 0)
        if group == NEAR:
            features[count, 0] = _NEAR_AT + doing * MATCH_BUCKETS * DISTANCE_BUCKETS + _distance_bucket(place - left)
        else:
            features[count, 0] = WRITTEN_AT + doing * MATCH_BUCKETS * 2 + (1 if offset < _KIN_NEAR else 0)
        count += 1
    for row in range(first):
        row_of[token_of(ground, output, made, places[row])] = 0
    for row in range(first, count):
        row_of[token_of(ground, output, made, places[row])] = 0
        times = min(-matches[row], 8)
        features[row, 1] = _KIN_AT + (doing * 2 + (1 if groups[row] == WRITTEN else 0)) * 9 + times
        matches[row] = 0
    return count


@jit
def _guess(
    texts: Texts,
    state: IntArray,
    resume: IntArray,
    places: IntArray,
    groups: IntArray,
    matches: IntArray,
    features: IntArray,
    count: int,
    doing: int,
    since: int,
) -> int:
    start, end, left = state[START], state[END], state[DIVERGED_AT]
    ground, kinds = texts.ground, texts.kinds
    for guess in range(NUM_GUESSES):
        place = left
        if guess <= SKIP_3:
            place = left + guess
        elif guess == SKIP_SINCE:
            place = left + state[SINCE]
        elif guess == LINE_END:
            while place < end and kinds[ground[place]] >= FIRST_IN_LINE:
                place += 1
        elif guess == OWN_LINE:
            while place > start and kinds[ground[place - 1]] >= FIRST_IN_LINE:
                place -= 1
        elif guess <= LINE_3:
            for _ in range(guess - OWN_LINE):
                while place < end and kinds[ground[place]] >= FIRST_IN_LINE:
                    place += 1
                place += 1
        else:
            at = np.searchsorted(resume, left + SKIP_3 + 1) + guess - RESUME_1
            place = resume[at] if at < len(resume) else end + 1
        if place > end:
            continue
        place = settle(texts, state, place)
        if place < 0:
            continue
        row = _add(places, groups, matches, features, count, place)
        if row < 0:
            continue
        count = max(count, row + 1)
        if groups[row] < 0:
            groups[row] = GUESS
        for column in range(2, 4):
            if features[row, column] < 0:
                features[row, column] = GUESS_AT + (doing * NUM_GUESSES + guess) * _SINCE_BUCKETS + since
                break
    return count


@jit
def weigh(beliefs: Beliefs, count: int, parameters: npt.NDArray[np.float64]) -> float:
    """Give the first `count` beliefs their probabilities; return that of "none of them"."""
    nothing = np.exp(parameters[beliefs.none[0]] + parameters[beliefs.none[1]])
    total = nothing
    for row in range(count):
        score = 0.0
        for column in range(NUM_FEATURES):
            if beliefs.features[row, column] >= 0:
                score += parameters[beliefs.features[row, column]]
        beliefs.weights[row] = np.exp(score)
        total += beliefs.weights[row]
    beliefs.weights[:count] /= total
    return float(nothing / total)
