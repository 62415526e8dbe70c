"""The drafters that the replay benchmark compares, by name, and the tokenizer that they are made for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Self

from transformers import AutoConfig

from specedit.bench.baselines import EarliestNgram, LatestNgram, SuffixTree
from specedit.draft.base import Drafter
from specedit.draft.prompt_lookup import PromptLookup
from specedit.draft.vocabulary import Vocabulary
from specedit.engine.tokens import Tokenizer
from specedit.errors import UsageError
from specedit.models.registry import resolve


@dataclass(frozen=True)
class LoadedTokenizer:
    """A model's tokenizer and how many token ids the model knows."""

    tokenizer: Tokenizer
    vocab_size: int

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """What our own drafters know of the tokens."""
        return Vocabulary.of(self.tokenizer, self.vocab_size, self.tokenizer.special_ids)

    @classmethod
    def load(cls, model: str) -> Self:
        """Load the tokenizer of a model by name, hub id or path; its weights are not read.

        Raises:
            ModelError: the model is not there, or its tokenizer can't be used.
        """
        found = resolve(model)
        config = AutoConfig.from_pretrained(found.path, local_files_only=True, trust_remote_code=False)
        return cls(Tokenizer.load(found.path, found.entry.fim), int(config.get_text_config().vocab_size))


def _edit(loaded: LoadedTokenizer, *, with_table: bool = True) -> Drafter:
    from specedit.draft.merge import EditDrafter
    from specedit.draft.shipped import table_for

    table = table_for(loaded.tokenizer, loaded.vocab_size) if with_table else None
    return EditDrafter(loaded.vocabulary, table=table)


def _chain(loaded: LoadedTokenizer, part: str) -> Drafter:
    from specedit.draft.merge import EditDrafter

    return EditDrafter(loaded.vocabulary, parts=(part,), wide=False)


_MAKERS: dict[str, Callable[[LoadedTokenizer], Drafter]] = {
    "edit": _edit,
    "edit-no-table": partial(_edit, with_table=False),
    "lookup": lambda loaded: PromptLookup(loaded.vocab_size, loaded.tokenizer.special_ids),
    "transformers": lambda _: EarliestNgram("transformers", (2, 1), 10),
    "ngram-k5": lambda _: EarliestNgram("ngram-k5", (5, 4, 3, 2), 5),
    "ngram-k32": lambda _: EarliestNgram("ngram-k32", (5, 4, 3, 2), 32),
    "ngram-12-48": lambda _: LatestNgram("ngram-12-48", 12, 48),
    "suffix-tree": lambda _: SuffixTree("suffix-tree"),
}


def makers(loaded: LoadedTokenizer, names: Iterable[str] | None = None) -> Mapping[str, Callable[[], Drafter]]:
    """By name, in the order asked for, how to make each drafter; None asks for all.

    Raises:
        UsageError: no drafter has that name.
    """
    chosen = list(_MAKERS) if names is None else [name.strip() for name in names]
    if unknown := [name for name in chosen if name not in _MAKERS]:
        raise UsageError(f"no drafter is called {unknown[0]!r}. There are: {', '.join(_MAKERS)}")
    return {name: partial(_MAKERS[name], loaded) for name in chosen}


def part_makers(loaded: LoadedTokenizer) -> Mapping[str, Callable[[], Drafter]]:
    """How to make what has a cost of its own: the index with its longest match, two parts as chains, the whole tree."""
    chains = {part: partial(_chain, loaded, part) for part in ("lookup", "cursor")}
    return {"index": partial(_MAKERS["lookup"], loaded), **chains, "tree": partial(_edit, loaded)}
