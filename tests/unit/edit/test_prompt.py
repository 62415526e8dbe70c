from pathlib import Path

import pytest

from specedit.edit.document import Document
from specedit.edit.fence import find_fences, pair
from specedit.edit.prompt import build_prompt
from specedit.edit.region import line_range, whole_file


def _prompt_text(text, path="app.py", lines=None, instruction="rename a"):
    document = Document(text, Path(path))
    region = line_range(document, *lines) if lines else whole_file(document)
    turns = build_prompt(document, region, instruction)
    assert [turn.role for turn in turns] == (["user", "assistant", "user"] if lines else ["user"])
    return "\n\n".join(turn.content for turn in turns)


def test_the_file_stands_in_a_fence_that_names_its_language():
    assert "```python\na = 1\n```" in _prompt_text("a = 1\n")
    assert "```tsx\na = 1\n```" in _prompt_text("a = 1\n", "app.tsx")
    assert "```toml\na = 1\n```" in _prompt_text("a = 1\n", "app.toml")
    assert "```\na = 1\n```" in _prompt_text("a = 1\n", "Makefile")


@pytest.mark.parametrize("text", ["a", "a\n", "\n\na\n\n", "", "\n"])
def test_no_newline_is_lost_or_added_inside_the_fence(text):
    shown = _prompt_text(text).partition("```python\n")[2].partition("```")[0]
    assert shown == (text if text.endswith("\n") or not text else text + "\n")


@pytest.mark.parametrize("own", ["```\nx\n```\n", "   `````\nx\n   `````\n", "- item\n    ``````\n"])
def test_the_fence_is_longer_than_any_in_the_file(own):
    text = _prompt_text(own, "README.md")
    fences = find_fences(text.split("\n"))
    openers, closed = pair(fences)
    assert closed
    assert len(openers) == 1
    assert openers[0].length > max(len(line.strip()) for line in own.split("\n") if "```" in line)
    assert f"begins with {openers[0].length * chr(96)}md" in text


def test_a_usual_fence_is_not_asked_for():
    assert "begins with" not in _prompt_text("a = 1\n")


def test_a_file_that_holds_template_words_is_shown_as_it_is():
    assert "```python\nf'{name} {{file}} %s'\n```" in _prompt_text("f'{name} {{file}} %s'\n")


def test_line_ends_and_undecodable_bytes_are_shown_plainly():
    shown = _prompt_text("a\r\nb\rc\udcff\n")
    assert "a\nb\nc\ufffd\n" in shown


def test_a_part_is_named_and_stands_after_the_file():
    text = _prompt_text("a = 1\nb = 2\nc = 3\n", lines=(2, 3))
    whole, part = text.index("a = 1\nb = 2\nc = 3\n"), text.rindex("```python\nb = 2\nc = 3\n```")
    assert whole < text.index("lines 2-3") < part < text.index("rename a")


def test_requests_on_one_file_share_all_up_to_the_part_and_the_instruction():
    text = "".join(f"line {n}\n" for n in range(50))
    first, second = (
        _prompt_text(text, lines=lines, instruction=wish) for lines, wish in (((2, 3), "this"), ((9, 9), "that"))
    )
    shared = next(n for n, (a, b) in enumerate(zip(first, second, strict=False)) if a != b)
    assert shared > first.index("line 49\n")
