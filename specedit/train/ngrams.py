"""Counting static n-grams: which tokens follow one or two others in code at large, within a bound on bytes.

What is stored where bytes are scarce: a context is worth the probability that its followers add, over all its
occurrences, to what the last token alone gives. Contexts and followers are kept while that exceeds a price a byte, and
the price is raised until the file fits. What only one package holds says less about other code and is worth less.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from specedit.draft import ngram_file
from specedit.draft.ngram_file import Arrays
from specedit.train.releases import LANGUAGES, SourceFile

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

MOST_BYTES = 2_990_000
#: One package of so many is kept from counting, to measure on.
HELD_OUT = 10

#: Token ids are below this in any vocabulary that can be counted.
MOST_TOKENS = 1 << 20
_TOKEN_BITS = 20
_END = MOST_TOKENS - 1  # stands after each file
_LEAST_COUNT = 2
_WORTH_IN_ONE_PACKAGE = 0.3
_LEAST_PROB = 0.03
_DISCOUNT = 0.5
_CONTEXT_BYTES, _FOLLOWER_BYTES = 2.2, 1.5  # about what one of two tokens takes in the file
_FIRST_PRICE, _LEAST_PRICE = 0.2, 0.001
_MOST_TRIES = 12
_FULL = 0.97  # share of the allowed bytes that is near enough
_PROB_STEP = 4  # of the 32 that a nat has


def balanced(files: Iterable[SourceFile], most_chars: int) -> Iterator[SourceFile]:
    """Files of all packages, evenly drawn, until each language has `most_chars`."""
    left = dict.fromkeys(LANGUAGES.values(), most_chars)
    for file in sorted(files, key=lambda file: hashlib.sha256(file.text.encode()).digest()):
        if left[file.language] > 0:
            left[file.language] -= len(file.text)
            yield file


@dataclass(frozen=True)
class Corpus:
    """Tokens of files, package by package.

    Attributes:
        tokens: [N] of all files one after another, each file ended by `_END`.
        starts: [P + 1] where each package's files begin.
        packages: [P] name, version, licence.
    """

    tokens: IntArray
    starts: IntArray
    packages: tuple[tuple[str, str, str], ...]

    @classmethod
    def of(cls, files: Iterable[SourceFile], encode: Callable[[str], Sequence[int]]) -> Corpus:
        """Encode files; those of a package stand together."""
        by_package: dict[tuple[str, str, str], list[IntArray]] = {}
        for file in files:
            ids = np.asarray([*encode(file.text), _END], dtype=np.int64)
            by_package.setdefault((file.package, file.version, file.licence), []).append(ids)
        return cls._joined([np.concatenate(texts) for texts in by_package.values()], tuple(by_package))

    def split(self, every: int) -> tuple[Corpus, Corpus]:
        """The packages without each `every`-th, and those alone."""
        numbers = range(len(self.packages))
        return self._only([n for n in numbers if n % every]), self._only([n for n in numbers if not n % every])

    def _only(self, numbers: Sequence[int]) -> Corpus:
        parts = [self.tokens[self.starts[number] : self.starts[number + 1]] for number in numbers]
        return self._joined(parts, tuple(self.packages[number] for number in numbers))

    @classmethod
    def _joined(cls, parts: Sequence[IntArray], packages: tuple[tuple[str, str, str], ...]) -> Corpus:
        starts = np.cumsum([0, *map(len, parts)]).astype(np.int64)
        return cls(np.concatenate([np.zeros(0, dtype=np.int64), *parts]), starts, packages)


@dataclass(frozen=True)
class Grams:
    """Counted n-grams.

    Attributes:
        contexts: [G] ascending; a context of two tokens is first << 20 | second.
        followers: [G] ascending within a context.
        counts: [G] occurrences.
        totals: [G] occurrences of the context, with the followers that were left out.
        worth: [G] how much an occurrence promises for other code: less where one package has them all.
    """

    contexts: IntArray
    followers: IntArray
    counts: FloatArray
    totals: FloatArray
    worth: FloatArray

    @property
    def probs(self) -> FloatArray:
        """[G] discounted probability of each follower: (count - 0.5) / total."""
        return (self.counts - _DISCOUNT) / self.totals


@dataclass(frozen=True)
class Quality:
    """How a table does on text that it was not made from.

    Attributes:
        positions: tokens predicted.
        known: share whose true token is among the followers of the longest context that the table has.
        mean_prob: the table's mean probability of the true token, 0 where unknown.
        mean_log_prob: mean natural log of it over the known positions.
    """

    positions: int
    known: float
    mean_prob: float
    mean_log_prob: float


def build(corpus: Corpus, tokenizer: str, most_bytes: int = MOST_BYTES) -> bytes:
    """The file of the best table of at most `most_bytes`.

    Args:
        corpus: what to count.
        tokenizer: fingerprint of the tokenizer that encoded it.
        most_bytes: bound on the file.
    """
    singles, pairs = count(corpus, 1), count(corpus, 2)
    meta = {"tokenizer": tokenizer, "tokens": len(corpus.tokens), "packages": corpus.packages}
    price, best = _FIRST_PRICE, b""
    for _ in range(_MOST_TRIES):
        file = ngram_file.pack(select(singles, pairs, price) | {"meta": np.array(json.dumps(meta))})
        share = len(file) / most_bytes
        if len(best) < len(file) <= most_bytes:
            best = file
        if _FULL <= share <= 1 or (share < 1 and price < _LEAST_PRICE):
            break
        price *= (share / ((1 + _FULL) / 2)) ** 1.2  # a table shrinks a little slower than the price rises
    return best


def count(corpus: Corpus, order: int) -> Grams:
    """Count what follows each `order` tokens within a file; n-grams that occur once are left out."""
    keys, counts = _concatenated(_counted(package, order) for package in _packages(corpus))
    by_key = np.argsort(keys, kind="stable")
    keys, counts = keys[by_key], counts[by_key]
    firsts = np.flatnonzero(np.diff(keys, prepend=-1))
    packages = np.diff(firsts, append=len(keys))
    keys, counts = keys[firsts], np.add.reduceat(counts, firsts)
    contexts = keys >> _TOKEN_BITS
    totals = _over_contexts(contexts, counts)
    worth = np.where(packages > 1, 1.0, _WORTH_IN_ONE_PACKAGE)
    kept = counts >= _LEAST_COUNT
    return Grams(contexts[kept], keys[kept] & _END, counts[kept], totals[kept], worth[kept])


def select(singles: Grams, pairs: Grams, price: float) -> Arrays:
    """The n-grams that are worth `price` expected hits a byte, as the arrays of a table but `meta`."""
    shorter = _found(singles, pairs.contexts & _END, pairs.followers)
    shorter_probs = np.where(shorter >= 0, singles.probs[shorter], 0.0)
    hits = pairs.worth * pairs.counts * pairs.probs
    kept = (pairs.probs >= _LEAST_PROB) & (hits > price * _FOLLOWER_BYTES) & (shorter >= 0)
    costs = price * (_CONTEXT_BYTES + _FOLLOWER_BYTES * _over_contexts(pairs.contexts, kept.astype(np.float64)))
    gains = _over_contexts(pairs.contexts, kept * hits - pairs.worth * pairs.counts * shorter_probs)
    kept &= gains > costs

    needed = np.zeros(len(singles.contexts), dtype=np.bool_)
    needed[shorter[kept]] = True
    needed |= (singles.probs >= _LEAST_PROB) & (
        singles.worth * singles.counts * singles.probs > price * _FOLLOWER_BYTES
    )
    keys1, starts1, next1, prob1 = _rows(singles, needed)
    keys2, starts2, next2, prob2 = _rows(pairs, kept)
    first, second = keys2 >> _TOKEN_BITS, keys2 & _END
    return {
        "keys1": keys1.astype(np.uint32),
        "starts1": starts1,
        "next1": next1,
        "prob1": prob1,
        "keys2": ((first << 32) + second).astype(np.uint64),
        "starts2": starts2,
        "next2": next2,
        "prob2": prob2,
    }


def measure(table: Arrays, corpus: Corpus) -> Quality:
    """How well a table predicts a corpus, token by token, by its longest context that applies."""
    known, probs = [], []
    for tokens in _packages(corpus):
        first, second, true = (tokens[offset : len(tokens) - 2 + offset] for offset in range(3))
        inside = (first != _END) & (second != _END) & (true != _END)
        first, second, true = first[inside], second[inside], true[inside]
        has_pair, pair_prob = _looked_up(table, "2", (first << 32) + second, true)
        _, single_prob = _looked_up(table, "1", second, true)
        prob = np.where(has_pair, pair_prob, single_prob)
        known.append(prob > 0)
        probs.append(prob)
    hit, prob = np.concatenate(known), np.concatenate(probs)
    return Quality(len(prob), float(hit.mean()), float(prob.mean()), float(np.log(prob[hit]).mean()))


def _packages(corpus: Corpus) -> Iterable[IntArray]:
    return (corpus.tokens[start:end] for start, end in zip(corpus.starts, corpus.starts[1:], strict=False))


def _counted(tokens: IntArray, order: int) -> tuple[IntArray, FloatArray]:
    size = max(0, len(tokens) - order)
    keys, inside = np.zeros(size, dtype=np.int64), np.ones(size, dtype=np.bool_)
    for offset in range(order + 1):
        window = tokens[offset : offset + size]
        keys = (keys << _TOKEN_BITS) | window
        inside &= window != _END
    unique, counts = np.unique(keys[inside], return_counts=True)
    return unique, counts.astype(np.float64)


def _concatenated(counted: Iterable[tuple[IntArray, FloatArray]]) -> tuple[IntArray, FloatArray]:
    keys, counts = zip(*counted, strict=True)
    return np.concatenate(keys), np.concatenate(counts)


def _over_contexts(contexts: IntArray, values: FloatArray) -> FloatArray:
    """[G] the sum of `values` over each entry's context; contexts ascend."""
    firsts = np.flatnonzero(np.diff(contexts, prepend=-1))
    sizes = np.diff(firsts, append=len(contexts))
    return np.repeat(np.add.reduceat(values, firsts), sizes) if len(contexts) else values


def _found(grams: Grams, contexts: IntArray, followers: IntArray) -> IntArray:
    """[G] where grams stand among `grams`, -1 for those that don't."""
    keys = (grams.contexts << _TOKEN_BITS) | grams.followers
    wanted = (contexts << _TOKEN_BITS) | followers
    places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[places] == wanted, places, -1)


def _rows(grams: Grams, kept: npt.NDArray[np.bool_]) -> tuple[IntArray, Any, Any, Any]:
    """Contexts ascending, and their kept followers in falling probability."""
    contexts, followers = grams.contexts[kept], grams.followers[kept]
    steps = np.clip(np.round(-32 / _PROB_STEP * np.log(grams.probs[kept])), 0, 255 // _PROB_STEP) * _PROB_STEP
    order = np.lexsort((-grams.counts[kept], steps, contexts))
    keys, sizes = np.unique(contexts, return_counts=True)
    starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.uint32)
    return keys, starts, followers[order].astype(np.uint32), steps[order].astype(np.uint8)


def _looked_up(
    table: Arrays, order: str, contexts: IntArray, true: IntArray
) -> tuple[npt.NDArray[np.bool_], FloatArray]:
    """Whether the table has each context, and its probability of the true token."""
    keys = table[f"keys{order}"].astype(np.int64)
    sizes = ngram_file.sizes_of(table[f"starts{order}"].astype(np.int64))
    if not len(keys):
        return np.zeros(len(true), dtype=np.bool_), np.zeros(len(true))
    rows = np.minimum(np.searchsorted(keys, contexts), len(keys) - 1)
    has = keys[rows] == contexts
    entries = (np.repeat(np.arange(len(keys)), sizes) << _TOKEN_BITS) | table[f"next{order}"].astype(np.int64)
    sorting = np.argsort(entries)
    wanted = (rows << _TOKEN_BITS) | true
    places = sorting[np.minimum(np.searchsorted(entries, wanted, sorter=sorting), len(entries) - 1)]
    found = has & (entries[places] == wanted)
    return has, np.where(found, np.exp(table[f"prob{order}"].astype(np.float64)[places] / -32), 0.0)
