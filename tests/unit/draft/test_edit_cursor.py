from __future__ import annotations

import numpy as np
import pytest

from specedit.draft import edit_cursor as cursor
from specedit.draft.edit_cursor import DIVERGED, MADE, NOWHERE, OUTPUT, RESUMED, UNUSED, USED, Texts
from specedit.draft.suffix_index import BOUNDARY

PROMPT = [90, 91, 92, 93]
PREDICTION = list(range(10, 40))
START = len(PROMPT) + 1


class Reading:
    """An answer that follows a prediction; all places are told from the prediction's first token."""

    def __init__(self, prediction=PREDICTION, made=()):
        ground = [*PROMPT, BOUNDARY, *prediction, BOUNDARY]
        self.state = np.zeros(cursor.STATE_SIZE, dtype=np.int64)
        self.state[cursor.START] = self.state[cursor.CURSOR] = self.state[cursor.DIVERGED_AT] = START
        self.state[cursor.END] = len(ground) - 1
        self.state[cursor.FOLLOWING] = 1
        self.state[cursor.AFTER] = NOWHERE
        self.events = np.zeros((cursor.EVENT_ROOM, 3), dtype=np.int64)
        self.texts = Texts(
            ground=np.array(ground, dtype=np.int32),
            output=np.full(1000, BOUNDARY, dtype=np.int32),
            made=np.full(100, BOUNDARY, dtype=np.int32),
            stands_for=np.full(100, NOWHERE, dtype=np.int32),
            sites=np.full(len(prediction) + 1, -1, dtype=np.int32),
            trust=np.ones(len(prediction) + 1, dtype=np.float32),
            kinds=np.zeros(100, dtype=np.uint8),
            scratch=np.zeros(100, dtype=np.int16),
        )
        for start, end, tokens in made:
            self.make(start, end, tokens)

    def make(self, start, end, tokens):
        """Lay out `tokens` in place of the old ones `start` to `end`."""
        at = int(self.state[cursor.MADE_LENGTH])
        self.texts.made[at : at + len(tokens)] = tokens
        self.texts.stands_for[at : at + len(tokens)] = START + start
        self.texts.stands_for[at + len(tokens)] = START + end
        self.texts.sites[start] = at
        self.state[cursor.MADE_LENGTH] += len(tokens) + 1

    def commit(self, *tokens):
        """The events, as (kind, place or made index, place in the output)."""
        count = cursor.follow(self.texts, self.state, self.events, np.array(tokens, dtype=np.int32))
        told = []
        for kind, one, other in self.events[:count].tolist():
            told.append((kind, one - START if kind in (DIVERGED, RESUMED) and one < MADE else one, other))
        return told

    @property
    def expects(self):
        """The next token of the text that is followed; None when lost or at its end."""
        if not self.state[cursor.FOLLOWING]:
            return None
        place = cursor.settle(self.texts, self.state, self.state[cursor.CURSOR])
        return None if place < 0 else cursor.token_at(self.texts, place)


def test_an_answer_that_follows_reports_nothing():
    reading = Reading()
    for token in PREDICTION:
        assert reading.expects == token
        assert reading.commit(token) == []
    assert reading.expects is None


@pytest.mark.parametrize(
    ("written", "expects", "resumed_at"),
    [
        # 10 11 12 are followed; then something else, and the old text again. Just ahead, two tokens are enough.
        ([50, 13, 14], 15, 3),
        ([50, 51, 52, 53, 13, 14], 15, 3),
        ([50, 14, 15], 16, 4),
        ([50, 16, 17], 18, 6),
        ([50, 21, 22], 23, 11),
        # Further ahead it takes three; behind five, unless they reach what comes next.
        ([50, 25, 26], None, None),
        ([50, 25, 26, 27], 28, 15),
        ([50, 10, 11, 12], None, None),
        ([50, 10, 11, 12, 13], 14, 0),
        # What was left out is no word of its own: one token more is needed.
        ([14, 15], None, None),
        ([14, 15, 16], 17, 4),
        # One token alone is nothing, and others are no old text.
        ([50, 13], None, None),
        ([50, 51, 52], None, None),
        ([50, 13, 50, 14], None, None),
    ],
)
def test_the_old_text_is_followed_again_once_enough_of_it_came(written, expects, resumed_at):
    reading = Reading()
    reading.commit(10, 11, 12)
    events = reading.commit(*written)
    assert events[0] == (DIVERGED, 3, 3)
    assert reading.expects == expects
    resumed = [event[:2] for event in events[1:]]
    assert resumed == ([] if resumed_at is None else [(RESUMED, resumed_at)])


def test_the_hunk_between_lies_between_the_events():
    reading = Reading()
    reading.commit(10, 11, 12)
    events = reading.commit(50, 51, 15, 16)
    assert events == [(DIVERGED, 3, 3), (RESUMED, 5, 5)]
    assert PREDICTION[3:5] == [13, 14]
    assert reading.texts.output[3:5].tolist() == [50, 51]


def test_the_nearest_of_equal_places_is_believed():
    line = [1, 2, 3, 4]
    reading = Reading([*range(10, 15), *line, 20, *line, 21, *line, 22])
    reading.commit(10, 11)
    reading.commit(50, 1, 2, 3, 4)
    assert reading.expects == 20


def test_what_goes_on_past_the_end_goes_on_after_it():
    reading = Reading(PREDICTION[:3])
    reading.state[cursor.AFTER] = 2  # the prompt's third token
    reading.commit(10, 11, 12)
    assert reading.expects == 92
    reading.commit(92)
    assert reading.expects == 93
    reading.commit(93)
    assert reading.expects is None
    assert reading.commit(60) == [(DIVERGED, -1, 5)]
    assert reading.state[cursor.DIVERGED_AT] == reading.state[cursor.END]


@pytest.mark.parametrize(
    ("made", "written", "event", "expects"),
    [
        ((3, 4, [50, 51]), [50], USED, 51),
        ((3, 4, [50, 51]), [50, 51], USED, 14),
        ((3, 4, [50, 51]), [13], UNUSED, 14),
        ((3, 6, []), [16], USED, 17),
        ((3, 6, []), [13], UNUSED, 14),
        ((3, 3, [50]), [50], USED, 13),
        ((3, 3, [50]), [13], UNUSED, 14),
        ((3, 4, [50]), [60], DIVERGED, None),
    ],
    ids=["replaced", "replaced in full", "kept", "deleted", "not deleted", "inserted", "not inserted", "neither"],
)
def test_at_a_site_the_answer_may_take_either_way(made, written, event, expects):
    reading = Reading(made=[made])
    reading.commit(10, 11, 12)
    events = reading.commit(*written)
    assert [kind for kind, *_ in events] == [event]
    assert reading.expects == expects


def test_an_inserted_text_is_not_offered_again_behind_itself():
    reading = Reading(made=[(3, 3, [50])])
    assert [kind for kind, *_ in reading.commit(10, 11, 12, 50, 13, 14)] == [USED]
    assert reading.expects == 15


def test_leaving_a_made_text_counts_from_the_place_it_stands_for():
    reading = Reading(made=[(3, 5, [50, 51, 52])])
    events = reading.commit(10, 11, 12, 50, 60)
    assert [kind for kind, *_ in events] == [USED, DIVERGED]
    assert reading.state[cursor.DIVERGED_AT] == START + 3
    reading.commit(15, 16)
    assert reading.expects == 17


def test_a_made_text_is_followed_once_three_of_its_tokens_came():
    # 3 to 9 with another indent: tokens that the old text lacks stand between those that it has.
    reading = Reading()
    reading.make(3, 9, [70, 13, 71, 14, 72, 15])
    reading.texts.sites[3] = -1
    reading.commit(10, 11, 12, 60)
    reading.commit(70, 13)
    assert reading.expects is None
    events = reading.commit(71)
    assert [kind for kind, *_ in events] == [RESUMED]
    assert reading.expects == 14


def test_more_events_than_there_is_room_for_are_dropped():
    reading = Reading([10, 11] * 200)
    assert len(reading.commit(*[60, 10, 11, 10, 11] * 150)) == cursor.EVENT_ROOM


def test_places_of_the_output_last_as_long_as_it_is_written():
    reading = Reading()
    reading.commit(10, 11)
    assert cursor.settle(reading.texts, reading.state, OUTPUT + 1) == OUTPUT + 1
    assert cursor.settle(reading.texts, reading.state, OUTPUT + 2) == NOWHERE
    assert cursor.token_at(reading.texts, OUTPUT + 1) == 11
