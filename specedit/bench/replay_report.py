"""The figures of a replay as tables for people and as JSON for programs."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from specedit.bench.replay import DraftCost, DrafterReplay, Figures, by_size, figures


class _Entry(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    forwards: int
    tokens_per_forward: float
    nodes_per_forward_mean: float
    nodes_per_forward_max: int
    ratio_to_copy_oracle: float
    by_size: dict[str, Figures]


def to_json(results: Sequence[DrafterReplay]) -> str:
    """`{"drafters": [...]}` with an object for each result of `measure`; the same in every run."""
    oracle = results[0]
    entries = []
    for result in results:
        total = _rounded(figures(result.replayed, oracle.replayed))
        entries.append(
            _Entry(
                name=result.name,
                forwards=total.forwards,
                tokens_per_forward=total.tokens_per_forward,
                nodes_per_forward_mean=total.nodes_per_forward_mean,
                nodes_per_forward_max=total.nodes_per_forward_max,
                ratio_to_copy_oracle=total.ratio_to_copy_oracle,
                by_size={size: _rounded(found) for size, found in by_size(result, oracle).items()},
            )
        )
    return msgspec.json.format(msgspec.json.encode({"drafters": entries})).decode()


def markdown(results: Sequence[DrafterReplay], *, budget: int) -> str:
    """The results of `measure` as a table over all edits and one by size class."""
    edits = results[0].replayed
    said = (
        f"{len(edits)} edits, {sum(one.tokens for one in edits)} tokens, at most {budget} nodes a forward. "
        f"The copy oracle copies at most {budget} tokens a forward."
    )
    return f"{said}\n\n{_total_table(results)}\n\n{_size_table(results)}"


_TOTAL_HEAD = """\
| drafter | forwards | tokens per forward | nodes per forward, mean | max | x copy oracle \
| draft call µs, p50 | p99 | index tokens/s | update µs per token |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"""


def _total_table(results: Sequence[DrafterReplay]) -> str:
    lines = [_TOTAL_HEAD]
    for result in results:
        total = figures(result.replayed, results[0].replayed)
        cells = [
            result.name,
            str(total.forwards),
            f"{total.tokens_per_forward:.2f}",
            f"{total.nodes_per_forward_mean:.1f}",
            str(total.nodes_per_forward_max),
            f"{total.ratio_to_copy_oracle:.3f}",
            *_cost_cells(result.cost),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _size_table(results: Sequence[DrafterReplay]) -> str:
    sizes = by_size(results[0], results[0])
    head = [f"{size} ({found.edits} edits): tokens per forward | x copy oracle" for size, found in sizes.items()]
    lines = [f"| drafter | {' | '.join(head)} |", "|---|" + "---:|" * (2 * len(sizes))]
    for result in results:
        found = by_size(result, results[0])
        cells = [f"{found[size].tokens_per_forward:.2f} | {found[size].ratio_to_copy_oracle:.3f}" for size in sizes]
        lines.append(f"| {result.name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cost_cells(cost: DraftCost | None) -> list[str]:
    if cost is None:
        return [""] * 4
    return [
        f"{cost.propose_us(50):.1f}",
        f"{cost.propose_us(99):.1f}",
        f"{cost.index_tokens_per_second:.2g}",
        f"{cost.update_us_per_token:.2f}",
    ]


def _rounded(found: Figures) -> Figures:
    return msgspec.structs.replace(
        found,
        tokens_per_forward=round(found.tokens_per_forward, 4),
        nodes_per_forward_mean=round(found.nodes_per_forward_mean, 4),
        ratio_to_copy_oracle=round(found.ratio_to_copy_oracle, 4),
    )
