"""What the instruction and the text tell about an answer before it is written."""

from __future__ import annotations

from itertools import pairwise

import pytest

from specedit.edit.document import Document
from specedit.edit.hints import resume_offsets_of, substitutions_of
from specedit.edit.region import whole_file
from specedit.edit.session import EditRequest, generate_request

TEXT = """
class Foo:
    def user_name(self, a, c, key):
        import os.path
        loop = OldName(old/path.py, X, user)
"""


@pytest.mark.parametrize(
    ("instruction", "pairs"),
    [
        ("rename a to b", [("a", "b")]),
        ("Rename the function `user_name` to `account_name`", [("user_name", "account_name")]),
        ("Rename user_name() to account_name().", [("user_name", "account_name")]),
        ("Please rename all occurrences of 'user' to \"account\".", [("user", "account")]),
        ("rename userName to accountName", [("userName", "accountName")]),
        ("rename the variable key to token", [("key", "token")]),
        ("rename key to token everywhere", [("key", "token")]),
        ("Rename user to key throughout the file", [("user", "key")]),
        ("Please call user account from now on", [("user", "account")]),
        ("I don't like the name user, make it account", [("user", "account")]),
        ("a -> b", [("a", "b")]),
        ("a → b", [("a", "b")]),
        ("`a` => `b`", [("a", "b")]),
        ("a, c -> b, d", [("a", "b"), ("c", "d")]),
        ("rename a to b and c to d", [("a", "b"), ("c", "d")]),
        ("rename a to b, c to d and X to Y.", [("a", "b"), ("c", "d"), ("X", "Y")]),
        ("change `a` to `b` and `c` to `d`", [("a", "b"), ("c", "d")]),
        ("rename a and c to b and d", [("a", "b"), ("c", "d")]),
        ("replace X with Y", [("X", "Y")]),
        ("replace old/path.py by new/path.py", [("old/path.py", "new/path.py")]),
        ("change a into b", [("a", "b")]),
        ("switch from a to b", [("a", "b")]),
        ("call it b instead of a", [("a", "b")]),
        ("use pathlib instead of os.path", [("os.path", "pathlib")]),
        ("instead of a, use b", [("a", "b")]),
        ("a should be called b", [("a", "b")]),
        ("`OldName` must be renamed to `NewName`", [("OldName", "NewName")]),
        ("The parameter a is now called b; update the docs", [("a", "b")]),
        ("s/a/b/", [("a", "b")]),
        ("change the name of user to account", [("user", "account")]),
        ("rename the class to `Bar`", [("Foo", "Bar")]),
        ("Rename X to Y and return a tuple", [("X", "Y")]),
    ],
)
def test_an_instruction_names_what_changes(instruction: str, pairs: list[tuple[str, str]]) -> None:
    assert substitutions_of(instruction, TEXT) == tuple(pairs)


@pytest.mark.parametrize(
    "instruction",
    [
        "",
        "change the loop to use x",
        "convert the loop into a comprehension",
        "Make the function async",
        "Add a docstring to Foo",
        "rename missing to found",
        "rename a to a",
    ],
)
def test_an_instruction_that_names_nothing_gives_nothing(instruction: str) -> None:
    assert substitutions_of(instruction, TEXT) == ()


def test_a_name_counts_in_its_other_spellings_but_not_within_a_word() -> None:
    assert substitutions_of("rename UserName to AccountName", "x = user_name") == (("UserName", "AccountName"),)
    assert substitutions_of("rename user to account", "users_online") == ()
    assert substitutions_of("rename user to account", "get_user(1)") == (("user", "account"),)


def test_an_endless_instruction_is_read_in_part() -> None:
    assert substitutions_of("rename a to b " + "and rename a, c to b, d " * 50_000, TEXT)[0] == ("a", "b")


def test_an_answer_may_rejoin_at_ends_of_names_arguments_statements_and_lines() -> None:
    text = "foo(bar, baz())\nif x:\n\n    y = 1;"
    ends = {text[:offset] for offset in resume_offsets_of(text)}
    assert {
        "foo",
        "foo(bar",
        "foo(bar, baz())",
        "foo(bar, baz())\n",
        "foo(bar, baz())\nif x:",
        "foo(bar, baz())\nif x:\n\n",
        text,
    } <= ends
    assert "foo(" not in ends


@pytest.mark.parametrize("text", ["", "x", "a b " * 30_000, "é = «1»\n" * 30_000, "\n \n" * 30_000, "((((" * 1000])
def test_places_to_rejoin_ascend_within_the_text_and_are_bounded(text: str) -> None:
    offsets = resume_offsets_of(text)
    assert all(one < other for one, other in pairwise((0, *offsets)))
    assert not offsets or offsets[-1] <= len(text)
    assert len(offsets) <= 20_000


def test_the_request_for_an_edit_carries_its_hints() -> None:
    document = Document("a = 1\r\nb = a\r\n")
    request = generate_request(EditRequest(document, whole_file(document), "rename a to count"))
    assert request.hints.substitutions == (("a", "count"),)
    assert request.prediction[: request.hints.resume_offsets[-1]] == "a = 1\nb = a\n"
