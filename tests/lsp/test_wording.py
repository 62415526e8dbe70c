import re
from pathlib import Path

import pytest

from specedit.edit import guard, session, stream
from specedit_lsp.wording import in_editor_words


@pytest.mark.parametrize("module", [guard, session, stream])
def test_nothing_that_is_said_about_an_answer_names_a_flag(module):
    said = re.findall(r'"([^"\n]*--[a-z][^"\n]*)"', Path(module.__file__).read_text())
    assert said
    assert [text for text in map(in_editor_words, said) if re.search(r"--[a-z]|\b[A-Z]+_[A-Z]+\b", text)] == []


def test_what_names_no_flag_stays_as_it_is():
    assert in_editor_words("ask again -- or not; a--b") == "ask again -- or not; a--b"


def test_options_are_named_as_the_editor_has_them():
    assert in_editor_words("raise --max-new-tokens, or choose a smaller part with --range or --symbol") == (
        "raise the option rewrite.maxNewTokens, or choose a smaller part"
    )
