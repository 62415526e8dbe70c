"""One edit from request to hunks: prompt, answer, new text, checks. No file is read or written here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from specedit.edit import guard
from specedit.edit.document import Document, Span, TextEdit, split_lines
from specedit.edit.echo import without_echo
from specedit.edit.guard import Proposal, Refusal
from specedit.edit.hints import resume_offsets_of, substitutions_of
from specedit.edit.prompt import build_prompt, code_block_ends
from specedit.edit.region import Region
from specedit.edit.stream import Hunk, answer_body, hunks, region_after, to_lf
from specedit.edit.syntax import language_of
from specedit.engine.api import (
    CancelToken,
    Engine,
    FinishReason,
    GenerateRequest,
    Hints,
    Priority,
    Sampling,
    Usage,
)
from specedit.errors import ContextOverflowError, EngineError, MarkerTextError, RefusedFileError

Status = Literal["changed", "unchanged", "refused", "failed", "cancelled"]


@dataclass(frozen=True)
class EditRequest:
    """What to change, how, and by which rules.

    Attributes:
        document: the text to edit; the result is good for this text only.
        region: the part that may change.
        instruction: what to do to it, in the user's words.
        sampling: how tokens are drawn.
        seed: the same request with the same seed gives the same answer.
        max_new_tokens: the most tokens of the answer; None leaves it to the engine.
        allow_deletions: take an answer that makes much of the region vanish.
        allow_syntax_errors: take an answer after which the file no longer parses.
        priority: which queue of the engine to wait in.
        cancel: set it to give up.
    """

    document: Document
    region: Region
    instruction: str
    sampling: Sampling = field(default_factory=Sampling)
    seed: int = 0
    max_new_tokens: int | None = None
    allow_deletions: bool = False
    allow_syntax_errors: bool = False
    priority: Priority = "rewrite"
    cancel: CancelToken = field(default_factory=CancelToken)


@dataclass(frozen=True)
class EditResult:
    """What became of a request.

    Attributes:
        status: changed, unchanged, refused (the answer must not be applied), failed (there is none) or cancelled.
        before: the document that the edit was made for.
        document: the document with the edit made; `before` unless the status is changed.
        hunks: the replacements that lead from one to the other.
        reason: why nothing changed, for the user.
        fix: what the user can do about it.
        usage: what the answer cost.
        answer: what the model wrote, as it wrote it.
    """

    status: Status
    before: Document
    document: Document
    hunks: tuple[Hunk, ...] = ()
    reason: str = ""
    fix: str = ""
    usage: Usage = field(default_factory=Usage)
    answer: str = ""

    @property
    def version(self) -> int:
        """The version of the text that the edit was made for."""
        return self.before.version


def run_edit(request: EditRequest, engine: Engine, on_text: Callable[[str], None] | None = None) -> EditResult:
    """Ask `engine` for the edit and return what became of it; `on_text` is given the answer as it arrives.

    Raises:
        UsageError: the engine finds the request itself wrong, such as its sampling values.
    """
    document = request.document
    if refusal := _unreadable(document, request.region.span):
        return _unapplied("refused", request, refusal)
    pieces: list[str] = []
    usage = Usage()
    finish_reason: FinishReason | None = None
    try:
        for chunk in engine.generate(generate_request(request)):
            pieces.append(chunk.text)
            usage, finish_reason = chunk.usage, chunk.finish_reason
            if on_text and chunk.text:
                on_text(chunk.text)
    except (ContextOverflowError, MarkerTextError) as error:
        return _unapplied("refused", request, Refusal(str(error), ""))
    except EngineError as error:
        return _unapplied("failed", request, Refusal(str(error), ""), usage, "".join(pieces))
    answer = "".join(pieces)
    if finish_reason == "cancelled" or (finish_reason is None and request.cancel.cancelled):
        return _unapplied("cancelled", request, Refusal("interrupted", ""), usage, answer)
    return _concluded(request, answer, finish_reason, usage)


def generate_request(request: EditRequest) -> GenerateRequest:
    """What the engine is asked for: the prompt, and the region as the text that the answer is likely to follow."""
    region = request.region.span
    opening, closing = code_block_ends(request.document)
    prediction = to_lf(request.document.text[region.start : region.end])
    return GenerateRequest(
        messages=build_prompt(request.document, request.region, request.instruction),
        prediction=prediction,
        hints=Hints(substitutions_of(request.instruction, prediction), resume_offsets_of(prediction), opening, closing),
        sampling=request.sampling,
        seed=request.seed,
        max_new_tokens=request.max_new_tokens,
        priority=request.priority,
        cancel=request.cancel,
    )


def apply_result(result: EditResult, current: Document) -> Document | Refusal:
    """`current` with the edit made, or why not: it is no longer the text that the edit was made for."""
    if current.version == result.version and current.text == result.before.text:
        return result.document
    return Refusal("the text has changed since the edit was asked for", "ask again for the text as it is now")


def _concluded(request: EditRequest, answer: str, finish_reason: FinishReason | None, usage: Usage) -> EditResult:
    """From a whole answer to the result."""
    document, span = request.document, request.region.span
    before = document.text[span.start : span.end]
    after = _region_text(request, answer, finish_reason)
    if isinstance(after, Refusal):
        return _unapplied("refused", request, after, usage, answer)
    if after == before:
        nothing = Refusal(
            "the model changed nothing",
            "say more exactly what to change and where, choose a smaller part with --range or --symbol,"
            " or try a larger --model",
        )
        return _unapplied("unchanged", request, nothing, usage, answer)
    first_line = document.line_number(span.start)
    changes = hunks(split_lines(before), split_lines(after), first_line=first_line)
    try:
        changed = document.apply(_edits(changes, document))
        changed.to_bytes()
    except RefusedFileError as error:
        return _unapplied("refused", request, Refusal(str(error), ""), usage, answer)
    proposal = Proposal(document.path, request.instruction, document.text, changed.text, before, after)
    refusal = guard.check_answer(
        proposal, allow_deletions=request.allow_deletions, allow_syntax_errors=request.allow_syntax_errors
    )
    if refusal:
        return _unapplied("refused", request, refusal, usage, answer)
    return EditResult("changed", document, changed, changes, usage=usage, answer=answer)


def _region_text(request: EditRequest, answer: str, finish_reason: FinishReason | None) -> str | Refusal:
    """The new text of the region, with its true line ends."""
    document, span, user_span = request.document, request.region.span, request.region.user_span
    if refusal := guard.check_finish(finish_reason):
        return refusal
    before = document.text[span.start : span.end]
    language = language_of(document.path) if document.path else None
    body = answer_body(answer, region_text=before, language=language)
    if not isinstance(body, Refusal):
        body = without_echo(body, to_lf(document.text[: span.start]), to_lf(document.text[span.end :]), before)
    if isinstance(body, Refusal):
        return body
    after = region_after(body, before, line_ending=document.line_ending, instruction=request.instruction)
    head, tail = document.text[span.start : user_span.start], document.text[user_span.end : span.end]
    return guard.check_edges(head, tail, after) or after


def _edits(changes: tuple[Hunk, ...], document: Document) -> list[TextEdit]:
    starts = [line.start for line in document.line_spans] + [len(document.text)]
    return [
        TextEdit(Span(start, start + len(hunk.old)), hunk.new)
        for hunk in changes
        for start in [starts[hunk.start_line - 1]]
    ]


def _unreadable(document: Document, span: Span) -> Refusal | None:
    lines = document.undecodable_lines(span)
    if not lines:
        return None
    which = ", ".join(map(str, lines[:5])) + (" and more" if len(lines) > 5 else "")
    return Refusal(
        f"bytes that are not {document.codec} stand in line {which}",
        "choose a part without them with --range or --symbol, or convert the file to UTF-8",
    )


def _unapplied(
    status: Status, request: EditRequest, why: Refusal, usage: Usage | None = None, answer: str = ""
) -> EditResult:
    return EditResult(
        status,
        request.document,
        request.document,
        reason=why.reason,
        fix=why.fix,
        usage=usage or Usage(),
        answer=answer,
    )
