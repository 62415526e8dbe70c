"""Positions, offsets, URIs and paths mean the same on both sides."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types
from lsprotocol.converters import get_converter
from lsprotocol.types import Position, PositionEncodingKind, Range

from specedit.edit.document import Span
from specedit_lsp.convert import (
    canonical,
    path_of,
    register_lenient_hooks,
    same_uri,
    to_offset,
    to_position,
    to_range,
    to_span,
    units,
    uri_of,
)

UTF8, UTF16, UTF32 = PositionEncodingKind.Utf8, PositionEncodingKind.Utf16, PositionEncodingKind.Utf32

any_text = st.text(st.sampled_from("a \t\n\r\x0c\x85\u2028é中😋\ud83d\ude0b"), max_size=20)
encodings = st.sampled_from(list(PositionEncodingKind))


# --- positions


@pytest.mark.parametrize(
    ("encoding", "offsets"),
    [
        (UTF8, [0, 0, 0, 0, 1, 1, 1, 1, 2, 3, 3]),
        (UTF16, [0, 0, 1, 1, 2, 3, 3, 3, 3, 3, 3]),
        (UTF32, [0, 1, 2, 3, 3, 3, 3, 3, 3, 3, 3]),
    ],
)
def test_characters_outside_the_first_plane_count_as_the_encoding_has_them(encoding, offsets: list[int]) -> None:
    text = "😋😋x\nnext"
    assert [to_offset(text, Position(0, character), encoding) for character in range(11)] == offsets


@pytest.mark.parametrize("encoding", PositionEncodingKind)
@pytest.mark.parametrize("text", ["a\x0cb", 's = "\u2028"\nx', "a\x85b", "a\x1cb", "a\rb", "", "a\x0b\r\n", "é\u2029"])
def test_a_range_over_the_whole_text_ends_where_the_text_ends(text: str, encoding) -> None:
    whole = to_range(text, Span(0, len(text)), encoding)
    line_ends = text.replace("\r\n", "\n").replace("\r", "\n").count("\n")
    assert whole.end.line == line_ends
    assert to_span(text, whole, encoding) == Span(0, len(text))


@pytest.mark.parametrize(
    ("position", "offset"),
    [
        (Position(0, 2), 2),
        (Position(0, 3), 2),
        (Position(0, 2**31 - 1), 2),
        (Position(1, 0), 4),
        (Position(1, 9), 6),
        (Position(2, 9), 7),
        (Position(3, 9), 10),
        (Position(4, 0), 10),
        (Position(2**31 - 1, 2**31 - 1), 10),
    ],
)
def test_past_the_end_is_the_end_of_the_line_or_of_the_text(position: Position, offset: int) -> None:
    assert to_offset("ab\r\ncd\n\ref", position, UTF16) == offset


def test_past_the_end_of_a_last_line_without_a_line_end() -> None:
    assert to_offset("ab\ncd", Position(1, 7), UTF16) == 5
    assert to_offset("ab\ncd\n", Position(1, 7), UTF16) == 5
    assert to_offset("ab\ncd\n", Position(2, 7), UTF16) == 6


@pytest.mark.parametrize(("encoding", "inside"), [(UTF16, [2]), (UTF8, [2, 3, 4])])
def test_inside_a_character_is_before_it(encoding, inside: list[int]) -> None:
    assert [to_offset("x😋y", Position(0, character), encoding) for character in inside] == [1] * len(inside)


def test_between_cr_and_lf_is_before_both() -> None:
    assert to_position("ab\r\nc", 3, UTF16) == Position(0, 2)


def test_an_offset_outside_the_text_is_its_nearest_end() -> None:
    assert to_position("ab\nc", 99, UTF16) == Position(1, 1)
    assert to_position("ab\nc", -1, UTF16) == Position(0, 0)


def test_a_range_the_wrong_way_round_is_turned() -> None:
    assert to_span("ab\ncd", Range(Position(1, 1), Position(0, 1)), UTF16) == Span(1, 4)


@given(any_text, encodings)
def test_every_offset_comes_back(text: str, encoding) -> None:
    for offset in range(len(text) + 1):
        inside_line_end = text[max(0, offset - 1) : offset + 1] == "\r\n"
        assert to_offset(text, to_position(text, offset, encoding), encoding) == offset - inside_line_end


@given(any_text, encodings, st.integers(0, 8), st.integers(0, 30))
def test_a_position_means_the_last_place_that_is_not_after_it(text: str, encoding, line: int, character: int) -> None:
    found = to_position(text, to_offset(text, Position(line, character), encoding), encoding)
    places = [to_position(text, offset, encoding) for offset in range(len(text) + 1)]
    assert found == max(place for place in places if place <= Position(line, character))


@given(any_text, any_text, encodings)
def test_units_add_up(one: str, other: str, encoding) -> None:
    assert units(one + other, encoding) == units(one, encoding) + units(other, encoding)


def test_a_very_long_line_is_no_trouble() -> None:
    text = "é😋" * 300_000
    position = to_position(text, 500_001, UTF16)
    assert position == Position(0, 750_001)
    assert to_offset(text, position, UTF16) == 500_001


# --- what comes over the wire


def structured(change: dict[str, object]) -> types.TextDocumentContentChangeEvent:
    converter = get_converter()
    register_lenient_hooks(converter)
    params = {"textDocument": {"uri": "file:///a", "version": 2}, "contentChanges": [change]}
    message = {"jsonrpc": "2.0", "method": "textDocument/didChange", "params": params}
    return converter.structure(message, types.DidChangeTextDocumentNotification).params.content_changes[0]


def wire_range(line: float, character: float) -> dict[str, dict[str, float]]:
    return {"start": {"line": 0, "character": 0}, "end": {"line": line, "character": character}}


@pytest.mark.parametrize(
    ("line", "character", "end"),
    [
        (1, 2, Position(1, 2)),
        (-1, -5, Position(0, 0)),
        (2**32 - 1, 2**53 - 1, Position(2**31 - 1, 2**31 - 1)),
        (3.0, 4.0, Position(3, 4)),
    ],
)
def test_numbers_that_lsp_does_not_have_become_the_nearest(line: float, character: float, end: Position) -> None:
    change = structured({"range": wire_range(line, character), "rangeLength": -1, "text": "x"})
    assert change == types.TextDocumentContentChangePartial(Range(Position(0, 0), end), "x")


@pytest.mark.parametrize("change", [{"text": "x"}, {"range": None, "text": "x"}, {"rangeLength": None, "text": "x"}])
def test_no_range_is_the_whole_text(change: dict[str, object]) -> None:
    assert structured(change) == types.TextDocumentContentChangeWholeDocument("x")


@pytest.mark.parametrize("change", [{}, {"text": None}, {"range": {}, "text": "x"}, {"range": 7, "text": "x"}])
def test_what_is_no_change_is_still_refused(change: dict[str, object]) -> None:
    with pytest.raises(Exception, match=r".+"):
        structured(change)


# --- URIs


@pytest.mark.parametrize(
    "name",
    [
        "/a b/c.py",
        "/a%20b.py",
        "/a%2520b.py",
        "/a#b.py",
        "/a?b.py",
        "/a;b.py",
        "/a:b.py",
        "/a+b&c=d.py",
        "/é中😋.py",
        "/e\u0301.py",
        "/back\\slash.py",
        "/new\nline.py",
        "/[brackets]@at.py",
        os.fsdecode(b"/latin-1 \xe9.py"),
        "/",
    ],
)
def test_a_path_comes_back_from_its_uri(name: str) -> None:
    assert path_of(uri_of(Path(name))) == Path(name)
    assert canonical(uri_of(Path(name))) == canonical(canonical(uri_of(Path(name))))


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12))
def test_any_path_comes_back_from_its_uri(name: str) -> None:
    path = Path("/") / name.lstrip("/")
    assert path_of(uri_of(path)) == path


@pytest.mark.parametrize(
    ("uri", "name"),
    [
        ("file:///a%20b.py", "/a b.py"),
        ("file:///a b.py", "/a b.py"),
        ("file:///a%2520b.py", "/a%20b.py"),
        ("file:///%C3%A9.py", "/é.py"),
        ("file:///é.py", "/é.py"),
        ("FILE:///a.py", "/a.py"),
        ("file:/a.py", "/a.py"),
        ("file://localhost/a.py", "/a.py"),
        ("file:///a%3Bb%23c%3Fd.py", "/a;b#c?d.py"),
        ("file:///a+b.py", "/a+b.py"),
        ("file:///100%.py", "/100%.py"),
        ("file:///c%3A/a.py", "/c:/a.py"),
    ],
)
def test_uris_as_editors_write_them(uri: str, name: str) -> None:
    assert path_of(uri, windows=False) == Path(name)


@pytest.mark.parametrize(
    "uri",
    [
        "untitled:Untitled-1",
        "untitled:/home/me/a.py",
        "vscode-remote://ssh-remote%2Bhost/home/me/a.py",
        "git:/home/me/a.py?%7B%22ref%22%3A%22HEAD%22%7D",
        "vscode-notebook-cell:/home/me/a.ipynb#W0sZmlsZQ%3D%3D",
        "file://host/share/a.py",
        "file:a.py",
        "file:../a.py",
        "file:",
        "file://localhost",
        "file:///a%00b.py",
        "file:///a\0b.py",
        "file:///a%2Fb.py",
        "file:///a.py?x",
        "file:///a.py#x",
        "/home/me/a.py",
        "C:\\a.py",
        "a.py",
        "",
        "file://[",
        "://",
    ],
)
def test_what_is_no_file_here_has_no_path(uri: str) -> None:
    assert path_of(uri, windows=False) is None


@pytest.mark.parametrize(
    ("uri", "name"),
    [
        ("file:///c%3A/Users/a%20b.py", "c:\\Users\\a b.py"),
        ("file:///C:/a.py", "C:\\a.py"),
        ("file://server/share/a.py", "\\\\server\\share\\a.py"),
    ],
)
def test_windows_paths(uri: str, name: str) -> None:
    assert str(path_of(uri, windows=True)) == name


def test_a_path_without_a_drive_is_no_file_on_windows() -> None:
    assert path_of("file:///home/a.py", windows=True) is None


def test_a_relative_path_has_no_uri() -> None:
    with pytest.raises(ValueError, match="relative"):
        uri_of(Path("a.py"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("file:///%C3%A9.py", "file:///é.py"),
        ("file:///%c3%a9.py", "file:///%C3%A9.py"),
        ("file:///c%3A/a.py", "file:///c:/a.py"),
        ("file:///a%7Eb%28c%29.py", "file:///a~b(c).py"),
        ("file:///a%20b.py", "file:///a b.py"),
        ("file:///a.py", "file:/a.py"),
        ("file:///a.py", "file://localhost/a.py"),
        ("FILE:///a.py", "file:///a.py"),
        ("vscode-remote://ssh-remote%2BHost/a.py", "vscode-remote://ssh-remote+host/a.py"),
        ("git:/a.py?%7b%22ref%22%7d", "git:/a.py?{%22ref%22}"),
    ],
)
def test_spellings_of_one_uri(one: str, other: str) -> None:
    assert same_uri(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("file:///a%20b.py", "file:///a%2520b.py"),
        ("file:///a%2Fb.py", "file:///a/b.py"),
        ("file:///a%23b", "file:///a#b"),
        ("file:///a%3Fb", "file:///a?b"),
        ("file:///A.py", "file:///a.py"),
        ("file:///e%CC%81.py", "file:///%C3%A9.py"),
        ("untitled:a.py", "file:///a.py"),
        ("git:/a.py?HEAD", "git:/a.py"),
        ("git:/a.py?", "git:/a.py"),
        ("x:/a?b=1&c", "x:/a?b=1%26c"),
        ("vscode-notebook-cell:/a.ipynb#1", "vscode-notebook-cell:/a.ipynb#2"),
        ("file://host/a.py", "file:///a.py"),
        ("file://host/a.py", "file:////host/a.py"),
        ("untitled:Untitled-1", "untitled:/Untitled-1"),
    ],
)
def test_uris_of_different_documents(one: str, other: str) -> None:
    assert not same_uri(one, other)


def test_the_case_of_a_drive_means_nothing_on_windows_only() -> None:
    upper, lower = "file:///C:/a.py", "file:///c%3A/a.py"
    assert canonical(upper, windows=True) == canonical(lower, windows=True)
    assert canonical(upper, windows=False) != canonical(lower, windows=False)


@given(st.text(st.characters()))
def test_no_string_is_too_strange_for_a_uri(uri: str) -> None:
    assert canonical(canonical(uri)) == canonical(uri)
    assert path_of(uri) is None or path_of(uri).is_absolute()
