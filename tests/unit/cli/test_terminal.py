import io

import click
import pytest

from specedit.cli.terminal import harmless, shown_diff, wants_colour


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\tb\n", "a\tb\n"),
        ("größe 😀 世界\u3000x", "größe 😀 世界\u3000x"),
        ("\x1b[2J", r"\x1b[2J"),
        ("a\rb\x08\x7f\x9b", r"a\rb\x08\x7f\x9b"),
        ("if\u202e\u2066x", r"if\u202e\u2066x"),
        ("caf\udce9", r"caf\udce9"),
    ],
)
def test_control_characters_are_written_out(text, shown):
    assert harmless(text) == shown


def test_colour_marks_lines_and_changes_no_text():
    patch = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n--- b\n+++ c\n"
    painted = shown_diff(patch, colour=True)
    assert click.unstyle(painted) == patch
    assert click.style("--- b", fg="red") in painted
    assert click.style("--- a/x", bold=True) in painted
    assert shown_diff(patch, colour=False) == patch


def test_colour_is_for_terminals_that_want_it(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert wants_colour(Terminal())
    assert not wants_colour(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not wants_colour(Terminal())
