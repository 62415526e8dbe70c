import codecs
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specedit.edit.document import Document, Span, TextEdit, split_lines
from specedit.errors import RefusedFileError, UsageError

TEXTS = st.text(st.sampled_from("ab\n\r\t é\x0c\x85\u2028\U0001f600"), max_size=30)


def replaced(document, old, new):
    start = document.text.index(old)
    return document.apply([TextEdit(Span(start, start + len(old)), new)])


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("\n", ["\n"]),
        ("a\x0cb", ["a\x0cb"]),
        ('s = "\u2028"\nx', ['s = "\u2028"\n', "x"]),
        ("a\x85b\x1cc\x0bd", ["a\x85b\x1cc\x0bd"]),
        ("a\rb", ["a\r", "b"]),
        ("a\r\n\r\nb\n\r", ["a\r\n", "\r\n", "b\n", "\r"]),
    ],
)
def test_only_newlines_and_returns_end_lines(text, lines):
    assert split_lines(text) == lines
    assert [text[span.start : span.end] for span in Document(text).line_spans] == lines


@given(TEXTS)
def test_lines_joined_are_the_text(text):
    assert "".join(split_lines(text)) == text


@pytest.mark.parametrize(
    ("data", "codec"),
    [
        (b"", "utf-8"),
        (b"\n", "utf-8"),
        (b"\r\n", "utf-8"),
        (b" \t", "utf-8"),
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF8 + b"a\r\nb", "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_LE + "a\r\n\U0001f600".encode("utf-16-le"), "utf-16-le"),
        (codecs.BOM_UTF16_BE + "é\n".encode("utf-16-be"), "utf-16-be"),
        (codecs.BOM_UTF32_LE + "é\n".encode("utf-32-le"), "utf-32-le"),
        (codecs.BOM_UTF32_BE + "é\n".encode("utf-32-be"), "utf-32-be"),
        (b"a\r\nb\nc\rd\ne", "utf-8"),
        (b"a\n\n\n", "utf-8"),
        ("x = 'é\x85\u2028\x0c'\n".encode(), "utf-8"),
        ("# -*- coding: shift_jis -*-\ns = '日本'\n".encode("shift_jis"), "shift_jis"),
        ("#!/usr/bin/python\n# vim: set fileencoding=latin-1 :\n# café\n".encode("latin-1"), "iso8859-1"),
        ("# coding: koi8-r-unix\n# да\n".encode("koi8-r"), "koi8-r"),
        ("<?xml version='1.0' encoding='ISO-8859-15'?>\n<a>€</a>".encode("iso-8859-15"), "iso8859-15"),
        ('<html><head><meta charset="windows-1252"></head>“é”'.encode("cp1252"), "cp1252"),
        (b"# coding: latin-1\nx = 1\n", "iso8859-1"),
        ("# coding: latin-1, so they say\n# é\n".encode(), "utf-8"),
        (b"x = open('f', encoding='latin-1')\n", "utf-8"),
        (b"# coding: utf-16-le\nxyz\n", "utf-8"),
        (b"# coding: rot13\nxyz\n", "utf-8"),
        (b"# coding: no-such-codec\n\xff\n", "utf-8"),
        (b"x = 1\n# caf\xe9\n", "utf-8"),
        (b"\xff", "utf-8"),
        (codecs.BOM_UTF8 + b"\xff", "utf-8"),
    ],
)
def test_bytes_survive_in_the_encoding_they_are_in(data, codec):
    document = Document.from_bytes(data)
    assert document.to_bytes() == data
    assert document.codec == codec
    assert not document.text.startswith("\ufeff")


@given(st.binary(max_size=40))
def test_any_bytes_survive_or_are_refused(data):
    try:
        document = Document.from_bytes(data)
    except RefusedFileError:
        assert b"\0" in data
    else:
        assert document.to_bytes() == data


@given(TEXTS, st.sampled_from([(b"", "utf-8"), (codecs.BOM_UTF16_BE, "utf-16-be"), (codecs.BOM_UTF8, "utf-8")]))
def test_text_is_read_as_it_was_written(text, encoding):
    bom, codec = encoding
    assert Document.from_bytes(bom + text.encode(codec)).text == text


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\r\nb\r\n", "a", "c", b"c\r\nb\r\n"),
        (b"a\r\nb\nc\rd\ne", "e", "f", b"a\r\nb\nc\rd\nf"),
        (b"a\nb\n", "b", "c", b"a\nc\n"),
        (b"a\nb", "a", "c", b"c\nb"),
        (b"a\n\n\n", "a", "c", b"c\n\n\n"),
        (codecs.BOM_UTF8 + b"a\n", "a", "é", codecs.BOM_UTF8 + "é\n".encode()),
        (b"x = 1\n# caf\xe9\n", "1", "2", b"x = 2\n# caf\xe9\n"),
        (b"1 \xff", "1", "2", b"2 \xff"),
        ("# coding: sjis\n'日本' 1".encode("sjis"), "1", "語", "# coding: sjis\n'日本' 語".encode("sjis")),
        (
            codecs.BOM_UTF16_LE + "a\r\n".encode("utf-16-le"),
            "a",
            "é",
            codecs.BOM_UTF16_LE + "é\r\n".encode("utf-16-le"),
        ),
        (codecs.BOM_UTF8, "", "x\n", codecs.BOM_UTF8 + b"x\n"),
        (b"", "", "x\n", b"x\n"),
    ],
)
def test_an_edit_leaves_every_other_byte(before, old, new, after):
    assert replaced(Document.from_bytes(before), old, new).to_bytes() == after


@pytest.mark.parametrize("data", [b"a\0b", b"\x7fELF\0\0", "ab\n".encode("utf-16-le"), codecs.BOM_UTF8 + b"\0"])
def test_binary_files_are_refused_by_name(data):
    with pytest.raises(RefusedFileError, match=r"x/tool\.bin.*NUL"):
        Document.from_bytes(data, Path("x/tool.bin"))


def test_utf16_cut_in_a_character_is_refused():
    with pytest.raises(RefusedFileError):
        Document.from_bytes(codecs.BOM_UTF16_LE + b"a\0\0\xd8")


def test_a_character_the_encoding_lacks_is_refused_with_its_line():
    document = Document.from_bytes("# coding: latin-1\n# é\nx = 1\n".encode("latin-1"), Path("old.py"))
    with pytest.raises(RefusedFileError, match=r"old\.py.*iso8859-1.*U\+20AC \(€\).*line 3"):
        replaced(document, "x = 1", "x = €").to_bytes()


def test_half_a_character_is_not_written():
    with pytest.raises(RefusedFileError, match=r"U\+DCFF"):
        Document("x").apply([TextEdit(Span(0, 1), "\udcff")])


@pytest.mark.parametrize(
    ("text", "ending"),
    [("", "\n"), ("a", "\n"), ("a\r\nb\r\nc\n", "\r\n"), ("a\nb\r\n", "\n"), ("a\r\nb\n", "\r\n"), ("a\rb\rc\n", "\r")],
)
def test_the_line_ending_is_the_most_frequent_then_the_first(text, ending):
    assert Document(text).line_ending == ending


def test_line_numbers():
    document = Document("a\r\nb\rc\x0c\nd")
    assert [document.line_number(offset) for offset in range(len(document.text) + 1)] == [1, 1, 1, 2, 2, 3, 3, 3, 4, 4]
    assert Document("").line_number(0) == 1
    assert Document("a\n").line_number(2) == 2


def test_a_range_of_lines_is_whole_lines():
    document = Document("a\r\nb\rc\nd")
    assert document.lines_span(2, 3) == Span(3, 7)
    assert document.lines_span(1, 4) == Span(0, 8)
    assert Document("").lines_span(1, 1) == Span(0, 0)


@pytest.mark.parametrize(("first", "last"), [(0, 1), (2, 1), (1, 3), (3, 3), (-1, 1)])
def test_a_range_past_the_end_says_how_many_lines_there_are(first, last):
    with pytest.raises(UsageError, match=rf"f\.py has 2 lines.*{first}:{last}"):
        Document("a\nb\n", Path("f.py")).lines_span(first, last)


def test_undecodable_bytes_are_found_by_line():
    document = Document.from_bytes(b"a\n\xff\xff\nb\n\xe9c\n")
    assert document.undecodable_lines(Span(0, len(document.text))) == [2, 4]
    assert document.undecodable_lines(document.lines_span(1, 1)) == []
    assert document.undecodable_lines(document.lines_span(3, 4)) == [4]


@given(st.data(), TEXTS)
def test_edits_applied_together_are_those_applied_from_the_end(data, text):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6, unique=True)))
    edits = [TextEdit(Span(*cuts[i : i + 2]), data.draw(TEXTS)) for i in range(0, len(cuts) - 1, 2)]
    one_by_one = text
    for edit in reversed(edits):
        one_by_one = one_by_one[: edit.span.start] + edit.new_text + one_by_one[edit.span.end :]
    shuffled = data.draw(st.permutations(edits))
    document = Document(text, version=7).apply(shuffled)
    assert (document.text, document.version) == (one_by_one, 7)


def test_neighbours_do_not_overlap():
    edits = [TextEdit(Span(1, 1), "+"), TextEdit(Span(1, 2), "B"), TextEdit(Span(0, 1), "A"), TextEdit(Span(3, 3), "!")]
    assert Document("abc").apply(edits).text == "A+Bc!"


@pytest.mark.parametrize("spans", [[(0, 2), (1, 3)], [(0, 3), (1, 1)], [(2, 4)], [(2, 1)], [(-1, 0)]])
def test_overlapping_or_outlying_edits_are_errors(spans):
    with pytest.raises(ValueError, match=r"overlaps|outside"):
        Document("abc").apply([TextEdit(Span(*span), "x") for span in spans])
