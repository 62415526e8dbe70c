from __future__ import annotations

import numpy as np
import pytest

from specedit.draft.tree import DraftTree

#     7
#    / \
#   8   9
#       |
#       8
TREE = DraftTree.of([7, 8, 9, 8], parents=[-1, 0, 0, 2])


def test_depths_positions_and_mask_follow_the_row_rule():
    assert TREE.depths.tolist() == [1, 2, 2, 3]
    assert TREE.positions(10).tolist() == [10, 11, 12, 12, 13]
    assert TREE.mask.astype(int).tolist() == [
        [1, 0, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0],
        [1, 1, 0, 1, 0],
        [1, 1, 0, 1, 1],
    ]


def test_a_chain_is_a_causal_tree():
    chain = DraftTree.chain([4, 5, 6])
    assert np.array_equal(chain.mask, np.tril(np.ones((4, 4), dtype=bool)))
    assert chain.positions(0).tolist() == [0, 1, 2, 3]


def test_the_empty_tree_is_one_row():
    empty = DraftTree.chain([])
    assert len(empty) == 0
    assert empty.mask.tolist() == [[True]]
    assert empty.positions(5).tolist() == [5]


def test_children_are_found_by_token():
    assert TREE.child(0, 9) == 2
    assert TREE.child(0, 7) is None
    assert TREE.children(0) == [1, 2]
    assert TREE.children(-1) == [0]


def test_a_tree_behind_a_chain_sees_the_chain():
    whole = TREE.below([4, 5])
    assert whole.token_ids.tolist() == [4, 5, 7, 8, 9, 8]
    assert whole.parents.tolist() == [-1, 0, 1, 2, 2, 4]
    assert np.array_equal(whole.mask[2:, 2:], TREE.mask)
    assert whole.mask[2:, :2].all()
    assert TREE.below([]) is TREE


def test_a_prefix_is_a_tree():
    TREE.prefix(2).check(10, 2)


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (TREE, "budget"),
        (DraftTree.of([1, 1], [-1, -1]), "siblings"),
        (DraftTree.of([1, 2], [1, -1]), "before its parent"),
        (DraftTree.of([1], [-2]), "before its parent"),
        (DraftTree.of([99], [-1]), "vocabulary"),
        (DraftTree.of([-1], [-1]), "vocabulary"),
        (DraftTree.of([1, 2], [-1]), "length"),
    ],
)
def test_a_malformed_tree_is_named(tree, message):
    with pytest.raises(ValueError, match=message):
        tree.check(vocab_size=50, budget=3)
