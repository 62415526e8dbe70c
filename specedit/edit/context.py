"""What a model is shown beside the text around the cursor: of other files the little that is likely to matter.

Parts follow each other by how long they stay as they are while the user types, so that what an engine has read of them
can be used again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Protocol

from specedit.config import Settings
from specedit.edit.access import secret_rule
from specedit.edit.definitions import Definition, definitions_of
from specedit.edit.document import Document
from specedit.edit.files import project_root
from specedit.edit.gap import BYTES_PER_TOKEN, Gap
from specedit.edit.imports import Imported, imported_by
from specedit.edit.lexemes import DECLARING
from specedit.edit.prompt import shown_text
from specedit.edit.prompt_budget import ON_GPU, PromptBudget
from specedit.edit.readable import read_readable, why_unreadable
from specedit.edit.recent import RecentEdit
from specedit.edit.similar import identifiers_of, most_similar
from specedit.edit.syntax import language_of
from specedit.engine.api import ContextFile

MAX_FILE_CHARS = 200_000
"""Longer files are not looked at."""

MAX_OPEN_DOCUMENTS = 8
MAX_EDIT_LINES = 8
_MOST_MEMBERS = 12
_MOST_LISTED = 64
_NEAR_STEP = 8
_NEAR_LINES_BELOW = 4
_MARKER_BYTES = 6
_EDITS_NAME = "recent_edits.diff"
_DECLARED = re.compile(rf"\b(?:{'|'.join(sorted(DECLARING))})\s+(\w+)")


@dataclass(frozen=True, slots=True)
class ContextShares:
    """Which share of the tokens each part may take; what one leaves, the next may take.

    Attributes:
        imports: definitions of what the file imports from the project's files.
        open_files: the lines of open files that have the most names in common with those at the cursor.
        definitions: definitions of the names near the cursor, wherever they are.
        recent: the last edits.
    """

    imports: float = 0.25
    open_files: float = 0.25
    definitions: float = 0.35
    recent: float = 0.15


_SHARES = ContextShares()


class Sources(Protocol):
    """Where context may come from. All of it may be shown to a model."""

    @property
    def root(self) -> Path | None:
        """The project's directory, which names are relative to; None takes that of the file."""
        ...

    def open_documents(self) -> Sequence[Document]:
        """Those that an editor has open, the last used first."""
        ...

    def recent(self) -> Sequence[RecentEdit]:
        """The last edits, the newest first."""
        ...

    def read(self, path: Path) -> Document | None:
        """A file's text; None where there is none, or it must not be shown."""
        ...

    def list_files(self, directory: Path) -> Sequence[Path]:
        """The files in a directory, sorted."""
        ...


@dataclass(frozen=True)
class DiskSources:
    """The documents of an editor and the files of the disk, without secrets and ignored files.

    Attributes:
        root: the project's directory, absolute; None takes that of each file.
        opened: what the editor has open, the last used first.
        edits: the last edits, the newest first.
        settings: what counts as a secret, and what is allowed.
    """

    root: Path | None
    opened: Sequence[Document] = ()
    edits: Sequence[RecentEdit] = ()
    settings: Settings = field(default_factory=Settings)

    def open_documents(self) -> Sequence[Document]:
        """Those that may be shown, the last used first."""
        return self._shown_documents

    def recent(self) -> Sequence[RecentEdit]:
        """The edits of files that may be shown, the newest first."""
        return [edit for edit in self.edits if self._may_show(edit.path or Path(edit.name))]

    def read(self, path: Path) -> Document | None:
        """An open document, else the file; None where there is none or a rule forbids it."""
        for document in self._shown_documents:
            if document.path == path:
                return document
        return read_readable(path, self.root, self.settings)

    def list_files(self, directory: Path) -> Sequence[Path]:
        """The files in a directory, sorted; at most 64."""
        try:
            return sorted(path for path in directory.iterdir() if path.is_file())[:_MOST_LISTED]
        except OSError:
            return []

    @cached_property
    def _shown_documents(self) -> Sequence[Document]:
        documents = [document for document in self.opened if len(document.text) <= MAX_FILE_CHARS]
        shown = (document for document in documents if document.path is None or self._may_show(document.path))
        return [document for document, _ in zip(shown, range(MAX_OPEN_DOCUMENTS), strict=False)]

    def _may_show(self, path: Path) -> bool:
        if path.is_absolute():
            return not why_unreadable(path, self.root, self.settings)
        return secret_rule(Path("/", path), Path("/"), self.settings.secret_patterns) is None


def gather(
    document: Document,
    offset: int,
    sources: Sources,
    budget: PromptBudget = ON_GPU,
    shares: ContextShares = _SHARES,
) -> tuple[ContextFile, ...]:
    """What to show beside the text around `offset`, the most stable first, in whole lines.

    Args:
        document: the text that is completed.
        offset: of the cursor.
        sources: where context may come from.
        budget: how much is shown of them, and of the text around the cursor.
        shares: of the parts in that.
    """
    if budget.context_tokens <= 0:
        return ()
    scene = _Scene(document, offset, sources, budget)
    newest_first = list(scene.recent_edits())
    parts = (
        (shares.imports, scene.imported_definitions()),
        (shares.open_files, scene.similar_windows()),
        (shares.definitions, scene.near_definitions()),
    )
    context = _Context()
    left = 0
    for share, pieces in parts:
        left += int(share * budget.context_tokens * BYTES_PER_TOKEN)
        left -= context.take(pieces, left)
    left += int(shares.recent * budget.context_tokens * BYTES_PER_TOKEN)
    edits = _Context()
    edits.take(newest_first, left)
    return context.files() + edits.files(reverse=True)


@dataclass(frozen=True, slots=True)
class _Piece:
    """Whole lines of a file, or made of one; shown only where those of `owner`, if any, are."""

    name: str
    text: str
    owner: str = ""


@dataclass
class _Context:
    """The pieces that are shown."""

    pieces: list[_Piece] = field(default_factory=list)

    def take(self, pieces: Iterable[_Piece], most_bytes: int) -> int:
        """Take what fits, in order, and return how many bytes it takes."""
        taken = 0
        for piece in pieces:
            size = len(piece.text.encode("utf-8"))
            if not self.pieces or self.pieces[-1].name != piece.name:
                size += len(piece.name.encode("utf-8")) + _MARKER_BYTES
            texts = {shown.text for shown in self.pieces if shown.name == piece.name}
            has_owner = not piece.owner or piece.owner in texts
            if piece.text not in texts and has_owner and taken + size <= most_bytes:
                self.pieces.append(piece)
                taken += size
        return taken

    def files(self, *, reverse: bool = False) -> tuple[ContextFile, ...]:
        """The pieces as files, neighbours of one file together."""
        groups = groupby(self.pieces[::-1] if reverse else self.pieces, lambda piece: piece.name)
        return tuple(ContextFile(name, "".join(piece.text for piece in group)) for name, group in groups)


@dataclass(frozen=True)
class _Scene:
    """The cursor, and what may be known about it."""

    document: Document
    offset: int
    sources: Sources
    budget: PromptBudget

    @cached_property
    def gap(self) -> Gap:
        return Gap.at(self.document, self.offset, budget=self.budget)

    @cached_property
    def lines_above(self) -> list[str]:
        """The lines before the cursor by which the context is chosen."""
        lines = self.gap.prefix.split("\n")
        return lines[: (len(lines) - 1) // _NEAR_STEP * _NEAR_STEP] if self.budget.is_steady else lines

    @cached_property
    def text_around(self) -> str:
        """All text by which it is chosen."""
        return "\n".join([*self.lines_above, self.gap.tail])

    @cached_property
    def root(self) -> Path | None:
        path = self.document.path
        return self.sources.root or (project_root(path) if path and path.is_absolute() else None)

    @cached_property
    def language(self) -> str | None:
        return language_of(self.document.path) if self.document.path else None

    @cached_property
    def imported(self) -> list[Imported]:
        path = self.document.path
        if self.root is None or path is None or not path.is_absolute() or len(self.document.text) > MAX_FILE_CHARS:
            return []
        return imported_by(self.document, self.root, self.sources.read, self.sources.list_files)

    @cached_property
    def opened(self) -> list[Document]:
        """The other open documents, those of the same language first."""
        others = [other for other in self.sources.open_documents() if not self._is_own(other.path)]
        return sorted(others, key=lambda other: self._language(other) != self.language)

    @cached_property
    def near(self) -> list[str]:
        """The names near the cursor, the nearest lines' first; not the one that is being typed."""
        above, below = self.lines_above, self.gap.tail.split("\n")
        # The lines move on by several at once, so that what is chosen by them stays a while.
        first = max(0, (len(above) - _NEAR_STEP) // _NEAR_STEP * _NEAR_STEP)
        lines = [*above[first:], *below[:_NEAR_LINES_BELOW]]
        return list(identifiers_of("\n".join([*lines, *above[:first][::-1]])))

    def imported_definitions(self) -> Iterator[_Piece]:
        """What the document uses of the files that it imports."""
        used = frozenset(identifiers_of(self.text_around))
        for imported in self.imported:
            names = imported.names or used
            for definition in self._definitions(imported.document):
                if definition.name in names and (imported.names or not definition.owner):
                    yield from self._pieces(definition, imported.document)

    def similar_windows(self) -> Iterator[_Piece]:
        """The part of each open document that has the most names in common with the lines at the cursor."""
        names = frozenset(self.near)
        for other in self.opened:
            if found := most_similar(other.text, names):
                yield _Piece(self._name(other), found)

    def near_definitions(self) -> Iterator[_Piece]:
        """The definitions of the names near the cursor that the text around it does not hold itself."""
        text, gap = self.document.text, self.gap
        known: dict[str, list[tuple[Definition, Document]]] = {}
        outside = [text[: gap.head_start], text[gap.tail_end :]] if len(text) <= MAX_FILE_CHARS else []
        own = [Document(part, self.document.path) for part in outside if part]
        for source in [*(imported.document for imported in self.imported), *own, *self.opened]:
            for definition in self._definitions(source):
                known.setdefault(definition.name, []).append((definition, source))
        declared = frozenset(_DECLARED.findall(self.text_around))
        for name in self.near:
            found = known.get(name, ()) if name not in declared else ()
            for definition, source in found[:1]:
                # Which of several members of one name is meant, only types could tell.
                is_member = len(found) == 1 and re.search(rf"(?:\.|->|::){re.escape(name)}\b", self.text_around)
                if not definition.owner or is_member:
                    yield from self._pieces(definition, source)

    def recent_edits(self) -> Iterator[_Piece]:
        """The last edits that the text around the cursor shows no line of, the newest first.

        So the one that is under way at the cursor is never among them.
        """
        first = self.gap.first_line
        last = first + (self.gap.head + self.gap.tail).count("\n")
        for edit in self.sources.recent():
            here = self._is_own(edit.path) or (edit.path is None and edit.name == self._name(self.document))
            removed, added = _lines(edit.before), _lines(edit.after)
            is_apart = edit.line > last or edit.line + max(1, len(added)) <= first
            if max(len(removed), len(added)) <= MAX_EDIT_LINES and (is_apart or not here):
                head = f"--- {edit.name}\n+++ {edit.name}"
                lines = [head, *(f"-{line}" for line in removed), *(f"+{line}" for line in added)]
                yield _Piece(_EDITS_NAME, "\n".join(lines) + "\n")

    def _pieces(self, definition: Definition, source: Document) -> Iterator[_Piece]:
        """A definition, and the public members of a class or type."""
        name = self._name(source)
        yield _Piece(name, definition.text)
        members = [other for other in self._definitions(source) if other.owner == definition.name]
        public = [other for other in members if not other.name.startswith("_") or other.name == "__init__"]
        for member in public[:_MOST_MEMBERS]:
            yield _Piece(name, member.text, owner=definition.text)

    def _definitions(self, document: Document) -> Sequence[Definition]:
        language = self._language(document)
        if language is None or len(document.text) > MAX_FILE_CHARS:
            return ()
        return definitions_of(document.text, language)

    def _language(self, document: Document) -> str | None:
        return language_of(document.path) if document.path else None

    def _is_own(self, path: Path | None) -> bool:
        return path is not None and path == self.document.path

    def _name(self, document: Document) -> str:
        """Relative to the project, with forward slashes."""
        path = document.path
        if path is None:
            return "untitled"
        return (
            path.relative_to(self.root) if self.root and path.is_relative_to(self.root) else Path(path.name)
        ).as_posix()


def _lines(text: str) -> list[str]:
    return shown_text(text).removesuffix("\n").split("\n") if text else []
