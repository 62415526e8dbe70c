from __future__ import annotations

import pytest
from lsprotocol.types import (
    ClientCapabilities,
    CodeActionContext,
    CodeActionKind,
    CodeActionParams,
    CodeActionTag,
    Diagnostic,
    Position,
    PositionEncodingKind,
    Range,
    TextDocumentIdentifier,
    TextDocumentItem,
)

from specedit_lsp.actions import code_actions
from specedit_lsp.documents import OpenDocument
from tests.lsp.fake_client import capabilities

CODE = "class Basket:\n    def total(self):\n        return sum(self.items)\n\n\nx = 1\n"


def document(text=CODE, language="python", uri="file:///a.py"):
    return OpenDocument(TextDocumentItem(uri, language, 3, text), PositionEncodingKind.Utf16)


def at(line, end=None):
    return Range(Position(line, 0), Position(line if end is None else end, 0))


def asked(doc, range_=None, diagnostics=(), only=None, client=None, can_ask=False):
    context = CodeActionContext(list(diagnostics), only)
    params = CodeActionParams(TextDocumentIdentifier("file:///a.py"), range_ or at(2), context)
    return code_actions(params, doc, client or capabilities(), can_ask)


def titles(actions):
    return [action.title for action in actions]


def problem(line, message, **more):
    return Diagnostic(at(line), message, **more)


def test_actions_name_the_part_and_carry_the_whole_request():
    actions = asked(document())
    assert titles(actions) == [
        "Add a docstring to function Basket.total",
        "Add type hints to function Basket.total",
        "Simplify function Basket.total",
    ]
    assert {action.kind for action in actions} == {CodeActionKind.RefactorRewrite}
    assert {tuple(action.tags) for action in actions} == {(CodeActionTag.LlmGenerated,)}
    command = actions[-1].command
    assert command.command == "specedit.rewrite"
    assert command.arguments == [
        {
            "textDocument": {"uri": "file:///a.py", "version": 3},
            "range": {"start": {"line": 2, "character": 0}, "end": {"line": 2, "character": 0}},
            "instruction": "Simplify this without changing what it does.",
            "apply": "server",
        }
    ]


def test_a_selection_is_named_by_its_lines():
    assert titles(asked(document(), at(1, 3)))[-1] == "Simplify lines 2-3"
    assert titles(asked(document(CODE * 2000), at(1, 1)))[-1] == "Simplify line 2"


@pytest.mark.parametrize(
    ("start", "end", "part"),
    [
        ((2, 0), (2, 1), "function Basket.total"),
        ((2, 8), (2, 15), "function Basket.total"),
        ((2, 30), (3, 0), "function Basket.total"),
        ((3, 0), (4, 0), "line 4"),
        ((2, 8), (2, 31), "line 3"),
        ((5, 0), (6, 0), "line 6"),
    ],
    ids=["a blank", "a word", "a line's end", "an empty line", "words", "a line"],
)
def test_a_word_or_a_character_that_is_selected_is_where_the_cursor_is(start, end, part):
    """Some editors always have something selected."""
    (*_, action) = asked(document(), Range(Position(*start), Position(*end)))
    assert action.title == f"Simplify {part}"


def test_a_word_that_is_a_whole_line_is_a_selection():
    doc = document("def stop():\n    halt()\n")
    assert titles(asked(doc, Range(Position(1, 4), Position(1, 10))))[-1] == "Simplify line 2"
    assert asked(doc, Range(Position(1, 4), Position(1, 8)))[-1].command.arguments[0]["range"] == {
        "start": {"line": 1, "character": 4},
        "end": {"line": 1, "character": 4},
    }


def test_the_diagnostics_in_range_become_the_instruction():
    problems = [problem(2, "no attribute\n 'items'", source="mypy", code="attr"), problem(5, "unused")]
    fix, *_ = asked(document(), diagnostics=problems)
    assert (fix.title, fix.kind) == ("Fix the problems in function Basket.total", CodeActionKind.QuickFix)
    assert fix.diagnostics == problems
    assert fix.command.arguments[0]["instruction"] == (
        "Fix these problems:\n- line 3: no attribute 'items' (mypy attr)\n- line 6: unused"
    )


@pytest.mark.parametrize(
    ("only", "kinds"),
    [
        (None, ["quickfix", "refactor.rewrite"]),
        (["refactor"], ["refactor.rewrite"]),
        ([CodeActionKind.RefactorRewrite], ["refactor.rewrite"]),
        (["quickfix"], ["quickfix"]),
        (["refactor.extract", "source.fixAll"], []),
        (["refactor.rewriting"], []),
    ],
)
def test_only_the_kinds_that_are_asked_for_are_given(only, kinds):
    actions = asked(document(), diagnostics=[problem(2, "wrong")], only=only)
    assert sorted({action.kind.value for action in actions}) == kinds
    assert len(titles(actions)) == len(set(titles(actions)))


@pytest.mark.parametrize(
    ("language", "first"),
    [("python", "Add a docstring"), ("rust", "Add a doc comment"), ("typescript", "Add a doc comment")],
)
def test_what_is_offered_fits_the_language(language, first):
    found = titles(asked(document(language=language)))
    assert found[0].startswith(first)
    assert any("type hints" in title for title in found) == (language != "rust")


def test_prose_and_data_have_nothing_to_document_or_simplify():
    assert asked(document("a: 1\n", "yaml")) == []
    assert titles(asked(document("a: 1\nb\n", "yaml"), at(1), [problem(1, "wrong")])) == ["Fix the problem in line 2"]


def test_a_free_instruction_is_offered_where_the_editor_can_ask_for_it():
    asking = capabilities()
    asking.experimental = {"specedit": {"askInstruction": True}}
    for actions in (asked(document(), client=asking), asked(document(), can_ask=True)):
        assert actions[-1].title == "Rewrite function Basket.total with an instruction ..."
        assert actions[-1].command.command == "specedit.askInstruction"
        assert actions[-1].command.arguments == [
            {
                "textDocument": {"uri": "file:///a.py", "version": 3},
                "range": {"start": {"line": 2, "character": 0}, "end": {"line": 2, "character": 0}},
            }
        ]
    other = capabilities()
    other.experimental = {"specedit": True}
    assert not any("instruction" in title for title in titles(asked(document(), client=other)))


def test_a_document_that_is_not_open_has_an_action_that_says_why_not():
    [action] = asked(None)
    assert "does not know this document" in action.disabled.reason
    silent = capabilities()
    silent.text_document.code_action.disabled_support = None
    assert asked(None, client=silent) == []


def test_editors_that_know_no_literals_or_no_tags_get_none():
    assert asked(document(), client=ClientCapabilities()) == []
    plain = capabilities()
    plain.text_document.code_action.tag_support = None
    assert {action.tags for action in asked(document(), client=plain)} == {None}
