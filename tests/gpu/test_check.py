"""The device check in its smallest setting: that it runs, and that it notices what it is there to notice."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from specedit.engine.target import Target
from tests.gpu import check

CPU = torch.device("cpu")


@pytest.fixture
def setting():
    return replace(
        check.small_setting(CPU),
        prompts=1,
        near_tie_prompts=2,
        new_tokens=12,
        budgets=(1, 8),
        cached_tokens=16,
        repeats=1,
    )


def test_it_passes_here_and_writes_its_figures(setting, monkeypatch, tmp_path):
    monkeypatch.setattr(check, "small_setting", lambda device: setting)
    report = tmp_path / "report.json"
    result = CliRunner().invoke(check.main, ["--small", "--json", str(report)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert "every promise holds" in result.output
    written = json.loads(report.read_text(encoding="utf-8"))
    exactness, near_ties, cost, memory = written["figures"].values()
    assert exactness["runs"] == exactness["runs_planned"] == 12
    assert near_ties["prompts"] == 2
    assert near_ties["rounding"] > 0
    assert set(cost["ratios"]) == {str(rows) for rows in check.ROWS}
    assert memory["cache_bytes"] >= memory["rows"] * memory["bytes_a_row"]
    assert written["broken"] == []


class SiblingsSeeEachOther(Target):
    """A target that ignores the tree's mask."""

    def forward(self, cache, token_ids, positions, mask, **kwargs):
        return super().forward(cache, token_ids, positions, np.tril(np.ones_like(mask)), **kwargs)


def test_a_target_that_is_not_exact_is_noticed(setting):
    model = check.peaked_target(setting.exact_config, torch.float32, CPU).model
    section = check.check_exactness(SiblingsSeeEachOther(model), setting, until=time.perf_counter() + 60)
    assert any("rounding does not explain" in sentence for sentence in section.broken)
    assert any("attention mask" in sentence for sentence in section.broken), "the target's own check says so too"


def test_a_gap_is_explained_by_rounding_as_large_and_not_by_less(setting):
    target = check.peaked_target(setting.exact_config, torch.float32, CPU)
    plain = check.PlainRun.of(target, 0, check.GREEDY, 4)
    second = int(plain.rows[2].topk(2).indices[1])
    gap = float(plain.rows[2][plain.tokens[2]] - plain.rows[2][second])
    other = [*plain.tokens[:2], second, plain.tokens[3]]
    assert plain.parting(other, rounding=0.51 * gap).explained
    parting = plain.parting(other, rounding=0.49 * gap)
    assert not parting.explained
    assert parting.place == 2
    assert parting.gap == pytest.approx(gap) == pytest.approx(parting.best_two_gap)


def test_out_of_time_it_still_checks_a_little_of_everything(setting):
    exactness, near_ties, cost, _ = check.run(setting, seconds=0, say=lambda line: None)
    assert 0 < exactness.figures["runs"] < exactness.figures["runs_planned"]
    assert near_ties.figures["prompts"] == 1
    assert cost.figures["repeats"] == 1


def test_it_runs_as_a_file_from_anywhere(tmp_path):
    command = [sys.executable, str(Path(check.__file__)), "--help"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr
    assert "--small" in result.stdout
