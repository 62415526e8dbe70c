import re

import pytest
from click.testing import CliRunner

from specedit.bench.sets import migrations
from specedit.bench.sets.kinds import SETS
from specedit.bench.sets.names import new_name, plural, renamed_word
from specedit.bench.sets.packages import Package, pinned, source_files
from specedit.bench.sets.parameters import add_parameter
from specedit.bench.sets.reindent import respaced, unwrap_block, wrap_body
from specedit.bench.sets.renames import rename_in
from specedit.bench.sets.row import changed_lines, size_class
from specedit.bench.sets.rules import Rule, apply, with_import
from specedit.bench.sets.source import LANGUAGES, SourceFile
from specedit.cli import main
from specedit.cli.bench_sets import KINDS
from specedit.edit.syntax import parses
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


NOISE = "".join(f"# line {number}\n" for number in range(40))


@pytest.mark.parametrize("kind", ["renames-named", "renames-unnamed"])
def test_both_sets_of_renames_make_the_same_edits(kind):
    files = [file(RENAMED.lstrip() + NOISE, path=f"{number}.py") for number in range(20)]
    rows = list(SETS[kind](files))
    assert [(row.path, row.after) for row in rows] == [(row.path, row.after) for row in SETS["renames-named"](files)]
    assert rows == list(SETS[kind](reversed(files)))
    assert len({row.id for row in rows}) == len({row.path for row in rows}) == len(rows) > 0
    assert all(parses(row.after, "python") for row in rows)
    assert all(("ceiling" in row.instruction) == (kind == "renames-named") for row in rows)


CALLS = {
    "python": ("def f(a):\n    pass\n\n\nf(1)\nf(f(2))\nf(\n    3,\n)\nf(a=4)\n", "def f(a, ", 5),
    "javascript": ("function f(a) {}\nf();\nf(f(2));\nf(\n  3\n);\nf(4);\n", "function f(a, ", 5),
    "typescript": ("function f(a?: number) {}\nf();\nf(f(2));\nf(3);\nf(4);\n", "function f(a?: number, ", 5),
    "go": ("package a\n\nfunc f() {}\n\nfunc g() {\n\tf()\n\tf()\n\tf()\n\tf()\n\tf()\n}\n", "func f(", 5),
    "rust": (
        "fn f(a: u8) {}\nfn g() {\n    f(1);\n    f(2);\n    f(3);\n    f(4);\n    assert!(f(5));\n}\n",
        "fn f(a: u8, ",
        5,
    ),
    "c": ("int f(void);\nint f(void) { return 0; }\nint g = f() + f() + f() + f() + f();\n", "int f(", 5),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_added_parameter_stands_in_the_definition_and_in_every_call(language):
    text, definition, calls = CALLS[language]
    change = add_parameter(file(text, language))
    assert change.sites == calls
    assert parses(change.after, language)
    added = change.wordings[1].partition("should take ")[2].partition(" as its")[0]
    argument = change.wordings[1].rpartition("all callers pass ")[2]
    assert definition + added in change.after
    assert change.after.count(argument) - added.count(argument) >= calls
    assert "void" not in change.after


def test_a_call_with_a_line_for_each_argument_gets_a_line_more():
    change = add_parameter(file(CALLS["python"][0]))
    assert re.search(r"^f\(\n    3,\n    \w+=.*,\n\)$", change.after, re.MULTILINE)


def test_a_function_that_is_also_passed_around_is_left_alone():
    assert add_parameter(file(CALLS["python"][0] + "g = f\n")) is None


BODY = "".join(f"    print({number})\n" for number in range(9))


def test_a_wrapped_body_is_indented_but_not_the_texts_in_it():
    text = f'def f():\n    """Say."""\n    x = """a\nb\n"""\n{BODY}'
    change = wrap_body(file(text))
    assert parses(change.after, "python")
    assert '"""a\nb\n"""' in change.after
    assert "        print(3)\n" in change.after
    assert change.sites == 12


def test_an_unwrapped_block_is_dedented():
    inside = BODY.replace("    ", "        ")
    change = unwrap_block(file(f"def f(x):\n    if x:\n{inside}"))
    assert change.after == f"def f(x):\n{BODY}"
    assert unwrap_block(file(f"def f(x):\n    if x:\n{inside}    else:\n        pass\n")) is None


def test_a_file_changes_its_indent_as_a_whole():
    change = respaced("    ", "  ", file(f"def f(x):\n{BODY}"))
    assert change.after == f"def f(x):\n{BODY.replace('    ', '  ')}"
    assert change.size == "whole"
    assert respaced("    ", "  ", file(f"def f(x,\n      y):\n{BODY}")) is None


RULE = Rule("shout", ("python",), r"^say\((\w+)\)$", r"shout(\1)", ("Shout.",), needs="import os", fewest=2)


def test_a_rule_changes_code_alone_and_brings_its_import():
    text = 'import abc\nimport re\n\nsay(a)\nx = """\nsay(b)\n"""\nsay(c)\n'
    change = apply(RULE, file(text))
    assert change.after == 'import abc\nimport os\nimport re\n\nshout(a)\nx = """\nsay(b)\n"""\nshout(c)\n'
    assert change.sites == 2
    assert apply(RULE, file("say(a)\n")) is None


@pytest.mark.parametrize(
    ("before", "needed", "after"),
    [
        ('import "fmt"\n', '"github.com/a/b"', 'import (\n\t"fmt"\n\n\t"github.com/a/b"\n)\n'),
        ('import (\n\t"fmt"\n)\n', '"os"', 'import (\n\t"fmt"\n\t"os"\n)\n'),
        ('import (\n\t"fmt"\n\n\t"x.org/c"\n)\n', '"x.org/b"', 'import (\n\t"fmt"\n\n\t"x.org/b"\n\t"x.org/c"\n)\n'),
    ],
)
def test_go_imports_stand_in_their_groups(before, needed, after):
    assert with_import(before, needed, "go") == after


@pytest.mark.parametrize(
    ("migrate", "language", "before", "after"),
    [
        (migrations.pytest_asserts, "python", "self.assertEqual(a, b)", "assert a == b"),
        (migrations.pytest_asserts, "python", "self.assertIsNone(a or b)", "assert (a or b) is None"),
        (migrations.pytest_asserts, "python", "self.assertFalse(a and b)", "assert not (a and b)"),
        (migrations.f_strings, "python", "'%s: %02d' % (a, b.c)", "f'{a}: {b.c:02d}'"),
        (migrations.f_strings, "python", "'%-5s|%r' % (a, b)", "f'{a:<5}|{b!r}'"),
        (migrations.pathlib_paths, "python", "x = os.path.join(a, 'b')", "x = Path(a) / 'b'"),
        (
            migrations.pathlib_paths,
            "python",
            "x = os.path.dirname(os.path.abspath(a))",
            "x = Path(a).absolute().parent",
        ),
        (migrations.pathlib_paths, "python", "os.path.exists(os.path.join(a, b))", "(Path(a) / b).exists()"),
        (migrations.arrow_functions, "javascript", "a(function (x) { return x; });", "a((x) => { return x; });"),
        (migrations.template_strings, "javascript", "x = 'a ' + b + '!';", "x = `a ${b}!`;"),
        (migrations.template_strings, "typescript", "x = b.c + 'd';", "x = `${b.c}d`;"),
    ],
)
def test_each_place_is_migrated(migrate, language, before, after):
    head = "import os\n" if migrate is migrations.pathlib_paths else ""
    change = migrate(file(head + f"{before}\n" * 4, language))
    assert change.after.endswith(f"{after}\n" * 4)
    assert change.sites in (4, 8)
    assert migrate(file(head + before, language)) is None


def test_var_becomes_const_only_where_nothing_is_assigned_again():
    text = "var a = 1;\nvar b = {};\nvar c = 1;\nvar d;\nb.x = 2;\nc += 1;\n"
    change = migrations.const_and_let(file(text, "javascript"))
    assert change.after == text.replace("var a", "const a").replace("var b", "const b").replace("var", "let")


def test_tests_return_a_result_where_they_used_unwrap():
    unwraps = "    a().unwrap();\n    b(c().unwrap());\n    d()\n        .unwrap();\n    e().unwrap();\n"
    text = f"#[test]\nfn t() {{\n{unwraps}}}\n"
    after = migrations.question_marks(file(text, "rust")).after
    assert "fn t() -> Result<(), Box<dyn std::error::Error>> {\n    a()?;\n    b(c()?);\n    d()?;\n" in after
    assert after.endswith("    e()?;\n    Ok(())\n}\n")
