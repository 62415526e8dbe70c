"""Rules: an edit that is a regular expression and what it becomes, at every place of a file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from specedit.bench.sets.making import Change, Pattern
from specedit.bench.sets.source import SourceFile, nodes_of, root_of

_MOST_SITES = 60
_LONGEST_LINE = 100
_WITHOUT_CODE = ("comment", "string", "template_string", "raw_string")


@dataclass(frozen=True, slots=True)
class Rule:
    """An edit that repeats.

    Attributes:
        name: in the rows' ids.
        languages: where it is tried.
        pattern: what changes where it starts in code: a regular expression over all the text, `^` and `$` at line ends.
        replacement: what it becomes, as `re.sub` reads it.
        wordings: ways to ask for it.
        unless: a pattern that must not stand in the file.
        needs: an import to add where it is missing.
        fewest: in how many places at least.
        rows: how many rows to make of it in each language.
    """

    name: str
    languages: tuple[str, ...]
    pattern: str
    replacement: str
    wordings: tuple[str, ...]
    unless: str = ""
    needs: str = ""
    fewest: int = 5
    rows: int = 1


def patterns_of(rules: Iterable[Rule]) -> list[Pattern]:
    """The rules as patterns of a set."""
    return [Pattern(rule.name, rule.languages, rule.rows, partial(apply, rule)) for rule in rules]


def apply(rule: Rule, file: SourceFile) -> Change | None:
    """What a rule makes of a file; None where it has too few or too many places, or makes lines too long."""
    if rule.unless and re.search(rule.unless, file.text, re.MULTILINE):
        return None
    matches = list(re.finditer(rule.pattern, file.text, re.MULTILINE))
    if len(matches) < rule.fewest:
        return None
    dark = _without_code(file)
    matches = [match for match in matches if not any(start < match.start() < end for start, end in dark)]
    if not rule.fewest <= len(matches) <= _MOST_SITES:
        return None
    parts, done = [], 0
    for match in matches:
        parts += [file.text[done : match.start()], match.expand(rule.replacement)]
        done = match.end()
    after = "".join([*parts, file.text[done:]])
    if rule.needs:
        after = with_import(after, rule.needs, file.language)
    if max(map(len, after.split("\n"))) > max(_LONGEST_LINE, *map(len, file.text.split("\n"))):
        return None
    return Change(after, len(matches), rule.wordings)


def with_import(text: str, needed: str, language: str) -> str:
    """The text with an import among the others, in alphabetical order where they stand so; once."""
    if re.search(rf"^\s*{re.escape(needed)}$", text, re.MULTILINE):
        return text
    lines = text.split("\n")
    if language == "go":
        return _with_go_import(lines, needed)
    keyword = {"python": r"(?:import|from) \w", "rust": r"use ", "c": r"#\s*include <"}.get(language, r"import ")
    imports = [number for number, line in enumerate(lines) if re.match(keyword, line) and _ends_import(line, language)]
    if not imports:
        return text
    kind = needed.split()[0]
    same = [number for number in imports if lines[number].split()[0] == kind]
    later = [number for number in same if lines[number] > needed and number < imports[0] + len(imports)]
    at = later[0] if later else (same or imports)[-1] + 1
    return "\n".join([*lines[:at], needed, *lines[at:]])


def _ends_import(line: str, language: str) -> bool:
    return not line.endswith(("(", "{", "\\")) or language == "go"


def _with_go_import(lines: list[str], needed: str) -> str:
    start = lines.index("import (") if "import (" in lines else None
    if start is None:
        single = next((number for number, line in enumerate(lines) if line.startswith('import "')), None)
        if single is None:
            return "\n".join(lines)
        path = lines[single].removeprefix("import ")
        group = [f"\t{path}", "", f"\t{needed}"] if "." in needed else sorted([f"\t{path}", f"\t{needed}"])
        return "\n".join([*lines[:single], "import (", *group, ")", *lines[single + 1 :]])
    end = lines.index(")", start)
    host = "." in needed
    group_end = end if host else next((n for n in range(start, end) if not lines[n].strip()), end)
    own = [number for number in range(start + 1, group_end) if ("." in lines[number]) == host]
    if not own:
        extra = ["", f"\t{needed}"] if host else [f"\t{needed}"]
        at = end if host else start + 1
        return "\n".join([*lines[:at], *extra, *lines[at:]])
    at = next((number for number in own if lines[number].strip() > needed), own[-1] + 1)
    return "\n".join([*lines[:at], f"\t{needed}", *lines[at:]])


def _without_code(file: SourceFile) -> list[tuple[int, int]]:
    nodes = nodes_of(root_of(file.text, file.language))
    return [
        (node.start_byte, node.end_byte)
        for node in nodes
        if node.type.startswith(_WITHOUT_CODE) or node.type.endswith("comment")
    ]
