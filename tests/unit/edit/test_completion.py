"""Completions as a user sees them: the text with the cursor at `|`, what the model writes, and the text then."""

from pathlib import Path

import pytest

from specedit.edit.completion import CompletionRequest, alternatives, complete
from specedit.edit.document import Document, Span
from specedit.engine.api import CancelToken, ContextFile, Sampling
from specedit.errors import UnreachableError
from tests.fakes import ScriptedEngine

NAMES = {"python": "a.py", "javascript": "a.js", "go": "a.go", "c": "a.c", "rust": "a.rs", "typescript": "a.ts"}


def asked(text, *, name="a.py", **given):
    before, after = text.split("|")
    return CompletionRequest(Document(before + after, Path(name)), len(before), **given)


def completed(text, answer, *, name="a.py", chunk_chars=3, finish_reason="stop", **given):
    """The completion, and the text with it, the cursor's place not marked."""
    request = asked(text, name=name, **given)
    engine = ScriptedEngine([answer], chunk_chars=chunk_chars, finish_reason=finish_reason)
    completion = complete(request, engine)
    document = request.document.text
    return completion, document[: completion.span.start] + completion.text + document[completion.span.end :]


def text_of(text, answer, **given):
    completion, _ = completed(text, answer, **given)
    return completion.text


# --- what stands after the cursor


@pytest.mark.parametrize(
    ("text", "answer", "expected"),
    [
        ("foo(|)", "a, b)", "foo(a, b)"),
        ("foo(|)", "a, b", "foo(a, b)"),
        ("foo(|)", "bar(a)", "foo(bar(a))"),
        ("foo(|)", "bar(a))", "foo(bar(a))"),
        ("foo(bar(|))", "x))", "foo(bar(x))"),
        ("foo(bar(|))", "x), y", "foo(bar(x), y)"),
        ("foo([|])", "1, 2])", "foo([1, 2])"),
        ("foo(|);", "a, b);", "foo(a, b);"),
        ('say(f"Hello, {|}")', 'name}!")', 'say(f"Hello, {name}!")'),
        ('say(f"Hello, {|}")', "name", 'say(f"Hello, {name}")'),
        ('say("|)', 'hello")', 'say("hello")'),
        ("x = a.|;", "b();", "x = a.b();"),
        ("f(a|, b)", ", c)", "f(a, c, b)"),
        ("x = {|}", '"a": 1}', 'x = {"a": 1}'),
        ('say("|")', 'hello")', 'say("hello")'),
        ('say("|")', "it's (fine)", 'say("it\'s (fine)")'),
        ("say('|')", "hello')", "say('hello')"),
        ('"""|"""', 'The sum."""', '"""The sum."""'),
        ("return | + y", "x + y", "return x + y"),
        ("return |x + y", "a * x + y", "return a * x + y"),
        ("def area(|) -> int:", "w, h) -> int:", "def area(w, h) -> int:"),
        ("def area(|) -> int:", "w, h", "def area(w, h) -> int:"),
        ("foo(|) + bar(x)", "a, b)", "foo(a, b) + bar(x)"),
        ("foo(|) + bar(x)", "a, b) + bar(x)", "foo(a, b) + bar(x)"),
        ("for| x in xs:", " x in xs:", None),
    ],
)
def test_the_rest_of_the_line_is_not_repeated(text, answer, expected):
    completion, after = completed(text, answer, name="a.js")
    assert after == (text.replace("|", "") if expected is None else expected)
    assert completion.status == ("nothing" if expected is None else "found")


def test_text_that_goes_on_after_a_bracket_takes_its_place():
    completion, after = completed("f(|)\n", "a, b)\ng()\n\nh()\n")
    assert after == "f(a, b)\n"
    completion, after = completed("call(|)\n", "\n    a,\n    b,\n)\n")
    assert after == "call(\n    a,\n    b,\n)\n"
    assert completion.span == Span(5, 6)


@pytest.mark.parametrize(
    ("text", "answer", "expected"),
    [
        ("a = 1\n|\nc = 3\n", "b = 2\nc = 3\nd = 4\n", "b = 2"),
        ("a = 1\n|\n\nc = 3\nd = 4\n", "b = 2\n\n\nc = 3\nd = 4\n", "b = 2"),
        ("a = 1\n|\nc = 3\n", "c = 3\n", ""),
        ("def f():\n    |\n    return x\n", "x = 1\n    return x\n", "x = 1"),
        ("def f():\n    |\n    return x\n", "if y:\n        x = 2\n    return x", "if y:\n        x = 2"),
        ("def f():\n    |\n    return x\n", "x = 1\n    return", "x = 1\n    return"),
    ],
)
def test_lines_below_are_not_repeated(text, answer, expected):
    assert text_of(text, answer) == expected


def test_a_brace_below_is_repeated_only_where_it_closes_what_stood_before():
    assert text_of("if (a) {|\n}\n", "\n    b();\n}\n", name="a.js") == "\n    b();"
    inner = "if (a) {\n    b();\n}"
    assert text_of("|\n}\n", inner + "\n", name="a.c") == inner


def test_the_model_stops_where_it_runs_into_the_text_below():
    request = asked("a = 1\n|\nc = 3\n")
    engine = ScriptedEngine(["b = 2\nc = 3\n" + "d = 4\n" * 50], chunk_chars=4)
    completion = complete(request, engine)
    assert completion.text == "b = 2"
    assert completion.usage.forwards < 6


# --- where it ends


@pytest.mark.parametrize(
    ("text", "answer", "expected"),
    [
        ("x = com|", "compute(y)\nz = 2\n", "pute(y)"),
        ("x = f(|", "\n    a,\n    b,\n)\ny = 2\n", "\n    a,\n    b,\n)"),
        ("def f(x):|", "\n    y = x\n\n    return y\n\n\ndef g():\n", "\n    y = x\n\n    return y"),
        ("    |", "a = 1\n    b = 2\n\n    c = 3\n", "a = 1\n    b = 2"),
        ("def f():\n    |", "a = 1\n    return a\n\ndef g():\n    pass\n", "a = 1\n    return a"),
        ("def f():\n    if x:\n        |", "y = 1\n    return y\n", "y = 1"),
        ("if x:|", "\n    a = 1\nelse:\n    a = 2\nb = 3\n", "\n    a = 1\nelse:\n    a = 2"),
        ("try:|", "\n    a()\nexcept E:\n    b()\nc()\n", "\n    a()\nexcept E:\n    b()"),
        ("@cache|", "\ndef f():\n    return 1\nx = 2\n", "\ndef f():\n    return 1"),
        ("@cac|", "cache(1)\ndef f():\n    return 1\n\nx = 2\n", "he(1)\ndef f():\n    return 1"),
        ("# the sum|", "\ndef f(a, b):\n    return a + b\n\nx = 1\n", "\ndef f(a, b):\n    return a + b"),
        ('def f():\n    """|', 'The sum.\n\n    Of all.\n    """\n    x = 1\n', 'The sum.\n\n    Of all.\n    """'),
        ("class A:|", "\n    x = 1\n\n    def f():\n        a\n\n\nb", "\n    x = 1\n\n    def f():\n        a"),
        ("x = 1|", "\n\n\ny = 2\n", ""),
        ("for a in x|\n    g(a)\n", "xs():\n    if a:\n        g(a)\n", "s():"),
        ("def f(a):|\n    return a\n", '\n    """Give it."""\n    return a', '\n    """Give it."""'),
        ("    a = 1\n    |\n        c = 3\n", "if b:\n        d = 2\n", "if b:\n        d = 2"),
    ],
)  # fmt: skip
def test_python_ends_with_what_it_began(text, answer, expected):
    assert text_of(text, answer) == expected


@pytest.mark.parametrize(
    ("language", "text", "answer", "expected"),
    [
        ("javascript", "function f() {|", "\n  return 1;\n}\n\nfunction g() {\n", "\n  return 1;\n}"),
        ("javascript", "if (a) {|", "\n  b();\n} else {\n  c();\n}\nd();\n", "\n  b();\n} else {\n  c();\n}"),
        ("javascript", "const x = xs|", "xs\n  .map(f)\n  .filter(g);\nnext();\n", "\n  .map(f)\n  .filter(g);"),
        ("typescript", "interface A {|", "\n  x: number;\n}\n\ninterface B {\n", "\n  x: number;\n}"),
        ("go", "func f() error {|", "\n\treturn nil\n}\n\nfunc g() {\n", "\n\treturn nil\n}"),
        ("go", "\tif err|", "err != nil {\n\t\treturn err\n\t}\n\tx := 1\n", " != nil {\n\t\treturn err\n\t}"),
        ("rust", "fn f() -> u8 {|", "\n    1\n}\n\nfn g() {}\n", "\n    1\n}"),
        ("rust", "    match x {|", "\n        _ => a(),\n    }\n    b();\n", "\n        _ => a(),\n    }"),
        ("c", "int f(void)\n{\n    |\n", "int x = 1;\n    return x;\n}\n\nint g(void)\n", "int x = 1;\n    return x;"),
        ("c", "    x = f(a);|", "\n}\n\nint g(void)\n", ""),
    ],
)  # fmt: skip
def test_braces_end_with_what_they_began(language, text, answer, expected):
    assert text_of(text, answer, name=NAMES[language]) == expected


@pytest.mark.parametrize(
    ("text", "answer", "expected"),
    [
        ("if a then|", "\n  b()\nelse\n  c()\nend\nd()\n", "\n  b()\nelse\n  c()\nend"),
        ("local x = f(|", "\n  1,\n  2\n)\ny = 2\n", "\n  1,\n  2\n)"),
        ("  |", "a = 1\n  b = 2\nend\n", "a = 1\n  b = 2"),
    ],
)
def test_without_a_grammar_the_indentation_decides(text, answer, expected):
    assert text_of(text, answer, name="a.lua") == expected


@pytest.mark.parametrize("chunk_chars", [1, 2, 11, 1000])
@pytest.mark.parametrize(
    ("text", "answer", "expected"),
    [
        ("call(|)\nnext()\n", "\n    a,\n    b,\n)\nnext()\nmore()\n", "\n    a,\n    b,\n)"),
        ("if x:|\n\nz = 1\n", "\n    a = 1\nelse:\n    a = 2\n\nz = 1\n", "\n    a = 1\nelse:\n    a = 2"),
        ("x = com|", "compute(y)\n    .z()\nw = 1\n", "pute(y)"),
        ('def f():\n    """|', 'The sum.\n\n    Of all.\n    """\n    x = 1\n', 'The sum.\n\n    Of all.\n    """'),
    ],
)
def test_it_does_not_matter_how_the_answer_arrives(text, answer, expected, chunk_chars):
    assert text_of(text, answer, chunk_chars=chunk_chars) == expected


def test_the_model_stops_as_soon_as_the_end_is_known():
    engine = ScriptedEngine(["y = x\n    return y\n\n\n\ndef other():\n" + "    pass\n" * 40], chunk_chars=4)
    completion = complete(asked("def f(x):\n    |\n"), engine)
    assert completion.text == "y = x\n    return y"
    assert completion.usage.forwards < 10


def test_a_line_that_is_a_whole_statement_ends_with_its_line():
    engine = ScriptedEngine(["x = compute(y)\nz = 2\n"], chunk_chars=1)
    completion = complete(asked("x|"), engine)
    assert completion.text == " = compute(y)"
    assert completion.usage.forwards == len("x = compute(y)\n")


def test_one_line_where_more_than_brackets_stand_after_the_cursor_or_one_is_asked_for():
    engine = ScriptedEngine(["a,\nb"])
    assert complete(asked("f(| c)"), engine).text == "a,"
    assert engine.requests[0].stop == ("\n",)
    assert text_of("def f():|", "\n    return 1\n", multi_line=False) == ""
    assert text_of("x = |", "1\ny = 2\n", multi_line=False) == "1"


def test_never_more_than_twenty_lines():
    body = "".join(f"\n    x{number} = {number}" for number in range(60))
    completion, _ = completed("def f():|", body)
    assert completion.text.count("\n") < 20
    assert completion.text.startswith("\n    x0 = 0\n    x1 = 1")


# --- indentation and line ends


@pytest.mark.parametrize(
    ("text", "answer", "expected"),
    [
        ("def f():\n    a = 1\n    |", "    b = 2", "b = 2"),
        ("def f():\n    a = 1\n    |", " b = 2", "b = 2"),
        ("def f():\n    a = 1\n  |", "  b = 2", "  b = 2"),
        ("def f():\n    if a:\n    |", "    b = 2", "    b = 2"),
        ("def f():\n    a = 1\n    |", "\n    b = 2\n", "b = 2"),
        ("def f():\n    a = 1\n|", "    b = 2\n    c = 3\n", "    b = 2\n    c = 3"),
        (
            "def f():\n    a = 1\n    |",
            "    if b:\n            c\n        else:\n            d",
            "if b:\n        c\n    else:\n        d",
        ),
        ("def f():\n\ta = 1\n\t|", "if a:\n        b = 2", "if a:\n\t\tb = 2"),
        ("if x:\n\ta = 1\n|", "if y:\n    b = 2\n", "if y:\n\tb = 2"),
        ("def f():\n    a = 1\n    |", "if a:\n\t\tb = 2", "if a:\n        b = 2"),
    ],
)
def test_indentation_is_the_files(text, answer, expected):
    assert text_of(text, answer) == expected


@pytest.mark.parametrize("line_end", ["\r\n", "\r", "\n"])
def test_line_ends_are_the_files(line_end):
    text = "def f(x):\n    y = 1\n    |\n\n\nz = 3\n".replace("\n", line_end)
    request = asked(text)
    engine = ScriptedEngine(["if y:\n        return x\n"])
    completion = complete(request, engine)
    assert completion.text == f"if y:{line_end}        return x"
    assert "\r" not in engine.requests[0].fim.prefix + engine.requests[0].fim.suffix
    assert completion.span == Span(request.offset, request.offset)


def test_blanks_at_the_end_are_cut():
    assert text_of("x = |", "1   \n\n\n") == "1"
    assert text_of("def f():|", "\n    a = 1  \n    b = 2  \n") == "\n    a = 1\n    b = 2"
    assert text_of("return |x + y", "a * ") == "a * "


# --- words and selected items


def test_a_word_that_is_begun_is_asked_for_again():
    engine = ScriptedEngine(["compute(x)"])
    request = asked("x = com|\n")
    assert complete(request, engine).text == "pute(x)"
    fim = engine.requests[0].fim
    assert (fim.prefix, fim.typed, fim.suffix) == ("x = ", "com", "\n")


def test_an_answer_that_does_not_begin_with_the_word_goes_on_after_it():
    assert text_of("x = com|\n", "pute(x)") == "pute(x)"


def test_a_selected_item_is_gone_on_with():
    document = Document("items.app|end\n".replace("|", ""), Path("a.py"))
    span = Span(6, 9)
    engine = ScriptedEngine(["append(x)"])
    completion = complete(
        CompletionRequest(Document("items.app\n", Path("a.py")), 9, selected=(span, "append")), engine
    )
    assert (completion.span, completion.text) == (span, "append(x)")
    assert (engine.requests[0].fim.prefix, engine.requests[0].fim.typed) == ("items.", "append")
    inside = complete(CompletionRequest(document, 9, selected=(Span(6, 12), "append")), ScriptedEngine(["append(x)"]))
    assert (inside.span, inside.text) == (Span(6, 12), "append(x)")


def test_a_selected_item_takes_closing_brackets_with_it_where_the_text_goes_on():
    document = Document("f(it)\n", Path("a.py"))
    request = CompletionRequest(document, 4, selected=(Span(2, 4), "items"))
    completion = complete(request, ScriptedEngine(["items)"]))
    assert completion.status == "nothing"
    completion = complete(request, ScriptedEngine(["items, key)"]))
    assert (completion.span, completion.text) == (Span(2, 4), "items, key")


# --- nothing worth showing


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("", "nothing"),
        ("  \n\n", "there already"),
        ("x = 1<|im_end|>", "chat marker"),
        ("```python\nx = 1\n```\n", "code fence"),
        ("x = '\ufffd'", "U+FFFD"),
        ("a = 1\na = 1\na = 1\n", "repeats the lines above"),
    ],
)
def test_what_is_not_worth_showing_says_why(answer, reason):
    completion, _ = completed("import b\na = 1\n|\n", answer.replace("  \n", " \n"))
    if answer.strip():
        assert reason in completion.reason
    assert (completion.status, completion.text) == ("nothing", "")
    assert completion.reason


def test_a_fence_ends_the_code():
    assert text_of("|", "x = 1\n```\n\nThat is all.\n") == "x = 1"
    assert text_of("Run\n|", "this:\n```sh\nls\n```\n", name="a.md") == "this:\n```sh\nls\n```"


def test_a_loop_is_cut():
    assert text_of("|", "a = 1\nb = 2\nb = 2\nb = 2\nb = 2\n") == "a = 1\nb = 2"
    engine = ScriptedEngine(["f(a)\ng(b)\n" * 40], chunk_chars=5)
    completion = complete(asked("x = 1\n|"), engine)
    assert completion.text == "f(a)\ng(b)"
    assert completion.usage.forwards < 15


def test_a_line_that_stands_above_may_come_once_more():
    assert text_of("print()\n|", "print()\nx = 1\n") == "print()\nx = 1"


def test_an_answer_cut_by_its_limit_loses_its_last_line_unless_it_is_alone():
    assert text_of("|", "a = 1\nb = 2\nc = fo", finish_reason="length") == "a = 1\nb = 2"
    assert text_of("|", "if a:\n    b = 2\nelse:\n    c = fo", finish_reason="length") == "if a:\n    b = 2"
    assert text_of("x = |", "compute(a, b, c", finish_reason="length") == "compute(a, b, c"
    assert text_of("def f():|", "\n    return compu", finish_reason="length") == "\n    return compu"


def test_a_cancelled_request_gives_nothing():
    cancel = CancelToken()
    engine = ScriptedEngine([lambda _: cancel.cancel() or "a = 1\n"])
    completion = complete(asked("|", cancel=cancel), engine)
    assert (completion.status, completion.text) == ("cancelled", "")


def test_errors_of_the_engine_are_raised():
    with pytest.raises(UnreachableError):
        complete(asked("|"), ScriptedEngine([UnreachableError("gone")]))


# --- what the model is asked


def test_what_the_model_is_asked():
    files = (ContextFile("b.py", "def g(): ...\n"),)
    engine = ScriptedEngine(["1"])
    complete(asked("x = |\ny = 2\n", files=files, max_new_tokens=9, seed=3, sampling=Sampling(temperature=0.5)), engine)
    [request] = engine.requests
    assert (request.fim.files, request.fim.name) == (files, "a.py")
    assert (request.max_new_tokens, request.seed, request.sampling.temperature) == (9, 3, 0.5)
    assert request.priority == "inline"


def test_no_path_is_needed():
    completion = complete(CompletionRequest(Document("x = "), 4), ScriptedEngine(["1\n"]))
    assert completion.text == "1"


def test_alternatives_are_different_and_each_has_its_seed():
    engine = ScriptedEngine(["a", "b", "a", "", "c"])
    found = alternatives(asked("x = |\n"), engine, 5)
    assert [completion.text for completion in found] == ["a", "b", "c"]
    assert [request.sampling.temperature for request in engine.requests] == [0.0, 0.7, 0.7, 0.7, 0.7]
    assert [request.seed for request in engine.requests] == [0, 1, 2, 3, 4]
    [nothing] = alternatives(asked("x = |\n"), ScriptedEngine([""]), 2)
    assert nothing.status == "nothing"
