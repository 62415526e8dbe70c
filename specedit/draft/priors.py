"""What is believed before an answer begins: parameters fitted beforehand on releases of packages.

`specedit train priors` fits them; they are counted in tokens of one tokenizer but hold for similar ones.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import resources
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from specedit.draft.beliefs import (
    DISTANCE_BUCKETS,
    FOLLOW,
    GUESS,
    GUESS_AT,
    MADE_AT,
    MADE_UP,
    MATCH_BUCKETS,
    NEAR,
    NUM_PARAMETERS,
    NUM_STATES,
    PROMPT,
    PROMPT_AT,
    WRITTEN,
    WRITTEN_AT,
    match_bucket,
)
from specedit.draft.native import jit
from specedit.errors import IntegrityError

NUM_RUN_BUCKETS = 8
#: A cursor's classes, those of other near places, hypotheses by state, output, prompt, made texts.
NUM_CLASSES = 5 * MATCH_BUCKETS + NUM_STATES


class Priors(NamedTuple):
    """Parameters of the beliefs and of what becomes of them.

    Attributes:
        parameters: [NUM_PARAMETERS] of `beliefs.weigh`.
        survival: [NUM_CLASSES, NUM_RUN_BUCKETS] the probability that a belief's next token is right when its last ones
            were, by class and by how many were.
    """

    parameters: npt.NDArray[np.float64]
    survival: npt.NDArray[np.float64]


class PriorsFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Priors as they are stored: parameters in thousandths, survival in ten-thousandths, and what they come from."""

    parameter_count: int
    parameters: dict[str, int]
    survival: list[list[int]]
    fitted_on: str

    def priors(self) -> Priors:
        """The arrays.

        Raises:
            IntegrityError: they were fitted for other features.
        """
        if self.parameter_count != NUM_PARAMETERS:
            raise IntegrityError(
                f"the priors have {self.parameter_count} parameters where {NUM_PARAMETERS} are needed. "
                "Install specedit again, or fit them anew with `specedit train priors`."
            )
        parameters = np.zeros(NUM_PARAMETERS)
        for place, value in self.parameters.items():
            parameters[int(place)] = value / 1000
        return Priors(parameters, np.array(self.survival) / 10_000)


@lru_cache(maxsize=2)
def load_priors(name: str) -> Priors:
    """The shipped priors: `plain`, or `table` for use with a static n-gram table."""
    data = (resources.files("specedit.draft") / "tables" / f"priors-{name}.json").read_bytes()
    return msgspec.json.decode(data, type=PriorsFile).priors()


@jit
def class_of(group: int, doing: int, match: int) -> int:
    """The survival class of a belief of `group` with `match` matching tokens."""
    bucket = match_bucket(min(match, 32))
    if group == NEAR:
        return bucket if doing == FOLLOW else MATCH_BUCKETS + bucket
    if group == WRITTEN:
        return 2 * MATCH_BUCKETS + bucket
    if group == PROMPT:
        return 3 * MATCH_BUCKETS + bucket
    if group == MADE_UP:
        return 4 * MATCH_BUCKETS + bucket
    return 5 * MATCH_BUCKETS + doing


@jit
def group_of(kind: int) -> int:
    """The group whose survival class `kind` is."""
    if kind < 2 * MATCH_BUCKETS:
        return NEAR
    if kind < 3 * MATCH_BUCKETS:
        return WRITTEN
    if kind < 4 * MATCH_BUCKETS:
        return PROMPT
    return MADE_UP if kind < 5 * MATCH_BUCKETS else GUESS


@jit
def run_bucket(run: int) -> int:
    """1, 2, 3, 4 to 7, 8 to 15, 16 to 31, 32 to 63, 64 and more, as 0 to 7."""
    if run <= 3:
        return run - 1
    if run < 8:
        return 3
    if run < 16:
        return 4
    if run < 32:
        return 5
    return 6 if run < 64 else 7


def untrained_priors() -> Priors:
    """Rough beliefs to start fitting from: longer matches and nearer places are likelier."""
    parameters = np.zeros(NUM_PARAMETERS)
    for doing in range(NUM_STATES):
        for bucket in range(MATCH_BUCKETS):
            rows = slice(
                (doing * MATCH_BUCKETS + bucket) * DISTANCE_BUCKETS,
                (doing * MATCH_BUCKETS + bucket + 1) * DISTANCE_BUCKETS,
            )
            parameters[rows] = bucket - (0 if doing == FOLLOW else 2)
    parameters[0 : MATCH_BUCKETS * DISTANCE_BUCKETS : DISTANCE_BUCKETS] += 3
    parameters[GUESS_AT:WRITTEN_AT] = -1.5
    for at, size in ((WRITTEN_AT, 2), (PROMPT_AT, 1), (MADE_AT, 1)):
        for row in range(NUM_STATES * MATCH_BUCKETS * size):
            parameters[at + row] = (row // size) % MATCH_BUCKETS - 2
    growing = np.array([0.5, 0.7, 0.85, 0.92, 0.95, 0.98, 0.99, 0.995])
    survival = np.tile(growing, (NUM_CLASSES, 1))
    survival[:MATCH_BUCKETS] = 0.99
    return Priors(parameters, survival)
