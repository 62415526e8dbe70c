"""Renames: one name of a file is another one afterwards, wherever it stands."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from tree_sitter import Node

from specedit.bench.sets.making import Change, Pattern, make
from specedit.bench.sets.names import NAME, RESERVED, new_name, plural, renamed_word, words_of
from specedit.bench.sets.row import Row
from specedit.bench.sets.source import LANGUAGES, SourceFile, nodes_of, number_of, root_of, text_of
from specedit.edit.syntax import parses

_FEWEST, _MOST = 5, 60
_SHARE_IN_CODE = 0.6
_SNAKE = ("python", "rust", "c")

_NAMED = (
    "Rename {old} to {new}",
    "Change the name of `{old}` to `{new}` everywhere.",
    "{old} -> {new}",
    "Use the name {new} instead of {old}",
    "Please call {old} {new} from now on",
    "rename `{old}` => `{new}`",
    "{old} should be called {new}. Rename it in the whole file.",
    "Replace the identifier {old} with {new}",
    "I don't like the name {old}, make it {new}",
    'Rename "{old}" to "{new}", also in comments and strings.',
)
_AND_RELATED = ", and the names made from it likewise"

_UNNAMED = {
    "function": "Give the main function a clearer name throughout.",
    "variable": "Give the main variable a clearer name throughout.",
    "type": "Give the main type a clearer name throughout.",
    "parameter": "Find a better name for the parameter that is used most, and rename it everywhere.",
    "field": "Give the main field a clearer name throughout.",
}

_KINDS = tuple(_UNNAMED)

# Where a name is defined: the node above it, the field of that node, and what is defined.
_DEFINITIONS = {
    ("function_definition", "name"): "function",
    ("function_declaration", "name"): "function",
    ("function_item", "name"): "function",
    ("method_declaration", "name"): "function",
    ("method_definition", "name"): "function",
    ("function_declarator", "declarator"): "function",
    ("class_definition", "name"): "type",
    ("class_declaration", "name"): "type",
    ("interface_declaration", "name"): "type",
    ("type_alias_declaration", "name"): "type",
    ("enum_declaration", "name"): "type",
    ("struct_item", "name"): "type",
    ("enum_item", "name"): "type",
    ("struct_specifier", "name"): "type",
    ("type_spec", "name"): "type",
    ("assignment", "left"): "variable",
    ("variable_declarator", "name"): "variable",
    ("short_var_declaration", "left"): "variable",
    ("var_spec", "name"): "variable",
    ("let_declaration", "pattern"): "variable",
    ("init_declarator", "declarator"): "variable",
    ("declaration", "declarator"): "variable",
    ("parameter_declaration", "name"): "parameter",
    ("parameter_declaration", "declarator"): "parameter",
    ("parameter", "pattern"): "parameter",
    ("required_parameter", "pattern"): "parameter",
    ("field_declaration", "name"): "field",
    ("field_declaration", "declarator"): "field",
    ("public_field_definition", "name"): "field",
    ("property_signature", "name"): "field",
}
_PARAMETER_LISTS = frozenset({"parameters", "formal_parameters"})
_ONLY_WRAP = frozenset({"default_parameter", "expression_list", "mut_pattern", "pointer_declarator", "typed_parameter"})
_MEMBER_ACCESS = frozenset({"attribute", "field_expression", "member_expression", "selector_expression"})
_MEMBER = frozenset({"attribute", "field", "property"})
_IMPORTS = frozenset(
    {
        "extern_crate_declaration",
        "import_declaration",
        "import_from_statement",
        "import_statement",
        "package_clause",
        "preproc_include",
        "use_declaration",
    }
)
_DUNDER = re.compile(r"__\w+__")


@dataclass(frozen=True, slots=True)
class Rename:
    """One name and its new name.

    Attributes:
        kind: what the name is of: function, variable, type, parameter or field.
        old: the name.
        new: its new name.
        forms: every name of the file that changes, with what it becomes.
        sites: how many names change in all.
    """

    kind: str
    old: str
    new: str
    forms: dict[str, str]
    sites: int

    def apply(self, text: str) -> str:
        """The text with the name changed wherever it stands as a whole word."""
        return NAME.sub(lambda match: self.forms.get(match[0], match[0]), text)


def renames_named(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Renames whose instruction says both names, in ten wordings; a third change names made from the name too."""
    return make(_patterns(named=True), files)


def renames_unnamed(files: Iterable[SourceFile]) -> Iterator[Row]:
    """The same renames, asked for without a name."""
    return make(_patterns(named=False), files)


def rename_in(file: SourceFile, *, related: bool) -> Rename | None:
    """The rename that suits a file best, if any does; what number of places and what kind suit differs by file.

    Args:
        file: where to rename.
        related: also rename in names made from the name, and in its plural.
    """
    root = root_of(file.text, file.language)
    in_code, kinds, members = _names(root)
    foreign = _imported(root)
    everywhere = Counter(NAME.findall(file.text))
    found = []
    for name, kind in kinds.items():
        if (
            len(name) < 3
            or name in RESERVED
            or _DUNDER.fullmatch(name)
            or in_code[name] < _SHARE_IN_CODE * everywhere[name]
            or (members[name] and kind not in ("function", "field"))
        ):
            continue
        new = new_name(name, file.text, snake=file.language in _SNAKE)
        if new is None:
            continue
        own = {form for form in everywhere if form in kinds or not in_code[form]}
        forms = _related(name, new, own) if related else {name: new}
        sites = sum(everywhere[form] for form in forms)
        if _FEWEST <= sites <= _MOST and not foreign & forms.keys() and not _in_columns(file.text, forms):
            found.append(Rename(kind, name, new, forms, sites))
    kind = _KINDS[number_of("kind", file.path) % len(_KINDS)]
    found.sort(key=lambda rename: (not _suits(rename, file), rename.kind != kind, rename.old))
    return next((rename for rename in found if parses(rename.apply(file.text), file.language)), None)


def _patterns(*, named: bool) -> list[Pattern]:
    # The order of files follows from the pattern's name, and has to be the same for both sets.
    return [
        Pattern("rename", LANGUAGES, 6, partial(_change, related=False, named=named)),
        Pattern("rename-related", LANGUAGES, 3, partial(_change, related=True, named=named)),
    ]


def _suits(rename: Rename, file: SourceFile) -> bool:
    """Whether it has about as many places as a file is meant to have, so that a set has renames of all sizes."""
    wanted = _FEWEST + number_of("sites", file.path) % (_MOST - _FEWEST)
    return wanted / 2 < rename.sites < wanted * 2


def _change(file: SourceFile, *, related: bool, named: bool) -> Change | None:
    rename = rename_in(file, related=related)
    if rename is None or not _suits(rename, file):
        return None
    if not named:
        return Change(rename.apply(file.text), rename.sites, (_UNNAMED[rename.kind],))
    wordings = tuple(wording.format(old=rename.old, new=rename.new) for wording in _NAMED)
    if related:
        wordings = tuple(wording.rstrip(".") + _AND_RELATED for wording in wordings)
    return Change(rename.apply(file.text), rename.sites, wordings)


def _names(root: Node) -> tuple[Counter[str], dict[str, str], Counter[str]]:
    """How often each name stands in code, what the names defined here are of, and how often each is a member."""
    in_code: Counter[str] = Counter()
    members: Counter[str] = Counter()
    kinds: dict[str, str] = {}
    for node in nodes_of(root):
        if not node.type.endswith("identifier") or node.child_count:
            continue
        name = text_of(node)
        in_code[name] += 1
        above, role = _owner(node)
        if above is None:
            continue
        if above.type in _MEMBER_ACCESS and role in _MEMBER:
            members[name] += 1
            if _is_assigned(above) and text_of(above).startswith(("self.", "this.")):
                kinds.setdefault(name, "field")
        elif kind := _DEFINITIONS.get((above.type, role or "")):
            kinds.setdefault(name, kind)
        elif above.type in _PARAMETER_LISTS:
            kinds.setdefault(name, "parameter")
    return in_code, kinds, members


def _imported(root: Node) -> set[str]:
    """The names that stand in imports."""
    imports = (node for node in nodes_of(root) if node.type in _IMPORTS or _is_require(node))
    return {name for node in imports for name in NAME.findall(text_of(node))}


def _is_require(node: Node) -> bool:
    value = node.child_by_field_name("value") if node.type == "variable_declarator" else None
    return value is not None and text_of(value).startswith("require(")


def _owner(node: Node) -> tuple[Node | None, str | None]:
    """The node that a name belongs to, past what only wraps it, and the name's field in that node."""
    while (parent := node.parent) and parent.type in _ONLY_WRAP:
        node = parent
    if parent is None:
        return None, None
    return parent, parent.field_name_for_child(parent.children.index(node))


def _is_assigned(node: Node) -> bool:
    return (
        node.parent is not None
        and node.parent.type in ("assignment", "assignment_expression")
        and node.parent.child_by_field_name("left") == node
    )


def _related(name: str, new: str, own: Iterable[str]) -> dict[str, str]:
    """The file's own names with the word `name` in them, where there are three or more and both are one word."""
    old, fresh = name.lower(), new.lower()
    if len(old) < 4 or words_of(name) != [name] or words_of(new) != [new] or plural(old) == old:
        return {}
    forms = {form: changed for form in own if (changed := renamed_word(form, old, fresh)) != form}
    return forms if len(forms) > 2 and forms.get(name) == new else {}


def _in_columns(text: str, forms: Iterable[str]) -> bool:
    """Whether a line that changes is set in columns, which a formatter would set anew."""
    name = re.compile(rf"\b(?:{'|'.join(map(re.escape, forms))})\b")
    return any(name.search(line) and re.search(r"\S(?:  +|\t+)\S", line) for line in text.split("\n"))
