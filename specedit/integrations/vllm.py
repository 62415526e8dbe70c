"""EditProposer: specedit's drafting inside vLLM, which finds the class by its path.

    vllm serve MODEL --speculative-config \
      '{"method": "custom_class", "model": "specedit.integrations.vllm.EditProposer", "num_speculative_tokens": 32}'

vLLM verifies the drafts by its own rejection sampling, so they change the speed, never the answer. A request does not
say which text its answer follows: that is looked for in the prompt, see `shown_code.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from specedit.draft.merge import EditDrafter
from specedit.draft.ngrams import Table
from specedit.draft.shipped import table_for
from specedit.draft.suffix_index import Tokens
from specedit.draft.vocabulary import Vocabulary
from specedit.engine.tokens import Tokenizer
from specedit.integrations.rows import Rows
from specedit.integrations.shown_code import code_shown

_WARM_UP = "```python\ndef half(x):\n    return x / 2\n```\nRename half to third."


class EditProposer:
    """Drafts chains from the code in the prompt, changes made before, and whatever the answer repeats."""

    def __init__(self, vllm_config: Any) -> None:
        """Load the tokenizer.

        Args:
            vllm_config: vLLM's configuration of everything.

        Raises:
            ModelError: the tokenizer can't be loaded, or does not give text back exactly.
        """
        model = vllm_config.model_config
        tokenizer = Tokenizer.load(Path(model.tokenizer))
        size = max(int(model.get_vocab_size()), tokenizer.vocab_size)
        self._vocabulary = Vocabulary.of(tokenizer, size, tokenizer.special_ids)
        table = table_for(tokenizer, tokenizer.vocab_size)
        self._begun = partial(drafter_for, vocabulary=self._vocabulary, table=table)
        self._rows = Rows(
            self._begun,
            vocab_size=size,
            special_ids=tokenizer.special_ids,
            draft_tokens=int(vllm_config.speculative_config.num_speculative_tokens),
            context_tokens=int(model.max_model_len),
        )

    def load_model(self, *_: Any, **__: Any) -> None:
        """Draft something, so that no request waits for what is compiled or loaded once."""
        ids = self._vocabulary.codec.encode(_WARM_UP)
        drafter = self._begun(np.array(ids, dtype=np.int32))
        drafter.commit(ids[:8])
        drafter.propose(8)

    def propose(
        self,
        sampled_token_ids: Sequence[Sequence[int]],
        num_tokens_no_spec: npt.NDArray[np.int32],
        token_ids_cpu: npt.NDArray[np.int32],
        **_: Any,
    ) -> list[list[int]]:
        """A chain of drafted tokens for each row, perhaps an empty one.

        Args:
            sampled_token_ids: [rows] tokens that the last step gave; none for a row whose prompt is being read.
            num_tokens_no_spec: [rows or more] tokens of prompt and answer, those counted.
            token_ids_cpu: [rows or more, context] prompt and answer.
        """
        return self._rows.propose(sampled_token_ids, num_tokens_no_spec, token_ids_cpu)


def drafter_for(prompt: Tokens, vocabulary: Vocabulary, table: Table | None = None) -> EditDrafter:
    """A drafter for the answer to `prompt`, begun with the code that the answer is likely to follow.

    Args:
        prompt: all tokens before the answer.
        vocabulary: the target's; its special tokens stand between the turns of a chat.
        table: static n-grams; None for none.
    """
    starts = [0, *(np.flatnonzero(vocabulary.barred[prompt]) + 1).tolist()]
    ends = [*starts[1:], len(prompt)]
    turns = zip(reversed(starts), reversed(ends), strict=True)
    shown = code_shown(vocabulary.text(prompt[start:end].tolist()) for start, end in turns)
    drafter = EditDrafter(vocabulary, table=table)
    if shown is None:
        drafter.begin(prompt, [])
    else:
        drafter.begin(prompt, vocabulary.codec.encode(shown.code), shown.hints())
    return drafter
