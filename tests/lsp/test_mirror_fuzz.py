"""The mirror equals an editor written from the specification, whatever is typed."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from lsprotocol.types import PositionEncodingKind, TextDocumentItem

from specedit.edit.document import Document
from specedit_lsp.documents import Documents, OpenDocument, TextChange
from tests.lsp.mirror_fuzz import RandomTyping, ReferenceEditor, random_position, random_text

CHANGES = 20_000


@pytest.mark.parametrize("encoding", PositionEncodingKind)
def test_the_mirror_equals_the_editor_after_every_change(encoding: PositionEncodingKind) -> None:
    rng = random.Random(f"mirror {encoding.value}")
    made = 0
    while made < CHANGES:
        editor = ReferenceEditor(random_text(rng, 60), encoding)
        typing = RandomTyping(editor, rng)
        documents = Documents(encoding)
        document = documents.open(TextDocumentItem(typing.uri, "python", editor.version, editor.text))
        for _ in range(50):
            before = editor.text
            params, texts = typing.notification()
            changes = documents.change(params)
            made += len(texts)
            assert document.text == editor.text, params
            assert document.snapshot() == Document(editor.text, document.path, editor.version)
            assert list(states(before, changes)) == without_repeats(before, texts), params
            assert same_places(document, editor, rng, 4), params
        assert same_places(document, editor, rng)
        assert same_meaning(document, editor, rng)


def states(text: str, changes: tuple[TextChange, ...]) -> Iterator[str]:
    """What whoever follows the changes has after each."""
    for change in changes:
        assert text[change.span.start : change.span.end] == change.old_text
        text = text[: change.span.start] + change.new_text + text[change.span.end :]
        yield text


def without_repeats(before: str, texts: list[str]) -> list[str]:
    return [text for last, text in zip([before, *texts], texts, strict=False) if text != last]


def same_places(document: OpenDocument, editor: ReferenceEditor, rng: random.Random, most: int | None = None) -> bool:
    """Offsets and positions, there and back, at all places between characters or at some."""
    places = list(editor.positions())
    return all(
        document.position(offset) == position and document.offset(position) == offset
        for offset, position in (places if most is None else rng.choices(places, k=most))
    )


def same_meaning(document: OpenDocument, editor: ReferenceEditor, rng: random.Random) -> bool:
    """Positions anywhere, also where no character begins, mean to the mirror what they mean to the editor."""
    offset_of = {editor.index(position): offset for offset, position in editor.positions()}
    positions = [random_position(rng, editor) for _ in range(60)]
    return all(document.offset(position) == offset_of[editor.index(position)] for position in positions)
