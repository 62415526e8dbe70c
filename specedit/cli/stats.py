"""What `--stats` says about one answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from specedit.engine.api import DrafterUsage, Usage


def lines(usage: Usage) -> Iterator[str]:
    """Acceptance by part and by depth, sizes of the drafts, and where the time went; for the eye."""
    yield f"forwards: {usage.forwards}, {usage.tokens_per_forward:.1f} tokens each"
    if usage.drafted:
        mean = usage.drafted / usage.forwards
        yield f"drafts: {mean:.1f} tokens on average, {usage.largest_draft} at most"
        yield f"accepted of what was drafted, by part: {_rates(usage.drafters)}"
        yield f"accepted of what was drafted, by tokens ahead: {_rates(usage.depths)}"
    rest = max(0.0, usage.decode_seconds - usage.draft_seconds - usage.forward_seconds)
    yield (
        f"seconds: {usage.prefill_seconds:.2f} reading the prompt ({usage.cached_tokens} of {usage.prompt_tokens} "
        f"tokens were known), {usage.draft_seconds:.2f} drafting, {usage.forward_seconds:.2f} forwards, "
        f"{rest:.2f} all else"
    )


def as_json(usage: Usage) -> dict[str, object]:
    """The counters, as `--json` prints them."""
    return {
        "prompt_tokens": usage.prompt_tokens,
        "cached_tokens": usage.cached_tokens,
        "output_tokens": usage.output_tokens,
        "forwards": usage.forwards,
        "drafted": usage.drafted,
        "accepted": usage.accepted,
        "largest_draft": usage.largest_draft,
        "by_drafter": _counts(usage.drafters),
        "by_depth": _counts(usage.depths),
        "seconds": round(usage.seconds, 3),
        "prefill_seconds": round(usage.prefill_seconds, 3),
        "draft_seconds": round(usage.draft_seconds, 4),
        "forward_seconds": round(usage.forward_seconds, 3),
    }


def _rates(usages: Mapping[str, DrafterUsage]) -> str:
    return "; ".join(
        f"{name}: {usage.accepted} of {usage.drafted} ({usage.accepted / max(1, usage.drafted):.0%})"
        for name, usage in usages.items()
    )


def _counts(usages: Mapping[str, DrafterUsage]) -> dict[str, dict[str, int]]:
    return {name: {"drafted": usage.drafted, "accepted": usage.accepted} for name, usage in usages.items()}
