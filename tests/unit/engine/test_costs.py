"""What forwards cost: measured within a time limit, kept, measured anew where what was kept is no good."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from specedit.engine import costs
from specedit.engine.costs import CostTable, ForwardCosts, measure, measured_once
from specedit.engine.target import Target
from tests.tiny_model import save_tiny_model

TABLE = CostTable((1, 4, 16), (0.010, 0.010, 0.040))


@pytest.fixture(scope="module")
def model_path(tmp_path_factory):
    return save_tiny_model(tmp_path_factory.mktemp("llama"))


@pytest.fixture(scope="module")
def target(model_path):
    return Target.load(model_path, device="cpu")


class Clock:
    """Shows seconds that pass only when a forward of so many rows is run."""

    def __init__(self, target, seconds_of):
        self.now = 0.0
        self.rows = []
        self._seconds_of = seconds_of
        self._hook = target.model.register_forward_pre_hook(self._forward, with_kwargs=True)

    def __call__(self):
        return self.now

    def _forward(self, module, args, kwargs):
        self.rows.append(kwargs["input_ids"].shape[1])
        self.now += self._seconds_of(len(self.rows), self.rows[-1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._hook.remove()


def test_the_table_says_what_forwards_took(target):
    with Clock(target, lambda number, rows: 0.001 * (10 + rows)) as clock:
        table = measure(target, clock=clock)
    assert table.rows[0] == 1
    assert {1, 2, 4, 8, 16, 32, 64, 128, 129} <= set(table.rows)
    assert table.seconds == pytest.approx([0.001 * (10 + rows) for rows in table.rows])


def test_a_disturbed_forward_does_not_stay_in_the_table(target):
    with Clock(target, lambda number, rows: 0.001 * rows * (9 if number in (2, 5, 7) else 1)) as clock:
        table = measure(target, clock=clock, limit_seconds=60)
    assert table.seconds == pytest.approx([0.001 * rows for rows in table.rows])


@pytest.mark.parametrize("seconds", [0.02, 0.1, 0.4, 60.0])
def test_a_slow_model_is_measured_at_fewer_sizes(target, seconds):
    with Clock(target, lambda number, rows: seconds * (1 + rows / 32)) as clock:
        table = measure(target, clock=clock, limit_seconds=2.0)
    assert table.is_sound
    assert len(table.rows) >= 2
    first, two = seconds * (1 + 1 / 32), seconds * 3 + seconds / 32
    assert clock.now <= max(2.0, two) + first + 1e-6, "the first forward, which fills the cache, is not counted"


def test_between_the_sizes_it_is_linear_and_beyond_them_it_goes_on():
    seconds = ForwardCosts(TABLE).seconds(28)
    assert seconds[[0, 3, 9, 15, 27]] == pytest.approx([0.010, 0.010, 0.025, 0.040, 0.070])
    assert (np.diff(seconds) >= 0).all()


def test_it_follows_a_machine_that_gets_slower():
    costs = ForwardCosts(TABLE)
    for _ in range(30):
        costs.observe(1, 0.020)
    assert costs.seconds(1)[0] == pytest.approx(0.020, rel=0.05)
    assert costs.seconds(16)[-1] == pytest.approx(0.080, rel=0.3), "what was not seen gets slower with it"


def test_it_learns_that_large_forwards_cost_more_than_was_measured():
    costs = ForwardCosts(TABLE)
    for _ in range(80):
        costs.observe(1, 0.010)
        costs.observe(16, 0.080)
    assert costs.seconds(1)[0] == pytest.approx(0.010, rel=0.2)
    assert costs.seconds(16)[-1] == pytest.approx(0.080, rel=0.2)
    assert (np.diff(costs.seconds(64)) >= 0).all()


def test_one_stall_hardly_counts():
    costs = ForwardCosts(TABLE)
    costs.observe(4, 30.0)
    assert costs.seconds(4)[-1] < 0.015


def test_what_was_measured_is_kept(target, model_path, tmp_path, monkeypatch):
    first = measured_once(target, model_path, tmp_path / "costs")
    monkeypatch.setattr(costs, "measure", lambda *_, **__: pytest.fail("measured again"))
    assert measured_once(target, model_path, tmp_path / "costs") == first
    assert [file.suffix for file in (tmp_path / "costs").iterdir()] == [".json"]


def test_another_dtype_is_measured_for_itself(target, model_path, tmp_path):
    measured_once(target, model_path, tmp_path)
    measured_once(Target.load(model_path, device="cpu", dtype="bfloat16"), model_path, tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:20],
        lambda data: b'{"rows": [1], "seconds": [0.1]}',
        lambda data: msgspec.json.encode(msgspec.json.decode(data) | {"seconds": []}),
        lambda data: msgspec.json.encode(msgspec.json.decode(data) | {"rows": [2, 1], "seconds": [1.0, 1.0]}),
        lambda data: msgspec.json.encode(msgspec.json.decode(data) | {"rows": [1, 2], "seconds": [-1.0, 1.0]}),
        lambda data: msgspec.json.encode(msgspec.json.decode(data) | {"machine": "another"}),
        lambda data: msgspec.json.encode(msgspec.json.decode(data) | {"of_a_later_version": 1}),
    ],
)
def test_a_file_that_is_no_good_is_measured_anew(target, model_path, tmp_path, damage):
    measured_once(target, model_path, tmp_path)
    [file] = tmp_path.iterdir()
    file.write_bytes(damage(file.read_bytes()))
    table = measured_once(target, model_path, tmp_path)
    assert table.is_sound
    assert msgspec.json.decode(file.read_bytes(), type=CostTable) == table


def test_where_nothing_can_be_kept_it_is_measured_all_the_same(target, model_path, tmp_path):
    (tmp_path / "costs").write_text("a file stands where the directory should")
    assert measured_once(target, model_path, tmp_path / "costs").is_sound
