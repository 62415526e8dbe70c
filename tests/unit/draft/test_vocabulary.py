from __future__ import annotations

import pytest

from specedit.draft import vocabulary
from specedit.draft.vocabulary import Vocabulary, chars_of, kind_of
from tests.tiny_codec import TinyCodec


@pytest.mark.parametrize(
    ("kind", "pieces"),
    [
        ("LINE", [b"\n", b"\r\n", b"\r", b"  \n    "]),
        ("BLANK_LINE", [b"\n\n", b"\n\n\n"]),
        ("BLOCK_LINE", [b":\n", b"):\n", b" {\n", b"(\n", b"[\r\n"]),
        ("COMMA_LINE", [b",\n", b"),\n"]),
        ("CLOSED_LINE", [b")\n", b";\n", b'"\n', b"x\n", b"}\n\n"]),
        ("BLANK", [b" ", b"\t", b"    ", b"", b"\t "]),
        ("WORD", [b" word", b"\tword", b"  x", " é".encode(), " 世".encode()]),
        ("CAPITAL_WORD", [b" Word", b" MAX"]),
        ("KEYWORD", [b" return", b" in", b" self"]),
        ("PART", [b"word", b"return", "é".encode(), b"\xa9"]),
        ("CAPITAL_PART", [b"Word", b"Xy1"]),
        ("JOINT", [b"_", b"_x", b" _x"]),
        ("NUMBER", [b"1", b" 27", b"0x"]),
        ("DOT", [b".", b")."]),
        ("COMMA", [b",", b"),"]),
        ("COLON", [b":", b" ;", b"):"]),
        ("ASSIGN", [b"=", b" ==", b" +="]),
        ("ARROW", [b"->", b" =>", b"::"]),
        ("QUOTE", [b'"', b" '", b"`", b'("', b"'s"]),
        ("CLOSE", [b")", b"]", b" }", b"))"]),
        ("PAREN", [b"(", b" (", b")(", b".("]),
        ("BRACKET", [b"[", b" [["]),
        ("BRACE", [b"{", b" {"]),
        ("OTHER", [b"#", b" +", b"@", b"\x00", b"!"]),
    ],
)
def test_the_kind_of_a_token_is_told_by_its_bytes(kind, pieces):
    assert {piece: kind_of(piece) for piece in pieces} == dict.fromkeys(pieces, getattr(vocabulary, kind))
    assert all((kind_of(piece) < vocabulary.FIRST_IN_LINE) == kind.endswith("LINE") for piece in pieces)


@pytest.mark.parametrize("text", ["", "plain", "naïve", "世界", "😀"])
def test_code_points_are_counted_where_they_begin(text):
    data = text.encode()
    assert chars_of(data) == len(text)
    assert sum(chars_of(data[place : place + 1]) for place in range(len(data))) == len(text)


def test_a_vocabulary_knows_each_token_of_its_codec():
    codec = TinyCodec(["def f(x):\n    return naïve\n"])
    made = Vocabulary.of(codec, codec.size + 5, [codec.special_id, codec.size + 99])
    assert made.size == len(made.kinds) == len(made.chars) == len(made.barred) == codec.size + 5
    assert made.barred.nonzero()[0].tolist() == [codec.special_id]
    tokens = codec.encode("def f(x):\n    return naïve\n")
    assert made.text(tokens) == "def f(x):\n    return naïve\n"
    assert made.chars[tokens].sum() == len("def f(x):\n    return naïve\n")
    assert made.kinds[tokens[0]] == vocabulary.PART
    assert made.kinds[tokens[1]] == vocabulary.WORD


def test_a_character_that_is_cut_shows_as_unknown():
    assert TinyCodec([]).vocabulary().text([0xC3]) == "\ufffd"
