"""Fit the priors of edit drafting: replay edits between releases and learn which beliefs were right.

Each step of a replay is one observation: the beliefs about the next token, and which of them were right. The parameters
maximize its probability (conditional logit, with "none of them" as one alternative; ridge penalty); survival is counted
on the beliefs that were right, weighted by how much they were believed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from specedit.draft.beliefs import MAX_BELIEFS, answer_state, weigh
from specedit.draft.edit_cursor import Texts, settle, token_at
from specedit.draft.merge import EditDrafter
from specedit.draft.native import jit
from specedit.draft.priors import NUM_CLASSES, NUM_RUN_BUCKETS, Priors, PriorsFile, class_of, run_bucket
from specedit.draft.suffix_index import Tokens
from specedit.draft.tree import IntArray
from specedit.engine.api import Hints

_LONGEST_RUN = 128
_BUDGET = 128


class Recording(NamedTuple):
    """One edit in tokens."""

    prompt: Sequence[int]
    prediction: Sequence[int]
    answer: Sequence[int]
    hints: Hints = Hints()


class Observations(NamedTuple):
    """What replays saw, one row a belief; the beliefs of a step stand together.

    Attributes:
        features: [beliefs, NUM_FEATURES] parameter numbers, -1 for none.
        right: [beliefs] whether the belief's token came.
        step: [beliefs] the step that it belongs to.
        none: [steps, 2] parameter numbers of "none of them".
        runs: [NUM_CLASSES, NUM_RUN_BUCKETS, 2] weighted counts of runs that ended and that went on.
    """

    features: IntArray
    right: npt.NDArray[np.bool_]
    step: IntArray
    none: IntArray
    runs: npt.NDArray[np.float64]


def observe(
    recordings: Iterable[Recording], drafter: EditDrafter, priors: Priors, on_edit: Callable[[], None] = lambda: None
) -> Observations:
    """Replay the recordings and note every step's beliefs."""
    features: list[IntArray] = []
    rights: list[npt.NDArray[np.bool_]] = []
    steps: list[IntArray] = []
    nones: list[IntArray] = []
    runs = np.zeros((NUM_CLASSES, NUM_RUN_BUCKETS, 2))
    lengths = np.empty(MAX_BELIEFS, dtype=np.int64)
    for recording in recordings:
        answer = np.asarray(recording.answer, dtype=np.int32)
        drafter.begin(recording.prompt, recording.prediction, recording.hints)
        done = 0
        while done < len(answer):
            count = drafter.gather()
            beliefs = drafter.beliefs
            measure_runs(drafter.texts, drafter.state, beliefs.places, count, answer, done, lengths)
            weigh(beliefs, count, priors.parameters)
            _count_runs(drafter, count, lengths, beliefs.weights, len(answer) - done, runs)
            features.append(beliefs.features[:count].copy())
            rights.append(lengths[:count] > 0)
            steps.append(np.full(count, len(nones), dtype=np.int64))
            nones.append(beliefs.none.copy())
            tree = drafter.propose(min(_BUDGET, len(answer) - done - 1))
            node, taken = -1, 1
            while (child := tree.child(node, int(answer[done + taken - 1]))) is not None:
                node, taken = child, taken + 1
            drafter.commit(answer[done : done + taken].tolist())
            done += taken
        on_edit()
    return Observations(np.concatenate(features), np.concatenate(rights), np.concatenate(steps), np.array(nones), runs)


def fit(seen: Observations, start: Priors, *, ridge: float = 0.3, iterations: int = 300) -> Priors:
    """The priors under which what was seen is most probable, near zero where little was seen."""
    columns = torch.from_numpy(seen.features + 1)  # parameter 0 stands for none
    none = torch.from_numpy(seen.none + 1)
    step, right = torch.from_numpy(seen.step), torch.from_numpy(seen.right)
    steps = len(none)
    parameters = torch.nn.Parameter(torch.from_numpy(np.concatenate(([0.0], start.parameters))))
    optimizer = torch.optim.LBFGS([parameters], max_iter=iterations, history_size=12, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        known = parameters * (torch.arange(len(parameters)) > 0)
        scores = known[columns].sum(1).exp()
        nothing = known[none].sum(1).exp()
        total = torch.zeros(steps, dtype=scores.dtype).index_add(0, step, scores) + nothing
        good = torch.zeros(steps, dtype=scores.dtype).index_add(0, step, scores * right)
        good = torch.where(good > 0, good, nothing)
        return -(good / total).log().sum() + ridge * known.square().sum()

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        value = loss()
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimizer.step(closure)  # type: ignore[no-untyped-call]
    ended, went_on = seen.runs[..., 0], seen.runs[..., 1]
    # Classes seen seldom lean on the average of all.
    average = went_on.sum(0) / (went_on.sum(0) + ended.sum(0) + 1e-9)
    survival = (went_on + 4 * average) / (went_on + ended + 4)
    return Priors(parameters.detach().numpy()[1:], np.minimum(survival, 0.9995))


def to_file(priors: Priors, fitted_on: str) -> PriorsFile:
    """The priors as they are shipped."""
    thousandths = np.round(priors.parameters * 1000).astype(int).tolist()
    return PriorsFile(
        parameters={str(place): value for place, value in enumerate(thousandths) if value},
        survival=np.round(priors.survival * 10_000).astype(int).tolist(),
        fitted_on=fitted_on,
    )


@jit
def measure_runs(
    texts: Texts, state: IntArray, places: IntArray, count: int, answer: Tokens, done: int, lengths: IntArray
) -> None:
    """Fill `lengths` [count] with how many of the coming answer tokens each place predicts."""
    for row in range(count):
        place = places[row]
        length = 0
        while length < _LONGEST_RUN and done + length < len(answer):
            place = settle(texts, state, place)
            if place < 0 or token_at(texts, place) != answer[done + length]:
                break
            place += 1
            length += 1
        lengths[row] = length


def _count_runs(
    drafter: EditDrafter,
    count: int,
    lengths: IntArray,
    weights: npt.NDArray[np.float64],
    left: int,
    runs: npt.NDArray[np.float64],
) -> None:
    beliefs, doing = drafter.beliefs, answer_state(drafter.texts, drafter.state)
    for row in np.flatnonzero(lengths[:count] > 0).tolist():
        kind = class_of(int(beliefs.groups[row]), doing, int(beliefs.matches[row]))
        weight = float(weights[row]) + 0.02
        length = int(lengths[row])
        buckets = [run_bucket(run) for run in range(1, length + 1)]
        for bucket in buckets[:-1]:
            runs[kind, bucket, 1] += weight
        if length < min(left, _LONGEST_RUN):
            runs[kind, buckets[-1], 0] += weight
