"""The page of `--trace`: what was drafted by which part, what the model made of it, and where the time went."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple

from specedit.cli.terminal import harmless
from specedit.engine.api import DrafterUsage, Engine, GenerateRequest, TextChunk, TraceStep, Usage

#: Colours that can be told apart, also by the colour-blind, on light and on dark (Okabe and Ito, 2008).
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_OWN = "the model"


@dataclass(frozen=True)
class TracedEdit:
    """One file's edit: its steps, what they cost, and what became of it."""

    name: str
    outcome: str
    steps: tuple[TraceStep, ...]
    usage: Usage


class Recorder:
    """An engine that hands on another one's answers and keeps the steps that made the last one."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.steps: list[TraceStep] = []

    def generate(self, request: GenerateRequest) -> Iterator[TextChunk]:
        """See `Engine.generate`."""
        self.steps = []
        for chunk in self._engine.generate(replace(request, trace=True)):
            if chunk.step is not None:
                self.steps.append(chunk.step)
            yield chunk


def page(edits: Sequence[TracedEdit]) -> str:
    """One HTML page that needs nothing else: a section for each edit. All text of files and answers is escaped."""
    parts = list(dict.fromkeys(name for edit in edits for name in _parts(edit)))
    colours = {part: _COLOURS[place % len(_COLOURS)] for place, part in enumerate(parts)}
    rules = "".join(f".p{place}{{--c:{colour}}}" for place, colour in enumerate(colours.values()))
    classes = {part: f"p{place}" for place, part in enumerate(parts)}
    sections = "".join(_Section(edit, number, classes).html() for number, edit in enumerate(edits))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>specedit trace</title>'
        '<meta name="viewport" content="width=device-width">'
        f"<style>{_STYLE}{rules}</style></head><body><h1>What was drafted, and what the model kept</h1>"
        f"<p>{_legend(classes)}</p>{sections}</body></html>\n"
    )


_STYLE = """\
:root{color-scheme:light dark}
body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:72em;padding:0 1em}
h1{font-size:1.4em}h2{font-size:1.15em;margin-top:2.5em;border-top:1px solid #8886;padding-top:1em}h3{font-size:1em}
table{border-collapse:collapse;margin:0 2.5em 1em 0;display:inline-table;vertical-align:top}
th,td{padding:.1em .8em;text-align:right;border-bottom:1px solid #8883}th:first-child,td:first-child{text-align:left}
pre,code{font:13px/1.45 ui-monospace,monospace}pre{overflow-x:auto;padding:1em;border:1px solid #8884}
.d{--c:#888;background:color-mix(in srgb,var(--c) 30%,transparent)}
.no{background:none;text-decoration:line-through;text-decoration-color:var(--c);opacity:.65}
.own{font-weight:700;text-decoration:underline;text-underline-offset:3px}
.time{display:flex;align-items:flex-end;height:7em;overflow-x:auto;border-bottom:1px solid #8886}
.time a{--c:#888;flex:1 0 4px;max-width:18px;margin-right:1px;height:100%;display:flex;flex-direction:column;
justify-content:flex-end}
.time b{display:block;background:var(--c)}.time i{display:block;background:color-mix(in srgb,var(--c) 25%,transparent)}
.time a:hover{outline:1px solid}
:target{outline:2px solid;outline-offset:1px}
ul{list-style:none;margin:0;padding-left:1.5em;border-left:1px solid #8885}
.steps>div{padding:.2em 0;border-bottom:1px solid #8883}.steps code{white-space:pre-wrap;overflow-wrap:anywhere}
"""


class _Token(NamedTuple):
    """A token that was emitted: the node that drafted it, or none."""

    text: str
    node: int | None


@dataclass(frozen=True)
class _Section:
    edit: TracedEdit
    number: int
    classes: dict[str, str]

    def html(self) -> str:
        edit, usage = self.edit, self.edit.usage
        seconds = usage.draft_seconds + usage.forward_seconds
        return (
            f"<section><h2>{_text(edit.name)}: {_text(edit.outcome)}</h2>"
            f"<p>{usage.output_tokens} tokens in {len(edit.steps)} steps, {usage.tokens_per_forward:.1f} tokens per "
            f"forward. Reading the prompt took {usage.prefill_seconds:.2f} s ({usage.cached_tokens} of "
            f"{usage.prompt_tokens} tokens were known), forwards {usage.forward_seconds:.2f} s, drafting "
            f"{usage.draft_seconds:.2f} s, all else {max(0.0, usage.decode_seconds - seconds):.2f} s.</p>"
            f"{_kinds_of_steps(edit.steps)}{_usage_table('drafted by', usage.drafters)}"
            f"{_usage_table('tokens ahead', usage.depths)}"
            "<h3>Steps</h3><p>A bar is a step: full, the tokens that it gave; pale, what was drafted in vain.</p>"
            f'<div class="time">{"".join(self._bars())}</div>'
            f"<h3>The answer</h3><pre>{''.join(map(self._emitted, range(len(edit.steps))))}</pre>"
            f'<details><summary>All drafts, step by step</summary><div class="steps">{"".join(self._drafts())}'
            "</div></details></section>\n"
        )

    def _bars(self) -> Iterator[str]:
        most = max((len(step.emitted) + len(step.drafted) - len(step.accepted) for step in self.edit.steps), default=1)
        for index, step in enumerate(self.edit.steps):
            origins = Counter(step.drafted[node].origin for node in step.accepted)
            part = self.classes.get(origins.most_common(1)[0][0], "") if origins else ""
            given = 100 * len(step.emitted) / most
            vain = 100 * (len(step.drafted) - len(step.accepted)) / most
            yield (
                f'<a class="{part}" href="#{self._anchor(index)}" title="{_text(_in_words(index, step))}">'
                f'<i style="height:{vain:.0f}%"></i><b style="height:{given:.0f}%"></b></a>'
            )

    def _emitted(self, index: int) -> str:
        """The text that a step gave, coloured by who drafted it."""
        step = self.edit.steps[index]
        spare = [None] * (len(step.emitted) - len(step.accepted))
        tokens = [_Token(*both) for both in zip(step.emitted, [*step.accepted, *spare], strict=False)]
        runs = []
        for origin, group in groupby(tokens, lambda token: self._origin(step, token.node)):
            run = list(group)
            text = _text("".join(token.text for token in run))
            title = _text(f"step {index + 1}, {self._said(step, [t.node for t in run if t.node is not None])}")
            kind = "own" if origin is None else f"d {self.classes[origin]}"
            runs.append(f'<span class="{kind}" title="{title}">{text}</span>')
        return f'<span id="{self._anchor(index)}">{"".join(runs)}</span>'

    def _drafts(self) -> Iterator[str]:
        for index, step in enumerate(self.edit.steps):
            own = _inline("".join(step.emitted[len(step.accepted) :]))
            yield (
                f'<div><a href="#{self._anchor(index)}">{_text(_in_words(index, step))}</a>'
                f'{self._branches(step)}<div>then <code class="own">{own}</code></div></div>'
            )

    def _branches(self, step: TraceStep) -> str:
        """The drafted tree: a line for each run without a fork, what follows a fork indented below it."""
        children: dict[int, list[int]] = {}
        for node, token in enumerate(step.drafted):
            children.setdefault(token.parent, []).append(node)
        lines: list[str] = []
        # A stack of nodes and of what closes their lists, as a tree may be deeper than calls may nest.
        waiting: list[int | str] = [*reversed(children.get(-1, []))]
        while waiting:
            item = waiting.pop()
            if isinstance(item, str):
                lines.append(item)
                continue
            chain = [item]
            while len(after := children.get(chain[-1], [])) == 1:
                chain += after
            lines.append(f"<div><code>{self._chain(step, chain)}</code></div>")
            if after:
                lines.append("<ul><li>")
                waiting += ["</li></ul>", *reversed(after)]
        return "".join(lines)

    def _chain(self, step: TraceStep, chain: Sequence[int]) -> str:
        accepted = set(step.accepted)
        runs = []
        for (origin, kept), group in groupby(chain, lambda node: (step.drafted[node].origin, node in accepted)):
            nodes = list(group)
            text = _inline("".join(step.drafted[node].text for node in nodes))
            kind = f"d {self.classes[origin]}{'' if kept else ' no'}"
            runs.append(f'<span class="{kind}" title="{_text(self._said(step, nodes))}">{text}</span>')
        return "".join(runs)

    def _said(self, step: TraceStep, nodes: Sequence[int]) -> str:
        """Who drafted a run of nodes, how far ahead, and how sure."""
        if not nodes:
            return _OWN
        first, last = step.drafted[nodes[0]], step.drafted[nodes[-1]]
        depths = _depths(step)
        ahead = _span(str(depths[nodes[0]]), str(depths[nodes[-1]]))
        belief = _span(f"{first.probability:.0%}", f"{last.probability:.0%}")
        return f"{first.origin}, {ahead} ahead, believed {belief}"

    def _origin(self, step: TraceStep, node: int | None) -> str | None:
        return None if node is None else step.drafted[node].origin

    def _anchor(self, index: int) -> str:
        return f"f{self.number}s{index + 1}"


def _parts(edit: TracedEdit) -> Iterator[str]:
    yield from edit.usage.drafters
    yield from (token.origin for step in edit.steps for token in step.drafted)


def _legend(classes: dict[str, str]) -> str:
    chips = [f'<span class="d {name}">{_text(part)}</span>' for part, name in classes.items()]
    return " &nbsp; ".join(
        [
            *chips,
            '<span class="own">written by the model</span>',
            '<span class="d no">drafted in vain</span>',
            "(point at text or bars for more)",
        ]
    )


def _kinds_of_steps(steps: Sequence[TraceStep]) -> str:
    """A table of how drafts fared; few long ones make an answer fast, many that give one token make it slow."""
    kinds: dict[str, list[TraceStep]] = {}
    for step in steps:
        kinds.setdefault(_kind(step), []).append(step)
    rows = "".join(
        f"<tr><td>{kind}</td><td>{len(some)}</td><td>{sum(len(step.emitted) for step in some)}</td>"
        f"<td>{sum(step.draft_seconds + step.forward_seconds for step in some):.2f}</td></tr>"
        for kind, some in sorted(kinds.items(), key=lambda item: -len(item[1]))
    )
    return f"<table><tr><th>the draft was</th><th>steps</th><th>tokens</th><th>seconds</th></tr>{rows}</table>"


def _kind(step: TraceStep) -> str:
    if not step.drafted:
        return "not worth verifying" if step.proposed else "empty"
    if not step.accepted:
        return "wrong at once"
    is_parent = {token.parent for token in step.drafted}
    return "right to its end" if step.accepted[-1] not in is_parent else "right at first"


def _usage_table(title: str, usages: Mapping[str, DrafterUsage]) -> str:
    rows = "".join(
        f"<tr><td>{_text(name)}</td><td>{usage.drafted}</td><td>{usage.accepted}</td><td>{_rate(usage)}</td></tr>"
        for name, usage in usages.items()
    )
    return (
        f"<table><tr><th>{title}</th><th>drafted</th><th>accepted</th><th>rate</th></tr>{rows}</table>" if rows else ""
    )


def _rate(usage: DrafterUsage) -> str:
    return f"{usage.accepted / usage.drafted:.0%}" if usage.drafted else ""


def _in_words(index: int, step: TraceStep) -> str:
    proposed = f" ({step.proposed} proposed)" if step.proposed > len(step.drafted) else ""
    return (
        f"step {index + 1}: {len(step.accepted)} of {len(step.drafted)} drafted tokens kept{proposed}, "
        f"{len(step.emitted)} given; drafting {step.draft_seconds * 1e3:.1f} ms, "
        f"forward {step.forward_seconds * 1e3:.0f} ms"
    )


def _depths(step: TraceStep) -> list[int]:
    depths: list[int] = []
    for token in step.drafted:
        depths.append(depths[token.parent] + 1 if token.parent >= 0 else 1)
    return depths


def _span(first: str, last: str) -> str:
    return first if first == last else f"{first} to {last}"


def _text(text: str) -> str:
    return html.escape(harmless(text))


def _inline(text: str) -> str:
    """Text on one line: line ends and tabs as signs."""
    return _text(text.replace("\n", "\u23ce").replace("\t", "\u21e5"))
