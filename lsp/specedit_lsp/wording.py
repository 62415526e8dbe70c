"""What the editing core tells people who sit at a command line, for those who sit in an editor."""

from __future__ import annotations

import re

_WORDS = (
    (r" with --range or --symbol\b", ""),
    (r", or take it with --allow-syntax-errors\b", ", or turn the option rewrite.allowSyntaxErrors on"),
    (r"\buse --allow-deletions\b", "turn the option rewrite.allowDeletions on"),
    (r"--max-new-tokens\b", "the option rewrite.maxNewTokens"),
    (r"\banother --seed or --model\b", "another model"),
    (r"\ba larger --model\b", "a larger model"),
    (r"--model or SPECEDIT_MODEL\b", "the option model"),
    (r" or --engine local\b", ""),
    (r", or --engine local\b", ""),
)
_IN_EDITOR_WORDS = tuple((re.compile(pattern), words) for pattern, words in _WORDS)


def in_editor_words(text: str) -> str:
    """`text` with options in the place of command line flags."""
    for pattern, words in _IN_EDITOR_WORDS:
        text = pattern.sub(words, text)
    return text
