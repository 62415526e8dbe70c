import random

import pytest

from specedit.bench.oracle import copied_tokens


def stands_in(run, text):
    return any(text[at : at + len(run)] == run for at in range(len(text) - len(run) + 1))


def fewest_forwards(prompt, prediction, answer, copy_tokens):
    """By dynamic programming over all copies, not only the longest."""
    forwards = [0] + [len(answer) + 1] * len(answer)
    for at in range(len(answer)):
        for copied in range(min(copy_tokens, len(answer) - at - 1) + 1):
            run = answer[at : at + copied]
            if copied and not (stands_in(run, prediction) or stands_in(run, prompt + answer[:at])):
                break
            forwards[at + copied + 1] = min(forwards[at + copied + 1], forwards[at] + 1)
    return forwards[-1]


def test_a_forward_copies_the_longest_run_and_gets_one_token_free():
    assert copied_tokens([1, 2, 3], [], [1, 2, 9, 2, 9, 2]) == [2, 2]
    assert copied_tokens([1, 2, 3, 4, 5], [], [1, 2, 3, 4, 5]) == [4]
    assert copied_tokens([1, 2, 3, 4, 5], [], [1, 2, 3, 4, 5], 2) == [2, 1]
    assert copied_tokens([1], [], [7, 8, 9]) == [0, 0, 0]
    assert copied_tokens([1], [], []) == []
    assert copied_tokens([1, 2], [], [1, 2], 0) == [0, 0]


def test_a_run_may_not_reach_into_what_is_not_committed():
    # 5 5 5 5 could be copied from itself, had its first token stood there.
    assert copied_tokens([1], [], [5, 5, 5, 5, 5]) == [0, 1, 1]


def test_the_prediction_is_copied_from_but_not_across_its_end():
    assert copied_tokens([8, 9], [1, 2], [1, 2, 7]) == [2]
    assert copied_tokens([8, 9], [1, 2], [1, 2, 8, 9, 7]) == [2, 1]


@pytest.mark.parametrize("seed", range(200))
def test_greedy_is_optimal(seed):
    chance = random.Random(seed)
    tokens = chance.choice((2, 3, 5))

    def text(longest):
        return [chance.randrange(tokens) for _ in range(chance.randrange(longest))]

    prompt, prediction, answer = text(12), text(8), text(24)
    copy_tokens = chance.choice((1, 2, 4, 128))
    greedy = copied_tokens(prompt, prediction, answer, copy_tokens)
    assert len(greedy) == fewest_forwards(prompt, prediction, answer, copy_tokens)
    assert sum(greedy) + len(greedy) == len(answer)
    assert max(greedy, default=0) <= copy_tokens
