"""Shipped tables: each is found for the tokenizer that it was counted with, and for no other."""

from __future__ import annotations

import json

import pytest

from specedit.draft import shipped
from specedit.draft.ngram_file import unpack
from tests.tiny_codec import TinyCodec


def test_each_table_is_listed_under_the_tokenizer_that_it_was_counted_with():
    folder = shipped.path_of("x").parent
    assert sorted(path.name for path in folder.glob("*.npz")) == sorted(shipped.TABLES.values())
    for fingerprint, name in shipped.TABLES.items():
        assert json.loads(str(unpack(folder / name)["meta"]))["tokenizer"] == fingerprint


def test_another_tokenizer_has_no_table():
    codec = TinyCodec(["a b c"])
    assert shipped.table_for(codec, codec.size) is None


@pytest.mark.smollm2
def test_a_table_is_read_once_and_a_size_beyond_the_last_token_makes_no_difference(smollm2):
    target, tokenizer = smollm2
    table = shipped.table_for(tokenizer, target.vocab_size)
    assert table is not None
    assert shipped.table_for(tokenizer, target.vocab_size + 1000) is table
