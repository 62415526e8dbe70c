from __future__ import annotations

from specedit.draft.prompt_lookup import PromptLookup

SPECIAL = 9


def drafter(prompt, prediction=(), min_match=1):
    made = PromptLookup(10, [SPECIAL], min_match=min_match)
    made.begin(prompt, prediction)
    return made


def chain(lookup, budget=64):
    tree = lookup.propose(budget)
    tree.check(10, budget)
    assert tree.parents.tolist() == list(range(-1, len(tree) - 1))
    return tree.token_ids.tolist()


def test_what_followed_the_longest_match_is_drafted_up_to_the_budget():
    lookup = drafter([1, 2, 3, 4, 5, 6, 7, 8, 2, 3])
    assert chain(lookup) == [4, 5, 6, 7, 8, 2, 3]
    assert chain(lookup, budget=3) == [4, 5, 6]
    assert chain(lookup, budget=0) == []


def test_the_output_goes_before_the_prediction_and_the_prediction_before_the_prompt():
    lookup = drafter([1, 2, 3, 1, 2], prediction=[1, 2, 4])
    assert chain(lookup) == [4]
    lookup.commit([5, 1, 2, 6, 1, 2])
    assert chain(lookup) == [6, 1, 2]


def test_a_special_token_is_never_drafted():
    assert chain(drafter([1, 2, 3, SPECIAL, 4, 1, 2])) == [3]
    assert chain(drafter([1, 2, SPECIAL, 4, 5, 2])) == []


def test_nothing_is_drafted_from_beyond_the_text():
    lookup = drafter([5] * 6)
    assert chain(lookup) == [5]
    assert chain(drafter([5], prediction=[6])) == []


def test_a_short_match_can_be_too_little_to_draft_on():
    lookup = drafter([1, 2, 3, 4, 5, 3], min_match=2)
    assert chain(lookup) == []
    lookup.commit([4])
    assert chain(lookup) == [5, 3]


def test_a_new_answer_forgets_the_last_one():
    lookup = drafter([1, 2, 3])
    lookup.commit([4, 5])
    lookup.begin([6, 7, 4], [])
    assert chain(lookup) == []
