"""What is open in the editor, and how it follows what is typed there."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from lsprotocol.types import (
    DidChangeTextDocumentParams,
    LanguageKind,
    Position,
    PositionEncodingKind,
    Range,
    TextDocumentContentChangePartial,
    TextDocumentContentChangeWholeDocument,
    TextDocumentItem,
    VersionedTextDocumentIdentifier,
)

from specedit.edit.document import Document, Span
from specedit_lsp.documents import Documents, OpenDocument, TextChange

URI = "file:///project/a.py"


def item(text: str = "", uri: str = URI, language: str = "python", version: int = 1) -> TextDocumentItem:
    return TextDocumentItem(uri, language, version, text)


def opened(text: str, encoding: PositionEncodingKind = PositionEncodingKind.Utf16) -> tuple[Documents, OpenDocument]:
    documents = Documents(encoding)
    return documents, documents.open(item(text))


def changed(*events, uri: str = URI, version: int = 2) -> DidChangeTextDocumentParams:
    return DidChangeTextDocumentParams(VersionedTextDocumentIdentifier(version, uri), events)


def replace(line: int, character: int, end_line: int, end_character: int, text: str):
    return TextDocumentContentChangePartial(Range(Position(line, character), Position(end_line, end_character)), text)


def whole(text: str):
    return TextDocumentContentChangeWholeDocument(text)


# --- changes


@pytest.mark.parametrize(
    ("before", "event", "after"),
    [
        ("ab\ncd", replace(0, 1, 0, 1, "x"), "axb\ncd"),
        ("ab\ncd", replace(0, 1, 1, 1, ""), "ad"),
        ("ab\ncd", replace(1, 2, 1, 2, "\n"), "ab\ncd\n"),
        ("ab\ncd\n", replace(2, 0, 2, 0, "e"), "ab\ncd\ne"),
        ("ab\ncd\n", replace(1, 2, 2, 0, ""), "ab\ncd"),
        ("ab\ncd", replace(1, 0, 2, 0, ""), "ab\n"),
        ("ab\ncd", replace(7, 0, 9, 9, "!"), "ab\ncd!"),
        ("ab\ncd", replace(0, 9, 0, 9, "!"), "ab!\ncd"),
        ("ab\ncd", replace(1, 1, 0, 1, "x"), "axd"),
        ("a\r\nb", replace(0, 1, 1, 0, "\n"), "a\nb"),
        ("a\rb", replace(1, 0, 1, 0, "\n"), "a\r\nb"),
        ("a\r\nb", replace(0, 1, 0, 1, "\r"), "a\r\r\nb"),
        ("a\x0cb\u2028c\x85d\ne", replace(1, 0, 1, 1, "x"), "a\x0cb\u2028c\x85d\nx"),
        ("😋😋x", replace(0, 4, 0, 5, "y"), "😋😋y"),
        ("😋x", replace(0, 1, 0, 2, "y"), "yx"),
        ("", replace(0, 0, 0, 0, "a"), "a"),
        ("a", replace(0, 0, 0, 1, ""), ""),
        ("ab\ncd", whole("new"), "new"),
        ("", whole("\r\n"), "\r\n"),
    ],
)
def test_a_change_is_made_as_the_editor_makes_it(before: str, event, after: str) -> None:
    documents, document = opened(before)
    (change,) = documents.change(changed(event))
    assert document.text == after
    assert before[: change.span.start] + change.new_text + before[change.span.end :] == after
    assert before[change.span.start : change.span.end] == change.old_text


def test_several_changes_are_made_one_after_the_other() -> None:
    documents, document = opened("one\ntwo\n")
    changes = documents.change(changed(replace(0, 0, 0, 0, "zero\n"), replace(1, 0, 1, 3, "ONE"), version=5))
    assert (document.text, document.version) == ("zero\nONE\ntwo\n", 5)
    assert changes == (TextChange(Span(0, 0), "", "zero\n"), TextChange(Span(5, 8), "one", "ONE"))


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        ("a = 1\nb = 2\n", "a = 1\nb = 23\n", TextChange(Span(11, 11), "", "3")),
        ("aa", "aaa", TextChange(Span(2, 2), "", "a")),
        ("aaa", "aa", TextChange(Span(2, 3), "a", "")),
        ("abab", "ab", TextChange(Span(2, 4), "ab", "")),
        ("ab", "xy", TextChange(Span(0, 2), "ab", "xy")),
        ("", "x", TextChange(Span(0, 0), "", "x")),
    ],
)
def test_a_text_given_whole_counts_as_the_part_that_differs(before: str, after: str, change: TextChange) -> None:
    documents, document = opened(before)
    assert documents.change(changed(whole(after))) == (change,)
    assert document.text == after


@pytest.mark.parametrize("event", [whole("same"), replace(0, 1, 0, 2, "a"), replace(0, 1, 0, 1, "")])
def test_what_changes_nothing_is_no_change_but_a_version(event) -> None:
    documents, document = opened("same")
    document.snapshot()
    assert documents.change(changed(event, version=7)) == ()
    assert document.snapshot() == Document("same", Path("/project/a.py"), 7)


def test_a_change_of_what_is_not_open_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    documents = Documents()
    assert documents.change(changed(whole("x"))) == ()
    assert len(documents) == 0
    assert URI in caplog.text


@pytest.mark.parametrize("version", [3, 2, -1])
def test_a_version_that_does_not_rise_is_told_and_its_text_taken(version: int, caplog) -> None:
    documents = Documents()
    document = documents.open(item("a", version=3))
    documents.change(changed(whole("b"), version=version))
    assert (document.text, document.version) == ("b", version)
    assert f"version 3 to {version}" in caplog.text


def test_code_is_never_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    documents, _ = opened("secret")
    documents.open(item("secret"))
    documents.change(changed(whole("secret secret"), version=0))
    documents.change(changed(whole("secret"), uri="file:///other"))
    assert "secret" not in caplog.text


# --- halves of characters


def test_a_character_that_comes_in_two_halves_becomes_whole() -> None:
    documents, document = opened("ab")
    documents.change(changed(replace(0, 1, 0, 1, "\ud83d")))
    assert document.text == "a\ud83db"
    (change,) = documents.change(changed(replace(0, 2, 0, 2, "\ude0b"), version=3))
    assert document.text == "a😋b"
    assert change == TextChange(Span(1, 3), "\ud83db", "😋b")
    assert document.position(2) == Position(0, 3)


def test_halves_that_come_together_become_whole() -> None:
    documents, document = opened("\ud83d-\ude0b")
    documents.change(changed(replace(0, 1, 0, 2, "")))
    assert document.text == "😋"
    assert document.position(1) == Position(0, 2)


@pytest.mark.parametrize("encoding", PositionEncodingKind)
def test_a_half_alone_is_a_character_like_any_other(encoding: PositionEncodingKind) -> None:
    documents, document = opened("\ude0b\nx", encoding)
    documents.change(changed(replace(1, 0, 1, 0, "\ud83d")))
    assert document.text == "\ude0b\n\ud83dx"
    assert [document.offset(document.position(offset)) for offset in range(5)] == [0, 1, 2, 3, 4]
    assert document.snapshot().text == document.text


# --- positions


@pytest.mark.parametrize(
    ("encoding", "character"),
    [(PositionEncodingKind.Utf8, 6), (PositionEncodingKind.Utf16, 3), (PositionEncodingKind.Utf32, 2)],
)
def test_positions_count_the_units_agreed_on(encoding: PositionEncodingKind, character: int) -> None:
    _, document = opened("first\né😋x", encoding)
    assert document.position(8) == Position(1, character)
    assert document.offset(Position(1, character)) == 8
    both = Range(Position(0, 1), Position(1, character))
    assert document.span(both) == Span(1, 8)
    assert document.range(Span(1, 8)) == both


# --- snapshots


def test_a_snapshot_stays_as_it_was() -> None:
    documents, document = opened("old")
    before = document.snapshot()
    assert document.snapshot() is before
    documents.change(changed(whole("new")))
    assert before == Document("old", Path("/project/a.py"), 1)
    assert document.snapshot() == Document("new", Path("/project/a.py"), 2)


def test_a_snapshot_is_new_where_the_version_is_not() -> None:
    documents, document = opened("old")
    document.snapshot()
    documents.change(changed(whole("new"), version=1))
    assert document.snapshot().text == "new"


@pytest.mark.parametrize(
    ("uri", "language", "name"),
    [
        ("untitled:Untitled-1", "python", "Untitled-1.py"),
        ("untitled:Untitled-1", LanguageKind.Rust, "Untitled-1.rs"),
        ("untitled:Untitled-1", "plaintext", "Untitled-1"),
        ("untitled:", "go", "untitled.go"),
        ("untitled:/home/me/new%20file.pyi", "python", "new file.pyi"),
        ("untitled:C%3A%5CUsers%5Cme%5Ca.ts", "typescript", "a.ts"),
        ("vscode-remote://ssh-remote%2Bhost/home/me/a.py", "python", "a.py"),
        ("git:/home/me/a.py?%7B%22ref%22%3A%22HEAD%22%7D", "python", "a.py"),
        ("vscode-notebook-cell:/home/me/a.ipynb#W0s", "python", "a.ipynb.py"),
        ("file://server/share/a.py", "python", "a.py"),
        ("untitled:..", "python", "untitled.py"),
        ("untitled:%2e%2e%2fetc%2fpasswd%00", "python", "untitled.py"),
    ],
)
def test_what_is_no_file_has_a_bare_name_that_says_its_language(uri: str, language: str, name: str) -> None:
    document = Documents().open(item("text", uri, language))
    assert document.path is None
    assert document.snapshot().path == Path(name)


def test_the_language_is_a_plain_string() -> None:
    assert type(Documents().open(item(language=LanguageKind.Python)).language_id) is str


# --- which documents there are


def test_spellings_of_one_uri_are_one_document() -> None:
    documents = Documents()
    document = documents.open(item(uri="file:///caf%C3%A9%3A/a.py"))
    assert documents.get("file:///café:/a.py") is document
    documents.change(changed(whole("x"), uri="file:///caf%c3%a9:/a.py"))
    assert document.text == "x"
    assert documents.close("file://localhost/café%3a/a.py") is document
    assert len(documents) == 0


def test_names_that_look_like_escapes_are_other_documents() -> None:
    documents = Documents()
    blank = documents.open(item("blank", "file:///a%20b.py"))
    percent = documents.open(item("percent", "file:///a%2520b.py"))
    assert (blank.path, percent.path) == (Path("/a b.py"), Path("/a%20b.py"))
    documents.change(changed(whole("changed"), uri="file:///a%20b.py"))
    assert (blank.text, percent.text) == ("changed", "percent")


def test_the_document_used_last_comes_first() -> None:
    documents = Documents()
    a, b, c = (documents.open(item(uri=f"file:///{name}.py")) for name in "abc")
    assert documents.recent() == [c, b, a]
    documents.touch("file:///%61.py")
    documents.change(changed(whole("x"), uri=b.uri))
    assert documents.recent() == [b, a, c]
    documents.get(c.uri)
    documents.touch("file:///unknown.py")
    assert documents.recent() == [b, a, c]


def test_a_document_opened_anew_is_taken_anew(caplog: pytest.LogCaptureFixture) -> None:
    documents = Documents()
    documents.open(item("old", version=9))
    documents.open(item("new", version=1))
    assert [(document.text, document.version) for document in documents.recent()] == [("new", 1)]
    assert "twice" in caplog.text


def test_closing_what_is_not_open_is_no_fault() -> None:
    documents = Documents()
    assert documents.close(URI) is None
