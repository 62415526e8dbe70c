"""Answers that must not be applied: pure checks from texts to a reason, or to nothing.

Each check compares what the answer would make of the file with what stands there: what the file already held
(a placeholder, a chat marker, a syntax error) is no alarm, nor is what the instruction spells out.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from specedit.edit.document import split_lines
from specedit.edit.fence import find_fences
from specedit.edit.placeholder import PROSE_SUFFIXES, emptied_definition, find_placeholders, is_python
from specedit.edit.syntax import language_of, parses
from specedit.engine.api import FinishReason

MAX_VANISHED_LINES = 15
MAX_VANISHED_SHARE = 0.4

_MARKER = re.compile(
    r"<[|｜][A-Za-z][\w▁ -]{0,40}[|｜]>|</?(?:start|end)_of_turn>|\[/?INST\]|<</?SYS>>|</?think>"
    r"|<(?:fim|file|repo)_(?:prefix|suffix|middle|sep|name)>"
)
_ABOUT_FENCES = re.compile(r"```|~~~|\bfenc|\bmarkdown\b|\bcode block|\bexample", re.IGNORECASE)
_ABOUT_COPYING = re.compile(r"\b(?:cop(?:y|ies)|duplicat|repeat|same)", re.IGNORECASE)
_DEFINITION = re.compile(
    r"(?:(?:export|default|async|static|public|private|protected|abstract|final|pub(?:\(\w+\))?|unsafe|const|extern)\s+)*"
    r"(?:def|class|function|fn|func|struct|enum|interface|trait|impl|type)\b"
)
_ABOUT_DELETING = re.compile(r"\b(?:delet|remov|drop|empt|clear|cut)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an answer is not applied, and what the user can do."""

    reason: str
    fix: str

    def __str__(self) -> str:
        return "; ".join(filter(None, (self.reason, self.fix)))


@dataclass(frozen=True, slots=True)
class Proposal:
    """What an answer would make of a file.

    Attributes:
        path: the file's name, which tells its language.
        instruction: what the user asked for.
        old_text: the whole file as it stands.
        new_text: the whole file as it would be.
        old_region: the part that was to be rewritten.
        new_region: what it would become.
    """

    path: Path | None
    instruction: str
    old_text: str
    new_text: str
    old_region: str
    new_region: str


def check_answer(
    proposal: Proposal, *, allow_deletions: bool = False, allow_syntax_errors: bool = False
) -> Refusal | None:
    """Return why `proposal` must not be applied, or None where nothing speaks against it."""
    return (
        check_placeholders(proposal)
        or check_place(proposal)
        or check_markers(proposal)
        or check_fences(proposal)
        or check_characters(proposal)
        or (None if allow_deletions else check_deletions(proposal))
        or (None if allow_syntax_errors else check_syntax(proposal))
    )


def check_finish(finish_reason: FinishReason | None) -> Refusal | None:
    """Refuse an answer that did not end by itself."""
    if finish_reason == "stop":
        return None
    return Refusal(
        "the answer was cut off before its end",
        "raise --max-new-tokens, or choose a smaller part with --range or --symbol",
    )


def check_edges(head: str, tail: str, new_region: str) -> Refusal | None:
    """Refuse a change of `head` or `tail`, which share the region's lines with the selection."""
    inside = len(new_region) - len(head) - len(tail)
    if inside >= 0 and new_region.startswith(head) and new_region.endswith(tail):
        return None
    return Refusal(
        "the answer changes text outside the selection",
        "select whole lines, or the whole statement, and ask again",
    )


def check_placeholders(proposal: Proposal) -> Refusal | None:
    """Refuse a stand-in for code that was left out, where neither file nor instruction has it."""
    suffix = _suffix(proposal.path)
    before = Counter(find_placeholders(proposal.old_text, suffix))
    after = Counter(find_placeholders(proposal.new_text, suffix))
    new = [line for line in after if after[line] > before[line] and line not in proposal.instruction]
    if suffix in (".py", ".pyw") and (emptied := emptied_definition(proposal.old_text, proposal.new_text)):
        new.append(emptied)
    if not new:
        return None
    return Refusal(
        f"the answer leaves code out: {new[0]!r}",
        "choose a smaller part with --range or --symbol, or ask for the complete code",
    )


def check_place(proposal: Proposal) -> Refusal | None:
    """Refuse a definition that stands elsewhere in the file in the place of all that the region held.

    Small models that are asked for a line or two may answer with the function that they find more interesting.
    """
    old, new = (_written(text) for text in (proposal.old_region, proposal.new_region))
    if (
        not old
        or not new
        or set(old) & set(new)
        or not _DEFINITION.match(new[0])
        or _ABOUT_COPYING.search(proposal.instruction)
    ):
        return None
    # It is not in the region, so where the file has it is elsewhere.
    if new[0] not in _written(proposal.old_text):
        return None
    return Refusal(
        f"the answer is another part of the file ({new[0]!r}) in the place of this one",
        "choose the whole function or class, with --range or --symbol, and ask again",
    )


def check_markers(proposal: Proposal) -> Refusal | None:
    """Refuse a chat template's markers, unless the file or the instruction has them."""
    for marker in _MARKER.findall(proposal.new_region):
        if marker not in proposal.old_text and marker not in proposal.instruction:
            return Refusal(f"the answer holds the chat marker {marker}", "ask again, or with another --seed or --model")
    return None


def check_fences(proposal: Proposal) -> Refusal | None:
    """Refuse code fences in a program that had none, unless the instruction is about them."""
    if _suffix(proposal.path) in PROSE_SUFFIXES or _ABOUT_FENCES.search(proposal.instruction):
        return None
    if find_fences(split_lines(proposal.new_region)) and not find_fences(split_lines(proposal.old_text)):
        return Refusal(
            "the answer leaves a code fence in the file",
            'ask again; if a fence is wanted, say "code block" in the instruction',
        )
    return None


def check_characters(proposal: Proposal) -> Refusal | None:
    """Refuse U+FFFD, the mark of a character that was cut or not decodable, unless the file had it."""
    if "\ufffd" in proposal.new_region and "\ufffd" not in proposal.old_text + proposal.instruction:
        return Refusal("the answer holds a broken character (U+FFFD)", "ask again, or with another --seed or --model")
    return None


def check_deletions(proposal: Proposal) -> Refusal | None:
    """Refuse an answer that makes all, or more than 40% and more than 15 lines of the region vanish, net."""
    emptied = proposal.old_region.strip() and not proposal.new_region.strip()
    if emptied and not _ABOUT_DELETING.search(proposal.instruction):
        return Refusal("the answer is empty", "use --allow-deletions if all of it shall go")
    total = len(split_lines(proposal.old_region))
    vanished = total - len(split_lines(proposal.new_region))
    if vanished > MAX_VANISHED_LINES and vanished > MAX_VANISHED_SHARE * total:
        return Refusal(
            f"the answer makes {vanished} of {total} lines vanish",
            "use --allow-deletions if that is wanted, or choose a smaller part with --range or --symbol",
        )
    return None


def check_syntax(proposal: Proposal) -> Refusal | None:
    """Refuse an answer after which a file that parsed does not."""
    language = language_of(proposal.path) if proposal.path else None
    broken = parses(proposal.old_text, language) and parses(proposal.new_text, language) is False
    # Tree-sitter forgives what Python does not, such as a class without a body.
    if language == "python":
        broken = broken or (is_python(proposal.old_text) and not is_python(proposal.new_text))
    if broken:
        return Refusal(
            f"the file would no longer parse as {language}",
            "ask again, or take it with --allow-syntax-errors",
        )
    return None


def _written(text: str) -> list[str]:
    return [line.strip() for line in split_lines(text) if line.strip()]


def _suffix(path: Path | None) -> str:
    return path.suffix.lower() if path else ""
