"""Where the answer stands in the file that it edits: a cursor that follows, loses and finds its place again.

The answer follows the *prediction* (the old text) until a token differs: a divergence. From there the cursor is lost,
and waits for as many matching tokens as a place needs to be believed: two where the old text goes on just ahead, more
far away or behind. *Made* texts (what the old text may become by a repeated change or another indent) can be followed
in the same way; each of their tokens knows the place of the prediction that it stands for.

A *place* is one integer over three token arrays: the ground (prompt and prediction), the output, and the made texts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from specedit.draft.native import inline, jit
from specedit.draft.suffix_index import Tokens, match_length
from specedit.draft.tree import IntArray

#: Where the places of the output and of the made texts begin; below stands the ground.
OUTPUT = 1 << 27
MADE = 1 << 28
#: No place: nothing follows.
NOWHERE = -1

# What `state` holds.
LENGTH = 0  # tokens of the output array in use
CURSOR = 1  # the place of the next expected token, while following
FOLLOWING = 2  # 1 while the answer follows the prediction or a made text
DIVERGED_AT = 3  # ground place where the answer left the prediction
SINCE = 4  # tokens since then
MADE_LENGTH = 5  # tokens of the made array in use
START = 6  # ground place of the prediction's first token
END = 7  # ground place of the boundary after its last
AFTER = 8  # place that follows the prediction's end, such as the closing fence in the prompt, or NOWHERE
OPENED = 9  # made index of the boundary after the answer's opening, or -1
FRAMED = 10  # made texts before this index are opening and closing, no changes
STATE_SIZE = 11

# What `follow` reports, as rows of (event, value, value).
DIVERGED = 0  # made index or ground place left, output length before the token that differed
RESUMED = 1  # ground place where the matching run begins, output length where it begins
USED = 2  # start of a made text that the answer followed where the prediction had a site
UNUSED = 3  # start of a made text that the answer did not follow there
EVENT_ROOM = 64

_JUST_AHEAD = 8
_AHEAD = 60
_SCAN_BEHIND = 400
_SCAN_AHEAD = 4000
_SCAN_MADE = 2000
_MADE_MATCH = 3


class Texts(NamedTuple):
    """The tokens that may be copied, and what stands where.

    Attributes:
        ground: [ground] prompt, boundary, prediction, boundary.
        output: [capacity] the prompt's last tokens, then the answer so far.
        made: [capacity] made texts, each ended by a boundary.
        stands_for: [capacity] the ground place that each made token stands for; at a made text's boundary the place
            where the prediction goes on.
        sites: [prediction + 1] the start of the made text that may replace what begins here, or -1.
        trust: [prediction + 1] how probable that is.
        kinds: [vocabulary] the kind of each token.
        scratch: [vocabulary] all 0 between calls.
    """

    ground: Tokens
    output: Tokens
    made: Tokens
    stands_for: Tokens
    sites: Tokens
    trust: npt.NDArray[np.float32]
    kinds: npt.NDArray[np.uint8]
    scratch: npt.NDArray[np.int16]


@inline
def settled(ground: Tokens, made: Tokens, stands_for: Tokens, end: int, after: int, length: int, place: int) -> int:
    """`settle` over arrays at hand: reading an array out of `Texts` counts a reference, which costs in a loop."""
    if place >= MADE:
        if made[place - MADE] >= 0:
            return place
        place = int(stands_for[place - MADE])
    if place >= OUTPUT:
        return place if place - OUTPUT < length else NOWHERE
    if place == end:
        place = after
        if place >= MADE:
            return place
    if place < 0 or ground[place] < 0:
        return NOWHERE
    return place


@inline
def token_of(ground: Tokens, output: Tokens, made: Tokens, place: int) -> int:
    """`token_at` over arrays at hand."""
    if place >= MADE:
        return int(made[place - MADE])
    if place >= OUTPUT:
        return int(output[place - OUTPUT])
    return int(ground[place])


@inline
def site_of(sites: Tokens, start: int, end: int, opened: int, place: int, came_from: int) -> int:
    """`site_at` over arrays at hand."""
    if (came_from < MADE or came_from - MADE == opened) and start <= place < end:
        return int(sites[place - start])
    return -1


@jit
def settle(texts: Texts, state: IntArray, place: int) -> int:
    """The place that a place stands for: past the end of a text lies the place where the reading goes on."""
    return settled(texts.ground, texts.made, texts.stands_for, state[END], state[AFTER], state[LENGTH], place)


@jit
def token_at(texts: Texts, place: int) -> int:
    """The token at a settled place."""
    return token_of(texts.ground, texts.output, texts.made, place)


@jit
def site_at(texts: Texts, state: IntArray, place: int, came_from: int) -> int:
    """The made index of what may replace the prediction from `place` on, or -1.

    A reading that comes from the end of a made text goes on in the prediction: it has just replaced something, unless
    it comes from the answer's opening.
    """
    return site_of(texts.sites, state[START], state[END], state[OPENED], place, came_from)


@jit
def follow(texts: Texts, state: IntArray, events: IntArray, token_ids: Tokens) -> int:
    """Take note of committed tokens; return how many `events` [EVENT_ROOM, 3] were written."""
    count = 0
    for token in token_ids:
        texts.output[state[LENGTH]] = token
        state[LENGTH] += 1
        if state[FOLLOWING] == 1:
            count = _follow_one(texts, state, events, count, token)
        else:
            state[SINCE] += 1
            count = _resume(texts, state, events, count)
    return count


@jit
def _note(events: IntArray, count: int, event: int, one: int, other: int) -> int:
    if count < len(events):
        events[count, 0] = event
        events[count, 1] = one
        events[count, 2] = other
        count += 1
    return count


@jit
def _follow_one(texts: Texts, state: IntArray, events: IntArray, count: int, token: int) -> int:
    place = settle(texts, state, state[CURSOR])
    made = site_at(texts, state, place, state[CURSOR])
    if made >= 0:
        other = settle(texts, state, MADE + made)
        if other >= 0 and token_at(texts, other) == token:
            state[CURSOR] = other + 1
            return _note(events, count, USED, made, 0)
    if place >= 0 and token_at(texts, place) == token:
        state[CURSOR] = place + 1
        if made >= 0:
            count = _note(events, count, UNUSED, made, 0)
        return count
    left = state[CURSOR]
    if left >= MADE:
        left = texts.stands_for[left - MADE]
    state[FOLLOWING] = 0
    state[DIVERGED_AT] = left if state[START] <= left <= state[END] else state[END]
    state[SINCE] = 1
    return _note(events, count, DIVERGED, state[CURSOR], state[LENGTH] - 1)


@jit
def _resume(texts: Texts, state: IntArray, events: IntArray, count: int) -> int:
    """Believe in a place once enough of the tokens since the divergence match there."""
    length, since = state[LENGTH], state[SINCE]
    ground, output, made = texts.ground, texts.output, texts.made
    last = output[length - 1]
    left = state[DIVERGED_AT]
    best_surplus, best_distance, best_end, best_match = -1, 0, -1, 0
    for end in range(max(state[START], left - _SCAN_BEHIND) + 1, min(state[END], left + _SCAN_AHEAD) + 1):
        if ground[end - 1] != last:
            continue
        match = match_length(ground, min(end, len(ground)), output, length, min(since, 32))
        match = min(match, end - state[START])
        begin = end - match
        distance = begin - left
        if distance < 0:
            penalty = 3 if end <= left else 1
            distance = -distance
        elif distance <= _JUST_AHEAD:
            penalty = 0
        elif distance <= _AHEAD:
            penalty = 1
        else:
            penalty = 2
        surplus = match - 2 - penalty - (1 if match == since else 0)
        if surplus > best_surplus or (surplus == best_surplus and surplus >= 0 and distance < best_distance):
            best_surplus, best_distance, best_end, best_match = surplus, distance, end, match
    best_made, made_match = -1, 0
    for end in range(state[MADE_LENGTH] - 1, max(0, state[MADE_LENGTH] - _SCAN_MADE), -1):
        if made[end - 1] == last and made[end] >= 0:
            match = match_length(made, end, output, length, 32)
            if match > made_match:
                best_made, made_match = end, match
    if made_match >= _MADE_MATCH and made_match > best_match:
        state[FOLLOWING] = 1
        state[CURSOR] = MADE + best_made
        return _note(events, count, RESUMED, texts.stands_for[best_made - made_match], length - made_match)
    if best_surplus >= 0:
        state[FOLLOWING] = 1
        state[CURSOR] = best_end
        return _note(events, count, RESUMED, best_end - best_match, length - best_match)
    return count
