r"""What the model is told: one template for a whole file, one for a part of it.

Both are ordered by stability, so that the next request on the same file shares the longest prefix: the system message,
the file, then the part and the instruction. The fence around code is longer than any in the file, so that its end can
always be told. Lines end in `\n`; a byte that can't be decoded is shown as U+FFFD.
"""

from __future__ import annotations

import re

from specedit.edit.document import Document
from specedit.edit.fence import fence_for
from specedit.edit.region import Region, language_of
from specedit.edit.stream import to_lf
from specedit.engine.api import Message

SYSTEM = (
    "You are a code editor. Reply with the complete edited code in one code block and nothing else. "
    "Keep everything the instruction does not mention."
)

WHOLE_FILE = """\
Here is {name}:

{file}

Instruction: {instruction}

Reply with the complete edited file in one code block that begins with {fence}."""

PART = """\
Here is {name}:

{file}

Edit only this part of it, {label}:

{part}

Instruction: {instruction}

Reply with this part only, complete and edited, in one code block that begins with {fence}."""


def build_prompt(document: Document, region: Region, instruction: str) -> tuple[Message, ...]:
    """The messages that ask for the new text of `region`."""
    shown = shown_text(document.text)
    part = shown_text(document.text[region.span.start : region.span.end])
    fence = fence_for(shown)
    name = document.path.name if document.path else "the file"
    tag = _tag(document)
    pieces = {
        "name": name,
        "file": _fenced(shown, fence, tag),
        "part": _fenced(part, fence, tag),
        "label": region.label,
        "instruction": instruction.strip(),
        "fence": fence + tag,
    }
    is_whole = region.span.start == 0 and region.span.end == len(document.text)
    template = WHOLE_FILE if is_whole else PART
    return Message("system", SYSTEM), Message("user", template.format_map(pieces))


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
