from __future__ import annotations

import pytest

from specedit.edit.document import Span
from specedit_lsp.suggestion_cache import MAX_SUGGESTIONS, Rest, Suggestion, SuggestionCache

URI = "file:///a.py"


def cache_with(document: str, text: str, *, until: int | None = None) -> SuggestionCache:
    """A cache that holds `text`, proposed where `|` stands in the document."""
    cache = SuggestionCache()
    cursor = document.index("|")
    plain = document.replace("|", "")
    cache.put(Suggestion.at(URI, plain, Span(cursor, until or cursor), cursor, text, "settings", 7))
    return cache


def found(cache: SuggestionCache, document: str, **given: object) -> Rest | None:
    plain, cursor = document.replace("|", ""), document.index("|")
    return cache.find(URI, plain, cursor, given.pop("settings", "settings"), **given)


def rest_text(cache: SuggestionCache, document: str) -> str | None:
    rest = found(cache, document)
    return rest.text if rest else None


def test_typing_along_a_suggestion_leaves_the_rest():
    cache = cache_with("def f():\n    re|\n\n\nf()\n", "turn 1 + 2")
    assert found(cache, "def f():\n    retur|\n\n\nf()\n") == Rest(Span(18, 18), "n 1 + 2", 7)
    assert rest_text(cache, "def f():\n    return 1 |\n\n\nf()\n") == "+ 2"


def test_deleting_back_gives_more_of_it():
    cache = cache_with("x = |\n", "compute(1)")
    assert rest_text(cache, "x = comp|\n") == "ute(1)"
    assert rest_text(cache, "x = c|\n") == "ompute(1)"
    assert rest_text(cache, "x = |\n") == "compute(1)"


def test_a_line_of_several_may_be_accepted():
    cache = cache_with("if x:\n    |\n", "a()\n    b()\n    c()")
    assert rest_text(cache, "if x:\n    a()\n    |\n") == "b()\n    c()"


@pytest.mark.parametrize(
    "document",
    [
        "x = cX|\n",  # other text
        "x = compute(1)|\n",  # all of it stands there
        "y = comp|\n",  # another line
        "import os\nx = comp|\n",  # text came in before
        "x = comp| + 1\n",  # text came in behind
        "x = comp|\nprint(x)\n",  # a line came in behind
        "x = comp|",  # the end is another
        "|x = \n",  # another place
    ],
)
def test_other_text_has_no_suggestion(document):
    assert found(cache_with("x = |\n", "compute(1)"), document) is None


def test_a_far_change_leaves_the_suggestion():
    far = "# a line of text far above\n" * 400
    cache = cache_with(far + "x = |\n" + far, "compute(1)")
    assert rest_text(cache, "import os\n" + far + "x = com|\n" + far + "more\n") == "pute(1)"


def test_closing_brackets_of_the_editor_are_replaced():
    cache = cache_with("x = f|\n", '(a, "b")')
    assert found(cache, "x = f(|)\n") == Rest(Span(6, 7), 'a, "b")', 7)
    assert found(cache, 'x = f(a, "|")\n') == Rest(Span(10, 12), 'b")', 7)
    assert found(cache, 'x = f(a, "b"|)\n') == Rest(Span(12, 13), ")", 7)


def test_a_closing_bracket_that_the_suggestion_lacks_is_not_taken_away():
    assert found(cache_with("x = f|\n", "(a, b"), "x = f(|)\n") is None


def test_what_the_suggestion_replaces_stays_replaced():
    cache = cache_with("x = |()\n", "f(1)", until=6)
    assert found(cache, "x = f|()\n") == Rest(Span(5, 7), "(1)", 7)


def test_carriage_returns_are_text_like_any_other():
    cache = cache_with("if x:\r\n    |\r\n", "a()\r\n    b()")
    assert rest_text(cache, "if x:\r\n    a()\r\n  |\r\n") == "  b()"


def test_nothing_is_remembered_for_the_very_place_alone():
    cache = cache_with("x = |\n", "")
    assert found(cache, "x = |\n") == Rest(Span(4, 4), "", 7)
    assert found(cache, "x = c|\n") is None


def test_other_settings_and_other_documents_have_their_own():
    cache = cache_with("x = |\n", "compute(1)")
    assert found(cache, "x = |\n", settings="others") is None
    assert cache.find("file:///b.py", "x = \n", 4, "settings") is None


def test_the_selected_item_is_gone_on_from():
    cache = cache_with("pri|\n", "nt(x)")
    assert found(cache, "pri|\n", selected=(Span(0, 3), "print")) == Rest(Span(0, 3), "print(x)", 7)
    assert found(cache, "pri|\n", selected=(Span(0, 3), "private")) is None
    assert found(cache, "pri|\n", selected=(Span(0, 3), "print(x)")) is None, "nothing would be added"


def test_the_suggestion_used_last_comes_first():
    cache = SuggestionCache()
    for origin, text in enumerate(["compute(1)", "count(2)"]):
        cache.put(Suggestion.at(URI, "x = \n", Span(4, 4), 4, text, "settings", origin))
    assert rest_text(cache, "x = |\n") == "count(2)"
    assert rest_text(cache, "x = com|\n") == "pute(1)"
    assert rest_text(cache, "x = |\n") == "compute(1)"


def test_only_so_many_are_kept():
    cache = SuggestionCache()
    for number in range(10 * MAX_SUGGESTIONS):
        cache.put(Suggestion.at(URI, "x = \n", Span(4, 4), 4, f"f({number})", "settings", number))
    assert len(cache) == MAX_SUGGESTIONS
    assert rest_text(cache, "x = |\n") == f"f({10 * MAX_SUGGESTIONS - 1})"


def test_the_same_again_takes_no_room():
    cache = SuggestionCache()
    for number in range(3):
        cache.put(Suggestion.at(URI, "x = \n", Span(4, 4), 4, "f()", "settings", number))
    assert len(cache) == 1


def test_a_closed_document_is_forgotten():
    cache = cache_with("x = |\n", "compute(1)")
    cache.drop(URI)
    assert found(cache, "x = |\n") is None
