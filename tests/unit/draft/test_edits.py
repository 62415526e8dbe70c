"""What a user sees as speed: in the middle of an edit, the rest of it is drafted."""

from __future__ import annotations

import pytest

from specedit.engine.api import Hints
from tests.unit.draft.drafting import FENCED, Edit, drafted

FILE = """\
import os

def load(path, mode):
    with open(path, mode) as file:
        data = file.read()
    total = parse(data)
    check(total)
    return total

def save(path, data):
    with open(path, "w") as file:
        file.write(data)
"""


def changed(text, *pairs):
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return text


def cut(text, after, times=1):
    """The text up to the end of an occurrence of `after`, and the rest."""
    place = 0
    for _ in range(times):
        place = text.index(after, place) + len(after)
    return text[:place], text[place:]


@pytest.mark.parametrize("wide", [True, False])
def test_a_file_is_drafted_from_its_start(wide):
    assert drafted(FILE, "", FILE, budget=128, wide=wide) == FILE


@pytest.mark.parametrize("wide", [True, False])
def test_fences_are_drafted_around_it(wide):
    edit = Edit(FILE, FILE, FENCED)
    drafted_tokens = edit.accepted(edit.drafter(wide=wide).propose(128), 0)
    assert edit.codec.decode(edit.answer[:drafted_tokens]) == f"```python\n{FILE}```"


def test_the_closing_fence_follows_the_last_line():
    *_, last = FILE.splitlines(keepends=True)
    assert drafted(FILE, FILE.removesuffix(last), last, FENCED) == f"{last}```"


def test_an_answer_without_the_expected_fence_is_drafted_from_its_second_token():
    edit = Edit(FILE, FILE)
    edit.hints = FENCED
    assert len(edit.steps(budget=128)) <= 3


@pytest.mark.parametrize(
    ("change", "after"),
    [
        (("        data = file.read()\n", "        data = file.read()\n        log(file)\n"), "log(file)\n"),
        (("parse(data)", "parse(data, path)"), "parse(data, path"),
        (("def load(path, mode)", "def load(path, flags, mode)"), "(path, flags,"),
        (("total = parse", "count = parse"), "count ="),
        (("open(path, mode)", "open(name, mode)"), "(name"),
        (("file.read()", "file.buffer.raw.readall()"), "readall"),
        (("    check(total)\n", ""), "return"),
        (("        data = file.read()\n    total = parse(data)\n    check(total)\n", ""), "return"),
    ],
    ids=lambda value: value.replace(" ", "_") if isinstance(value, str) else value[1].strip() or "deleted",
)
def test_the_file_is_followed_again_after_a_change(change, after):
    written, coming = cut(changed(FILE, change), after)
    line = coming[: coming.index("\n", 1) + 1]
    assert drafted(FILE, written, coming).startswith(line)


NAMES = """\
start()
old_name = 1
print(old_name)
log(1)
for x in range(old_name):
    use(x, old_name)
"""
RENAMED = NAMES.replace("old_name", "new_name")
RENAME = Hints(substitutions=(("old_name", "new_name"),))


@pytest.mark.parametrize("wide", [True, False])
def test_a_rename_that_the_instruction_names_is_drafted_throughout(wide):
    assert drafted(NAMES, "", RENAMED, RENAME, wide=wide) == RENAMED


def test_a_rename_is_learned_from_its_first_occurrence():
    written, coming = cut(RENAMED, "new_name = 1\n")
    assert drafted(NAMES, written, coming, budget=128) == coming
    assert drafted(NAMES, written, coming, budget=128, parts=("cursor", "lookup", "ngram")) != coming


def test_what_the_instruction_names_may_stay_as_it_is():
    assert drafted(NAMES, "", NAMES, RENAME).startswith("start()\nold_name = 1\n")


def test_an_added_argument_is_repeated():
    before = "a = load(one)\nprint(a)\nb = load(two)\nprint(b)\nc = load(three)\nprint(c)\n"
    after = changed(before, ("one", "one, strict"), ("two", "two, strict"), ("three", "three, strict"))
    written, coming = cut(after, "print(b)\n")
    assert drafted(before, written, coming) == coming


def test_a_line_inserted_above_each_of_several_is_repeated():
    before = "def f():\n    open(a)\n    x = 1\n    open(b)\n    y = 2\n    open(c)\n    z = 3\n    open(d)\n"
    after = before.replace("    open", "    log()\n    open")
    written, coming = cut(after, "open(b)\n")
    assert drafted(before, written, coming, budget=128).startswith("    y = 2\n    log()\n    open(c)\n")


def test_a_block_that_moves_in_is_drafted_with_its_new_indent():
    body = ["total = 0\n", "for row in rows:\n", "    total += row.price\n", "    log(row)\n", "return total\n"]
    before = "".join(["def f(rows):\n", *(f"    {line}" for line in body)])
    after = "".join(["def f(rows):\n    with lock:\n", *(f"        {line}" for line in body)])
    written, coming = cut(after, "        total = 0\n")
    assert drafted(before, written, coming, budget=128) == coming
    assert drafted(before, written, coming, budget=128, parts=("cursor", "lookup", "ngram")) != coming


def test_a_block_that_moves_out_is_drafted_with_its_new_indent():
    before = "def f():\n    if ready:\n        first(a)\n        second(b)\n        third(c)\n        fourth(d)\n"
    after = "def f():\n    first(a)\n    second(b)\n    third(c)\n    fourth(d)\n"
    written, coming = cut(after, "second(b")
    assert drafted(before, written, coming) == coming


def test_places_that_the_request_names_are_resumed_at():
    # A long statement is replaced; where the next one begins is known to the caller alone.
    statement = "old(" + ", ".join(f"part_{number}" for number in range(30)) + ")"
    coming = " or keep(this) and that\n"
    before = statement + coming
    assert drafted(before, "fresh[now]", coming, Hints(resume_offsets=(len(statement),))) == coming
    assert drafted(before, "fresh[now]", coming) != coming


def test_what_was_written_is_copied_from():
    before = "a = 1\nb = 2\n"
    body = "    try:\n        return fetch(url, timeout)\n    except OSError as error:\n        raise Failed(url)\n"
    written = f"{before}def one(url):\n{body}def two(url):\n    try:\n"
    assert drafted(before, written, body.removeprefix("    try:\n")) == body.removeprefix("    try:\n")


def test_an_unchanged_file_takes_one_forward_for_each_full_draft():
    edit = Edit(FILE, FILE)
    assert len(edit.steps(budget=16)) == -(-len(edit.answer) // 17)


def test_a_rename_throughout_takes_no_more_forwards_than_no_change():
    before = NAMES * 4
    renamed, unchanged = Edit(before, before.replace("old_name", "new_name"), RENAME), Edit(before, before)
    assert len(renamed.steps(budget=64)) <= len(unchanged.steps(budget=64)) + 1


def test_a_change_at_the_very_start_is_drafted_after_the_opening_fence():
    before = "old_name = 1\nprint(old_name)\n"
    hints = Hints((("old_name", "new_name"),), opening="```python\n", closing="```")
    edit = Edit(before, before.replace("old_name", "new_name"), hints)
    assert edit.accepted(edit.drafter().propose(64), 0) == len(edit.answer)


@pytest.mark.parametrize("parts", [("cursor",), ("lookup",), ("lookup", "ngram"), ("cursor", "ngram")])
def test_only_the_chosen_parts_are_named(parts):
    before = "def f(old):\n    use(old)\n    if old:\n        call(old, 1)\n    return old\n"
    after = "def f(new):\n    use(new)\n    log()\n    if new:\n        call(new, 1)\n    return new\n"
    edit = Edit(before, after, Hints(opening="```python\n", closing="```"))
    assert {name for tree in edit.steps(32, parts) for name in tree.origins} <= set(parts)
