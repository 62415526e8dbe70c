"""Recorded edits: files before and after a change that someone made, and the tokens of asking for it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import msgspec

from specedit.edit.document import Document, split_lines
from specedit.edit.region import whole_file
from specedit.edit.session import EditRequest, generate_request
from specedit.edit.stream import to_lf
from specedit.engine.api import Hints
from specedit.engine.tokens import Tokenizer
from specedit.errors import UsageError

#: The size classes that files name, and those of answers up to 512 tokens, up to 2048 and over.
SIZES = ("small", "medium", "large", "short", "middle", "long")

_SHORT_TOKENS, _MIDDLE_TOKENS = 512, 2048


class RecordedEdit(msgspec.Struct, frozen=True, kw_only=True):
    """A file before and after an edit.

    Attributes:
        before: the old text.
        after: the new text.
        id: what the edit is called in messages.
        path: the file's name or path; its ending says the language.
        instruction: what was asked for.
        size: the class that the edit is counted in; without it the answer's length decides.
    """

    before: str
    after: str
    id: str = ""
    path: str = ""
    instruction: str = "Edit this file."
    size: str = ""

    @property
    def edited_share(self) -> float:
        """The share of the characters, old and new together, in lines that are not in both texts: 0 to 1."""
        old, new = split_lines(to_lf(self.before)), split_lines(to_lf(self.after))
        blocks = difflib.SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
        kept = sum(len(line) for block in blocks for line in new[block.b : block.b + block.size])
        total = sum(map(len, old)) + sum(map(len, new))
        return 1 - 2 * kept / total if total else 0.0


@dataclass(frozen=True)
class TokenizedEdit:
    """An edit as drafters see it, and the answer that they don't see.

    Attributes:
        name: what the edit is called in messages.
        size: the class that it is counted in.
        edited_share: as `RecordedEdit` has it.
        prompt_ids: the chat that `specedit edit` sends for the whole file.
        prediction_ids: the old file.
        hints: those of the request.
        answer_ids: the new file alone, without fences and end token.
    """

    name: str
    size: str
    edited_share: float
    prompt_ids: list[int]
    prediction_ids: list[int]
    hints: Hints
    answer_ids: list[int]


def read_edits(file: Path, limit: int | None = None) -> list[RecordedEdit]:
    """The edits of a file of JSON lines with `before` and `after`, in order, at most `limit`.

    Raises:
        UsageError: a line is not of that form; names it.
    """
    try:
        lines = file.read_bytes().split(b"\n")
    except OSError as error:
        raise UsageError(f"can't read {file}: {error.strerror}. Name a file of JSON lines") from error
    edits = list(islice(_decoded(file, lines), limit))
    if not edits:
        raise UsageError(f"{file} holds no edit. Each line is a JSON object with before and after")
    return edits


def tokenized(edit: RecordedEdit, tokenizer: Tokenizer) -> TokenizedEdit:
    """The whole-file request for an edit in tokens, and the new file as its answer.

    Raises:
        UnsupportedModelError: the tokenizer has no chat template.
    """
    document = Document.from_bytes(edit.before.encode(), Path(edit.path) if edit.path else None)
    request = generate_request(EditRequest(document, whole_file(document), edit.instruction))
    answer_ids = tokenizer.encode(to_lf(edit.after))
    return TokenizedEdit(
        name=edit.id,
        size=edit.size or _length_class(len(answer_ids)),
        edited_share=edit.edited_share,
        prompt_ids=tokenizer.encode_chat(request.messages),
        prediction_ids=tokenizer.encode(request.prediction),
        hints=replace(request.hints, opening="", closing=""),
        answer_ids=answer_ids,
    )


def _decoded(file: Path, lines: Iterable[bytes]) -> Iterable[RecordedEdit]:
    decoder = msgspec.json.Decoder(RecordedEdit)
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            edit = decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UsageError(
                f"{file}, line {number}, is no recorded edit: {error}. Each line is a JSON object with before and after"
            ) from error
        yield edit if edit.id else msgspec.structs.replace(edit, id=f"line {number}")


def _length_class(tokens: int) -> str:
    if tokens <= _SHORT_TOKENS:
        return "short"
    return "middle" if tokens <= _MIDDLE_TOKENS else "long"
