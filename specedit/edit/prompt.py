r"""What the model is told: one template for a whole file, one for a part of it.

Both are ordered by stability, so that the next request on the same file shares the longest prefix: the file, then the
part and the instruction. There is no system message: models keep the one that their template gives them, and small ones
then dare to change more. A part is asked for in a turn of its own: small models then answer with the part, where they
would else go on to copy the file. Lines end in `\n`; a byte that can't be decoded is shown as U+FFFD. The fence around
code is longer than any in the file, so that its end can always be told; a fence of unusual length is asked for by name.
"""

from __future__ import annotations

import re

from specedit.edit.document import Document
from specedit.edit.fence import fence_for
from specedit.edit.region import Region
from specedit.edit.stream import to_lf
from specedit.edit.syntax import language_of
from specedit.engine.api import Message

WHOLE_FILE = """\
{file}

{instruction}

Return the whole code{in_block}."""

QUESTION = "Which part of {name} should I edit, and how?"

PART = """\
This part, {label}:

{part}

{instruction}

Return only this part, complete and edited{in_block}."""

_USUAL_FENCE = "```"


def build_prompt(document: Document, region: Region, instruction: str) -> tuple[Message, ...]:
    """The messages that ask for the new text of `region`."""
    shown = shown_text(document.text)
    fence, tag = fence_for(shown), _tag(document)
    pieces = {
        "name": document.path.name if document.path else "the file",
        "file": _fenced(shown, fence, tag),
        "part": _fenced(shown_text(document.text[region.span.start : region.span.end]), fence, tag),
        "label": region.label,
        "instruction": instruction.strip(),
        "in_block": "" if fence == _USUAL_FENCE else f", in one code block that begins with {fence}{tag}",
    }
    if region.span.start == 0 and region.span.end == len(document.text):
        return (Message("user", WHOLE_FILE.format_map(pieces)),)
    return (
        Message("user", pieces["file"]),
        Message("assistant", QUESTION.format_map(pieces)),
        Message("user", PART.format_map(pieces)),
    )


def code_block_ends(document: Document) -> tuple[str, str]:
    """What stands before and after the code in an answer that is one code block, as the prompt shows code."""
    fence = fence_for(shown_text(document.text))
    return f"{fence}{_tag(document)}\n", fence


def shown_text(text: str) -> str:
    r"""`text` as the model sees it: `\n` line ends, U+FFFD for each byte that can't be decoded."""
    return re.sub("[\ud800-\udfff]", "\ufffd", to_lf(text))


def _fenced(text: str, fence: str, tag: str) -> str:
    end = "" if text.endswith("\n") or not text else "\n"
    return f"{fence}{tag}\n{text}{end}{fence}"


def _tag(document: Document) -> str:
    """The info string of the fence: the language, else the file name's suffix if that is a plain word."""
    if document.path is None:
        return ""
    suffix = document.path.suffix.removeprefix(".").lower()
    return language_of(document.path) or (suffix if re.fullmatch(r"[a-z0-9+#-]*", suffix) else "")
