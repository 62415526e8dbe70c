"""Whether edits are made, not only copied: specedit's prompt and guards against "return the whole code".

Each case is asked twice in the same run, greedily, of the same engine. Through specedit: its prompt, its reading of the
answer, its guards. Plainly: instruction and code in one message, and the first code block of the answer as it stands.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from specedit.bench.case import Case
from specedit.edit.session import EditResult, Status, generate_request, run_edit
from specedit.edit.stream import to_lf
from specedit.engine.api import Engine, FinishReason, GenerateRequest, Message, Usage

Way = Literal["specedit", "plain"]
WAYS: tuple[Way, ...] = ("specedit", "plain")

_PLAIN_PROMPT = "{instruction}\n\n```python\n{code}\n```\n\nReturn the whole code."
_BLOCK = re.compile(r"^```[^\n]*\n(.*?)(?:^```|\Z)", re.DOTALL | re.MULTILINE)


class NamedEngine(Engine, Protocol):
    """An engine that says which model it runs."""

    model_name: str


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a case asked in one way.

    Attributes:
        case: the case's name.
        way: how it was asked.
        status: as `EditResult` has it; a plain answer is changed, unchanged or failed.
        passed: whether the text that would have been written is the right one.
        refused_right: whether the answer was refused although its code is right.
        reason: why it was refused, or why the check failed.
        answer: what the model wrote.
        output_tokens: tokens of the answer.
        forwards: target forwards of its decode steps, the prefill not counted.
        seconds: wall clock, the prefill counted.
        key: of model, case, way and prompt; the outcome stands for nothing else.
        set_name: which set the case is of.
    """

    case: str
    way: Way
    status: Status
    passed: bool
    refused_right: bool
    reason: str
    answer: str
    output_tokens: int
    forwards: int
    seconds: float
    key: str = ""
    set_name: str = ""


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """A set's outcomes counted.

    Attributes:
        cases: how many were asked.
        passed: by way, how many are right.
        refused: answers that specedit did not apply, those cut by a limit included.
        refused_right: how many of them were right.
        unchanged: answers through specedit that were the code as it had been.
        tokens_per_forward: by way, all output tokens over all decode forwards; the prefill is not counted.
    """

    set_name: str
    cases: int
    passed: Mapping[Way, int]
    refused: int
    refused_right: int
    unchanged: int
    tokens_per_forward: Mapping[Way, float]


class Ledger:
    """The outcomes so far, one JSON line each, so that a run that was cut goes on where it stopped.

    A case is asked again once its model, check or prompt changes; not for a change of the guards: use a new file then.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._known: dict[str, Outcome] = {}
        if file and file.exists():
            # A line without its end was being written when the run was cut.
            written = file.read_bytes()
            whole = written[: written.rfind(b"\n") + 1]
            os.truncate(file, len(whole))
            self._known = {found.key: found for found in msgspec.json.Decoder(Outcome).decode_lines(whole)}

    def get(self, key: str) -> Outcome | None:
        """The outcome of this key, if there is one."""
        return self._known.get(key)

    def add(self, outcome: Outcome) -> None:
        """Keep an outcome."""
        self._known[outcome.key] = outcome
        if self._file:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with self._file.open("ab") as stream:
                stream.write(msgspec.json.encode(outcome) + b"\n")


def measure(
    sets: Mapping[str, Iterable[Case]],
    engine: NamedEngine,
    *,
    ways: Iterable[Way] = WAYS,
    ledger: Ledger | None = None,
    on_outcome: Callable[[Outcome], None] = lambda _: None,
) -> list[Outcome]:
    """Ask `engine` for each case in each way; outcomes that the ledger has are taken from there.

    Answers are run as programs; see `check`.
    """
    ledger = ledger or Ledger()
    outcomes = []
    for set_name, cases in sets.items():
        for case in cases:
            for way in ways:
                key = _key(case, way, engine.model_name)
                outcome = ledger.get(key)
                if outcome is None:
                    ask = _through_specedit if way == "specedit" else _plainly
                    outcome = msgspec.structs.replace(ask(case, engine), key=key, set_name=set_name)
                    ledger.add(outcome)
                outcomes.append(outcome)
                on_outcome(outcome)
    return outcomes


def summaries(outcomes: Iterable[Outcome]) -> Iterator[Summary]:
    """One summary a set, in the order of their first outcomes."""
    by_set: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        by_set.setdefault(outcome.set_name, []).append(outcome)
    for set_name, found in by_set.items():
        by_way = {way: [outcome for outcome in found if outcome.way == way] for way in WAYS}
        ours = by_way["specedit"]
        yield Summary(
            set_name=set_name,
            cases=len({outcome.case for outcome in found}),
            passed={way: sum(outcome.passed for outcome in by_way[way]) for way in WAYS},
            refused=sum(outcome.status == "refused" for outcome in ours),
            refused_right=sum(outcome.refused_right for outcome in ours),
            unchanged=sum(outcome.status == "unchanged" for outcome in ours),
            tokens_per_forward={way: _tokens_per_forward(by_way[way]) for way in WAYS},
        )


def markdown(found: Iterable[Summary]) -> str:
    """The summaries as a table."""
    lines = [
        "| set | cases | passed, specedit | passed, plain | refused | refused though right | unchanged "
        "| tokens per forward, specedit | tokens per forward, plain prompt |",
        "|---|" + "---:|" * 8,
    ]
    for one in found:
        cells = [one.set_name, one.cases, one.passed["specedit"], one.passed["plain"]]
        cells += [one.refused, one.refused_right, one.unchanged]
        cells += [f"{one.tokens_per_forward[way]:.1f}" for way in WAYS]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def to_json(found: Iterable[Summary], outcomes: Iterable[Outcome]) -> str:
    """Summaries and outcomes as one JSON object."""
    return msgspec.json.format(msgspec.json.encode({"sets": list(found), "outcomes": list(outcomes)})).decode()


def code_block(answer: str) -> str:
    """The first fenced block of an answer, closed or not; the whole answer where there is none."""
    found = _BLOCK.search(answer)
    return found[1] if found else answer


def _through_specedit(case: Case, engine: Engine) -> Outcome:
    result = run_edit(case.request(), engine)
    verdict = case.judge(result.document.text)
    refused_right = result.status == "refused" and case.judge(_unchecked(case, result)).passed
    return Outcome(
        case=case.name,
        way="specedit",
        status=result.status,
        passed=verdict.passed,
        refused_right=refused_right,
        reason=result.reason or verdict.reason,
        answer=result.answer,
        output_tokens=result.usage.output_tokens,
        forwards=result.usage.forwards,
        seconds=result.usage.seconds,
    )


def _plainly(case: Case, engine: Engine) -> Outcome:
    answer, usage = "", Usage()
    finish_reason: FinishReason | None = None
    for chunk in engine.generate(_plain_request(case)):
        answer += chunk.text
        usage, finish_reason = chunk.usage, chunk.finish_reason
    after = code_block(answer)
    verdict = case.judge(after)
    unchanged = after.strip("\n") == case.before.strip("\n")
    return Outcome(
        case=case.name,
        way="plain",
        status="unchanged" if unchanged else "changed",
        passed=verdict.passed,
        refused_right=False,
        reason="cut by a limit" if finish_reason == "length" else verdict.reason,
        answer=answer,
        output_tokens=usage.output_tokens,
        forwards=usage.forwards,
        seconds=usage.seconds,
    )


def _plain_request(case: Case) -> GenerateRequest:
    content = _PLAIN_PROMPT.format(instruction=case.instruction, code=to_lf(case.before).removesuffix("\n"))
    return GenerateRequest(messages=(Message("user", content),), prediction=to_lf(case.before))


def _unchecked(case: Case, result: EditResult) -> str:
    """The file with the answer's code in the region's place, whatever speaks against it."""
    span, before = case.request().region.span, result.before.text
    return before[: span.start] + code_block(result.answer) + before[span.end :]


def _key(case: Case, way: Way, model_name: str) -> str:
    request = generate_request(case.request()) if way == "specedit" else _plain_request(case)
    return hashlib.sha256(msgspec.json.encode([model_name, way, case, request.messages])).hexdigest()


def _tokens_per_forward(outcomes: Iterable[Outcome]) -> float:
    found = list(outcomes)
    forwards = sum(outcome.forwards for outcome in found)
    return sum(outcome.output_tokens for outcome in found) / forwards if forwards else 0.0
