"""Re-indentation: a block goes into or out of a statement, or a whole file changes its indent."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from tree_sitter import Node

from specedit.bench.sets.making import Change, Pattern, make
from specedit.bench.sets.row import Row
from specedit.bench.sets.source import LANGUAGES, SourceFile, nodes_of, number_of, root_of, text_of

_FEWEST_LINES, _MOST_LINES = 8, 80
_LONGEST_LINE = 100


@dataclass(frozen=True, slots=True)
class Wrapper:
    r"""A statement to put around the body of a function.

    Attributes:
        opening: its first line.
        closing: what follows the body, a line each; `\t` stands for one indent.
        request: what to ask for, with `{function}` in it.
    """

    opening: str
    closing: tuple[str, ...]
    request: str


_WRAPPERS = {
    "python": (
        Wrapper("with lock:", (), "Hold `lock` while the body of {function} runs."),
        Wrapper(
            "try:",
            ("except OSError as error:", "\traise RuntimeError(str(error)) from error"),
            "Wrap the body of {function} in a try block that raises a RuntimeError for an OSError.",
        ),
        Wrapper("if not dry_run:", (), "Run the body of {function} only `if not dry_run`."),
    ),
    "javascript": (
        Wrapper(
            "try {",
            ("} catch (error) {", "\tconsole.error(error);", "\tthrow error;", "}"),
            "Put a try/catch around the body of {function} that logs the error and throws it again.",
        ),
        Wrapper("if (enabled) {", ("}",), "Make the body of {function} run only if `enabled`."),
    ),
    "go": (
        Wrapper("if enabled {", ("}",), "Run the body of {function} only if enabled is set."),
        Wrapper("for attempt := 0; attempt < 3; attempt++ {", ("}",), "Do the body of {function} three times."),
    ),
    "rust": (
        Wrapper("if enabled {", ("}",), "Run the body of {function} only if enabled is set."),
        Wrapper("for _attempt in 0..3 {", ("}",), "Do the body of {function} three times."),
    ),
    "c": (
        Wrapper("if (enabled) {", ("}",), "Run the body of {function} only if enabled is set."),
        Wrapper("for (int attempt = 0; attempt < 3; attempt++) {", ("}",), "Do the body of {function} three times."),
    ),
}
_WRAPPERS["typescript"] = _WRAPPERS["javascript"]

_FUNCTIONS = frozenset(
    {"function_declaration", "function_definition", "function_item", "method_declaration", "method_definition"}
)
_CONDITIONALS = frozenset({"if_expression", "if_statement", "with_statement"})
_TEXTS = frozenset({"raw_string_literal", "string", "string_literal", "template_string"})


def reindent(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Bodies of 8 to 80 lines wrapped, blocks unwrapped, and whole files with another indent (of the size `whole`)."""
    return make(
        [
            Pattern("wrap", LANGUAGES, 3, wrap_body),
            Pattern("unwrap", LANGUAGES, 3, unwrap_block),
            Pattern(
                "two-spaces", ("python", "javascript", "typescript", "rust", "c"), 1, partial(respaced, "    ", "  ")
            ),
            Pattern("four-spaces", ("javascript", "typescript"), 1, partial(respaced, "  ", "    ")),
            Pattern("no-tabs", ("javascript", "c"), 1, partial(respaced, "\t", "    ")),
        ],
        files,
    )


def wrap_body(file: SourceFile) -> Change | None:
    """The file with the body of one of its functions wrapped in a statement and indented."""
    lines = file.text.split("\n")
    root = root_of(file.text, file.language)
    unit = _indent_unit(lines, file.language)
    wrappers = _WRAPPERS[file.language]
    wrapper = wrappers[number_of("wrap", file.path) % len(wrappers)]
    fixed = _fixed_lines(root)
    functions = [node for node in nodes_of(root) if node.type in _FUNCTIONS]
    for function in sorted(functions, key=lambda node: number_of("wrap", file.path, str(node.start_byte))):
        span, name = _body_lines(function, file.language), _name_of(function)
        if (
            span is None
            or name in (None, "constructor")
            or (wrapper.opening.startswith(("if", "for")) and _gives_value(function, file.language))
        ):
            continue
        first, last = span
        if not _FEWEST_LINES <= last - first + 1 <= _MOST_LINES:
            continue
        own = re.match(r"[ \t]*", lines[first])
        assert own is not None
        inside = [_shifted(line, unit, number in fixed) for number, line in enumerate(lines[first : last + 1], first)]
        if max(map(len, inside)) > _LONGEST_LINE:
            continue
        closing = [own[0] + line.replace("\t", unit) for line in wrapper.closing]
        after = [*lines[:first], own[0] + wrapper.opening, *inside, *closing, *lines[last + 1 :]]
        return Change("\n".join(after), last - first + 1, (wrapper.request.replace("{function}", str(name)),))
    return None


def unwrap_block(file: SourceFile) -> Change | None:
    """The file with an `if` or `with` taken away and its block dedented."""
    lines = file.text.split("\n")
    root = root_of(file.text, file.language)
    unit = _indent_unit(lines, file.language)
    fixed = _fixed_lines(root)
    for node in nodes_of(root):
        if node.type not in _CONDITIONALS or not _stands_alone(node, lines):
            continue
        first, last = node.start_point.row, node.end_point.row
        head, inside, tail = lines[first], lines[first + 1 : last], lines[last]
        if file.language == "python":
            inside, tail = lines[first + 1 : last + 1], ""
        elif tail.strip() != "}":
            continue
        numbered = list(enumerate(inside, first + 1))
        if not _FEWEST_LINES <= len(inside) <= _MOST_LINES or not all(
            number in fixed or not line or line.startswith((unit, "#")) for number, line in numbered
        ):
            continue
        dedented = [line if number in fixed else line.removeprefix(unit) for number, line in numbered]
        after = "\n".join([*lines[:first], *dedented, *lines[last + 1 :]])
        statement = head.strip().rstrip("{:").rstrip()
        wordings = (
            f"Remove the `{statement}` and always run its body.",
            f"`{statement}` is not needed any more. Drop it and dedent what it holds.",
            f"unwrap the block of `{statement}`",
        )
        return Change(after, len(inside), wordings)
    return None


def respaced(old: str, new: str, file: SourceFile) -> Change | None:
    """The file with `new` for each `old` that it is indented with; None unless every line is."""
    lines = file.text.split("\n")
    fixed = _fixed_lines(root_of(file.text, file.language))
    unit = re.compile(rf"((?:{old})*)( ?(?=\*)|(?![ \t]))")
    changed, sites = [], 0
    for number, line in enumerate(lines):
        match = unit.match(line)
        if number in fixed or not line:
            changed.append(line)
        elif match is None or (new == "    " and old == "\t" and "\t" in line[match.end(1) :]):
            return None
        else:
            depth = len(match[1]) // len(old)
            sites += depth > 0
            changed.append(new * depth + line[match.end(1) :])
    if sites < len(lines) // 3 or (old == "  " and not any(re.match(r"  (?! )\S", line) for line in lines)):
        return None
    words = {"\t": "tabs", "  ": "two spaces", "    ": "four spaces"}
    wordings = (
        f"Indent with {words[new]} instead of {words[old]}.",
        f"Reformat the file: {words[new]} for each level of indentation, not {words[old]}",
    )
    return Change("\n".join(changed), sites, wordings, size="whole")


def _indent_unit(lines: list[str], language: str) -> str:
    """What one level of indentation is: the smallest indent in the file."""
    indents = [match[0] for line in lines if (match := re.match(r"(?:\t|  +)(?=[^\s*])", line))]
    return "\t" if language == "go" or "\t" in indents else min(indents, key=len, default="    ")


def _fixed_lines(root: Node) -> set[int]:
    """The rows that start within a text or are preprocessor lines: their indent means something else."""
    fixed: set[int] = set()
    for node in nodes_of(root):
        if node.type in _TEXTS:
            fixed.update(range(node.start_point.row + 1, node.end_point.row + 1))
        elif node.type.startswith("preproc_"):
            fixed.add(node.start_point.row)
    return fixed


def _body_lines(function: Node, language: str) -> tuple[int, int] | None:
    """First and last row within a function's body, its docstring left out; None where lines are shared."""
    body = function.child_by_field_name("body")
    if body is None or not body.named_children:
        return None
    if language == "python":
        statements = [node for node in body.named_children if node.type != "comment"]
        if statements and text_of(statements[0]).startswith(('"', "'", 'r"')):
            statements = statements[1:]
        if not statements or statements[0].start_point.row == function.start_point.row:
            return None
        return statements[0].start_point.row, body.end_point.row
    if not text_of(body).startswith("{") or not text_of(body).endswith("}"):
        return None
    first, last = body.start_point.row + 1, body.end_point.row - 1
    return (first, last) if first <= body.named_children[0].start_point.row <= last else None


def _gives_value(function: Node, language: str) -> bool:
    """Whether the function returns something, so that its end must not be reached."""
    if language in ("go", "rust"):
        return function.child_by_field_name("result" if language == "go" else "return_type") is not None
    if language == "c":
        kind = function.child_by_field_name("type")
        declarator = function.child_by_field_name("declarator")
        return kind is None or text_of(kind) != "void" or declarator is None or declarator.type == "pointer_declarator"
    return any(node.type == "return_statement" and node.named_children for node in nodes_of(function))


def _name_of(function: Node) -> str | None:
    name = function.child_by_field_name("name") or function.child_by_field_name("declarator")
    if name is not None and name.type == "function_declarator":
        name = name.child_by_field_name("declarator")
    return text_of(name) if name is not None and name.type.endswith("identifier") else None


def _stands_alone(node: Node, lines: list[str]) -> bool:
    """Whether a conditional has one branch, declares nothing, and shares no line with other code."""
    head = lines[node.start_point.row]
    above = node.parent
    if node.child_by_field_name("alternative") or (above is not None and above.type in ("else_clause", "else")):
        return False
    if re.search(r" as |\blet\b|:=|;|__name__|:\s*\S|\)\s*\S.*;$", head.strip().rstrip(":{")):
        return False
    return re.match(r"[ \t]*(?:if|with)\b.*[{:]$", head) is not None


def _shifted(line: str, unit: str, fixed: bool) -> str:
    return line if fixed or not line or line.startswith("#") else unit + line
