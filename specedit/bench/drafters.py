"""The drafters that the replay benchmark compares, by name, and the tokenizer that they are made for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from transformers import AutoConfig

from specedit.bench.baselines import EarliestNgram, LatestNgram, SuffixTree
from specedit.draft.base import Drafter
from specedit.draft.prompt_lookup import PromptLookup
from specedit.engine.tokens import Tokenizer
from specedit.models.registry import resolve


@dataclass(frozen=True)
class LoadedTokenizer:
    """A model's tokenizer and how many token ids the model knows."""

    tokenizer: Tokenizer
    vocab_size: int

    @classmethod
    def load(cls, model: str) -> Self:
        """Load the tokenizer of a model by name, hub id or path; its weights are not read.

        Raises:
            ModelError: the model is not there, or its tokenizer can't be used.
        """
        found = resolve(model)
        config = AutoConfig.from_pretrained(found.path, local_files_only=True, trust_remote_code=False)
        return cls(Tokenizer.load(found.path, found.entry.fim), int(config.get_text_config().vocab_size))


Maker = Callable[[LoadedTokenizer], Drafter]

MAKERS: dict[str, Maker] = {
    "lookup": lambda loaded: PromptLookup(loaded.vocab_size, loaded.tokenizer.special_ids),
    "transformers": lambda _: EarliestNgram("transformers", (2, 1), 10),
    "ngram-k5": lambda _: EarliestNgram("ngram-k5", (5, 4, 3, 2), 5),
    "ngram-k32": lambda _: EarliestNgram("ngram-k32", (5, 4, 3, 2), 32),
    "ngram-12-48": lambda _: LatestNgram("ngram-12-48", 12, 48),
    "suffix-tree": lambda _: SuffixTree("suffix-tree"),
}
