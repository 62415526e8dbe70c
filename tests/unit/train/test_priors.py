from __future__ import annotations

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner

from specedit.cli.train import command
from specedit.draft.beliefs import NUM_FEATURES, NUM_PARAMETERS
from specedit.draft.merge import EditDrafter
from specedit.draft.priors import (
    NUM_CLASSES,
    NUM_RUN_BUCKETS,
    Priors,
    PriorsFile,
    load_priors,
    untrained_priors,
)
from specedit.train.priors import Observations, Recording, are_right, fit, forwards, is_held_out, observe, to_file
from specedit.train.releases import Pair
from tests.tiny_codec import TinyCodec

BEFORE = "a = load(one)\nb = load(two)\nprint(a, b)\n"
AFTER = "a = load(one)\nb = parse(two)\nprint(a, b)\n"


def nothing_seen():
    runs = np.zeros((NUM_CLASSES, NUM_RUN_BUCKETS, 2))
    features, none = np.empty((0, NUM_FEATURES), dtype=np.int16), np.empty((0, 2), dtype=np.int16)
    return Observations(features, np.empty(0, dtype=np.bool_), np.zeros(1, dtype=np.int64), none, runs)


def choices(*steps, repeated=1):
    """Observations of steps: a list of (feature, right) each; "none of them" has parameters 0 and 1."""
    features, right, starts = [], [], [0]
    for _ in range(repeated):
        for step in steps:
            features += [[feature, *[-1] * (NUM_FEATURES - 1)] for feature, _ in step]
            right += [came for _, came in step]
            starts.append(len(right))
    none = np.tile(np.array([[0, 1]], dtype=np.int16), (len(starts) - 1, 1))
    seen = nothing_seen()
    return seen._replace(
        features=np.array(features, dtype=np.int16), right=np.array(right), starts=np.array(starts), none=none
    )


def flat():
    return Priors(np.zeros(NUM_PARAMETERS), untrained_priors().survival)


def test_the_odds_that_were_seen_come_back():
    # Of ten steps between two beliefs and none of them, the first is right in six, the second in three.
    steps = [[(5, True), (6, False)]] * 6 + [[(5, False), (6, True)]] * 3 + [[(5, False), (6, False)]]
    values = fit(choices(*steps, repeated=50), flat(), ridge=1e-6).parameters
    none = values[0] + values[1]
    assert np.exp(values[5] - none) == pytest.approx(6, rel=0.01)
    assert np.exp(values[6] - none) == pytest.approx(3, rel=0.01)


def test_beliefs_that_are_right_together_share_the_credit():
    values = fit(choices([(5, True), (6, True), (7, False)], repeated=100), flat()).parameters
    assert values[5] == pytest.approx(values[6])
    assert values[5] > 1 > -1 > values[7]


def test_what_was_not_seen_stays_at_nothing():
    start = flat()
    start.parameters[:] = 0.7
    values = fit(choices([(5, True)], repeated=9), start).parameters
    assert np.abs(np.delete(values, [0, 1, 5])).max() < 0.01


def test_a_fit_of_many_chunks_is_the_same(monkeypatch):
    generator = np.random.default_rng(1)
    steps = [
        [(int(feature), bool(generator.random() < 0.3)) for feature in generator.integers(2, 30, 6)] for _ in range(99)
    ]
    seen = choices(*steps)
    whole = fit(seen, flat())
    monkeypatch.setattr("specedit.train.priors._STEPS_AT_ONCE", 7)
    assert fit(seen, flat()).parameters == pytest.approx(whole.parameters, abs=1e-6)


def test_survival_is_counted_and_leans_on_the_average_where_little_was_seen():
    seen = nothing_seen()
    seen.runs[0, 2] = [100, 900]
    seen.runs[1, 2] = [0, 1]
    survival = fit(seen, flat()).survival
    assert survival[0, 2] == pytest.approx(0.9, abs=0.001)
    assert 0.9 < survival[1, 2] < 0.95
    assert survival[2, 2] == pytest.approx(901 / 1001)
    assert ((survival > 0) & (survival < 1)).all()


@pytest.fixture(scope="module")
def tiny():
    codec = TinyCodec([BEFORE, AFTER])
    prompt = codec.encode(f"{BEFORE}\n")
    edits = [Recording(prompt, codec.encode(BEFORE), codec.encode(text)) for text in (BEFORE, AFTER)]
    return codec.vocabulary(), edits


def test_each_forward_of_an_edit_is_one_observation(tiny):
    vocabulary, edits = tiny
    priors = untrained_priors()
    drafter = EditDrafter(vocabulary, priors=priors)
    done = []
    seen = observe(edits, drafter, priors, lambda: done.append(1))
    assert len(done) == 2
    assert len(seen.none) == forwards(edits, drafter)
    assert len(seen.features) == len(seen.right) == seen.starts[-1]
    assert (np.diff(seen.starts) > 0).all()
    assert seen.features.min() == -1
    assert max(seen.features.max(), seen.none.max()) < NUM_PARAMETERS
    assert (seen.none >= 0).all()


def test_the_cursor_is_right_at_the_start_of_an_unchanged_file(tiny):
    vocabulary, edits = tiny
    priors = untrained_priors()
    seen = observe(edits[:1], EditDrafter(vocabulary, priors=priors), priors)
    assert seen.right[0]
    assert seen.runs[..., 1].sum() > 0
    assert seen.runs[..., 0].sum() == 0


@pytest.mark.parametrize(
    ("lengths", "right"),
    [([9, 5, 1, 0], [True, True, False, False]), ([2, 1, 0], [True, False, False]), ([0, 0], [False, False]), ([], [])],
)
def test_right_is_what_goes_on_being_right(lengths, right):
    assert are_right(np.array(lengths, dtype=np.int64)).tolist() == right


def test_what_was_fitted_takes_no_more_forwards_where_it_was_fitted(tiny):
    vocabulary, edits = tiny
    priors = untrained_priors()
    before = EditDrafter(vocabulary, priors=priors)
    after = EditDrafter(vocabulary, priors=fit(observe(edits, before, priors), priors))
    assert forwards(edits, after) <= forwards(edits, before)


def test_priors_are_stored_to_a_thousandth():
    generator = np.random.default_rng(2)
    priors = Priors(generator.normal(size=NUM_PARAMETERS), generator.uniform(0.1, 0.9, (NUM_CLASSES, NUM_RUN_BUCKETS)))
    stored = msgspec.json.decode(msgspec.json.encode(to_file(priors, "nothing")), type=PriorsFile)
    assert stored.fitted_on == "nothing"
    assert stored.priors().parameters == pytest.approx(priors.parameters, abs=0.0005)
    assert stored.priors().survival == pytest.approx(priors.survival, abs=0.00005)


def test_a_package_is_always_on_the_same_side():
    names = [f"package-{number}" for number in range(400)]
    held_out = [name for name in names if is_held_out(name)]
    assert 30 < len(held_out) < 70
    assert held_out == [name for name in names if is_held_out(name)]


def pairs(*packages):
    versions = ("1", "2")
    rows = [Pair("1", package, versions, "MIT", "a.py", "python", "a = 1\n", "a = 2\n") for package in packages]
    return b"".join(msgspec.json.encode(row) + b"\n" for row in rows)


@pytest.mark.smollm2
def test_the_command_writes_priors_and_reports_the_held_out_edits(tmp_path):
    names = [f"package-{number}" for number in range(40)]
    fitted = sum(not is_held_out(name) for name in names)
    (tmp_path / "pairs.jsonl").write_bytes(pairs(*names))
    out = tmp_path / "new" / "priors.json"
    result = CliRunner().invoke(
        command, ["priors", str(tmp_path / "pairs.jsonl"), "--model", "smollm2-135m", "--out", str(out)]
    )
    assert result.exit_code == 0, result.output
    stored = msgspec.json.decode(out.read_bytes(), type=PriorsFile)
    assert stored.fitted_on == f"{fitted} edits between releases of {fitted} packages (MIT)"
    assert f"{40 - fitted} edits of other packages" in result.output
    EditDrafter(TinyCodec([]).vocabulary(), priors=stored.priors())


@pytest.mark.smollm2
@pytest.mark.parametrize(
    ("content", "says"), [(pairs("a"), "both are needed"), (b"{}\n", "train releases"), (b"", "both are needed")]
)
def test_a_file_that_does_not_do_is_refused(tmp_path, content, says):
    (tmp_path / "pairs.jsonl").write_bytes(content)
    arguments = ["priors", str(tmp_path / "pairs.jsonl"), "--model", "smollm2-135m", "--out", str(tmp_path / "p.json")]
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code != 0
    assert says in result.output
    assert not (tmp_path / "p.json").exists()


def test_the_shipped_priors_load():
    priors = load_priors("plain")
    assert priors.parameters.shape == (NUM_PARAMETERS,)
    assert priors.survival.shape == (NUM_CLASSES, NUM_RUN_BUCKETS)
