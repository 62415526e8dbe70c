"""What a load showed, as tables for people and as JSON for programs."""

from __future__ import annotations

import msgspec

from specedit.bench.load import Check, Report, Waits

_VERDICTS = {True: "held", False: "FAILED", None: "not judged"}


def markdown(report: Report) -> str:
    """Tables: what clients did, how long they waited, what the server took, and what held."""
    return "\n\n".join((_visits(report), _waits(report), _server(report), _checks(report)))


def to_json(report: Report) -> str:
    """The report, with `held`."""
    told = msgspec.to_builtins(report) | {"held": report.held}
    return msgspec.json.format(msgspec.json.encode(told)).decode()


def _visits(report: Report) -> str:
    rows = (f"| {kind} | {did} | {outcome} | {count} |" for kind, did, outcome, count in report.visits)
    return "\n".join(["| request | client | outcome | |", "|---|---|---|---:|", *rows])


def _waits(report: Report) -> str:
    head = (
        "| priority | answers | first text p50, s | p99 | whole answer p50, s | p99 | lower steps before it, most |",
        "|---|---:|---:|---:|---:|---:|---:|",
    )
    return "\n".join([*head, *map(_wait, report.waits)])


def _wait(waits: Waits) -> str:
    seconds = (waits.first_text_p50, waits.first_text_p99, waits.answer_p50, waits.answer_p99)
    shown = " | ".join("-" if value is None else f"{value:.2f}" for value in seconds)
    return f"| {waits.priority} | {waits.answers} | {shown} | {waits.steps_before_start:g} |"


def _server(report: Report) -> str:
    samples = report.samples
    rows = ["| server | start | middle | end | most |", "|---|---:|---:|---:|---:|"]
    for name, values, scale in (
        ("memory, MiB", [sample.rss_bytes for sample in samples], 1 << 20),
        ("of it keys and values, MiB", [sample.kv_bytes for sample in samples], 1 << 20),
        ("file descriptors", [sample.fds for sample in samples], 1),
        ("threads", [sample.threads for sample in samples], 1),
    ):
        chosen = (values[0], values[len(samples) // 2], values[-1], max(values))
        rows.append(f"| {name} | {' | '.join(f'{value / scale:.0f}' for value in chosen)} |")
    speed = (
        f"{report.model}, {report.clients} clients, {report.seconds:.0f} s: {report.output_tokens} tokens "
        f"({report.output_tokens / report.seconds:.1f} a second), {report.steps} steps, {report.cached_share:.0%} of "
        "the prompts' tokens from the cache."
    )
    return "\n".join([*rows, "", speed])


def _checks(report: Report) -> str:
    rows = [f"| {check.name} | {_verdict(check)} | {_cell(check.told)} |" for check in report.checks]
    verdict = "The server held." if report.held else "The server did NOT hold."
    return "\n".join(["| check | | |", "|---|---|---|", *rows, "", verdict])


def _verdict(check: Check) -> str:
    return _VERDICTS[check.held]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
