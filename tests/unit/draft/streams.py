"""Answers of all kinds, and what is drafted on the way; as a script in plain Python, with every index checked.

Compiled kernels look at no bounds: a wrong index reads other memory, and a negative one reads from an array's end.
"""

from __future__ import annotations

import json
import math
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from specedit.draft.ngrams import Table
from specedit.engine.api import Hints

_WORDS = ["foo", "bar", "baz", "self", "x", "old_name", "new_name", "oldName", "return", "if", "else", "for"]
_SIGNS = ["", "(", ")", ",", ":", " =", '"']
_INDENTS = ["", "    ", "        ", "\t", "  "]


class Stream(NamedTuple):
    """What one answer is drafted from, and the answer."""

    prompt: list[int]
    prediction: list[int]
    answer: list[int]
    hints: Hints
    parts: tuple[str, ...]
    wide: bool


def codec():
    from tests.tiny_codec import TinyCodec

    return TinyCodec([" ".join(_WORDS), "\n".join(_WORDS), "```python\n\t"])


def streams(seed: int, count: int) -> Iterator[Stream]:
    """Edits of made files, and random tokens of many and of few kinds; empty and one-token texts among them."""
    from specedit.draft.merge import PARTS

    generator = random.Random(seed)
    tiny = codec()
    for _ in range(count):
        parts = tuple(part for part in PARTS if generator.random() < 0.8)
        wide = generator.random() < 0.7
        if generator.random() < 0.6:
            before = "".join(_line(generator) for _ in range(generator.randrange(25)))
            after = _edited(generator, before)
            names = (("old_name", "new_name"),) if generator.random() < 0.5 else ()
            opening, closing = generator.choice([("", ""), ("```python\n", "```")])
            written = generator.choice([after, f"{opening}{after}{closing}", f"```python\n{after}```"])
            shown = generator.choice([before, f"do it\n```python\n{before}```\n", before[9:], "", "x"])
            offsets = sorted(generator.sample(range(len(before) + 1), min(len(before), generator.randrange(6))))
            hints = Hints(names, tuple(offsets), opening, closing)
            prompt = [tiny.special_id] * generator.randrange(2) + tiny.encode(shown)
            yield Stream(prompt, tiny.encode(before), tiny.encode(written), hints, parts, wide)
        else:
            size = generator.choice([3, tiny.size])
            prediction, answer, prompt = (
                [generator.randrange(size) for _ in range(generator.choice(sizes))]
                for sizes in ([0, 1, 2, 5, 40], [1, 3, 50, 300], [0, 1, 2, 3, 30])
            )
            if generator.random() < 0.5:
                answer = [*prediction[: len(prediction) // 2], *answer, *prediction[len(prediction) // 2 :]]
            opening, closing = generator.choice([("", ""), ("\x01\x02", "\x01")])
            hints = Hints((("\x01", "\x02"),), (0, len(prediction)), opening, closing)
            yield Stream(prompt, prediction, answer, hints, parts, wide)


def table_of(tokens: list[int]) -> Table:
    """What follows one and two tokens here, as a static table."""
    arrays = {}
    for order in (1, 2):
        follows: dict[int, Counter[int]] = {}
        for place in range(order, len(tokens)):
            key = tokens[place - 1] + ((tokens[place - 2] << 32) if order == 2 else 0)
            follows.setdefault(key, Counter())[tokens[place]] += 1
        rows = [follows[key].most_common() for key in sorted(follows)]
        arrays[f"keys{order}"] = np.array(sorted(follows), dtype=np.uint64)
        arrays[f"starts{order}"] = np.cumsum([0, *map(len, rows)]).astype(np.uint32)
        arrays[f"next{order}"] = np.array([token for row in rows for token, _ in row], dtype=np.uint32)
        shares = [count / sum(dict(row).values()) for row in rows for _, count in row]
        arrays[f"prob{order}"] = np.array([min(-32 * math.log(share), 255) for share in shares], dtype=np.uint8)
    return Table.of(arrays)


def trees(stream: Stream, seed: int, on_commit: Callable[[Any], None] = lambda drafter: None) -> list[list[Any]]:
    """Drafts on the way through the answer: token ids, parents, log probabilities and origins."""
    from specedit.draft.merge import EditDrafter

    generator = random.Random(seed)
    table = table_of(stream.answer) if len(stream.answer) % 2 else None
    drafter = EditDrafter(codec().vocabulary(), parts=stream.parts, wide=stream.wide, table=table)
    drafter.begin(stream.prompt, stream.prediction, stream.hints)
    on_commit(drafter)
    found, done = [], 0
    while done < len(stream.answer):
        tree = drafter.propose(generator.choice([1, 2, 5, 16, 64]) if generator.random() < 0.97 else 600)
        log_probs = [round(value, 6) for value in tree.log_probs.tolist()]
        found.append([tree.token_ids.tolist(), tree.parents.tolist(), log_probs, list(tree.origins)])
        size = generator.choice([1, 2, 7, 30])
        drafter.commit(stream.answer[done : done + size])
        on_commit(drafter)
        done += size
    return found


class Checked(np.ndarray):
    """An array that refuses indexes outside of it, negative ones too, in a kernel."""

    def __getitem__(self, key: Any) -> Any:
        self._check(key)
        return super().__getitem__(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._check(key)
        super().__setitem__(key, value)

    def _check(self, key: Any) -> None:
        if sys._getframe(2).f_code.co_filename.endswith("merge.py"):
            return  # no kernel
        for axis, index in enumerate(key if isinstance(key, tuple) else (key,)):
            if isinstance(index, int | np.integer) and not 0 <= index < self.shape[axis]:
                raise IndexError(f"index {index} of an array of {self.shape[axis]}")


class CheckedNumpy:
    """numpy, as far as kernels see it, whose new arrays are checked and hold what nobody should read."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def empty(self, shape: Any, dtype: Any = float) -> Any:
        return np.full(shape, -7, dtype=dtype).view(Checked)

    def zeros(self, shape: Any, dtype: Any = float) -> Any:
        return np.zeros(shape, dtype=dtype).view(Checked)


def check_indexes(drafter: Any) -> None:
    """Make all that a drafter's kernels read and write refuse wrong indexes."""
    for name, value in vars(drafter).items():
        if isinstance(value, np.ndarray):
            setattr(drafter, name, value.view(Checked))
        elif isinstance(value, tuple) and hasattr(value, "_fields"):
            setattr(drafter, name, type(value)(*(array.view(Checked) for array in value)))


def main() -> None:
    """Print the drafts of some streams as JSON, made by plain Python with checked indexes."""
    from specedit.draft import beliefs, edit_cursor, expand, ngrams, suffix_index

    np.seterr(over="ignore")  # hashes are meant to overflow
    for module in (beliefs, edit_cursor, expand, ngrams, suffix_index):
        module.np = CheckedNumpy()  # type: ignore[attr-defined]
    seed, count = map(int, sys.argv[1:])
    json.dump([trees(stream, seed, check_indexes) for stream in streams(seed, count)], sys.stdout)


def _line(generator: random.Random) -> str:
    words = "".join(f"{generator.choice(_WORDS)}{generator.choice(_SIGNS)} " for _ in range(generator.randrange(6)))
    return f"{generator.choice(_INDENTS)}{words.rstrip()}\n"


def _edited(generator: random.Random, text: str) -> str:
    lines = text.splitlines(keepends=True)
    for _ in range(generator.randrange(5)):
        start = generator.randrange(len(lines) + 1)
        end = start + generator.randrange(4)
        block = lines[start:end]
        match generator.randrange(4):
            case 0:
                block = [_line(generator) for _ in range(generator.randrange(3))]
            case 1:
                block = [f"    {line}" for line in block]
            case 2:
                block = [line.removeprefix("    ") for line in block]
            case _:
                lines = [line.replace("old_name", "new_name").replace("oldName", "newName") for line in lines]
                block = lines[start:end]
        lines = [*lines[:start], *block, *lines[end:]]
    return "".join(lines)


if __name__ == "__main__":
    main()
