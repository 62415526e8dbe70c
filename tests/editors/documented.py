"""Set-ups as they stand in the language server's page: what is shown to people is what is tried."""

from __future__ import annotations

import re
from pathlib import Path

_PAGE = Path(__file__).parents[2] / "lsp/README.md"


def blocks(heading: str, language: str) -> list[str]:
    """The blocks of code in that language under a heading of the page."""
    _, _, section = _PAGE.read_text().partition(f"\n{heading}\n")
    section = re.split(r"\n#{1,3} ", section)[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
