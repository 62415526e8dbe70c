"""Fit the priors of edit drafting: replay edits between releases and learn which beliefs were right.

Each step of a replay is one observation: the beliefs about what comes next, and which of them were right. The
parameters maximize its probability (conditional logit, with "none of them" as one alternative; ridge penalty); survival
is counted on the beliefs that were right, weighted by how much they were believed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import torch

from specedit.bench.recorded import RecordedEdit, tokenized
from specedit.draft.beliefs import MAX_BELIEFS, NUM_FEATURES, answer_state, weigh
from specedit.draft.edit_cursor import Texts, settle, token_at
from specedit.draft.merge import EditDrafter
from specedit.draft.native import jit
from specedit.draft.ngrams import Table
from specedit.draft.priors import (
    NUM_CLASSES,
    NUM_RUN_BUCKETS,
    Priors,
    PriorsFile,
    class_of,
    run_bucket,
    untrained_priors,
)
from specedit.draft.suffix_index import Tokens
from specedit.draft.tree import IntArray
from specedit.draft.vocabulary import Vocabulary
from specedit.engine.api import Hints
from specedit.engine.tokens import Tokenizer
from specedit.errors import UsageError
from specedit.train.releases import Pair, load

Floats = npt.NDArray[np.float64]

_LONGEST_RUN = 128
_BUDGET = 128
#: Every eighth package, by its name's digest, is held out.
_HELD_OUT = 8
_ROUNDS = 2
#: A belief is right if it says as many of the coming tokens as any does, up to this many: at a line's start many
#: places agree on the indent alone.
_HORIZON = 4
_STEPS_AT_ONCE = 4096


class Recording(NamedTuple):
    """One edit in tokens."""

    prompt: Sequence[int] | Tokens
    prediction: Sequence[int] | Tokens
    answer: Sequence[int] | Tokens
    hints: Hints = Hints()


class Observations(NamedTuple):
    """What replays saw, one row a belief; the beliefs of a step stand together.

    Attributes:
        features: [beliefs, NUM_FEATURES] parameter numbers, -1 for none.
        right: [beliefs] whether the belief's next token came, and as many more as any belief's, up to `_HORIZON`.
        starts: [steps + 1] the first belief of each step.
        none: [steps, 2] parameter numbers of "none of them".
        runs: [NUM_CLASSES, NUM_RUN_BUCKETS, 2] weighted counts of runs that ended and that went on.
    """

    features: npt.NDArray[np.int16]
    right: npt.NDArray[np.bool_]
    starts: IntArray
    none: npt.NDArray[np.int16]
    runs: Floats


class Fitted(NamedTuple):
    """Priors, and how many forwards the held out edits take without and with them."""

    file: PriorsFile
    forwards_before: int
    forwards_after: int


class Fitting(NamedTuple):
    """What to fit on, and what to measure on: the edits of each eighth package.

    Attributes:
        learned, held_out: the edits.
        learned_from: what `learned` is, in words.
    """

    learned: Sequence[Recording]
    held_out: Sequence[Recording]
    learned_from: str

    @classmethod
    def of(cls, file: Path, limit: int | None, tokenizer: Tokenizer) -> Fitting:
        """The first `limit` pairs of a file, in tokens.

        Raises:
            UsageError: the file is none of pairs, or all its edits are on one side.
        """
        try:
            pairs = list(islice(load(file, Pair), limit))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UsageError(f"{file} has no edits: {error}. `specedit train releases` writes such a file") from error
        learned = [pair for pair in pairs if not is_held_out(pair.package)]
        held_out = [pair for pair in pairs if is_held_out(pair.package)]
        if not learned or not held_out:
            raise UsageError(
                f"{len(learned)} edits to fit on and {len(held_out)} of other packages to measure on: both are needed. "
                "Take more of them"
            )
        packages, licences = {pair.package for pair in learned}, {pair.licence for pair in learned}
        return cls(
            [_recording(pair, tokenizer) for pair in learned],
            [_recording(pair, tokenizer) for pair in held_out],
            f"{len(learned)} edits between releases of {len(packages)} packages ({', '.join(sorted(licences))})",
        )

    @property
    def replays(self) -> int:
        """How many replays `run` takes."""
        return _ROUNDS * len(self.learned) + 2 * len(self.held_out)

    def run(self, vocabulary: Vocabulary, table: Table | None, on_edit: Callable[[], None] = lambda: None) -> Fitted:
        """Observe and fit twice, so that the drafts that are observed come from what was fitted.

        Args:
            vocabulary: of the edits' tokenizer.
            table: static n-grams to draft with.
            on_edit: called after each replay.
        """
        priors = untrained_priors()
        before = forwards(self.held_out, EditDrafter(vocabulary, table=table, priors=priors), on_edit)
        for _ in range(_ROUNDS):
            drafter = EditDrafter(vocabulary, table=table, priors=priors)
            priors = fit(observe(self.learned, drafter, priors, on_edit), priors)
        shipped = to_file(priors, self.learned_from)
        after = forwards(self.held_out, EditDrafter(vocabulary, table=table, priors=shipped.priors()), on_edit)
        return Fitted(shipped, before, after)


def is_held_out(package: str) -> bool:
    """Whether edits of `package` are for measuring, not for fitting."""
    return hashlib.sha256(package.encode()).digest()[0] % _HELD_OUT == 0


def _recording(pair: Pair, tokenizer: Tokenizer) -> Recording:
    edit = tokenized(RecordedEdit(before=pair.before, after=pair.after, path=pair.path), tokenizer)
    prompt, prediction, answer = (
        np.asarray(ids, dtype=np.int32) for ids in (edit.prompt_ids, edit.prediction_ids, edit.answer_ids)
    )
    return Recording(prompt, prediction, answer, edit.hints)


def forwards(recordings: Iterable[Recording], drafter: EditDrafter, on_edit: Callable[[], None] = lambda: None) -> int:
    """How many forwards the recordings take."""
    total = 0
    for recording in recordings:
        total += sum(1 for _ in _replayed(recording, drafter))
        on_edit()
    return total


def observe(
    recordings: Iterable[Recording], drafter: EditDrafter, priors: Priors, on_edit: Callable[[], None] = lambda: None
) -> Observations:
    """Replay the recordings and note every step's beliefs; 13 bytes for each belief, about 50 of them a step."""
    features, rights = [np.empty((0, NUM_FEATURES), dtype=np.int16)], [np.empty(0, dtype=np.bool_)]
    counts: list[int] = []
    nones: list[IntArray] = []
    runs = np.zeros((NUM_CLASSES, NUM_RUN_BUCKETS, 2))
    room = np.empty(MAX_BELIEFS, dtype=np.int64)
    for recording in recordings:
        answer = np.asarray(recording.answer, dtype=np.int32)
        for done in _replayed(recording, drafter):
            count = drafter.gather()
            beliefs, lengths = drafter.beliefs, room[:count]
            measure_runs(drafter.answer.texts, drafter.answer.state, beliefs.places, count, answer, done, lengths)
            weigh(beliefs, count, priors.parameters)
            _count_runs(drafter, lengths, len(answer) - done, runs)
            features.append(beliefs.features[:count].astype(np.int16))
            rights.append(are_right(lengths))
            counts.append(count)
            nones.append(beliefs.none.copy())
        on_edit()
    starts = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
    none = np.array(nones, dtype=np.int16).reshape(-1, 2)
    return Observations(np.concatenate(features), np.concatenate(rights), starts, none, runs)


def are_right(lengths: IntArray) -> npt.NDArray[np.bool_]:
    """[beliefs] which beliefs were right, of those that say so many of the coming tokens.

    Example: of [9, 5, 1, 0] the first two; of [2, 1, 0] the first; of [0, 0] none.
    """
    return lengths >= max(1, min(_HORIZON, int(lengths.max(initial=0))))


def fit(seen: Observations, start: Priors, *, ridge: float = 0.3, iterations: int = 300) -> Priors:
    """The priors under which what was seen is most probable, near zero where little was seen."""
    parameters = torch.nn.Parameter(torch.from_numpy(start.parameters.copy()))
    optimizer = torch.optim.LBFGS([parameters], max_iter=iterations, history_size=12, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        values = parameters.detach().numpy()
        loss, gradient = ridge * float(values @ values), 2 * ridge * values
        for first in range(0, len(seen.none), _STEPS_AT_ONCE):
            loss += _add_loss(values, seen, first, min(first + _STEPS_AT_ONCE, len(seen.none)), gradient)
        parameters.grad = torch.from_numpy(gradient)
        return torch.tensor(loss)

    optimizer.step(closure)  # type: ignore[no-untyped-call]
    ended, went_on = seen.runs[..., 0], seen.runs[..., 1]
    # Classes seen seldom lean on the average of all.
    average = went_on.sum(0) / (went_on.sum(0) + ended.sum(0) + 1e-9)
    survival = (went_on + 4 * average) / (went_on + ended + 4)
    return Priors(parameters.detach().numpy(), np.clip(survival, 0.0001, 0.9995))


def _add_loss(values: Floats, seen: Observations, first: int, last: int, gradient: Floats) -> float:
    """Minus the log probability of what was seen at steps `first` to `last`; its gradient is added to `gradient`."""
    rows = slice(seen.starts[first], seen.starts[last])
    columns, none, right = seen.features[rows], seen.none[first:last], seen.right[rows]
    scores = np.exp(np.append(values, 0.0)[columns].sum(1))  # -1, no feature, takes the 0
    nothing = np.exp(values[none].sum(1))
    step = np.repeat(np.arange(last - first), np.diff(seen.starts[first : last + 1]))
    total = np.bincount(step, scores, last - first) + nothing
    good = np.bincount(step, scores * right, last - first)
    good = np.where(good > 0, good, nothing)
    missed = np.bincount(step, right, last - first) == 0
    slope = scores / total[step] - scores * right / good[step]
    used = columns >= 0
    gradient += np.bincount(columns[used], np.broadcast_to(slope[:, None], columns.shape)[used], len(values))
    gradient += np.bincount(none.ravel(), np.repeat(nothing / total - missed, none.shape[1]), len(values))
    return float(np.log(total / good).sum())


def _replayed(recording: Recording, drafter: EditDrafter) -> Iterator[int]:
    """Replay a recording; before each forward, how many tokens of the answer stand."""
    answer = [int(token) for token in recording.answer]
    drafter.begin(recording.prompt, recording.prediction, recording.hints)
    done = 0
    while done < len(answer):
        yield done
        tree = drafter.propose(min(_BUDGET, len(answer) - done - 1))
        node, taken = -1, 1
        while (child := tree.child(node, answer[done + taken - 1])) is not None:
            node, taken = child, taken + 1
        drafter.commit(answer[done : done + taken])
        done += taken


def to_file(priors: Priors, fitted_on: str) -> PriorsFile:
    """The priors as they are shipped."""
    thousandths = np.round(priors.parameters * 1000).astype(int).tolist()
    return PriorsFile(
        parameter_count=len(priors.parameters),
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


def _count_runs(drafter: EditDrafter, lengths: IntArray, left: int, runs: Floats) -> None:
    """Add the runs of the beliefs that were right, each as often as it was believed, to the counts of their classes."""
    beliefs, doing = drafter.beliefs, answer_state(drafter.answer.texts, drafter.answer.state)
    for row in np.flatnonzero(lengths > 0).tolist():
        kind = class_of(int(beliefs.groups[row]), doing, int(beliefs.matches[row]))
        weight = float(beliefs.weights[row]) + 0.02
        length = int(lengths[row])
        buckets = [run_bucket(run) for run in range(1, length + 1)]
        for bucket in buckets[:-1]:
            runs[kind, bucket, 1] += weight
        if length < min(left, _LONGEST_RUN):
            runs[kind, buckets[-1], 0] += weight
