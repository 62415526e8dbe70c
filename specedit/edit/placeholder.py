"""Lines that stand in for code left out: `# ... existing code ...`, `// rest unchanged`, an emptied body."""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass, field

from specedit.edit.document import split_lines


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Phrases of omission are made of these words and no others: "rest of the code stays the same".
_KEPT = _words(
    "existing rest remaining remainder unchanged unmodified untouched omitted elided truncated snip other others"
)
_MAYBE_KEPT = _words("same original previous earlier")
_ABIDING = _words(
    "unchanged unmodified untouched omitted elided truncated snip intact same before above previously here"
    " stay stays remain remains kept goes continues"
)
_THINGS = _words(
    "code file function class method module implementation content logic body import line section part"
    " definition declaration statement test document script block property field item entry component program"
)
_GLUE = _words(
    "the your this all any its it of in and with from to for as is are was be left not exactly completely"
    " below keep leave include insert retain copy continue brevity now that go place should must will"
)
_PLURALS = {f"{thing}s" for thing in _THINGS} | {"bodies", "classes", "properties", "entries"}
_VOCABULARY = _KEPT | _MAYBE_KEPT | _ABIDING | _THINGS | _PLURALS | _GLUE

_DOTS = r"(?:\.{3,}|…)"
_COMMENT = re.compile(r"\{?\s*(?:#+|//+|/\*+|<!--+|(?:--|;+|%+|\*)(?=\s))(?P<body>.*)")
_PROSE_COMMENT = re.compile(r"\{?\s*(?:/\*+|<!--+)(?P<body>.*)")
_TRAILING_COMMENT = re.compile(rf"\s(?:#|//|/\*|<!--)\s*(?P<body>{_DOTS}.*)$")
_BARE_PHRASE = re.compile(
    rf"{_DOTS}\s+[\w(\[].*|{_DOTS}.*\s.*{_DOTS}|[\[(<]\s*(?:{_DOTS}\s)?[\w' ]+(?:\s{_DOTS})?\s*[\])>]"
)
_ONLY_DOTS = re.compile(rf"\W*{_DOTS}\W*")
_LEADING_DOTS = re.compile(rf"\W*?{_DOTS}")
_NO_CHANGES = re.compile(r"\b(?:no|without) (?:other |further )?changes?\b|\bnot changed\b", re.IGNORECASE)

_MAX_CHARS = 120
_DOTS_ARE_CODE = frozenset({".py", ".pyi", ".pyw", ".yaml", ".yml"})
PROSE_SUFFIXES = frozenset({"", ".md", ".markdown", ".mdx", ".mkd", ".qmd", ".rmd", ".txt", ".rst", ".adoc"})


def find_placeholders(text: str, suffix: str) -> list[str]:
    """The lines of `text`, stripped, that stand in for text left out; `suffix` is that of the file's name.

    What a lone `...` means in Python is a question of its own: see `emptied_definition`.
    """
    dots = frozenset() if suffix in _DOTS_ARE_CODE else frozenset({"...", "…"})
    comment = _PROSE_COMMENT if suffix in PROSE_SUFFIXES else _COMMENT
    lines = (line.strip() for line in split_lines(text))
    return [line for line in lines if line in dots or (len(line) <= _MAX_CHARS and _stands_in(line, comment))]


def emptied_definition(old_text: str, new_text: str) -> str | None:
    """The Python definition whose body became `...`, or the `...` that newly stands where a statement should.

    `...` is meant as it is in protocols, in overloads and abstract methods, and in a function that is new.
    """
    before, after = _Ellipses.of(old_text), _Ellipses.of(new_text)
    if before is None or after is None:
        return "..." if _lone_dots(new_text) > _lone_dots(old_text) else None
    for name in sorted((after.stubs - before.stubs) & before.names):
        return f"{name}: ..."
    return "..." if after.stray > before.stray else None


def _stands_in(line: str, comment: re.Pattern[str]) -> bool:
    if whole := comment.fullmatch(line):
        return bool(_ONLY_DOTS.fullmatch(whole["body"])) or _omits(whole["body"])
    if trailing := _TRAILING_COMMENT.search(line):
        return _omits(trailing["body"])
    return bool(_BARE_PHRASE.fullmatch(line)) and _omits(line)


def _omits(phrase: str) -> bool:
    """Whether `phrase` says that something was left out: "rest unchanged", "... existing setup ..."."""
    words = set(re.findall(r"[a-z']+", _NO_CHANGES.sub("unchanged", phrase).lower()))
    kept, maybe_kept, abiding = words & _KEPT, words & _MAYBE_KEPT, words & _ABIDING
    if _LEADING_DOTS.match(phrase):
        return bool(kept or maybe_kept)
    if not words <= _VOCABULARY:
        return False
    return bool(kept and (len(words) > 1 or abiding)) or bool(maybe_kept and abiding - maybe_kept)


def is_python(text: str) -> bool:
    """Whether the Python that runs specedit can parse `text`."""
    return _python_tree(text) is not None


def _python_tree(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _lone_dots(text: str) -> int:
    return sum(line.strip() == "..." for line in split_lines(text))


@dataclass(slots=True)
class _Ellipses:
    """Where Python source has `...` as a statement: as whole bodies, by qualified name, and anywhere else."""

    names: set[str] = field(default_factory=set)
    stubs: set[str] = field(default_factory=set)
    stray: int = 0

    @classmethod
    def of(cls, text: str) -> _Ellipses | None:
        tree = _python_tree(text)
        if tree is None:
            return None
        found = cls()
        found._visit(tree, scope="", in_protocol=False)
        return found

    def _visit(self, node: ast.AST, *, scope: str, in_protocol: bool) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                self._visit_definition(child, f"{scope}{child.name}", in_protocol)
            elif _is_ellipsis(child):
                self.stray += 1
            else:
                self._visit(child, scope=scope, in_protocol=in_protocol)

    def _visit_definition(self, node: _Definition, name: str, in_protocol: bool) -> None:
        self.names.add(name)
        body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
        if len(body) != 1 or not _is_ellipsis(body[0]):
            self._visit(node, scope=f"{name}.", in_protocol=_is_marked(node, "Protocol"))
        elif not in_protocol and not _is_marked(node, r"Protocol|overload|abstract\w*"):
            self.stubs.add(name)


_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def _is_ellipsis(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and node.value.value is ...


def _is_marked(node: _Definition, words: str) -> bool:
    marks = [*node.decorator_list, *(node.bases if isinstance(node, ast.ClassDef) else [])]
    return any(re.search(rf"\b(?:{words})\b", ast.unparse(mark)) for mark in marks)
