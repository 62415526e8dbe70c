"""Ready instructions for the selection, as the editor's code actions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lsprotocol.types import (
    ClientCapabilities,
    CodeAction,
    CodeActionClientCapabilities,
    CodeActionContext,
    CodeActionDisabled,
    CodeActionKind,
    CodeActionParams,
    CodeActionTag,
    Command,
    Diagnostic,
    Position,
    Range,
)

from specedit_lsp import convert

if TYPE_CHECKING:
    from specedit_lsp.documents import OpenDocument

REWRITE = "specedit.rewrite"
ASK_INSTRUCTION = "specedit.askInstruction"
"""A command of the editor's plugin: it asks the user for an instruction, and adds that to its argument to rewrite."""

MOST_PROBLEMS = 10
# Parsing larger texts takes longer than a list that opens at each move of the cursor may.
_MOST_LABELLED_CHARS = 25_000

_PROSE = frozenset(
    {"git-commit", "git-rebase", "html", "latex", "log", "markdown", "org", "plaintext", "restructuredtext", "tex"}
)
_DATA = frozenset({"csv", "diff", "ini", "json", "jsonc", "jsonl", "properties", "toml", "xml", "yaml"})
_TYPED_BY_HINTS = frozenset({"python", "typescript", "typescriptreact", "php"})
_WITH_DOCSTRINGS = frozenset({"python", "elisp", "clojure", "julia"})


@dataclass(frozen=True, slots=True)
class _Offer:
    title: str
    instruction: str
    kind: CodeActionKind = CodeActionKind.RefactorRewrite
    diagnostics: tuple[Diagnostic, ...] = ()


def code_actions(
    params: CodeActionParams,
    document: OpenDocument | None,
    capabilities: ClientCapabilities,
    can_ask: bool = False,
) -> list[CodeAction]:
    """The actions that fit what is selected, of the kinds that the editor asks for.

    Args:
        params: the editor's request.
        document: the one that it is about; None where it isn't open.
        capabilities: what the editor can do.
        can_ask: whether its plugin has the command that asks for an instruction; it may also say so as
            `experimental.specedit.askInstruction`.
    """
    client = _code_action(capabilities)
    if client is None or client.code_action_literal_support is None:
        return []
    actions = list(_actions(params, document, can_ask or _says_it_asks(capabilities)))
    if client.tag_support is not None and CodeActionTag.LlmGenerated in client.tag_support.value_set:
        for action in actions:
            action.tags = [CodeActionTag.LlmGenerated]
    return [
        action
        for action in actions
        if _is_wanted(action.kind, params.context.only) and (action.disabled is None or client.disabled_support)
    ]


def _actions(params: CodeActionParams, document: OpenDocument | None, can_ask: bool) -> Iterator[CodeAction]:
    if document is None:
        reason = "specedit does not know this document; open it as text, in a language that specedit is set up for"
        yield CodeAction("Rewrite", kind=CodeActionKind.RefactorRewrite, disabled=CodeActionDisabled(reason))
        return
    meant = _meant(document, params.range)
    label, range_ = _label(document, meant), convert.to_json(meant)
    identifier = {"uri": document.uri, "version": document.version}
    for offer in _offers(document.language_id, label, params.context):
        arguments = {
            "textDocument": identifier,
            "range": range_,
            "instruction": offer.instruction,
            "apply": "server",
        }
        yield CodeAction(
            offer.title,
            kind=offer.kind,
            diagnostics=list(offer.diagnostics) or None,
            command=Command(offer.title, REWRITE, arguments=[arguments]),
        )
    if can_ask:
        title = f"Rewrite {label} with an instruction ..."
        command = Command(title, ASK_INSTRUCTION, arguments=[{"textDocument": identifier, "range": range_}])
        yield CodeAction(title, kind=CodeActionKind.RefactorRewrite, command=command)


def _offers(language_id: str, label: str, context: CodeActionContext) -> Iterator[_Offer]:
    if context.diagnostics:
        is_quick_fix = _is_wanted(CodeActionKind.QuickFix, context.only)
        yield _Offer(
            f"Fix the {'problem' if len(context.diagnostics) == 1 else 'problems'} in {label}",
            _fix(context.diagnostics),
            CodeActionKind.QuickFix if is_quick_fix else CodeActionKind.RefactorRewrite,
            tuple(context.diagnostics),
        )
    if language_id in _PROSE | _DATA:
        return
    comment = "docstring" if language_id in _WITH_DOCSTRINGS else "doc comment"
    yield _Offer(f"Add a {comment} to {label}", f"Add a {comment} that says what this does. Change nothing else.")
    if language_id in _TYPED_BY_HINTS:
        yield _Offer(f"Add type hints to {label}", "Add the type hints that are missing. Change nothing else.")
    yield _Offer(f"Simplify {label}", "Simplify this without changing what it does.")


def _fix(diagnostics: Sequence[Diagnostic]) -> str:
    problems = [
        f"- line {diagnostic.range.start.line + 1}: {_told(diagnostic)}" for diagnostic in diagnostics[:MOST_PROBLEMS]
    ]
    return "\n".join([f"Fix {'this problem' if len(problems) == 1 else 'these problems'}:", *problems])


def _told(diagnostic: Diagnostic) -> str:
    message = " ".join(diagnostic.message.split())
    origin = " ".join(str(part) for part in (diagnostic.source, diagnostic.code) if part is not None)
    return f"{message} ({origin})" if origin else message


def _meant(document: OpenDocument, range_: Range) -> Range:
    """The range, or the cursor where no more than a word of a line is selected.

    Some editors have the character or the word at the cursor selected whatever the user does.
    """
    words = _text(document, range_).split()
    line = Range(Position(range_.start.line, 0), Position(range_.start.line + 1, 0))
    if len(words) > 1 or (words and _text(document, line).split() == words):
        return range_
    return Range(range_.start, range_.start)


def _text(document: OpenDocument, range_: Range) -> str:
    span = document.span(range_)
    return document.text[span.start : span.end]


def _label(document: OpenDocument, range_: Range) -> str:
    """How the region that the range means is called."""
    # Grammars load with it, which is not for the server's start.
    from specedit.edit.region import selected

    if len(document.text) > _MOST_LABELLED_CHARS:
        first, last = range_.start.line + 1, range_.end.line + 1
        return f"line {first}" if first == last else f"lines {first}-{last}"
    return selected(document.snapshot(), document.span(range_)).label


def _is_wanted(kind: CodeActionKind | str | None, only: Sequence[CodeActionKind | str] | None) -> bool:
    """Whether an editor that asks for the kinds `only` asks for `kind`: "refactor" has "refactor.rewrite" in it."""
    if only is None:
        return True
    name = _name(kind)
    return any(name == wanted or name.startswith(f"{wanted}.") or not wanted for wanted in map(_name, only))


def _name(kind: CodeActionKind | str | None) -> str:
    return kind.value if isinstance(kind, CodeActionKind) else kind or ""


def _code_action(capabilities: ClientCapabilities) -> CodeActionClientCapabilities | None:
    return capabilities.text_document.code_action if capabilities.text_document else None


def _says_it_asks(capabilities: ClientCapabilities) -> bool:
    experimental: Any = capabilities.experimental
    ours = experimental.get("specedit") if isinstance(experimental, dict) else None
    return isinstance(ours, dict) and ours.get("askInstruction") is True
