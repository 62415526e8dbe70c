import random

import pytest

from specedit.edit.document import split_lines
from specedit.edit.guard import Refusal
from specedit.edit.stream import Hunk, answer_body, hunks, region_after, to_lf

CODE = "def f(x):\n    y = x\n    return y\n"
MARKDOWN = "# Title\n\n```sh\nls\n```\n\nEnd.\n"


def _refused(answer, region_text=CODE, language="python"):
    body = answer_body(answer, region_text=region_text, language=language)
    assert isinstance(body, Refusal), body
    return body.reason


@pytest.mark.parametrize(
    "answer",
    [
        f"```\n{CODE}```",
        f"```python\n{CODE}```\n",
        f"\n\n```python\n{CODE}```\n\n",
        f"~~~py\n{CODE}~~~",
        f"````python\n{CODE}````",
        f"Here it is:\n```python\n{CODE}```\nDone.",
        f"```python\n{CODE}```".replace("\n", "\r\n"),
        f"<think>Hm.\n```\nno\n```\n</think>\n```python\n{CODE}```",
        f"Hm, well.\n</think>\n\n```python\n{CODE}```",
        CODE,
    ],
)
def test_the_body_is_what_the_one_block_holds(answer):
    assert answer_body(answer, region_text=CODE, language="python") == CODE


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("", "not a code block"),
        ("I can't.", "not a code block"),
        ("<think>\nlet me see", "thinking"),
        ("<think>\n```\nx\n```", "thinking"),
        (f"```python\n{CODE}", "not closed"),
        (f"{CODE}```", "not closed"),
        (f"```python\n{CODE}```\n```python\n{CODE}```", "2 code blocks"),
        (f"```\n{CODE}```\nor\n```\n{CODE}```", "2 code blocks"),
        (f"def f(x):\n```python\n{CODE}```", "begins and ends"),
        (f"````python\n{CODE}```", "not closed"),
    ],
)
def test_what_is_not_one_block_is_refused(answer, reason):
    assert reason in _refused(answer)


def test_markdown_is_kept_however_it_is_wrapped():
    edited = MARKDOWN.replace("Title", "Name")
    for answer in (edited, f"```markdown\n{edited}```", f"````md\n{edited}````", f"~~~\n{edited}~~~"):
        assert answer_body(answer, region_text=MARKDOWN) == edited


def test_markdown_cut_anywhere_is_refused_or_whole():
    edited = MARKDOWN.replace("Title", "Name")
    for fence in ("```markdown", "````md"):
        lines = f"{fence}\n{edited}{fence.rstrip('markdown')}".split("\n")
        for end in range(1, len(lines)):
            body = answer_body("\n".join(lines[:end]), region_text=MARKDOWN)
            assert isinstance(body, Refusal), (fence, end, body)


def test_a_short_wrapper_around_changed_fences_counts_only_if_it_is_all():
    edited = MARKDOWN.replace("```sh", "```bash")
    answer = f"```markdown\n{edited}```"
    assert answer_body(answer, region_text=MARKDOWN) == edited
    assert _refused(f"Here it is:\n{answer}", MARKDOWN, None)
    assert _refused(answer.replace("```bash", "```"), MARKDOWN, None)


def test_a_block_in_markdown_is_not_taken_for_the_answer():
    assert _refused("```sh\nls -l\n```", MARKDOWN, None)
    assert _refused("To list more:\n```sh\nls -l\n```\nThat is all.", MARKDOWN, None)


def test_a_file_about_thinking_keeps_its_markers():
    text = 'start = "<think>"\nend = "</think>"\nother = 1\n'
    assert answer_body(f"```python\n{text}```", region_text=text, language="python") == text
    assert answer_body(text, region_text=text, language="python") == text


def _after(body, before, line_ending="\n", instruction="change it"):
    return region_after(body, before, line_ending=line_ending, instruction=instruction)


def test_untouched_lines_keep_their_bytes():
    before = "a\r\nb\nc\rd\ne"
    assert _after("a\nb\nc\nd\nf\n", before) == "a\r\nb\nc\rd\nf"
    assert _after("a\nb\nc\nd\ne\n", before) == before


def test_a_changed_line_keeps_the_end_of_the_line_it_replaces():
    assert _after("A\nB\nnew\nc\n", "a\r\nb\nc\r\n", "\r\n") == "A\r\nB\nnew\r\nc\r\n"


def test_inserted_lines_take_the_line_end_of_the_file():
    assert _after("a\nx\nb\n", "a\nb\n", "\r\n") == "a\nx\r\nb\n"
    assert _after("a\nb\nx\n", "a\r\nb", "\r\n") == "a\r\nb\r\nx"


@pytest.mark.parametrize("end", ["", "\n", "\n\n\n", "\r\n\r\n", "\n  \n"])
def test_the_end_of_the_region_stays(end):
    for answered in ("x", "x\n", "x\n\n\n\n"):
        assert _after(answered, f"a{end}") == f"x{end}"


def test_the_end_changes_when_that_is_the_wish():
    assert _after("a\n", "a\n\n\n", instruction="remove the trailing blank lines") == "a\n"
    assert _after("a\n", "a", instruction="end it with a newline") == "a\n"
    assert _after("b\n", "a", instruction="split at each newline") == "b"
    assert _after("b\n", "a\n\n\n", instruction="return an empty list") == "b\n\n\n"
    assert _after("a\n\nb\n", "a\nb", instruction="add a blank line between them") == "a\n\nb"


def test_a_dedented_answer_is_indented():
    before = "    def f(self):\n        return 1\n"
    assert _after("def f(self):\n    return 2\n", before) == before.replace("1", "2")
    assert _after("def g(self):\n\n    pass\n", before) == "    def g(self):\n\n        pass\n"


def test_a_dedented_answer_takes_tabs():
    assert _after("if x {\n\treturn 2\n}\n", "\t\tif x {\n\t\t\treturn 1\n\t\t}\n") == (
        "\t\tif x {\n\t\t\treturn 2\n\t\t}\n"
    )


def test_text_that_stands_further_out_than_the_region_is_not_moved():
    before = '    x = """\nflush\n"""\n    y = 1\n'
    assert _after('x = """\nflush\n"""\ny = 2\n', before) == before.replace("1", "2")


def test_an_overindented_answer_is_dedented():
    assert _after("  a = 1\n  b = 3\n", "a = 1\nb = 2\n") == "a = 1\nb = 3\n"


def test_lines_that_were_meant_to_move_are_not_moved_back():
    assert _after("if x:\n    a\n    b\n", "a\nb\n") == "if x:\n    a\n    b\n"
    assert _after("import x\n    a\n    b\n", "    a\n    b\n") == "import x\n    a\n    b\n"
    assert _after("        b\n", "    if a:\n        b\n") == "        b\n"
    assert _after("a\nb\n", "    a\n    b\n", instruction="Dedent it") == "a\nb\n"


def test_everything_can_be_deleted():
    assert _after("", "a\nb\n") == ""
    assert _after("\n", "a\nb") == ""


def test_a_blank_region_takes_what_is_written_and_ends_with_a_newline():
    for before in ("", "\n", "   ", "\r\n"):
        assert _after("x = 1", before, "\r\n" if "\r" in before else "\n").rstrip("\r\n") == "x = 1"
        assert _after("x = 1", before).endswith("\n")


def test_hunks_are_minimal_and_numbered():
    old = split_lines("a\nb\nc\nd\n")
    assert hunks(old, split_lines("a\nx\ny\nc\nd\ne\n"), first_line=10) == (
        Hunk(11, "b\n", "x\ny\n"),
        Hunk(14, "", "e\n"),
    )
    assert hunks(old, old) == ()


def test_hunks_rebuild_the_new_text():
    chance = random.Random(7)
    for _ in range(300):
        old, new = ([chance.choice("abc") + "\n" for _ in range(chance.randint(0, 9))] for _ in range(2))
        built, position = [], 0
        for hunk in hunks(old, new):
            built += old[position : hunk.start_line - 1]
            assert "".join(old[hunk.start_line - 1 :]).startswith(hunk.old)
            built += split_lines(hunk.new)
            position = hunk.start_line - 1 + len(split_lines(hunk.old))
        assert built + old[position:] == new


def test_any_answer_gives_its_own_lines_back():
    chance = random.Random(11)
    for _ in range(500):
        before = "".join(
            chance.choice("abc") + chance.choice(["\n", "\r\n", "\r"]) for _ in range(chance.randint(1, 8))
        )
        body = "".join(chance.choice("abc") + "\n" for _ in range(chance.randint(1, 8)))
        assert to_lf(_after(body, before)) == body
