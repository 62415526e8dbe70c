"""ShownCode: the code in a prompt that the answer is likely to follow, for engines whose requests do not name it.

specedit's own prompts (`edit/prompt.py`) and most others that ask for an edit show that code in a fenced block and get
it back in one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specedit.edit.fence import find_fences
from specedit.edit.hints import resume_offsets_of, substitutions_of
from specedit.engine.api import Hints


@dataclass(frozen=True, slots=True)
class ShownCode:
    """A fenced block of a prompt.

    Attributes:
        code: the lines between the fences.
        opening: the line that opens it.
        closing: the fence that closes it.
        said: what stands around the blocks of the same turn, such as the instruction.
    """

    code: str
    opening: str
    closing: str
    said: str

    def hints(self) -> Hints:
        """What it tells about an answer that gives the code back, changed."""
        return Hints(substitutions_of(self.said, self.code), resume_offsets_of(self.code), self.opening, self.closing)


def code_shown(turns: Iterable[str]) -> ShownCode | None:
    r"""The longest block of the first of `turns` that has one, or None.

    Args:
        turns: what was said, the latest first.

    Example: of "Here:\n```py\nx = 1\n```\nRename x to y" the code is "x = 1\n", the opening "```py\n".
    """
    for turn in turns:
        if "```" in turn or "~~~" in turn:
            blocks, said = _blocks(turn.split("\n"))
            if blocks:
                opening, closing, code = max(blocks, key=lambda block: len(block[2]))
                return ShownCode(code, opening, closing, said)
    return None


def _blocks(lines: list[str]) -> tuple[list[tuple[str, str, str]], str]:
    """Opening, closing and code of each block that is closed, and the text around all."""
    blocks = []
    said: list[str] = []
    fences = iter(find_fences(lines))
    after = 0
    for opener in fences:
        closer = next((fence for fence in fences if fence.closes(opener)), None)
        said += lines[after : opener.index]
        after = len(lines)
        if closer is not None:
            after = closer.index + 1
            mark = opener.char * opener.length
            code = "".join(f"{line}\n" for line in lines[opener.index + 1 : closer.index])
            blocks.append((f"{mark}{opener.info}\n", mark, code))
    return blocks, "\n".join([*said, *lines[after:]])
