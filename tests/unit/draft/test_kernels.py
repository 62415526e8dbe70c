from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from specedit.draft import native
from tests.unit.draft.streams import streams, trees

ROOT = Path(__file__).parents[3]


def plain_trees(seed, count):
    """What the kernels draft as plain Python, every index checked."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.unit.draft.streams", str(seed), str(count)],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def same(one, other):
    assert [tree[:2] + tree[3:] for tree in one] == [tree[:2] + tree[3:] for tree in other]
    for tree, expected in zip(one, other, strict=True):
        assert tree[2] == pytest.approx(expected[2], abs=1e-5)


@pytest.mark.parametrize("seed", [1, 2])
def test_compiled_kernels_draft_what_plain_python_does_within_all_bounds(seed):
    assert native.COMPILED
    for stream, plain in zip(streams(seed, 40), plain_trees(seed, 40), strict=True):
        same(trees(stream, seed), plain)
