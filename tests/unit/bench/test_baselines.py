import itertools
import random

import pytest

from specedit.bench.baselines import EarliestNgram, LatestNgram, SuffixTree


def drafted(drafter, text, budget=128, *, output=()):
    """What is drafted after `text` and `output`, as a list; it must be a chain."""
    drafter.begin(text, [])
    for token_id in output:
        drafter.commit([token_id])
    tree = drafter.propose(budget)
    assert tree.parents.tolist() == list(range(-1, len(tree) - 1))
    return tree.token_ids.tolist()


def test_prompt_lookup_takes_two_tokens_before_one_and_the_earliest_place():
    transformers = EarliestNgram("transformers", (2, 1), 3)
    # 2 3 stands first before 4 2 3, later before 5.
    assert drafted(transformers, [1, 2, 3, 4, 2, 3, 5, 2, 3]) == [4, 2, 3]
    # 9 3 is new, so 3 alone counts: first before 7.
    assert drafted(transformers, [3, 7, 8, 3, 6, 9, 3]) == [7, 8, 3]
    assert drafted(transformers, [1, 2, 3]) == []


def test_prompt_lookup_drafts_at_most_what_follows():
    assert drafted(EarliestNgram("transformers", (2, 1), 10), [1, 2, 3, 4, 2, 3]) == [4, 2, 3]
    assert drafted(EarliestNgram("transformers", (2, 1), 10), [6, 6]) == [6]
    assert drafted(EarliestNgram("transformers", (2, 1), 10), [*range(20), 0, 1]) == list(range(2, 12))


def test_longest_ngram_wins_over_an_earlier_shorter_one():
    text = [2, 3, 9, 1, 2, 3, 8, 7, 1, 2, 3]
    assert drafted(EarliestNgram("ngram-k5", (5, 4, 3, 2), 5), text) == [8, 7, 1, 2, 3]
    assert drafted(EarliestNgram("ngram-k5", (2,), 5), text) == [9, 1, 2, 3, 8]
    # One token alone is no match for n-grams of two and more.
    assert drafted(EarliestNgram("ngram-k5", (5, 4, 3, 2), 5), [3, 1, 3]) == []


def test_latest_ngram_leaves_out_the_newest_token_and_short_drafts():
    simple = LatestNgram("ngram-2-3", 2, 3)
    assert drafted(simple, [9, 1, 2, 7, 8, 1, 2, 5, 6, 1, 2]) == [5, 6, 1]
    assert drafted(simple, [9, 1, 2, 7, 8, 5, 1, 2, 4, 1, 2]) == [4, 1]
    # The latest 1 2 is followed by 1 alone, as the newest token is not copied: that is shorter than the n-gram.
    assert drafted(simple, [9, 1, 2, 7, 8, 5, 3, 1, 2, 1, 2]) == []


def test_latest_ngram_waits_for_a_text_longer_than_ngram_and_draft_together():
    assert drafted(LatestNgram("ngram-2-3", 2, 3), [9, 1, 2, 5, 6, 1, 2]) == []
    assert drafted(LatestNgram("ngram-2-3", 2, 3), [9, 1, 2, 5, 6, 7, 1, 2]) == [5, 6, 7]


def test_suffix_tree_follows_the_counts_and_drafts_no_more_than_it_matched():
    # 1 2 3 stands four times, the end of the text included: 4 follows twice (1/2), then 9 or 8 (1/4), and 9 was first.
    assert drafted(SuffixTree("suffix-tree"), [1, 2, 3, 5, 1, 2, 3, 4, 9, 1, 2, 3, 4, 8, 1, 2, 3]) == [4, 9, 1]
    # 6 1 2 3 stands once before: four tokens of 1/2 each sum higher than 1/2 + 1/4 + 1/4.
    assert drafted(SuffixTree("suffix-tree"), [6, 1, 2, 3, 5, 1, 2, 3, 4, 9, 1, 2, 3, 4, 8, 6, 1, 2, 3]) == [5, 1, 2, 3]


def test_suffix_tree_drops_what_is_too_rare():
    # Each 7 is followed by another token: ten occurrences and the text's end make 1/11 each, which is too little.
    rare = [token for other in range(10, 20) for token in (7, other)]
    assert drafted(SuffixTree("suffix-tree"), [*rare, 7]) == []
    assert drafted(SuffixTree("suffix-tree"), [*rare[4:], 7]) == [12]


def test_suffix_tree_ends_where_match_and_draft_reach_its_depth():
    line = list(range(100))
    assert drafted(SuffixTree("suffix-tree"), line + line[:20]) == line[20:40]
    assert drafted(SuffixTree("suffix-tree"), line + line[:60]) == line[60:92]


def brute_suffix_tree(text, budget, depth=SuffixTree.MAX_DEPTH):
    """The published rule, word for word, on counts of substrings."""

    def count(run):
        return sum(text[at : at + len(run)] == run for at in range(len(text)))

    best, best_score = [], 0.0
    for length in range(1, min(len(text), depth)):
        suffix = text[-length:]
        draft, score, probability = [], 0.0, 1.0
        while len(draft) < min(budget, length, depth - length):
            seen = suffix + draft
            following = [
                text[at + len(seen)] for at in range(len(text) - len(seen)) if text[at : at + len(seen)] == seen
            ]
            if not following:
                break
            token_id = max(following, key=following.count)
            probability *= following.count(token_id) / count(seen)
            if probability < SuffixTree.MIN_PROBABILITY:
                break
            draft.append(token_id)
            score += probability
        if draft and score >= best_score - 1e-12:
            best, best_score = draft, score
    return best


@pytest.mark.parametrize("seed", range(60))
def test_suffix_tree_equals_the_rule_counted_by_hand(seed):
    chance = random.Random(seed)
    text = [chance.randrange(3) for _ in range(chance.randrange(2, 90))]
    if seed % 3 == 0:
        text += text[: chance.randrange(len(text))]
    assert drafted(SuffixTree("suffix-tree"), text) == brute_suffix_tree(text, 128)


BASELINES = [
    lambda: EarliestNgram("transformers", (2, 1), 10),
    lambda: EarliestNgram("ngram-k32", (5, 4, 3, 2), 32),
    lambda: LatestNgram("ngram-3-9", 3, 9),
    lambda: SuffixTree("suffix-tree"),
]


@pytest.mark.parametrize("make", BASELINES)
def test_tokens_that_come_one_by_one_count_like_those_of_the_prompt(make):
    chance = random.Random(1)
    for _ in range(50):
        text = [chance.randrange(4) for _ in range(60)]
        cut = chance.randrange(1, 60)
        assert drafted(make(), text[:cut], output=text[cut:]) == drafted(make(), text)


@pytest.mark.parametrize("make", BASELINES)
def test_the_budget_cuts_the_draft_and_begin_forgets_the_last_answer(make):
    text = list(itertools.chain.from_iterable([range(30)] * 2))[:-10]
    drafter = make()
    assert drafted(drafter, text, 2) == [20, 21]
    assert drafted(drafter, text, 0) == []
    assert drafted(drafter, [50, 51, 52]) == []
