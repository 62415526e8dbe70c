from __future__ import annotations

import itertools

import msgspec
import numpy as np
import pytest

from specedit.draft import beliefs
from specedit.draft.beliefs import NUM_GROUPS, NUM_PARAMETERS, NUM_STATES
from specedit.draft.priors import (
    NUM_CLASSES,
    NUM_RUN_BUCKETS,
    PriorsFile,
    class_of,
    group_of,
    load_priors,
    run_bucket,
    untrained_priors,
)
from specedit.errors import IntegrityError
from specedit.train.priors import to_file


@pytest.mark.parametrize("name", ["plain", "table"])
def test_shipped_priors_are_sane(name):
    priors = load_priors(name)
    assert priors.parameters.shape == (NUM_PARAMETERS,)
    assert np.isfinite(priors.parameters).all()
    assert np.abs(priors.parameters).max() < 20
    assert priors.survival.shape == (NUM_CLASSES, NUM_RUN_BUCKETS)
    assert ((priors.survival > 0) & (priors.survival < 1)).all()


def test_untrained_priors_are_sane():
    priors = untrained_priors()
    assert priors.parameters.shape == (NUM_PARAMETERS,)
    assert priors.survival.shape == (NUM_CLASSES, NUM_RUN_BUCKETS)
    assert ((priors.survival > 0) & (priors.survival < 1)).all()


def test_a_file_comes_back():
    survival = [[9000] * NUM_RUN_BUCKETS] * NUM_CLASSES
    stored = msgspec.structs.replace(
        to_file(untrained_priors(), "nothing"), parameters={"0": 1500, "9": -20}, survival=survival
    )
    read = msgspec.json.decode(msgspec.json.encode(stored), type=PriorsFile)
    assert read == stored
    priors = read.priors()
    assert priors.parameters[[0, 1, 9]].tolist() == [1.5, 0, -0.02]
    assert (priors.survival == 0.9).all()


def test_a_file_with_more_in_it_is_refused():
    stored = {**msgspec.to_builtins(to_file(untrained_priors(), "nothing")), "more": 1}
    with pytest.raises(msgspec.ValidationError, match="unknown field"):
        msgspec.json.decode(msgspec.json.encode(stored), type=PriorsFile)


def test_priors_for_other_features_are_refused():
    stored = msgspec.structs.replace(to_file(untrained_priors(), "nothing"), parameter_count=7)
    with pytest.raises(IntegrityError, match=r"7 parameters where .*specedit train priors"):
        stored.priors()


def test_each_class_belongs_to_one_group():
    groups = {}
    for group, doing, match in itertools.product(range(NUM_GROUPS), range(NUM_STATES), range(33)):
        kind = class_of(group, doing, match)
        assert 0 <= kind < NUM_CLASSES
        assert groups.setdefault(kind, group) == group == group_of(kind)
    assert len(groups) == NUM_CLASSES


@pytest.mark.parametrize(
    ("bucket", "lengths"),
    [(0, [1]), (1, [2]), (2, [3]), (3, [4, 7]), (4, [8, 15]), (5, [16, 31]), (6, [32, 63]), (7, [64, 999])],
)
def test_runs_are_counted_by_length(bucket, lengths):
    assert [run_bucket(length) for length in lengths] == [bucket] * len(lengths)


@pytest.mark.parametrize(
    ("bucket", "lengths"), [(0, [0]), (4, [4]), (5, [5, 7]), (6, [8, 15]), (7, [16, 31]), (8, [32])]
)
def test_matches_are_counted_by_length(bucket, lengths):
    assert [beliefs.match_bucket(length) for length in lengths] == [bucket] * len(lengths)
