from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from specedit.draft import ngram_file
from specedit.train import ngrams
from specedit.train.ngrams import Corpus
from specedit.train.releases import SourceFile


def encode(text: str) -> list[int]:
    return list(text.encode())


def corpus(**packages: str) -> Corpus:
    files = [SourceFile(name, "1.0", "MIT", "a.py", "python", text) for name, text in packages.items()]
    return Corpus.of(files, encode)


def as_text(grams: ngrams.Grams) -> dict[str, float]:
    rows = zip(grams.contexts.tolist(), grams.followers.tolist(), grams.counts.tolist(), strict=True)
    return {_spelled(context) + chr(follower): count for context, follower, count in rows}


def _spelled(context: int) -> str:
    return "".join(chr(token) for token in (context >> 20, context & (1 << 20) - 1) if token)


def table(counted: Corpus, price: float = 0.0) -> ngram_file.Arrays:
    return ngrams.select(ngrams.count(counted, 1), ngrams.count(counted, 2), price)


def test_what_occurs_once_is_left_out() -> None:
    counted = corpus(one="abcabx", two="abcab", three="xyz")
    assert as_text(ngrams.count(counted, 2)) == {"abc": 2.0, "bca": 2.0, "cab": 2.0}
    assert as_text(ngrams.count(counted, 1)) == {"ab": 4.0, "bc": 2.0, "ca": 2.0}


def test_probabilities_are_discounted_and_count_what_was_left_out() -> None:
    counted = ngrams.count(corpus(one="ab", two="ab", three="ac"), 1)
    assert as_text(counted) == {"ab": 2.0}
    assert counted.probs.tolist() == [pytest.approx(1.5 / 3)]


def test_nothing_is_counted_across_files_or_packages() -> None:
    files = [
        SourceFile(name, "1.0", "MIT", path, "python", text)
        for name in "pq"
        for path, text in (("a", "ab"), ("b", "cd"))
    ]
    assert as_text(ngrams.count(Corpus.of(files, encode), 1)) == {"ab": 2.0, "cd": 2.0}


def test_where_bytes_are_scarce_what_one_package_holds_goes_first() -> None:
    counted = corpus(one="xyxyxyxy mnmn", two="mnmn")
    followers = {price: set(table(counted, price)["next1"].tolist()) for price in (0.0, 0.9)}
    assert {ord("y"), ord("n")} <= followers[0.0]
    assert ord("n") in followers[0.9]
    assert ord("y") not in followers[0.9]


def test_contexts_that_say_no_more_than_their_last_token_are_left_out() -> None:
    # After "a" always comes "b", so that what stands before "a" says nothing; after "x" it depends on it.
    counted = corpus(one="qab rab sab qxc rxd", two="qab rab sab qxc rxd")
    chosen = table(counted, price=0.01)
    contexts = {_spelled((int(key) >> 32 << 20) | (int(key) & 0xFFFFFFFF)) for key in chosen["keys2"]}
    assert {"qx", "rx"} <= contexts
    assert not {"qa", "ra", "sa"} & contexts


def test_the_figures_of_a_table_are_those_worked_out_by_hand() -> None:
    counted = corpus(one="abc abd abc", two="abc abd abc")
    quality = ngrams.measure(table(counted), corpus(other="abcz"))
    assert quality.positions == 2
    assert quality.known == 0.5
    assert quality.mean_prob == pytest.approx(3.5 / 6 / 2, rel=0.1)
    assert quality.mean_log_prob == pytest.approx(np.log(3.5 / 6), abs=0.1)


def test_a_table_keeps_to_its_bytes_and_says_what_it_is_made_of(tmp_path: Path) -> None:
    text = " ".join(f"def f{number}(a{number}): return b{number * number}" for number in range(200))
    counted = corpus(one=text, two=text)
    sizes = {}
    for most_bytes in (1600, 5000):
        file = tmp_path / f"{most_bytes}.npz"
        file.write_bytes(ngrams.build(counted, "0f" * 32, most_bytes))
        assert file.stat().st_size <= most_bytes
        sizes[most_bytes] = len(ngram_file.unpack(file)["next2"])
    assert sizes[5000] > sizes[1600] > 0
    meta = json.loads(str(ngram_file.unpack(file)["meta"]))
    assert meta == {
        "tokenizer": "0f" * 32,
        "tokens": len(counted.tokens),
        "packages": [["one", "1.0", "MIT"], ["two", "1.0", "MIT"]],
    }


def test_each_language_gives_about_as_much() -> None:
    rows = [("python", 500), ("go", 500), ("rust", 20)]
    files = [
        SourceFile("p", "1.0", "MIT", "x", language, f"{number:100}")
        for language, many in rows
        for number in range(many)
    ]
    taken = [file.language for file in ngrams.balanced(files, 10_000)]
    assert (taken.count("python"), taken.count("go"), taken.count("rust")) == (100, 100, 20)
