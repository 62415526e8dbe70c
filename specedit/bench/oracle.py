"""The copy oracle: the fewest forwards that copying can reach, had each step known the best copy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

#: The longest copy of the copy oracle by which drafters are compared.
COPY_TOKENS = 128

_NO_TOKEN = -1


def copied_tokens(
    prompt_ids: Sequence[int], prediction_ids: Sequence[int], answer_ids: Sequence[int], copy_tokens: int = COPY_TOKENS
) -> list[int]:
    """How many tokens each forward of the copy oracle copies; it has as many forwards as the list has entries.

    A forward covers the longest run of coming answer tokens, at most `copy_tokens`, that stands in the prediction or in
    the prompt and the answer committed so far, and one free token more.

    Greedy is optimal. Let reach(i) be where a forward that begins at answer token i ends if it copies all it can. A run
    that can be copied at i can be copied from any later start j inside it, less its first j - i tokens, for what may be
    copied from only grows. So i < j gives reach(i) <= reach(j). Now replace the first forward of any schedule by the
    longest copy: the next one starts no earlier, so it can reach no less far; replace that one, and so on to the last.
    No forward is added.

    Example: with the prompt [1, 2, 3] the answer [1, 2, 9, 2, 9, 2] takes [2, 2]: 1 2 are copied and 9 is free; 2 9 are
    copied from the answer and 2 is free.
    """
    texts = [*prediction_ids, _NO_TOKEN, *prompt_ids]
    committed = len(texts)
    # What is not committed holds no token yet, so that no run reaches into it.
    buffer = np.full(committed + len(answer_ids) + copy_tokens, _NO_TOKEN, dtype=np.int64)
    buffer[:committed] = texts
    windows = sliding_window_view(buffer, max(copy_tokens, 1))
    answer = np.asarray(answer_ids, dtype=np.int64)
    lengths = []
    done = 0
    while done < len(answer):
        coming = answer[done : done + copy_tokens]
        # The last token of the answer is the free one, even where it could be copied.
        coming = coming[: len(answer) - done - 1]
        length = 0
        if len(coming):
            starts = np.flatnonzero(buffer[:committed] == coming[0])
            same = windows[starts, : len(coming)] == coming
            length = int(np.logical_and.accumulate(same, axis=1).sum(axis=1).max(initial=0))
        emitted = answer[done : done + length + 1]
        buffer[committed : committed + len(emitted)] = emitted
        committed += len(emitted)
        done += len(emitted)
        lengths.append(length)
    return lengths
