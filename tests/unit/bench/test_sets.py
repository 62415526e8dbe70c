import re

import pytest
from click.testing import CliRunner

from specedit.bench.sets import SETS
from specedit.bench.sets.names import new_name, plural, renamed_word
from specedit.bench.sets.packages import Package, pinned, source_files
from specedit.bench.sets.renames import rename_in
from specedit.bench.sets.row import changed_lines, size_class
from specedit.bench.sets.source import LANGUAGES, SourceFile
from specedit.cli import main
from specedit.cli.bench_sets import KINDS
from specedit.edit.region import parses
from specedit.errors import IntegrityError
from specedit.train.packages import PERMISSIVE
from specedit.train.packages import pinned as trained_on


def file(text, language="python", path=None):
    return SourceFile("made 1.0", "MIT", path or f"a.{language}", language, text)


def test_every_set_has_a_command():
    assert set(KINDS) == set(SETS)


def test_sets_are_made_from_permissive_releases_that_nothing_was_trained_on():
    packages = pinned()
    assert {package.licence for package in packages} <= PERMISSIVE
    assert not {package.name for package in packages} & {package.name for package in trained_on()}
    assert {language for package in packages for language in package.languages} == set(LANGUAGES)
    assert all(re.fullmatch("[0-9a-f]{64}", package.sha256) for package in packages)


def test_an_archive_that_is_not_the_pinned_one_is_refused_and_not_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("SPECEDIT_CACHE", str(tmp_path / "cache"))
    archive = tmp_path / "a.tar.gz"
    archive.write_bytes(b"something else")
    monkeypatch.setattr("specedit.bench.sets.packages._INDEXES", {"pypi": f"file://{tmp_path}"})
    package = Package("pypi", "a", "1.0", "MIT", ("python",), "a.tar.gz", "0" * 64)
    with pytest.raises(IntegrityError, match="is pinned"):
        list(source_files([package]))
    assert not any(path.is_file() for path in (tmp_path / "cache").rglob("*"))


def test_an_unknown_set_is_refused_by_name():
    result = CliRunner().invoke(main, ["bench", "sets", "poems", "--out", "x.jsonl"])
    assert result.exit_code == 2
    assert "renames-named" in result.output


@pytest.mark.parametrize(
    ("old", "snake", "new"),
    [
        ("buffer", True, "staging"),
        ("_read_buf", True, "_read_byte_buffer"),
        ("readBuf", False, "readByteBuffer"),
        ("buf", False, "byteBuffer"),
        ("MAX_LEN", True, "MAX_BYTE_COUNT"),
        ("TokenList", False, "TokenSequence"),
        ("zzz", True, None),
    ],
)
def test_a_new_name_is_joined_as_the_old_one(old, snake, new):
    assert new_name(old, f"{old} = 1", snake=snake) == new


def test_a_new_name_is_not_in_the_file_yet():
    assert new_name("buffer", "buffer = staging", snake=True) is None


@pytest.mark.parametrize(
    ("name", "renamed"),
    [
        ("token", "lexeme"),
        ("Tokens", "Lexemes"),
        ("MAX_TOKEN_COUNT", "MAX_LEXEME_COUNT"),
        ("getToken", "getLexeme"),
        ("tokenize", "tokenize"),
    ],
)
def test_a_word_is_renamed_in_its_case_and_number(name, renamed):
    assert renamed_word(name, "token", "lexeme") == renamed


def test_plurals():
    assert [plural(word) for word in ("key", "entry", "box", "patch")] == ["keys", "entries", "boxes", "patches"]


RENAMED = '''
def total(items, limit):
    """Sum `items`, at most `limit` of them."""
    print("limit is", limit)
    return sum(items[:limit])


total([1, 2], limit=3)
'''


def test_a_rename_reaches_strings_comments_and_keyword_arguments():
    rename = rename_in(file(RENAMED), related=False)
    assert (rename.old, rename.new, rename.sites) == ("limit", "ceiling", 6)
    after = rename.apply(RENAMED)
    assert "limit" not in after
    assert after.count("ceiling") == 6
    assert "ceiling=3" in after


def test_a_rename_of_related_names_takes_each_in_its_own_case():
    text = (
        "TOKEN_LIMIT = 3\n\n\ndef count_token(token, tokens):\n    # each token of the tokens\n"
        "    return tokens.index(token) < TOKEN_LIMIT\n"
    )
    after = rename_in(file(text), related=True).apply(text)
    assert after == text.replace("token", "lexeme").replace("TOKEN", "LEXEME")


def test_imported_names_keep_theirs():
    text = "from a import token\n\n\ndef f(x):\n    token = x\n" + "    print(token)\n" * 6
    assert rename_in(file(text), related=False) is None


def test_lines_set_in_columns_are_left_alone():
    text = "def f(limit):\n    limit    = 1\n" + "    print(limit)\n" * 6
    assert rename_in(file(text), related=False) is None


def test_changed_lines_count_both_sides():
    assert changed_lines("a\nb\nc\n", "a\nB\nc\nd\n") == 3
    assert [size_class(lines) for lines in (20, 21, 61)] == ["small", "medium", "large"]


def unrelated(language):
    """Files of one language, each with something to rename."""
    noise = "".join(f"# line {number}\n" for number in range(40))
    return [file(RENAMED.lstrip() + noise, path=f"{number}.py") for number in range(20)] if language == "python" else []


@pytest.mark.parametrize("kind", ["renames-named", "renames-unnamed"])
def test_both_sets_of_renames_make_the_same_edits(kind):
    files = unrelated("python")
    rows = list(SETS[kind](files))
    assert [(row.path, row.after) for row in rows] == [(row.path, row.after) for row in SETS["renames-named"](files)]
    assert rows == list(SETS[kind](reversed(files)))
    assert len({row.id for row in rows}) == len(rows) > 0
    assert all(parses(row.after, "python") for row in rows)
    assert all(("ceiling" in row.instruction) == (kind == "renames-named") for row in rows)
