"""API migrations: one way to write something gives way to another, at every place of a file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import pairwise

from tree_sitter import Node

from specedit.bench.sets.making import Change, Pattern, make
from specedit.bench.sets.names import NAME
from specedit.bench.sets.row import Row
from specedit.bench.sets.rules import Rule, patterns_of, with_import
from specedit.bench.sets.source import SourceFile, nodes_of, replaced, root_of, text_of

_FEWEST_SITES, _MOST_SITES = 4, 60
_LONGEST_LINE = 100
_EXPRESSION = r"[\w.>\-\[\]]+"

_RULES = (
    Rule(
        "any-for-interface",
        ("go",),
        r"\binterface\{\}",
        "any",
        ("Use `any` instead of `interface{}`.", "interface{} -> any"),
        fewest=4,
    ),
    Rule(
        "require-no-error",
        ("go",),
        r"^(\t+)if err != nil \{\n\t+t\.(?:Fatal|Error)\(err\)\n\t+\}$",
        r"\1require.NoError(t, err)",
        ("Use require.NoError from testify for the error checks in the tests.",),
        unless=r"\"github.com/stretchr/testify/require\"",
        needs='"github.com/stretchr/testify/require"',
        fewest=4,
        rows=2,
    ),
    Rule(
        "require-equal",
        ("go",),
        r"^(\t+)if ([\w.()\[\]]+) != ((?!nil\b)[\w.\"]+) \{\n\t+t\.(?:Error|Fatal)f?\([^\n]*\)\n\t+\}$",
        r"\1require.Equal(t, \3, \2)",
        (
            "Compare with require.Equal from testify in the tests.",
            "if got != want { t.Errorf } -> require.Equal(t, want, got)",
        ),
        unless=r"\"github.com/stretchr/testify/require\"",
        needs='"github.com/stretchr/testify/require"',
        fewest=4,
        rows=2,
    ),
    Rule(
        "inline-format-arguments",
        ("rust",),
        r"\b((?:print|eprint|println|eprintln|format|panic)!\(\"[^\"{}\n]*)\{(:\?)?\}([^\"{}\n]*\"), (\w+)\)",
        r"\1{\4\2}\3)",
        ("Put the variables into the format strings.",),
        fewest=3,
    ),
    Rule(
        "expect-for-unwrap",
        ("rust",),
        r"\.unwrap\(\)",
        '.expect("should succeed")',
        ('Replace unwrap() by expect("should succeed").',),
        fewest=4,
        rows=2,
    ),
    Rule(
        "to-owned",
        ("rust",),
        r"(\"[^\"\n]*\")\.to_string\(\)",
        r"\1.to_owned()",
        ("Use to_owned() on string literals, not to_string().",),
        fewest=4,
        rows=2,
    ),
    Rule(
        "snprintf",
        ("c",),
        rf"\bsprintf\(({_EXPRESSION}), ",
        r"snprintf(\1, sizeof(\1), ",
        ("Use snprintf with the size of the buffer instead of sprintf.",),
        fewest=4,
    ),
    Rule(
        "log-error",
        ("c",),
        r"\bfprintf\(stderr, (\"[^\"\n]+)\\n\"",
        r'log_error(\1"',
        ("Call log_error instead of fprintf(stderr, ...); it ends the line itself.",),
        fewest=4,
        rows=2,
    ),
    Rule(
        "no-null-comparison",
        ("c",),
        rf"(?<=[(] )?\b({_EXPRESSION}) == NULL\b",
        r"!\1",
        ("Write `!x` instead of `x == NULL`.",),
        unless=r"NULL == |\w\) == NULL",
        fewest=4,
        rows=2,
    ),
    Rule(
        "nullish-coalescing",
        ("typescript",),
        r" \|\| (?=\[\]|\{\}|''|\"\"|0\b|null\b|false\b)",
        " ?? ",
        ("Use ?? for the defaults, not ||.",),
        fewest=4,
        rows=2,
    ),
    Rule(
        "plain-null-check",
        ("c",),
        rf"\bNULL == ({_EXPRESSION})",
        r"\1 == NULL",
        ("Write `x == NULL`, not `NULL == x`.",),
        fewest=4,
        rows=2,
    ),
    Rule(
        "unknown-for-any",
        ("typescript",),
        r": any(?=[,);=\s])",
        ": unknown",
        ("Replace the type any by unknown.",),
        fewest=4,
        rows=2,
    ),
)

_ASSERTIONS: dict[str, tuple[int, str]] = {
    "assertEqual": (2, "{0} == {1}"),
    "assertEquals": (2, "{0} == {1}"),
    "assertNotEqual": (2, "{0} != {1}"),
    "assertTrue": (1, "{0}"),
    "assertFalse": (1, "not {0}"),
    "assertIs": (2, "{0} is {1}"),
    "assertIsNot": (2, "{0} is not {1}"),
    "assertIsNone": (1, "{0} is None"),
    "assertIsNotNone": (1, "{0} is not None"),
    "assertIn": (2, "{0} in {1}"),
    "assertNotIn": (2, "{0} not in {1}"),
    "assertIsInstance": (2, "isinstance({0}, {1})"),
    "assertGreater": (2, "{0} > {1}"),
    "assertGreaterEqual": (2, "{0} >= {1}"),
    "assertLess": (2, "{0} < {1}"),
    "assertLessEqual": (2, "{0} <= {1}"),
}

_PATH_CALLS = {
    "os.path.exists": "{0}.exists()",
    "os.path.isfile": "{0}.is_file()",
    "os.path.isdir": "{0}.is_dir()",
    "os.path.islink": "{0}.is_symlink()",
    "os.path.basename": "{0}.name",
    "os.path.dirname": "{0}.parent",
    "os.path.abspath": "{0}.absolute()",
    "os.path.realpath": "{0}.resolve()",
    "os.path.expanduser": "{0}.expanduser()",
    "os.remove": "{0}.unlink()",
    "os.mkdir": "{0}.mkdir()",
}
_LOOSE = frozenset({"boolean_operator", "comparison_operator", "conditional_expression", "lambda", "not_operator"})
_BINARY = frozenset({"binary_operator", "unary_operator", "await"})


def migrations(files: Iterable[SourceFile]) -> Iterator[Row]:
    """At least four places of a file move from one API or way of writing to another."""
    patterns = [
        Pattern("pytest-asserts", ("python",), 3, pytest_asserts),
        Pattern("f-strings", ("python",), 2, f_strings),
        Pattern("pathlib", ("python",), 2, pathlib_paths),
        Pattern("builtin-generics", ("python",), 2, builtin_generics),
        Pattern("const-and-let", ("javascript",), 3, const_and_let),
        Pattern("import-for-require", ("javascript",), 2, imports_for_require),
        Pattern("arrow-functions", ("javascript", "typescript"), 2, arrow_functions),
        Pattern("template-strings", ("javascript", "typescript"), 2, template_strings),
        Pattern("question-mark", ("rust",), 2, question_marks),
    ]
    return make([*patterns, *patterns_of(_RULES)], files)


def pytest_asserts(file: SourceFile) -> Change | None:
    """The assertions of unittest as plain asserts; None where one can't be written on its line."""
    found: list[tuple[int, int, str]] = []
    for node in nodes_of(root_of(file.text, "python")):
        if node.type != "call" or not (called := _field(node, "function")).startswith("self.assert"):
            continue
        count, form = _ASSERTIONS.get(called.removeprefix("self."), (0, ""))
        arguments = _arguments(node)
        alone = _parent_type(node) == "expression_statement"
        if not form or len(arguments) != count or not alone or "\n" in text_of(node):
            return None
        operands = [
            _bracketed(argument, _LOOSE) if len(arguments) == 2 or "is" in form else text_of(argument)
            for argument in arguments
        ]
        if form == "not {0}":
            operands = [_bracketed(arguments[0], frozenset({"boolean_operator", "conditional_expression", "lambda"}))]
        found.append((node.start_byte, node.end_byte, f"assert {form.format(*operands)}"))
    return _change(
        file, found, ("Use plain asserts instead of the unittest methods.", "unittest assertions -> pytest asserts")
    )


def f_strings(file: SourceFile) -> Change | None:
    """Texts formatted with % as f-strings, those that are simple enough."""
    found = []
    for node in nodes_of(root_of(file.text, "python")):
        if node.type == "binary_operator" and _field(node, "operator") == "%":
            text, right = node.child_by_field_name("left"), node.child_by_field_name("right")
            if text is not None and right is not None and text.type == "string" and (new := _f_string(text, right)):
                found.append((node.start_byte, node.end_byte, new))
    return _change(file, found, ("Use f-strings instead of % formatting.", "turn the %-formatting into f-strings"))


def pathlib_paths(file: SourceFile) -> Change | None:
    """Calls of os.path as pathlib's, from the innermost outwards; the import comes along."""
    if re.search(r"\bPath\b|pathlib", file.text):
        return None
    sites = 0

    def rewritten(node: Node) -> str:
        nonlocal sites
        called = _field(node, "function") if node.type == "call" else ""
        arguments = _arguments(node) if called else []
        plain = arguments and all(argument.type not in ("list_splat", "keyword_argument") for argument in arguments)
        if plain and called == "os.path.join" and len(arguments) > 1:
            sites += 1
            first, *rest = arguments
            joined = " / ".join([_as_path(first, rewritten(first)), *(_operand(one, rewritten(one)) for one in rest)])
            return f"({joined})" if _parent_type(node) in ("attribute", "subscript") else joined
        if plain and called in _PATH_CALLS and len(arguments) == 1:
            sites += 1
            return _PATH_CALLS[called].format(_as_path(arguments[0], rewritten(arguments[0])))
        return _with_children(node, file.text, rewritten)

    root = root_of(file.text, "python")
    after = file.text[: root.start_byte] + rewritten(root) + file.text[root.end_byte :]
    if not _FEWEST_SITES <= sites <= _MOST_SITES or not _short_enough(after, file.text):
        return None
    after = with_import(after, "from pathlib import Path", "python")
    wordings = ("Use pathlib instead of os.path.", "os.path -> pathlib.Path")
    return Change(after, sites, wordings) if "import Path" in after else None


def builtin_generics(file: SourceFile) -> Change | None:
    """The generic types of typing as the built-in ones; the names leave the import."""
    generic = re.compile(r"\b(Dict|FrozenSet|List|Set|Tuple|Type)(?=\[)")
    used = [(match.start(), match.end(), match[0].lower()) for match in generic.finditer(file.text)]
    listed = re.compile(r"^    (?:Dict|FrozenSet|List|Set|Tuple|Type),\n", re.MULTILINE)
    imported = [(match.start(), match.end(), "") for match in listed.finditer(file.text)]
    change = _change(file, used, ("Use the built-in generics, list[str] and so on, not those of typing.",))
    return replace(change, after=replaced(file.text, used + imported)) if change and imported else None


def const_and_let(file: SourceFile) -> Change | None:
    """`var` as `const` where a name is bound once, else as `let`; None where a name is declared twice."""
    root = root_of(file.text, "javascript")
    declared: Counter[str] = Counter()
    written: set[str] = set()
    found = []
    for node in nodes_of(root):
        if node.type == "variable_declarator":
            declared[_field(node, "name")] += 1
        elif node.type in ("assignment_expression", "augmented_assignment_expression"):
            target = node.child_by_field_name("left")
            if target is not None and target.type not in ("member_expression", "subscript_expression"):
                written.update(NAME.findall(text_of(target)))
        elif node.type == "update_expression":
            written.add(_field(node, "argument"))
        elif node.type == "for_in_statement" and _field(node, "kind") == "var":
            return None
    for node in nodes_of(root):
        if node.type == "variable_declaration":
            names = node.named_children
            once = all(
                name.child_by_field_name("value") is not None and _field(name, "name") not in written for name in names
            )
            found.append((node.start_byte, node.start_byte + 3, "const" if once else "let"))
    if any(count > 1 for count in declared.values()):
        return None
    return _change(
        file, found, ("Replace var by const and let.", "no var: const where it is never reassigned, else let")
    )


def imports_for_require(file: SourceFile) -> Change | None:
    """`require` at the top of a file as `import`."""
    whole = re.compile(r"^(?:var|const|let) (\w+|\{[^{}\n:]*\}) = require\((['\"][^'\"\n]+['\"])\);?$", re.MULTILINE)
    found = []
    for match in whole.finditer(file.text):
        end = ";" if match[0].endswith(";") else ""
        names = re.sub(r"^\{ *(.*?) *\}$", r"{ \1 }", match[1])
        found.append((match.start(), match.end(), f"import {names} from {match[2]}{end}"))
    if len(re.findall(r"\brequire\(", file.text)) != len(found):
        return None
    return _change(file, found, ("Use import instead of require.", "CommonJS requires -> ES imports"))


def arrow_functions(file: SourceFile) -> Change | None:
    """Function expressions that are arguments and use no `this` as arrow functions."""
    found: list[tuple[int, int, str]] = []
    for node in nodes_of(root_of(file.text, file.language)):
        if node.type != "function_expression" or _parent_type(node) != "arguments":
            continue
        parameters, body = node.child_by_field_name("parameters"), node.child_by_field_name("body")
        if (
            parameters is None
            or body is None
            or node.child_by_field_name("name") is not None
            or text_of(node).startswith("async")
            or re.search(r"\b(?:this|arguments|new\.target)\b", text_of(body))
        ):
            continue
        found.append((node.start_byte, parameters.start_byte, ""))
        found.append((parameters.end_byte, body.start_byte, " => "))
    wordings = ("Turn the callbacks into arrow functions.", "callbacks: function () {} -> () => {}")
    return _change(file, found, wordings, changes_a_site=2)


def template_strings(file: SourceFile) -> Change | None:
    """Texts that are put together with + on one line as template strings."""
    found: list[tuple[int, int, str]] = []
    for node in nodes_of(root_of(file.text, file.language)):
        if node.type == "binary_expression" and _parent_type(node) not in (
            "binary_expression",
            "template_substitution",
        ):
            parts = _summands(node)
            if _make_a_text(parts) and "\n" not in text_of(node) and not re.search(r"[`$\\{}]", text_of(node)):
                inner = (text_of(one)[1:-1] if one.type == "string" else f"${{{text_of(one)}}}" for one in parts)
                found.append((node.start_byte, node.end_byte, f"`{''.join(inner)}`"))
    wordings = ("Use template strings instead of concatenation.", "string concatenation -> template literals")
    return _change(file, found, wordings)


def question_marks(file: SourceFile) -> Change | None:
    """Tests that return a Result and use `?` in the place of unwrap."""
    found: list[tuple[int, int, str]] = []
    sites = 0
    for node in nodes_of(root_of(file.text, "rust")):
        if node.type != "function_item" or not _is_test(node) or node.child_by_field_name("return_type") is not None:
            continue
        parameters, body = node.child_by_field_name("parameters"), node.child_by_field_name("body")
        if parameters is None or body is None or re.search(r"\breturn\b|\|[\w, &]*\| ?\{?|move \|", text_of(body)):
            continue
        start = body.start_byte
        unwraps = list(re.finditer(r"\s*\.unwrap\(\)", file.text[start : body.end_byte]))
        last = file.text[: body.end_byte - 1].rstrip()
        if not unwraps or not last.endswith((";", "}")):
            continue
        sites += len(unwraps)
        line = last[last.rindex("\n") + 1 :]
        indent = line[: len(line) - len(line.lstrip())]
        found.append((parameters.end_byte, parameters.end_byte, " -> Result<(), Box<dyn std::error::Error>>"))
        found += [(start + match.start(), start + match.end(), "?") for match in unwraps]
        found.append((len(last), len(last), f"\n{indent}Ok(())"))
    wordings = ("Let the tests return a Result and use ? instead of unwrap().",)
    if sites < _FEWEST_SITES or sites > _MOST_SITES:
        return None
    return Change(replaced(file.text, found), sites, wordings)


def _change(
    file: SourceFile, found: list[tuple[int, int, str]], wordings: tuple[str, ...], changes_a_site: int = 1
) -> Change | None:
    sites = len(found) // changes_a_site
    if not _FEWEST_SITES <= sites <= _MOST_SITES or _overlap(found):
        return None
    after = replaced(file.text, found)
    return Change(after, sites, wordings) if _short_enough(after, file.text) else None


def _overlap(found: list[tuple[int, int, str]]) -> bool:
    ordered = sorted(found)
    return any(before[1] > after[0] for before, after in pairwise(ordered))


def _short_enough(after: str, before: str) -> bool:
    return max(map(len, after.split("\n"))) <= max(_LONGEST_LINE, *map(len, before.split("\n")))


def _field(node: Node, name: str) -> str:
    child = node.child_by_field_name(name)
    return text_of(child) if child is not None else ""


def _arguments(call: Node) -> list[Node]:
    arguments = call.child_by_field_name("arguments")
    return [node for node in arguments.named_children if node.type != "comment"] if arguments is not None else []


def _bracketed(node: Node, loose: frozenset[str]) -> str:
    return f"({text_of(node)})" if node.type in loose else text_of(node)


def _f_string(text: Node, right: Node) -> str | None:
    """The f-string for `text % right`; None where braces, quotes or odd formats are in the way."""
    written = text_of(text)
    quote = written[0]
    values = right.named_children if right.type == "tuple" else [right]
    if quote not in "'\"" or written.startswith(quote * 3) or re.search(r"[{}\\]|%%|%\(", written):
        return None
    formats = re.findall(r"%([-#0-9.]*)([a-zA-Z])", written)
    if len(formats) != len(values) or len(formats) != written.count("%") or "\n" in text_of(right):
        return None
    if right.type != "tuple" and right.type not in ("attribute", "call", "identifier", "subscript"):
        return None
    fields = []
    for (width, kind), value in zip(formats, values, strict=True):
        if kind not in "srdxf" or re.search(r"['\"{}\\:!]", text_of(value)) or value.type in ("lambda", "list_splat"):
            return None
        spec = width.replace("-", "<") + (kind if kind in "xf" or (width and kind == "d") else "")
        fields.append(f"{{{text_of(value)}{'!r' if kind == 'r' else ''}{':' + spec if spec else ''}}}")
    parts = re.split(r"%[-#0-9.]*[a-zA-Z]", written)
    return "f" + "".join(part + field for part, field in zip(parts, [*fields, ""], strict=True))


def _as_path(node: Node, written: str) -> str:
    """The first operand of a path: already one where it was rewritten to one."""
    is_path = written != text_of(node) and not written.startswith(("(", "str(", "list("))
    if is_path and " / " not in written:
        return written
    return f"({written})" if is_path else f"Path({written})"


def _operand(node: Node, written: str) -> str:
    return f"({written})" if node.type in _LOOSE | _BINARY or " / " in written else written


def _with_children(node: Node, text: str, rewritten: Callable[[Node], str]) -> str:
    """The node's text with each child's replaced by what becomes of it."""
    if not node.child_count:
        return text_of(node)
    parts, done = [], node.start_byte
    for child in node.children:
        parts += [text[done : child.start_byte], rewritten(child)]
        done = child.end_byte
    return "".join([*parts, text[done : node.end_byte]])


def _summands(node: Node) -> list[Node]:
    """The operands of a sum, from left to right; the node itself where it is none."""
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if node.type != "binary_expression" or _field(node, "operator") != "+" or left is None or right is None:
        return [node]
    return [*_summands(left), *([right] if right.type != "binary_expression" else [node])]


def _make_a_text(parts: list[Node]) -> bool:
    """Whether a sum of texts and other values is a text from its first + on."""
    texts = [part for part in parts if part.type == "string" and len(text_of(part)) > 2]
    return 0 < len(texts) < len(parts) and "string" in (parts[0].type, parts[1].type)


def _parent_type(node: Node) -> str:
    return node.parent.type if node.parent is not None else ""


def _is_test(function: Node) -> bool:
    above = function.prev_sibling
    return above is not None and text_of(above) == "#[test]"
