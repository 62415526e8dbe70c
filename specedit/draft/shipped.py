"""The static n-gram tables that come with specedit, and which tokenizer each was counted with."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from specedit.draft.ngram_file import fingerprint, unpack
from specedit.draft.ngrams import Table
from specedit.draft.vocabulary import Codec

#: Fingerprint of a tokenizer -> the file of its table.
TABLES = {
    "f0da068fda2bcd6c7d72160a4448b6dfc4fd1a90a83ce211abd53a104d81d397": "qwen2.5-coder.npz",
    "2465c9b7942a12b576134ea0ed42a716943acf33e4f94768104685ca5303bf1d": "smollm2.npz",
}

_loaded: dict[str, Table] = {}


def table_for(codec: Codec, vocab_size: int) -> Table | None:
    """The table that was counted with this very tokenizer, or None where none is shipped.

    The first call for a tokenizer takes half a second, for the table is packed; later ones a tenth.

    Args:
        codec: the tokenizer.
        vocab_size: all its token ids are below it.

    Raises:
        IntegrityError: the table's file is damaged.
    """
    name = TABLES.get(fingerprint(codec.token_bytes, vocab_size))
    if name is None:
        return None
    if name not in _loaded:
        _loaded[name] = Table.of(unpack(path_of(name)))
    return _loaded[name]


def path_of(name: str) -> Path:
    """Where the table of this name lies."""
    return Path(str(resources.files("specedit.draft") / "tables" / name))
