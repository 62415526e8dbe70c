"""What drafting costs: draft calls, index and updates at several sizes of context, and in parts.

The texts are our own edits' files over and over, each time with other names, and an answer that changes some of their
lines. They are the same in every run.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import count

from specedit.bench.corpus import own_edits
from specedit.bench.recorded import TokenizedEdit
from specedit.bench.replay import DraftCost, replay
from specedit.draft.base import NO_HINTS, Drafter
from specedit.edit.document import split_lines
from specedit.engine.tokens import Tokenizer

CONTEXT_TOKENS = (1_000, 10_000, 50_000, 200_000)
CALLS = 500

_ANSWER_TOKENS = 4_000
_RENAMED = 6
#: Shares of lines that the answer leaves out, writes twice, or writes with another name.
_LEFT_OUT, _TWICE, _OTHER_NAME = 0.02, 0.02, 0.05
_WORD = re.compile(r"\b[a-z_]{4,}\b")


@dataclass(frozen=True)
class PartCost:
    """One part of the drafter at one size of context.

    Attributes:
        part: its name.
        context_tokens: tokens of the prompt, nearly all of them the file.
        cost: of at least `CALLS` draft calls.
        memory_bytes: what the drafter says it holds, or None where it doesn't say.
    """

    part: str
    context_tokens: int
    cost: DraftCost
    memory_bytes: int | None


def measure(
    makers: Mapping[str, Callable[[], Drafter]],
    tokenizer: Tokenizer,
    *,
    vocab_size: int,
    budget: int,
    context_tokens: Sequence[int] = CONTEXT_TOKENS,
    calls: int = CALLS,
) -> Iterator[PartCost]:
    """Measure each drafter at each size of context; what is compiled at a first call is compiled before.

    Raises:
        ValueError: a proposed tree breaks the row rule or the budget.
    """
    for make in makers.values():
        replay(make(), made_up_edit(1_000, tokenizer, 0), vocab_size=vocab_size, budget=budget)
    for tokens in context_tokens:
        made_up = lru_cache(partial(made_up_edit, tokens, tokenizer))
        for part, make in makers.items():
            cost, drafter = DraftCost(), make()
            for seed in count(1):
                replay(drafter, made_up(seed), vocab_size=vocab_size, budget=budget, cost=cost)
                if len(cost.propose_ns) >= calls:
                    break
            yield PartCost(part, tokens, cost, getattr(drafter, "memory_bytes", None))


def made_up_edit(context_tokens: int, tokenizer: Tokenizer, seed: int) -> TokenizedEdit:
    """A code-like file of about so many tokens, and the beginning of an answer that edits it."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    file_text = _file(context_tokens, tokenizer, chance)
    file_ids = tokenizer.encode(file_text)[:context_tokens]
    answer_ids = tokenizer.encode(_edited(file_text, chance))[: min(context_tokens, _ANSWER_TOKENS)]
    return TokenizedEdit(f"made up {seed}", "", 0.0, file_ids, file_ids, NO_HINTS, answer_ids)


def markdown(costs: Sequence[PartCost]) -> str:
    """A table, a line for each part and size."""
    lines = [
        "| part | context tokens | draft calls | a call µs, p50 | p99 | index tokens/s | update µs per token | MB |",
        "|---|" + "---:|" * 7,
    ]
    for one in costs:
        cells = [
            one.part,
            f"{one.context_tokens:,}",
            str(len(one.cost.propose_ns)),
            f"{one.cost.propose_us(50):.1f}",
            f"{one.cost.propose_us(99):.1f}",
            f"{one.cost.index_tokens_per_second:.2g}",
            f"{one.cost.update_us_per_token:.2f}",
            "" if one.memory_bytes is None else f"{one.memory_bytes / 1e6:.1f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _file(context_tokens: int, tokenizer: Tokenizer, chance: random.Random) -> str:
    sources = [case.before for case in (*own_edits("speed"), *own_edits("small"))]
    pieces: list[str] = []
    tokens = 0
    while tokens < context_tokens:
        piece = _renamed(chance.choice(sources), chance)
        pieces.append(piece)
        tokens += len(tokenizer.encode(piece))
    return "\n\n".join(pieces)


def _renamed(text: str, chance: random.Random) -> str:
    names = sorted(set(_WORD.findall(text)))
    new = {name: f"{name}_{chance.randrange(1000)}" for name in chance.sample(names, min(_RENAMED, len(names)))}
    return _WORD.sub(lambda match: new.get(match[0], match[0]), text)


def _edited(text: str, chance: random.Random) -> str:
    lines: list[str] = []
    for line in split_lines(text):
        drawn = chance.random() - _LEFT_OUT
        if drawn < 0:
            continue
        lines.append(line)
        if drawn < _TWICE:
            lines.append(line)
        elif drawn < _TWICE + _OTHER_NAME:
            lines[-1] = _WORD.sub(lambda match: f"{match[0]}_new", line, count=1)
    return "".join(lines)
