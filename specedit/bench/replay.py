"""Replay: how many forwards recorded edits take. No model: a drafter proposes, the recorded answer verifies."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import msgspec
import numpy as np

from specedit.bench.oracle import COPY_TOKENS, copied_tokens
from specedit.bench.recorded import SIZES, TokenizedEdit
from specedit.draft.base import Drafter
from specedit.errors import EngineError

ORACLE = "copy-oracle"


@dataclass
class DraftCost:
    """Time that a drafter took, other programs' share of the processor left out; over any number of answers.

    Attributes:
        propose_ns: of each call.
        begin_ns: of all begins.
        begun_tokens: prompt and prediction tokens that those were given.
        commit_ns: of all commits.
        committed_tokens: tokens that those were given.
    """

    propose_ns: list[int] = field(default_factory=list)
    begin_ns: int = 0
    begun_tokens: int = 0
    commit_ns: int = 0
    committed_tokens: int = 0

    def propose_us(self, percentile: float) -> float:
        """Microseconds of a draft call at a percentile."""
        return float(np.percentile(self.propose_ns, percentile)) / 1000 if self.propose_ns else 0.0

    @property
    def index_tokens_per_second(self) -> float:
        """Prompt and prediction tokens indexed a second."""
        return self.begun_tokens / self.begin_ns * 1e9 if self.begin_ns else 0.0

    @property
    def update_us_per_token(self) -> float:
        """Microseconds to take note of a committed token."""
        return self.commit_ns / self.committed_tokens / 1000 if self.committed_tokens else 0.0


@dataclass(frozen=True)
class Replayed:
    """One edit by one drafter.

    Attributes:
        size: the edit's class.
        edited_share: the edit's.
        tokens: tokens of the answer.
        nodes: of each forward, how many drafted tokens it verified.
    """

    size: str
    edited_share: float
    tokens: int
    nodes: list[int]

    @property
    def forwards(self) -> int:
        """Target forwards, the prefill not counted."""
        return len(self.nodes)


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """Edits counted together.

    Attributes:
        edits: how many.
        forwards: target forwards, the prefill not counted.
        tokens_per_forward: all answer tokens over all forwards, the next token counted.
        nodes_per_forward_mean: drafted tokens verified in a forward.
        nodes_per_forward_max: the most of them in one forward.
        ratio_to_copy_oracle: forwards over those of the copy oracle.
    """

    edits: int
    forwards: int
    tokens_per_forward: float
    nodes_per_forward_mean: float
    nodes_per_forward_max: int
    ratio_to_copy_oracle: float


@dataclass(frozen=True)
class DrafterReplay:
    """All edits by one drafter; `cost` is None for the oracle, which does not draft."""

    name: str
    replayed: list[Replayed]
    cost: DraftCost | None = None


def measure(
    edits: Sequence[TokenizedEdit],
    makers: Mapping[str, Callable[[], Drafter]],
    *,
    vocab_size: int,
    budget: int,
    on_edit: Callable[[str], None] = lambda _: None,
) -> list[DrafterReplay]:
    """Replay all edits through each drafter.

    Args:
        edits: what to replay.
        makers: by name, how to make a drafter.
        vocab_size: drafted tokens are below it.
        budget: the most nodes of a forward, and the longest copy of the copy oracle.
        on_edit: told the drafter's name after each of its edits.

    Returns:
        The copy oracle first, for another budget than `COPY_TOKENS` also that of `COPY_TOKENS`; then the drafters in
        the order of `makers`. Only their costs differ from run to run.

    Raises:
        EngineError: a drafter failed; names it and the edit.
    """
    oracles = {ORACLE: budget} | ({f"{ORACLE}-{COPY_TOKENS}": COPY_TOKENS} if budget != COPY_TOKENS else {})
    results = [
        DrafterReplay(name, [_replayed(edit, _copied(edit, copy_tokens)) for edit in edits])
        for name, copy_tokens in oracles.items()
    ]
    for name, make in makers.items():
        with _failing_as(name, edits[0]):
            # What is compiled at a first call is not timed.
            replay(make(), edits[0], vocab_size=vocab_size, budget=budget)
            drafter = make()
        cost, replayed = DraftCost(), []
        for edit in edits:
            with _failing_as(name, edit):
                nodes = replay(drafter, edit, vocab_size=vocab_size, budget=budget, cost=cost)
            replayed.append(_replayed(edit, nodes))
            on_edit(name)
        results.append(DrafterReplay(name, replayed, cost))
    return results


def replay(
    drafter: Drafter,
    edit: TokenizedEdit,
    *,
    vocab_size: int,
    budget: int,
    cost: DraftCost | None = None,
    max_forwards: int | None = None,
) -> list[int]:
    """Decode one edit as the engine's loop does, with the recorded answer in the target's place.

    Returns:
        [forwards] how many nodes each forward verified; cut off after `max_forwards`.

    Raises:
        ValueError: a proposed tree breaks the row rule or the budget.
    """
    cost = cost or DraftCost()
    answer = edit.answer_ids
    clock = _clock_ns()
    started = clock()
    drafter.begin(edit.prompt_ids, edit.prediction_ids, edit.hints)
    cost.begin_ns += clock() - started
    cost.begun_tokens += len(edit.prompt_ids) + len(edit.prediction_ids)
    nodes: list[int] = []
    done = 0
    while done < len(answer) and (max_forwards is None or len(nodes) < max_forwards):
        room = min(budget, len(answer) - done - 1)
        started = clock()
        tree = drafter.propose(room)
        cost.propose_ns.append(clock() - started)
        tree.check(vocab_size, room)
        accepted, node = 0, tree.child(-1, answer[done])
        while node is not None:
            accepted += 1
            node = tree.child(node, answer[done + accepted])
        emitted = answer[done : done + accepted + 1]
        started = clock()
        drafter.commit(emitted)
        cost.commit_ns += clock() - started
        cost.committed_tokens += len(emitted)
        done += len(emitted)
        nodes.append(len(tree))
    return nodes


def figures(replayed: Iterable[Replayed], oracle: Iterable[Replayed]) -> Figures:
    """Count edits together, and set them in relation to the copy oracle's on the same edits."""
    found = list(replayed)
    nodes = [count for one in found for count in one.nodes]
    forwards, oracle_forwards = len(nodes), sum(one.forwards for one in oracle)
    return Figures(
        edits=len(found),
        forwards=forwards,
        tokens_per_forward=_ratio(sum(one.tokens for one in found), forwards),
        nodes_per_forward_mean=_ratio(sum(nodes), forwards),
        nodes_per_forward_max=max(nodes, default=0),
        ratio_to_copy_oracle=_ratio(forwards, oracle_forwards),
    )


def by_size(result: DrafterReplay, oracle: DrafterReplay) -> dict[str, Figures]:
    """The figures of each size class, the smallest first."""
    sizes = {one.size for one in result.replayed}
    return {
        size: figures(
            (one for one in result.replayed if one.size == size), (one for one in oracle.replayed if one.size == size)
        )
        for size in sorted(sizes, key=lambda size: (SIZES.index(size) if size in SIZES else len(SIZES), size))
    }


def _clock_ns() -> Callable[[], int]:
    """The processor time of this thread, or the wall clock where that is too coarse."""
    return time.thread_time_ns if time.get_clock_info("thread_time").resolution < 1e-6 else time.perf_counter_ns


def _copied(edit: TokenizedEdit, copy_tokens: int) -> list[int]:
    return copied_tokens(edit.prompt_ids, edit.prediction_ids, edit.answer_ids, copy_tokens)


def _replayed(edit: TokenizedEdit, nodes: list[int]) -> Replayed:
    return Replayed(edit.size, edit.edited_share, len(edit.answer_ids), nodes)


@contextmanager
def _failing_as(name: str, edit: TokenizedEdit) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise EngineError(
            f"the drafter {name} failed on the edit {edit.name}: {type(error).__name__}: {error}. "
            "Leave it out with --drafters, and please report this"
        ) from error


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
