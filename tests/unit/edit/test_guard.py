from pathlib import Path

import pytest

from specedit.edit.guard import Proposal, check_answer, check_edges, check_finish, check_placeholders

OLD = "def a():\n    return 1\n\n\ndef b():\n    return 2\n"


def _check(new, old=OLD, path="app.py", instruction="rename a", **allow):
    return check_answer(Proposal(Path(path), instruction, old, new, old, new), **allow)


def _is_placeholder(line, path):
    """Whether `line`, the only new one of a file, is taken for a placeholder."""
    old, new = "one\ntwo\nthree\n", f"one\n{line}\nthree\n"
    return check_placeholders(Proposal(Path(path), "change it", old, new, old, new)) is not None


@pytest.mark.parametrize(
    "line",
    [
        "# ... existing code ...",
        "# ...",
        "    # ... rest of the code",
        "# rest of the code remains unchanged",
        "# Rest of the file stays the same.",
        "# (rest of the function unchanged)",
        "# existing code here",
        "# Existing code...",
        "# [existing code]",
        "# --- rest of file ---",
        "# unchanged",
        "# no changes here",
        "# same as before",
        "# keep the rest of the file as it is",
        "# other methods remain unchanged",
        "# remaining methods",
        "# … existing code …",
        "# code omitted for brevity",
        "# ... (previous setup) ...",
        "x = 1  # ... existing code ...",
        "... existing code ...",
        "... (rest of the code)",
        "[rest of the code unchanged]",
        "<rest of the file>",
    ],
)
def test_placeholders_in_many_wordings(line):
    assert _is_placeholder(line, "app.py")


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("a.js", "// rest unchanged"),
        ("a.js", "// ... existing code ..."),
        ("a.js", "/* ... */"),
        ("a.js", "/* ... existing code ... */"),
        ("a.js", "{/* ... rest of the component ... */}"),
        ("a.js", "..."),
        ("a.js", "…"),
        ("a.c", " * ... rest of the file"),
        ("a.html", "<!-- rest of file -->"),
        ("a.html", "<!-- ... -->"),
        ("a.sql", "-- ... existing code ..."),
        ("a.lisp", ";; rest of the code unchanged"),
        ("a.tex", "% ... rest of the document ..."),
        ("a.md", "<!-- rest of the document unchanged -->"),
        ("a.md", "... rest of the document ..."),
        ("a.md", "[rest of the document unchanged]"),
        ("a.yaml", "# ... rest unchanged"),
    ],
)
def test_placeholders_in_many_comment_styles(path, line):
    assert _is_placeholder(line, path)


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("a.js", "...args,"),
        ("a.js", "{...rest}"),
        ("a.js", "...(other.code),"),
        ("a.js", "const all = [...existing, other];"),
        ("a.js", "// keep the original order of the entries"),
        ("a.js", "--remaining;"),
        ("a.js", "* 2"),
        ("a.go", "func f(rest ...int) {"),
        ("a.go", "list = append(list, rest...)"),
        ("a.c", "int printf(const char *format, ...);"),
        ("a.rs", "let [first, .., last] = list;"),
        ("a.py", "# Wait for the existing connections to end"),
        ("a.py", "print('loading ...')"),
        ("a.py", "*rest, last = items"),
        ("a.py", "x = items[..., 0]"),
        ("a.py", "# original file name"),
        ("a.py", "# Load the file..."),
        ("a.py", "    'existing',"),
        ("a.md", "# Other code"),
        ("a.md", "* the rest of the file"),
        ("a.md", "And so on ..."),
        ("a.yaml", "..."),
    ],
)
def test_what_only_looks_like_a_placeholder(path, line):
    assert not _is_placeholder(line, path)


def test_a_placeholder_of_the_file_or_of_the_instruction_is_no_alarm():
    old = OLD + "# ... existing code ...\n"
    assert _check(old.replace("a()", "c()"), old) is None
    assert _check(old + "# ... existing code ...\n", old)
    assert _check(OLD + "# ... existing code ...\n", instruction="end with '# ... existing code ...'") is None


@pytest.mark.parametrize(
    "new",
    [
        OLD.replace("return 2", "..."),
        OLD.replace("\n    return 2", " ..."),
        OLD.replace("return 2", '"""Two."""\n    ...'),
        OLD.replace("return 2", "...\n    return 2"),
        OLD + "\n...\n",
        OLD + "\nfor x in y:\n    ...\n",
        OLD.replace("def b", "class b").replace("return 2", "..."),
    ],
)
def test_an_emptied_python_body_is_a_placeholder(new):
    assert "leaves code out" in _check(new).reason


@pytest.mark.parametrize(
    "new",
    [
        OLD + "\n\ndef c(): ...\n",
        OLD + "\n\nclass Done(Exception): ...\n",
        OLD.replace("def b():", "@overload\ndef b():").replace("return 2", "..."),
        OLD.replace("def b():", "@abc.abstractmethod\ndef b():").replace("return 2", "..."),
        OLD + "\n\nclass P(Protocol[T]):\n    def b(self): ...\n",
        OLD.replace("return 2", '"""\n    >>> b()\n    ...\n    """\n    return 2'),
        OLD.replace("return 2", "return x[...]"),
    ],
)
def test_an_ellipsis_that_is_meant(new):
    assert _check(new) is None


def test_an_emptied_body_in_a_stub_file_is_meant():
    assert _check(OLD.replace("return 2", "..."), path="app.pyi") is None


def test_lone_dots_are_found_where_python_can_not_be_parsed():
    old = "print 'a'\nprint 'b'\n"
    assert "leaves code out" in _check("print 'a'\n...\n", old, allow_syntax_errors=True).reason


@pytest.mark.parametrize(
    "marker",
    [
        "<|im_end|>",
        "<|endoftext|>",
        "<|eot_id|>",
        "<end_of_turn>",
        "[/INST]",
        "</think>",
        "<|fim_middle|>",
        "<｜end▁of▁sentence｜>",
    ],
)
def test_chat_markers_are_refused_unless_the_file_has_them(marker):
    new = OLD.replace("return 1", f'return "{marker}"')
    assert marker in _check(new).reason
    assert _check(new, OLD + f"# {marker}\n") is None
    assert _check(new, instruction=f"return {marker}") is None


def test_fences_in_a_program_are_refused_unless_they_are_its_own_or_wanted():
    fence = '"""Doc.\n\n```\nx\n```\n"""\n'
    assert "fence" in _check(fence + OLD).reason
    assert _check(fence + OLD + "\n", fence + OLD) is None
    assert _check(fence + OLD, instruction="add a usage example to the docstring") is None
    assert _check("```\nx\n```\n", "x\n", path="README.md") is None


def test_broken_characters_are_refused_unless_the_file_has_them():
    new = OLD.replace("return 1", "return '\ufffd'")
    assert "U+FFFD" in _check(new).reason
    assert _check(new, OLD + "# \ufffd\n") is None


@pytest.mark.parametrize(
    ("before", "after", "refused"),
    [(40, 24, False), (40, 23, True), (100, 60, False), (100, 59, True), (20, 5, False), (20, 4, True), (15, 1, False)],
)
def test_deletions_of_more_than_15_lines_and_40_percent(before, after, refused):
    old, new = ("".join(f"{n}\n" for n in range(count)) for count in (before, after))
    assert bool(_check(new, old, path="a.txt")) is refused
    assert _check(new, old, path="a.txt", allow_deletions=True) is None


def test_an_empty_answer_is_refused_unless_it_is_the_wish():
    assert "empty" in _check("", "a\nb\n", path="a.txt").reason
    assert _check("", "a\nb\n", path="a.txt", instruction="remove both lines") is None
    assert _check("", "a\nb\n", path="a.txt", allow_deletions=True) is None


def test_a_file_that_parsed_must_parse():
    broken = OLD.replace("a():", "a(:")
    assert "parse as python" in _check(broken).reason
    assert _check(broken, allow_syntax_errors=True) is None
    assert _check(broken, broken + "\n") is None
    assert _check(broken, path="app.unknown") is None


def test_only_an_answer_that_ended_by_itself_counts():
    assert check_finish("stop") is None
    for reason in ("length", "cancelled", None):
        assert "cut off" in check_finish(reason).reason


def test_edges():
    assert check_edges("", "", "anything") is None
    assert check_edges("ab", "yz", "ab-yz") is None
    assert check_edges("ab", "yz", "abyz") is None
    for changed in ("a-yz", "ab-y", "abz", ""):
        assert "outside the selection" in check_edges("ab", "yz", changed).reason
    assert check_edges("aba", "aba", "aba")


def test_every_refusal_says_what_to_do():
    for new in (OLD + "# ...\n", OLD + "# <|im_end|>\n", OLD + "\ufffd", OLD + "(", "```\n```\n"):
        refusal = _check(new)
        assert refusal.fix
        assert str(refusal) == f"{refusal.reason}; {refusal.fix}"


@pytest.mark.parametrize("new", ["class A:\n", "def f():\n", "if x:\npass\n"])
def test_what_only_python_finds_wrong_is_found(new):
    assert "parse" in _check(new, old="class A:\n    x = 1\n", allow_deletions=True).reason
    assert _check(new, old="class A:\n", allow_deletions=True) is None, "it did not parse before"


BOTH = "def larger(one, other):\n    return max(one, other)\n\n\ndef smaller(one, other):\n    return min(one, other)\n"


def _in_place_of_a_line(new, instruction="add a docstring"):
    old_region = "    return max(one, other)\n"
    return check_answer(Proposal(Path("app.py"), instruction, BOTH, BOTH.replace(old_region, new), old_region, new))


def test_another_function_of_the_file_is_no_rewrite_of_this_one():
    other = '    def smaller(one, other):\n        """The smaller."""\n        return min(one, other)\n'
    refused = _in_place_of_a_line(other)
    assert "another part of the file" in refused.reason
    assert "def smaller(one, other):" in refused.reason
    assert _in_place_of_a_line(other, "copy smaller to here") is None


@pytest.mark.parametrize(
    "new",
    [
        "    def helper():\n        return max(one, other)\n\n    return helper()\n",
        "    def helper(one, other):\n        return one\n",
        '    """The larger."""\n    return max(one, other)\n',
        "    if one > other:\n        return one\n    return other\n",
    ],
)
def test_a_new_definition_or_new_lines_are_a_rewrite(new):
    assert _in_place_of_a_line(new) is None
