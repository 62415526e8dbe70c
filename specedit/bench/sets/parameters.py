"""Added parameters: a function takes one more, and every call in the file passes it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tree_sitter import Node

from specedit.bench.sets.making import Change, Pattern, make
from specedit.bench.sets.row import Row
from specedit.bench.sets.source import LANGUAGES, SourceFile, nodes_of, number_of, replaced, root_of, text_of

_FEWEST_CALLS, _MOST_CALLS = 5, 40
_LONGEST_LINE = 100

_WORDINGS = (
    "Add a parameter `{parameter}` to {function} and pass {argument} in every call.",
    "{function} should take {parameter} as its last parameter; all callers pass {argument}",
    "Give {function} another parameter, {parameter}. The calls pass {argument}.",
    "add the parameter {parameter} to {function}(), callers: {argument}",
)

# What is added: the parameter's name, then the parameter and the argument as each language writes them.
_ADDED = {
    "python": (
        ("strict", "strict=False", "strict=True"),
        ("max_depth", "max_depth=None", "max_depth=8"),
        ("caption", 'caption=""', 'caption="main"'),
    ),
    "javascript": (
        ("strict", "strict = false", "true"),
        ("maxDepth", "maxDepth = 0", "8"),
        ("settings", "settings = {}", "{ strict: true }"),
    ),
    "typescript": (
        ("strict", "strict: boolean = false", "true"),
        ("maxDepth", "maxDepth: number = 0", "8"),
        ("caption", "caption: string = ''", "'main'"),
    ),
    "go": (
        ("strict", "strict bool", "true"),
        ("maxDepth", "maxDepth int", "8"),
        ("caption", "caption string", '"main"'),
    ),
    "rust": (
        ("strict", "strict: bool", "true"),
        ("max_depth", "max_depth: usize", "8"),
        ("caption", "caption: &str", '"main"'),
    ),
    "c": (
        ("strict", "int strict", "1"),
        ("max_depth", "size_t max_depth", "8"),
        ("caption", "const char *caption", '"main"'),
    ),
}

_DEFINITIONS = frozenset(
    {"function_declaration", "function_declarator", "function_definition", "function_item", "method_definition"}
)
_CALLS = frozenset({"call", "call_expression"})
_ITSELF = frozenset({"Self", "cls", "self", "this"})


@dataclass(frozen=True, slots=True)
class _Uses:
    """Where a function's name stands: the parameter lists of its definitions and the argument lists of its calls."""

    parameters: list[Node]
    arguments: list[Node]
    others: int


def parameters(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Functions that are called at least five times in their file and take one more parameter afterwards."""
    return make([Pattern("parameter", LANGUAGES, 5, add_parameter)], files)


def add_parameter(file: SourceFile) -> Change | None:
    """The file with a parameter added to its most called function; None where no function is called enough."""
    uses = _uses_of_functions(root_of(file.text, file.language))
    added = _ADDED[file.language]
    first = number_of("parameter", file.path)
    name, parameter, argument = added[first % len(added)]
    if name in file.text:
        return None
    longest = max(_LONGEST_LINE, *map(len, file.text.split("\n")))
    for function, found in sorted(uses.items(), key=lambda item: (-len(item[1].arguments), item[0])):
        if found.others or not found.parameters or not _FEWEST_CALLS <= len(found.arguments) <= _MOST_CALLS:
            continue
        if not all(map(_ends_openly, found.parameters)) or any(map(_has_comment, found.arguments)):
            continue
        insertions = [_at_the_end(node, _as_in(node, parameter), file.text) for node in found.parameters]
        insertions += [_at_the_end(node, argument, file.text) for node in found.arguments]
        after = replaced(file.text, insertions)
        if max(map(len, after.split("\n"))) <= longest:
            wordings = tuple(
                wording.format(function=function, parameter=parameter, argument=argument) for wording in _WORDINGS
            )
            return Change(after, len(found.arguments), wordings)
    return None


def _uses_of_functions(root: Node) -> dict[str, _Uses]:
    uses: dict[str, _Uses] = {}
    for node in nodes_of(root):
        if not node.type.endswith("identifier") or node.child_count:
            continue
        found = uses.setdefault(text_of(node), _Uses([], [], 0))
        parameters, arguments = _parameters_at(node), _arguments_at(node)
        if parameters is not None:
            found.parameters.append(parameters)
        elif arguments is not None:
            found.arguments.append(arguments)
        else:
            uses[text_of(node)] = _Uses(found.parameters, found.arguments, found.others + 1)
    return uses


def _parameters_at(name: Node) -> Node | None:
    """The parameter list of the function that `name` defines."""
    above = name.parent
    if above is None or above.type not in _DEFINITIONS:
        return None
    is_name = name in (above.child_by_field_name("name"), above.child_by_field_name("declarator"))
    return above.child_by_field_name("parameters") if is_name else None


def _arguments_at(name: Node) -> Node | None:
    """The argument list of the call of `name`, alone or as a member of the same object."""
    above = name.parent
    if above is None:
        return None
    if above.type == "token_tree":
        following = name.next_sibling
        is_list = following is not None and following.type == "token_tree" and text_of(following).startswith("(")
        before = name.prev_sibling
        return following if is_list and (before is None or text_of(before) not in (".", "::")) else None
    if above.type not in _CALLS:
        first = above.child(0)
        if first is None or text_of(first) not in _ITSELF or above.parent is None or above.parent.type not in _CALLS:
            return None
        name, above = above, above.parent
    if above.child_by_field_name("function") != name:
        return None
    arguments = above.child_by_field_name("arguments")
    return arguments if arguments is not None and text_of(arguments).startswith("(") else None


def _ends_openly(parameters: Node) -> bool:
    """Whether one more parameter may follow the last."""
    last = parameters.named_children[-1] if parameters.named_children else None
    rest = last is not None and (text_of(last).startswith(("*", "...")) or "..." in text_of(last))
    return not rest and not _has_comment(parameters)


def _as_in(parameters: Node, parameter: str) -> str:
    """The parameter as the list has them: without its name where a C prototype names none."""
    last = parameters.named_children[-1] if parameters.named_children else None
    nameless = last is not None and last.type == "parameter_declaration" and text_of(last) != "void"
    nameless = nameless and not any(node.type == "identifier" for node in nodes_of(last or parameters))
    return re.sub(r" ?\w+$", "", parameter) if nameless else parameter


def _has_comment(node: Node) -> bool:
    return any("comment" in below.type for below in node.children)


def _at_the_end(brackets: Node, added: str, text: str) -> tuple[int, int, str]:
    """The insertion of `added` as the last in a bracketed list, on a line of its own where the others have one."""
    start, end = brackets.start_byte + 1, brackets.end_byte - 1
    inner = text[start:end]
    body = inner.rstrip()
    if body == "void":
        return start, end, added
    if not body.strip():
        return start, start, added
    at, open_end = start + len(body), body.endswith(",")
    items = brackets.named_children
    own_line = "\n" in inner[len(body) :] and (
        open_end if len(items) < 2 else items[-1].start_point.row != items[-2].start_point.row
    )
    if not own_line:
        return at, at, f" {added}" if open_end else f", {added}"
    last_line = text[text.rindex("\n", 0, at) + 1 : at]
    indent = last_line[: len(last_line) - len(last_line.lstrip())]
    return at, at, f"\n{indent}{added}," if open_end else f",\n{indent}{added}"
