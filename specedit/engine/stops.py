"""StopRule: where an answer ends. The same rule, token by token, for every way of decoding."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from specedit.engine.api import FinishReason

if TYPE_CHECKING:
    import torch


class Decoder(Protocol):
    """Turns tokens into text as they come; see `tokens.StreamDecoder`."""

    def push(self, token_id: int) -> str:
        """The text that this token completes."""
        ...

    def flush(self) -> str:
        """What is left of an unfinished character."""
        ...


@dataclass(frozen=True, slots=True)
class Emission:
    """What one step adds to the answer.

    Attributes:
        token_ids: the tokens that count, end-of-text included; those after a stop are gone.
        text: what may be shown now; text that may yet turn out to be a stop string is held back.
        finish_reason: set when the answer ends here.
        hidden_tokens: how many of the tokens end before the answer begins.
        logits: [tokens, vocabulary] what each token was drawn from, where that was asked for.
    """

    token_ids: tuple[int, ...] = ()
    text: str = ""
    finish_reason: FinishReason | None = None
    hidden_tokens: int = 0
    logits: torch.Tensor | None = None


class StopRule:
    """Ends an answer at the first of: an end-of-text token, a stop string, `max_new_tokens`."""

    def __init__(
        self,
        decoder: Decoder,
        *,
        eos_ids: Collection[int],
        stop_strings: Sequence[str] = (),
        max_new_tokens: int,
        hidden_chars: int = 0,
        typed_chars: int = 0,
    ) -> None:
        """Begin an answer.

        Args:
            decoder: fresh.
            eos_ids: the end-of-text tokens.
            stop_strings: end the answer, and are not part of it.
            max_new_tokens: the most tokens to take; those that end within what is hidden do not count.
            hidden_chars: with how many characters the decoded text begins that are not part of the answer.
            typed_chars: with how many characters the answer begins in which no stop string is looked for.
        """
        self._decoder = decoder
        self._eos_ids = frozenset(eos_ids)
        self._stop_strings = tuple(string for string in stop_strings if string)
        self._held = ""
        self._hidden_chars = hidden_chars
        self._typed_chars = typed_chars
        self.remaining = max_new_tokens

    def push(self, token_ids: Iterable[int]) -> Emission:
        """Take the tokens of one step, as far as the first stop among them."""
        counted: list[int] = []
        shown: list[str] = []
        reason: FinishReason | None = None
        remaining = self.remaining
        for token_id in token_ids:
            counted.append(token_id)
            text, reason = self._push_one(token_id)
            shown.append(text)
            if reason is not None:
                break
        hidden_tokens = len(counted) - (remaining - self.remaining)
        return Emission(tuple(counted), "".join(shown), reason, hidden_tokens)

    def _push_one(self, token_id: int) -> tuple[str, FinishReason | None]:
        if token_id in self._eos_ids:
            self.remaining -= 1
            return self._release(self._decoder.flush(), "stop")
        pushed = self._decoder.push(token_id)
        if not 0 < len(pushed) <= self._hidden_chars:
            self.remaining -= 1
        text, reason = self._release(pushed, None)
        if reason is None and self.remaining <= 0:
            tail, _ = self._release(self._decoder.flush(), "length")
            return text + tail, "length"
        return text, reason

    def _release(self, new_text: str, ending: FinishReason | None) -> tuple[str, FinishReason | None]:
        """Show what can no longer become part of a stop string; all of it when the answer is `ending`."""
        hidden = min(self._hidden_chars, len(new_text))
        typed = new_text[hidden : hidden + self._typed_chars]
        self._hidden_chars -= hidden
        self._typed_chars -= len(typed)
        text = self._held + new_text[hidden + len(typed) :]
        cuts = [at for at in (text.find(string) for string in self._stop_strings) if at >= 0]
        if cuts:
            self._held = ""
            return typed + text[: min(cuts)], "stop"
        held = 0 if ending else self._possible_start(text)
        self._held = text[len(text) - held :]
        return typed + text[: len(text) - held], ending

    def _possible_start(self, text: str) -> int:
        """How many of the last characters may be the beginning of a stop string."""
        longest = max(map(len, self._stop_strings), default=1) - 1
        for length in range(min(longest, len(text)), 0, -1):
            if any(string.startswith(text[-length:]) for string in self._stop_strings):
                return length
        return 0
