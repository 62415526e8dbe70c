r"""Between what LSP writes and what specedit works with: positions and offsets, ranges and spans, URIs and paths.

A position counts lines, which only `\n`, `\r\n` and `\r` end, and in the line the code units of the encoding that was
agreed on: bytes of UTF-8, halves of UTF-16 or whole characters. An offset counts code points. Three rules make every
position mean something:

* past the end of a line is before its line end, past the last line is the end of the text;
* inside a character is before it;
* an offset between the `\r` and the `\n` of one line end has no position of its own: it is before that line end.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote_to_bytes

from cattrs import Converter
from lsprotocol.types import (
    Position,
    PositionEncodingKind,
    Range,
    TextDocumentContentChangeEvent,
    TextDocumentContentChangePartial,
    TextDocumentContentChangeWholeDocument,
)

from specedit.edit.document import Span
from specedit_lsp.lines import Lines

_CODECS = {PositionEncodingKind.Utf8: ("utf-8", 1), PositionEncodingKind.Utf16: ("utf-16-le", 2)}
_MAX_UINTEGER = 2**31 - 1

# RFC 3986, appendix B.
_URI = re.compile(
    r"(?:(?P<scheme>[^:/?#]+):)?(?://(?P<authority>[^/?#]*))?(?P<path>[^?#]*)"
    r"(?:\?(?P<query>[^#]*))?(?:\#(?P<fragment>.*))?",
    re.DOTALL,
)
_DRIVE = re.compile(r"/[A-Za-z](?::|%3[Aa])(?=/|\Z)")
_ON_WINDOWS = os.name == "nt"


def to_offset(text: str, position: Position, encoding: PositionEncodingKind, lines: Lines | None = None) -> int:
    """The code-point offset of `position` in `text`; `lines` spares looking for them."""
    lines = lines or Lines(text)
    if position.line >= len(lines):
        return len(text)
    content = lines.content(max(0, position.line), text)
    # No character takes less than one unit, so that no more of them can be meant.
    beginning = text[content.start : min(content.end, content.start + max(0, position.character))]
    return content.start + _characters(beginning, max(0, position.character), encoding)


def to_position(text: str, offset: int, encoding: PositionEncodingKind, lines: Lines | None = None) -> Position:
    """The position of the code-point offset `offset` in `text`; one outside the text is taken for its nearest end."""
    lines = lines or Lines(text)
    offset = min(max(0, offset), len(text))
    line = lines.at(offset)
    content = lines.content(line, text)
    return Position(line, units(text[content.start : min(offset, content.end)], encoding))


def to_span(text: str, range_: Range, encoding: PositionEncodingKind, lines: Lines | None = None) -> Span:
    """The span of a range in `text`; one that is written the wrong way round is turned."""
    lines = lines or Lines(text)
    ends = (to_offset(text, position, encoding, lines) for position in (range_.start, range_.end))
    return Span(*sorted(ends))


def to_range(text: str, span: Span, encoding: PositionEncodingKind, lines: Lines | None = None) -> Range:
    """The range of a span in `text`."""
    lines = lines or Lines(text)
    return Range(*(to_position(text, offset, encoding, lines) for offset in (span.start, span.end)))


def units(text: str, encoding: PositionEncodingKind) -> int:
    """How many code units `text` takes; a lone surrogate takes what a character of its code point would."""
    if encoding not in _CODECS or text.isascii():
        return len(text)
    codec, bytes_a_unit = _CODECS[encoding]
    return len(text.encode(codec, "surrogatepass")) // bytes_a_unit


def _characters(text: str, count: int, encoding: PositionEncodingKind) -> int:
    """How many whole characters of `text` the first `count` units hold."""
    most = min(count, len(text))
    excess = units(text[:most], encoding) - count
    if excess <= 0:
        return most
    # Each character less takes at least one unit away.
    least = max(0, most - excess)
    base = units(text[:least], encoding)
    fits = range(least, most + 1)
    return least + bisect_right(fits, count, key=lambda end: base + units(text[least:end], encoding)) - 1


def to_json(range_: Range) -> dict[str, dict[str, int]]:
    """A range as it goes over the wire in messages of ours."""
    return {
        "start": {"line": range_.start.line, "character": range_.start.character},
        "end": {"line": range_.end.line, "character": range_.end.character},
    }


def path_of(uri: str, *, windows: bool = _ON_WINDOWS) -> Path | None:
    """The file that `uri` stands for, byte for byte, or None where it stands for none on this machine.

    That is: another scheme, another host (on Windows a share is a file), a relative path, a query or a fragment, or a
    name that no file can have.
    """
    scheme, authority, path, query, fragment = _parts(uri)
    name = os.fsdecode(_unescaped(path))
    on_this_machine = authority.lower() in ("", "localhost")
    if scheme.lower() != "file" or query is not None or fragment is not None:
        return None
    if not name.startswith("/") or "\0" in name or re.search("%2f", path, re.IGNORECASE):
        return None
    if windows:
        is_drive = _DRIVE.match(path) is not None
        if is_drive and on_this_machine:
            return Path(name[1:].replace("/", "\\"))
        return None if on_this_machine else Path(f"\\\\{authority}{name}".replace("/", "\\"))
    return Path(name) if on_this_machine else None


def uri_of(path: Path) -> str:
    """The `file:` URI of an absolute path.

    Raises:
        ValueError: it is relative.
    """
    return path.as_uri()


def canonical(uri: str, *, windows: bool = _ON_WINDOWS) -> str:
    """`uri` in one spelling of all that mean the same, as a key; URIs that may mean different things stay different.

    It does not matter which characters are escaped, the case of the escapes, of the scheme and of the host, an empty
    or left out host or `localhost` in a `file:` URI, and on Windows the case of the drive's letter.
    """
    scheme, authority, path, query, fragment = _parts(uri)
    scheme = scheme.lower()
    user, at, host = authority.rpartition("@")
    authority = _escaped_one_way(f"{user}{at}{host.lower()}", "@:")
    if scheme == "file":
        authority = "" if authority == "localhost" else authority
        if windows and (drive := _DRIVE.match(path)):
            path = f"/{path[1].lower()}:{path[drive.end() :]}"
    key = f"{scheme}:" if scheme else ""
    key += f"//{authority}" if authority or path.startswith("//") else ""
    key += _escaped_one_way(path, "/")
    key += "" if query is None else "?" + _escaped_one_way(query, "&=;")
    return key + ("" if fragment is None else "#" + _escaped_one_way(fragment, ""))


def same_uri(one: str, other: str) -> bool:
    """Whether both are spellings of one URI."""
    return canonical(one) == canonical(other)


def register_lenient_hooks(converter: Converter) -> None:
    """Have `converter` take changes as editors send them, where LSP's types would refuse the whole message.

    Numbers of a position that LSP can't write become the nearest that it can; `"range": null` is no range; the length
    of the range, which is deprecated and not looked at, may be anything.
    """
    converter.register_structure_hook(Position, _position)
    # Not by its name in lsprotocol, whose parts are only promised there.
    event = TextDocumentContentChangePartial | TextDocumentContentChangeWholeDocument
    converter.register_structure_hook(event, lambda change, _: _change(change, converter))


def _position(value: Mapping[str, Any], _: type) -> Position:
    line, character = (min(max(0, int(value[key])), _MAX_UINTEGER) for key in ("line", "character"))
    return Position(line, character)


def _change(value: Mapping[str, Any], converter: Converter) -> TextDocumentContentChangeEvent:
    if value.get("range") is None:
        return TextDocumentContentChangeWholeDocument(value["text"])
    return TextDocumentContentChangePartial(converter.structure(value["range"], Range), value["text"])


def _parts(uri: str) -> tuple[str, str, str, str | None, str | None]:
    """Scheme, authority, path, query and fragment as they are written; the last two None where there are none."""
    match = _URI.fullmatch(uri)
    assert match is not None, "every string fits"
    return match["scheme"] or "", match["authority"] or "", match["path"], match["query"], match["fragment"]


def _escaped_one_way(part: str, delimiters: str) -> str:
    """`part` with all but plain characters escaped; `delimiters` mean something other where they are not."""
    return re.sub(
        f"[^{re.escape(delimiters)}]+" if delimiters else ".+",
        lambda run: quote(_unescaped(run[0]), safe=""),
        part,
        flags=re.DOTALL,
    )


def _unescaped(part: str) -> bytes:
    return unquote_to_bytes(part.encode("utf-8", "surrogatepass"))
