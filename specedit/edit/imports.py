"""The project's own files that a file imports, found on disk as the language would find them."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from specedit.edit.document import Document
from specedit.edit.syntax import language_of

MAX_FILES = 12
_MOST_IMPORTS = 64

_PYTHON = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<dots>\.*)(?P<module>[\w.]*)[ \t]+import[ \t]+(?P<names>\([^)]*\)|[^\n#]*)"
    r"|import[ \t]+(?P<modules>[^\n#]+))",
    re.MULTILINE,
)
_SCRIPT = re.compile(
    r"(?:\b(?:import|export)\b(?P<names>[^'\";]*?)\bfrom|\brequire\(|\bimport\(|\bimport)\s*['\"](?P<path>\.{1,2}/[^'\"\n]*)['\"]"
)
_RUST = re.compile(
    r"^[ \t]*(?:pub(?:\([^)]*\))?[ \t]+)?"
    r"(?:mod[ \t]+(?P<mod>\w+)[ \t]*;|use[ \t]+(?P<use>(?:crate|super|self)::[^;]+);)",
    re.MULTILINE,
)
_C = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"(?P<path>[^"\n]+)"', re.MULTILINE)
_GO = re.compile(r'^(?:import[ \t]+(?:[\w.]+[ \t]+)?|[ \t]+(?:[\w.]+[ \t]+)?)"(?P<path>[^"\n]+)"', re.MULTILINE)
_GO_MODULE = re.compile(r"^module[ \t]+(\S+)", re.MULTILINE)
_NAME = re.compile(r"[^\W\d]\w*")

_SCRIPT_SUFFIXES = (".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", ".d.ts")
_RUST_ROOTS = ("lib.rs", "main.rs", "mod.rs")

Read = Callable[[Path], Document | None]
List = Callable[[Path], Sequence[Path]]


@dataclass(frozen=True, slots=True)
class Imported:
    """A file that is imported, and which of its names; none means as a whole."""

    document: Document
    names: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What one import names: the first of `candidates` that exists."""

    candidates: tuple[Path, ...]
    names: frozenset[str] = frozenset()


def imported_by(document: Document, root: Path, read: Read, list_files: List) -> list[Imported]:
    """The files under `root` that `document` imports, at most 12, in the order of their imports.

    Args:
        document: the importing file; its path is absolute.
        root: nothing outside is looked at.
        read: gives a file's text, or None where it isn't there or may not be shown.
        list_files: gives the files in a directory.
    """
    assert document.path
    path = Path(os.path.normpath(document.path))
    root = Path(os.path.normpath(root))
    language = language_of(path)
    find = _FINDERS.get(language or "")
    if find is None or not path.is_relative_to(root):
        return []
    found: dict[Path, Imported] = {}
    for wanted in islice(find(document.text, path, root, read, list_files), _MOST_IMPORTS):
        for candidate in wanted.candidates:
            candidate = Path(os.path.normpath(candidate))
            if candidate == path or not candidate.is_relative_to(root):
                continue
            if candidate in found:
                known = found[candidate]
                names = known.names | wanted.names if known.names and wanted.names else frozenset()
                found[candidate] = Imported(known.document, names)
                break
            if imported := read(candidate):
                found[candidate] = Imported(imported, wanted.names)
                break
        if len(found) == MAX_FILES:
            break
    return list(found.values())


def _python(text: str, path: Path, root: Path, _read: Read, _list: List) -> Iterator[_Wanted]:
    bases = [*dict.fromkeys([*_upwards(path.parent, root), root / "src"])]
    for found in _PYTHON.finditer(text):
        if found["modules"]:
            modules = (part.split()[0] for part in found["modules"].split(",") if part.strip())
            wanted: Iterable[tuple[str, frozenset[str]]] = ((module, frozenset()) for module in modules)
            places = bases
        else:
            wanted = [(found["module"], frozenset(_NAME.findall(re.sub(r"\bas\s+\w+", "", found["names"]))))]
            dots = len(found["dots"])
            places = [Path(path, *[".."] * dots)] if dots else bases
        for module, names in wanted:
            if not found["dots"] and module.partition(".")[0] in sys.stdlib_module_names:
                continue
            steps = [place.joinpath(*filter(None, module.split("."))) for place in places]
            if module:
                files = (file for step in steps for file in (step.with_suffix(".py"), step / "__init__.py"))
                yield _Wanted(tuple(files), names)
            for name in sorted(names):
                yield _Wanted(tuple(step / f"{name}.py" for step in steps))


def _script(text: str, path: Path, _root: Path, _read: Read, _list: List) -> Iterator[_Wanted]:
    for found in _SCRIPT.finditer(text):
        base = path.parent / found["path"]
        without = base.with_suffix("") if base.suffix in _SCRIPT_SUFFIXES else base
        files = [base] if base.suffix else []
        files += [without.with_name(without.name + suffix) for suffix in _SCRIPT_SUFFIXES]
        files += [base / f"index{suffix}" for suffix in _SCRIPT_SUFFIXES]
        yield _Wanted(tuple(files), frozenset(_NAME.findall(found["names"] or "")) - {"type", "as"})


def _rust(text: str, path: Path, root: Path, _read: Read, _list: List) -> Iterator[_Wanted]:
    own = path.parent if path.name in _RUST_ROOTS else path.with_suffix("")
    crate = next((place for place in _upwards(path.parent, root) if place.name == "src"), path.parent)
    for found in _RUST.finditer(text):
        if found["mod"]:
            yield _Wanted((own / f"{found['mod']}.rs", own / found["mod"] / "mod.rs"))
            continue
        first, *steps = re.split(r"\s*::\s*", found["use"].partition("{")[0].strip())
        place = {"crate": crate, "self": own}.get(first, own.parent)
        while steps and steps[0] == "super":
            place, steps = place.parent, steps[1:]
        modules = [step for step in steps if re.fullmatch(r"\w+", step)]
        depths = range(len(modules), 0, -1)
        files = [place.joinpath(*modules[:depth]) for depth in depths]
        names = frozenset(_NAME.findall(found["use"])) - {"crate", "super", "self", *modules[:-1]}
        yield _Wanted(tuple(each for file in files for each in (file.with_suffix(".rs"), file / "mod.rs")), names)


def _c(text: str, path: Path, root: Path, _read: Read, _list: List) -> Iterator[_Wanted]:
    places = (path.parent, root, root / "include", root / "src", path.parent.parent / "include")
    for found in _C.finditer(text):
        yield _Wanted(tuple(place / found["path"] for place in places))


def _go(text: str, path: Path, root: Path, read: Read, list_files: List) -> Iterator[_Wanted]:
    """The other files of the package, and those of the module's packages that are imported."""
    directories = [path.parent]
    for place in _upwards(path.parent, root):
        if (described := read(place / "go.mod")) and (module := _GO_MODULE.search(described.text)):
            imports = (found["path"] for found in _GO.finditer(text))
            directories += [place / name[len(module[1]) + 1 :] for name in imports if name.startswith(f"{module[1]}/")]
            break
    for directory in directories:
        if Path(os.path.normpath(directory)).is_relative_to(root):
            for file in list_files(directory):
                if file.suffix == ".go" and not file.name.endswith("_test.go"):
                    yield _Wanted((file,))


_FINDERS: dict[str, Callable[[str, Path, Path, Read, List], Iterator[_Wanted]]] = {
    "python": _python,
    "javascript": _script,
    "typescript": _script,
    "tsx": _script,
    "rust": _rust,
    "c": _c,
    "go": _go,
}


def _upwards(directory: Path, root: Path) -> Iterator[Path]:
    """A directory and those around it, up to the root."""
    for place in (directory, *directory.parents):
        yield place
        if place == root:
            return
