"""One completion from the cursor to the text that goes there."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from specedit.edit import guard
from specedit.edit.document import Document, Span
from specedit.edit.fence import find_fences
from specedit.edit.gap import Gap
from specedit.edit.guard import Proposal
from specedit.edit.indentation import Indentation, in_indentation, margin_of, opens_block, shifted
from specedit.edit.overlap import first_repeat, is_babble, is_closing, loop_start, without_standing
from specedit.edit.prompt_budget import ON_GPU, PromptBudget
from specedit.edit.stream import to_lf
from specedit.edit.syntactic_end import SyntacticEnd
from specedit.edit.syntax import language_of
from specedit.engine.api import (
    CancelToken,
    ContextFile,
    Engine,
    Fim,
    FinishReason,
    GenerateRequest,
    Sampling,
    TextChunk,
    Usage,
)

Status = Literal["found", "nothing", "cancelled"]

OTHER_TEMPERATURE = 0.7
"""How alternatives to the first completion are sampled."""


@dataclass(frozen=True)
class CompletionRequest:
    """Where to complete, and within which bounds.

    Attributes:
        document: the text; the completion is good for this text only.
        offset: of the cursor.
        files: other text that the model is shown, the most stable first.
        selected: an item of the editor's own list, the text that it would put in the place of a span around the cursor;
            the completion goes on from it.
        max_new_tokens: the most tokens of the answer.
        budget: about how many tokens of the text around the cursor are shown.
        multi_line: whether it may have more than one line. It has one where more than closing brackets stand after the
            cursor.
        sampling: how tokens are drawn.
        seed: the same request with the same seed gives the same completion.
        cancel: set it to give up.
        name: of the document, as `files` have theirs; nothing takes that of its path.
    """

    document: Document
    offset: int
    files: tuple[ContextFile, ...] = ()
    selected: tuple[Span, str] | None = None
    max_new_tokens: int = 64
    budget: PromptBudget = ON_GPU
    multi_line: bool = True
    sampling: Sampling = field(default_factory=Sampling)
    seed: int = 0
    cancel: CancelToken = field(default_factory=CancelToken)
    name: str = ""


@dataclass(frozen=True)
class Completion:
    """What became of a request.

    Attributes:
        status: found, nothing (there is no text worth showing) or cancelled.
        span: what the text replaces, on one line around the cursor; empty where it is only inserted.
        text: the new text, with the document's line ends; with a selected item it begins with the item's text.
        usage: what the answer cost, as far as it was waited for.
        reason: why there is nothing.
    """

    status: Status
    span: Span
    text: str = ""
    usage: Usage = field(default_factory=Usage)
    reason: str = ""


def complete(request: CompletionRequest, engine: Engine) -> Completion:
    """Ask `engine` for the text at the cursor; the model stops as soon as its end is known.

    An answer that was cut by `max_new_tokens` loses its last line, unless it is the only one.

    Raises:
        SpecEditError: whatever the engine raises.
    """
    gap = Gap.at(request.document, request.offset, selected=request.selected, budget=request.budget)
    draft = _Draft(request, gap)
    usage = Usage()
    answer = ""
    finish_reason: FinishReason | None = None
    with _closing(engine.generate(draft.request())) as chunks:
        for chunk in chunks:
            answer += chunk.text
            usage, finish_reason = chunk.usage, chunk.finish_reason
            if finish_reason is None and draft.is_over(answer):
                break
    if finish_reason == "cancelled" or request.cancel.cancelled:
        return Completion("cancelled", draft.span(0), usage=usage, reason="interrupted")
    return draft.finished(answer, usage, was_cut=finish_reason == "length")


def alternatives(request: CompletionRequest, engine: Engine, n: int) -> tuple[Completion, ...]:
    """At most `n` different completions: that of `request` first, then sampled ones, each with a seed of its own.

    Where none was found, the first one alone, which tells why.

    Raises:
        SpecEditError: whatever the engine raises.
    """
    first = complete(request, engine)
    found = {first.text: first} if first.status == "found" else {}
    for seed in range(request.seed + 1, request.seed + n):
        if request.cancel.cancelled:
            break
        sampling = replace(request.sampling, temperature=OTHER_TEMPERATURE)
        other = complete(replace(request, sampling=sampling, seed=seed), engine)
        if other.status == "found":
            found.setdefault(other.text, other)
    return tuple(found.values()) or (first,)


@dataclass(frozen=True)
class _Draft:
    """One request while its answer arrives."""

    asked: CompletionRequest
    gap: Gap

    @cached_property
    def indentation(self) -> Indentation:
        gap = self.gap
        return Indentation.of([*gap.lines_below[::-1], *gap.lines_above, f"{gap.line_before}x"])

    @cached_property
    def has_one_line(self) -> bool:
        return not self.asked.multi_line or not is_closing(self.gap.line_after)

    @cached_property
    def rule(self) -> SyntacticEnd:
        path = self.asked.document.path
        return SyntacticEnd(self.gap, language_of(path) if path else None, self.indentation)

    def request(self) -> GenerateRequest:
        """What the engine is asked for."""
        asked, gap, path = self.asked, self.gap, self.asked.document.path
        return GenerateRequest(
            fim=Fim(gap.prefix, gap.tail, gap.typed, asked.files, asked.name or (path.name if path else "")),
            sampling=asked.sampling,
            seed=asked.seed,
            stop=("\n",) if self.has_one_line else (),
            max_new_tokens=asked.max_new_tokens,
            priority="inline",
            cancel=asked.cancel,
        )

    def is_over(self, answer: str) -> bool:
        """Whether more of the answer would change nothing."""
        text = self._text(answer)
        return text is not None and (bool(self._refusal(text)) or self._end(text, finished=False) is not None)

    def finished(self, answer: str, usage: Usage, *, was_cut: bool) -> Completion:
        """The completion that a whole answer, or as much of it as is needed, gives."""
        text = self._text(answer, finished=True) or ""
        end = self._end(text, finished=True)
        assert end is not None
        if was_cut and end == len(text):
            end = _end_of_whole_lines(text)
        refusal = self._refusal(text[:end])
        if is_babble(text[:end], self.gap):
            refusal = "the answer repeats the lines above"
        if refusal:
            return Completion("nothing", self.span(0), usage=usage, reason=refusal)
        text, replaced = without_standing(self._indented(text[:end]), self.gap)
        text = self._stripped(text)
        if not text:
            return Completion("nothing", self.span(0), usage=usage, reason=_nothing(answer))
        text = text.replace("\n", self.gap.line_ending)
        _, selected = self.asked.selected or (None, "")
        return Completion("found", self.span(replaced), selected + text, usage)

    def span(self, replaced: int) -> Span:
        """What is replaced, `replaced` characters after the cursor, or after the selected item's span, among it."""
        offset = self.asked.offset
        span, _ = self.asked.selected or (Span(offset, offset), "")
        return Span(span.start, span.end + replaced)

    def _text(self, answer: str, *, finished: bool = False) -> str | None:
        """What follows the cursor; None while the answer still repeats what was typed."""
        text, typed = to_lf(answer), self.gap.typed
        if text.startswith(typed):
            return text[len(typed) :]
        return None if typed.startswith(text) and not finished else text

    def _end(self, text: str, *, finished: bool) -> int | None:
        if self.has_one_line:
            end = text.find("\n")
            found = end if end >= 0 else len(text) if finished else None
        else:
            found = self._looping(text, finished=finished)
            found = self.rule.find(text, finished=finished) if found is None else found
        others = first_repeat(text, self.gap, finished=finished), self._fence(text)
        return min((end for end in (found, *others) if end is not None), default=None)

    def _looping(self, text: str, *, finished: bool) -> int | None:
        """Where the text begins to say the same over and over."""
        lines = text.rstrip().split("\n") if finished or text.endswith("\n") else text.split("\n")[:-1]
        if is_babble("\n".join(lines), self.gap):
            return len("\n".join(lines))
        start = loop_start(lines)
        return None if start is None else len("\n".join(lines[:start]))

    def _fence(self, text: str) -> int | None:
        """Where a code fence follows the text, as small models write it where the file ends."""
        lines = text.split("\n")
        at = next((fence.index for fence in find_fences(lines)), 0)
        before = "\n".join(lines[:at])
        return len(before) if before.strip() and guard.check_fences(self._proposal(text)) else None

    def _refusal(self, text: str) -> str:
        """Why the text is not to be shown; nothing where nothing speaks against it."""
        for check in (guard.check_markers, guard.check_fences, guard.check_characters):
            if refusal := check(self._proposal(text)):
                return refusal.reason
        return ""

    def _proposal(self, text: str) -> Proposal:
        document = self.asked.document
        return Proposal(document.path, "", document.text, "", "", text)

    def _indented(self, text: str) -> str:
        """The text in the file's indentation, without the part of its first line's that stands before the cursor."""
        before, lines = self.gap.line_before, text.split("\n")
        if before and not before.strip():
            while len(lines) > 1 and not lines[0].strip():
                lines = lines[1:]
                lines[0] = _without_margin(lines[0], before, self.indentation)
            if not self._is_meant(lines[0]):
                lines = self._without_margin_of_first(lines)
        first = 0 if not before else 1
        return "\n".join([*lines[:first], *in_indentation(lines[first:], self.indentation)])

    def _without_margin_of_first(self, lines: list[str]) -> list[str]:
        """The lines less the margin of the first, which has one of its own; of all where all have it too."""
        margin, columns = margin_of(lines[0]), self.indentation.columns
        full = columns(self.gap.line_before + margin)
        all_have = all(columns(margin_of(line)) >= full for line in lines[1:] if line.strip())
        return [lines[0][len(margin) :], *(shifted(line, len(margin)) if all_have else line for line in lines[1:])]

    def _is_meant(self, first_line: str) -> bool:
        """Whether the margin of the first line completes that of the cursor's line, and does not repeat it."""
        standing = self.indentation.columns(self.gap.line_before)
        columns = standing + self.indentation.columns(margin_of(first_line))
        above = self.gap.lines_above
        return standing != columns == (self.indentation.expected(above[-1]) if above else 0)

    def _stripped(self, text: str) -> str:
        text = "\n".join(line.rstrip() for line in text[: len(text.rstrip())].split("\n")) + text[len(text.rstrip()) :]
        after = self.gap.line_after
        needs_blank = not is_closing(after) and not after[0].isspace() and "\n" not in text
        return text if needs_blank and text.strip() else text.rstrip()


def _nothing(answer: str) -> str:
    if answer.strip():
        return "what the model proposes stands there already, or belongs elsewhere"
    return "the model proposes nothing here"


def _without_margin(line: str, before: str, indentation: Indentation) -> str:
    """A line below the cursor's, as it reads on the cursor's line, where `before` stands."""
    more = indentation.columns(margin_of(line)) - indentation.columns(before)
    return " " * max(0, more) + line.lstrip(" \t") if line.strip() else line


def _end_of_whole_lines(text: str) -> int:
    """Where the text ends without the last line and those that then open an empty block.

    Of lines that are not empty one is kept.
    """
    lines = text.split("\n")
    least = next((number for number, line in enumerate(lines, start=1) if line.strip()), len(lines))
    count = len(lines) - 1
    while count > least and (not lines[count - 1].strip() or opens_block(lines[count - 1])):
        count -= 1
    return len("\n".join(lines[: max(count, least)]))


@contextmanager
def _closing(chunks: Iterator[TextChunk]) -> Iterator[Iterator[TextChunk]]:
    """Stop the model at the end, wherever that is."""
    try:
        yield chunks
    finally:
        if isinstance(chunks, Generator):
            chunks.close()
