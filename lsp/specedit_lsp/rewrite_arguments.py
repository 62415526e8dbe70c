"""The arguments of the rewrite commands, as editors send them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

import msgspec
from lsprotocol.types import Position, Range

from specedit.errors import UsageError

Apply = Literal["server", "client", "review"]
"""Who applies a rewrite: the server, as one edit; the editor's plugin; the server, hunk by hunk when accepted."""

_Number = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
_Arguments = TypeVar("_Arguments", bound=msgspec.Struct)


class Place(msgspec.Struct, frozen=True):
    """A position, in the units that editor and server agreed on."""

    line: _Number
    character: _Number


class Part(msgspec.Struct, frozen=True):
    """A range."""

    start: Place
    end: Place

    def to_range(self) -> Range:
        """The same as LSP's type."""
        return Range(Position(self.start.line, self.start.character), Position(self.end.line, self.end.character))


class Identifier(msgspec.Struct, frozen=True):
    """A document, and the version of its text that is meant; None means the text as the server has it."""

    uri: str
    version: int | None = None


class RewriteArguments(msgspec.Struct, frozen=True, rename="camel"):
    """`specedit.rewrite`."""

    text_document: Identifier
    range: Part
    instruction: str
    apply: Apply = "server"
    work_done_token: int | str | None = None


class SessionArguments(msgspec.Struct, frozen=True, rename="camel"):
    """`specedit.acceptAll`, `rejectAll`, `cancelRewrite`, `regenerate`."""

    session: str
    work_done_token: int | str | None = None


class HunkArguments(msgspec.Struct, frozen=True):
    """`specedit.acceptHunk`, `rejectHunk`."""

    session: str
    id: int


def understood(arguments: Any, kind: type[_Arguments], command: str) -> _Arguments:
    """The arguments of `command` as what they are.

    Raises:
        UsageError: they are not that; a newer plugin may send more than is known here, which is no error.
    """
    try:
        return msgspec.convert(arguments, kind)
    except msgspec.ValidationError as error:
        raise UsageError(
            f"{command} was called with arguments that it does not take: {error}. Update the plugin or specedit."
        ) from None
