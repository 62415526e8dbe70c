"""Lines of code as tokens, near enough for any language: names, numbers, string literals, brackets, keywords."""

from __future__ import annotations

import re
from collections.abc import Sequence

_STRING = r"\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+'|`(?:[^`\\]|\\.)*+`"
_PIECE = r"\d[\w.]*|\w+|\s+|::|->|=>|&&|\|\||[=!<>+\-*/&|^%]=|."
_TOKEN = re.compile(f"{_STRING}|{_PIECE}", re.DOTALL)
_PIECES = re.compile(_PIECE, re.DOTALL)

OPENERS = {"(": ")", "[": "]", "{": "}"}
CLOSERS = {closer: opener for opener, closer in OPENERS.items()}
QUOTES = ('"', "'", "`")
COMMA = ","


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


DECLARING = _words("def fn func function class struct enum trait interface macro_rules")
KEYWORDS = DECLARING | _words(
    "if elif else for while do switch case default match return yield await async break continue try except catch"
    " finally raise throw throws with as in is not and or new delete del import from export package use mod pub"
    " public private protected static const let var mut final abstract type impl extends implements self cls this"
    " super None True False null undefined true false nil void int str bool char float double long unsigned string"
    " lambda global nonlocal assert pass defer go chan select range unsafe where loop"
)
BEFORE_BRACKETS = _words("if elif for while switch match return catch in and or not with case assert")


def tokens_of(text: str) -> list[str]:
    """The tokens of `text`, blanks among them, so that joined they are `text`; a string literal is one token."""
    return _TOKEN.findall(text)


def pieces_of(text: str) -> list[str]:
    """Like `tokens_of`, with string literals taken apart."""
    return _PIECES.findall(text)


def is_string(token: str) -> bool:
    """Whether a token is a whole string literal, not a lone quote."""
    return token[0] in QUOTES and len(token) > 1


def is_operand(token: str) -> bool:
    """Whether a token is a name, a number or a string."""
    return token[0].isalnum() or token[0] == "_" or is_string(token)


def common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many tokens both begin with."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def closing(tokens: Sequence[str], opener: int) -> int | None:
    """Where the bracket at `opener` closes, or None."""
    stack = []
    for at in range(opener, len(tokens)):
        token = tokens[at]
        if token in OPENERS:
            stack.append(OPENERS[token])
        elif token in CLOSERS:
            if stack.pop() != token:
                return None
            if not stack:
                return at
    return None


def opening(tokens: Sequence[str], closer: int) -> int | None:
    """Where the bracket that closes at `closer` opens, or None."""
    depth = 0
    for at in range(closer, -1, -1):
        depth += (tokens[at] in CLOSERS) - (tokens[at] in OPENERS)
        if depth == 0:
            return at
    return None


def unmatched(tokens: Sequence[str]) -> tuple[int, int]:
    """How many closing and how many opening brackets have no partner."""
    closers = openers = 0
    for token in tokens:
        if token in OPENERS:
            openers += 1
        elif token in CLOSERS:
            closers, openers = (closers, openers - 1) if openers else (closers + 1, 0)
    return closers, openers


def arguments_of(tokens: Sequence[str]) -> list[str]:
    """The arguments between brackets, without the blanks around them."""
    found, depth, start = [], 0, 0
    for at, token in enumerate([*tokens, ","]):
        depth += (token in OPENERS) - (token in CLOSERS)
        if token == COMMA and depth == 0:
            found.append("".join(tokens[start:at]).strip())
            start = at + 1
    return found if found != [""] else []
