"""What became of what was proposed, and what it cost. It stays in this process: nothing is written or sent."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from specedit.engine.api import Usage

Kind = Literal["inline", "rewrite", "nextEdit"]
"""What is counted apart: completions at the cursor, rewrites of a selection, proposals for the next edit."""

KINDS: tuple[Kind, ...] = get_args(Kind)
"""All of them."""

_TITLES: dict[Kind, str] = {"inline": "inline completions", "rewrite": "rewrites", "nextEdit": "next edits"}


@dataclass(slots=True)
class Counters:
    """What is counted; ratios are made of it.

    Attributes:
        shown: proposals that the user saw.
        accepted: those of them that were taken, whole or in part.
        rejected: those that were turned down.
        accepted_chars: characters that were taken.
        answers: answers of the engine, those that led to no proposal too.
        output_tokens: tokens in them.
        forwards: of the target, for the answers whose engine tells them.
        forward_tokens: tokens in those answers.
        seconds: wall clock of the answers, waiting included.
        seconds_saved: the most that drafting can have saved; see `Statistics`.
    """

    shown: int = 0
    accepted: int = 0
    rejected: int = 0
    accepted_chars: int = 0
    answers: int = 0
    output_tokens: int = 0
    forwards: int = 0
    forward_tokens: int = 0
    seconds: float = 0.0
    seconds_saved: float = 0.0

    @property
    def tokens_per_forward(self) -> float | None:
        """Output tokens a target forward, the next token counted, prefill excluded; None where none was told."""
        return self.forward_tokens / self.forwards if self.forwards else None

    def to_json(self) -> dict[str, Any]:
        """All by name, as JSON writes them."""
        ratio = self.tokens_per_forward
        return {
            "shown": self.shown,
            "accepted": self.accepted,
            "rejected": self.rejected,
            "acceptedChars": self.accepted_chars,
            "answers": self.answers,
            "outputTokens": self.output_tokens,
            "forwards": self.forwards,
            "tokensPerForward": None if ratio is None else round(ratio, 2),
            "seconds": round(self.seconds, 3),
            "secondsSaved": round(self.seconds_saved, 3),
        }


class Statistics:
    """Counters since the server started.

    Time saved is an estimate from above: the seconds that as many plain forwards as there are tokens would have taken,
    at the answer's measured seconds a forward, minus the seconds that decoding took. A forward that checks drafts takes
    at least as long as a plain one, much longer on a CPU, and about as long on a GPU. It is below 0 where drafting cost
    more than it gave. Answers of servers that don't tell their forwards count as nothing saved.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        """Begin at 0; `clock` gives Unix time."""
        self._clock = clock
        self._since = clock()
        self._counters = {kind: Counters() for kind in KINDS}

    def shown(self, kind: Kind) -> None:
        """A proposal is on the screen."""
        self._counters[kind].shown += 1

    def accepted(self, kind: Kind, chars: int) -> None:
        """It was taken, or a part of it of so many characters."""
        self._counters[kind].accepted += 1
        self._counters[kind].accepted_chars += chars

    def rejected(self, kind: Kind) -> None:
        """It was turned down."""
        self._counters[kind].rejected += 1

    def answered(self, kind: Kind, usage: Usage, seconds: float) -> None:
        """The engine gave an answer, after so many seconds of wall clock."""
        counters = self._counters[kind]
        counters.answers += 1
        counters.output_tokens += usage.output_tokens
        counters.seconds += seconds
        if usage.forwards:
            counters.forwards += usage.forwards
            counters.forward_tokens += usage.output_tokens
            counters.seconds_saved += _seconds_saved(usage)

    def report(self) -> dict[str, Any]:
        """All as JSON: by kind, in `total`, how long it was counted, and `summary` for people."""
        counted: dict[str, Any] = {kind: counters.to_json() for kind, counters in self._counters.items()}
        return {
            "countedSeconds": round(self._clock() - self._since, 1),
            **counted,
            "total": _total(self._counters.values()).to_json(),
            "summary": self.summary(),
        }

    def summary(self) -> str:
        """A few lines for people."""
        minutes = (self._clock() - self._since) / 60
        lines = [
            line for kind, counters in self._counters.items() if (line := _line(_TITLES[kind], counters)) is not None
        ]
        cost = _cost(_total(self._counters.values()))
        return "\n".join([f"In the last {_duration(minutes)}:", *(lines or ["Nothing was asked yet."]), *cost])


def _seconds_saved(usage: Usage) -> float:
    seconds_a_forward = usage.forward_seconds / usage.forwards
    return usage.output_tokens * seconds_a_forward - usage.decode_seconds if usage.forward_seconds else 0.0


def _total(parts: Iterable[Counters]) -> Counters:
    parts = list(parts)
    return Counters(**{field.name: sum(getattr(part, field.name) for part in parts) for field in fields(Counters)})


def _line(title: str, counters: Counters) -> str | None:
    if not counters.shown and not counters.answers:
        return None
    share = f" ({counters.accepted / counters.shown:.0%})" if counters.shown else ""
    return (
        f"{title}: {counters.shown} shown, {counters.accepted} accepted{share}, {counters.rejected} rejected, "
        f"{counters.accepted_chars} characters taken"
    )


def _cost(total: Counters) -> list[str]:
    if not total.answers:
        return []
    ratio = total.tokens_per_forward
    forwards = "" if ratio is None else f" in {total.forwards} forwards ({ratio:.1f} tokens per forward)"
    answers = "1 answer" if total.answers == 1 else f"{total.answers} answers"
    said = [f"{answers}: {total.output_tokens} tokens{forwards}, {total.seconds:.1f} s"]
    if ratio is not None:
        saved = total.seconds_saved
        said.append(f"drafting saved at most {saved:.1f} s" if saved >= 0 else f"drafting cost {-saved:.1f} s")
    return said


def _duration(minutes: float) -> str:
    if minutes >= 90:
        return f"{minutes / 60:.1f} hours"
    return f"{round(minutes)} minutes" if minutes >= 1.5 else "minute"
