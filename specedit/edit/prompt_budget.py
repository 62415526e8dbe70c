"""How much a model is shown for a completion."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PromptBudget:
    """About how many tokens each part of the prompt may take; see `gap.BYTES_PER_TOKEN` for how they are estimated.

    Attributes:
        prefix_tokens: of the text before the cursor.
        suffix_tokens: of the text after it.
        context_tokens: of other files; 0 shows none.
        is_steady: choose what is shown of other files without the last few lines before the cursor, so that it stays
            the same while these are typed. It fits them less, but is read less often.
    """

    prefix_tokens: int
    suffix_tokens: int
    context_tokens: int
    is_steady: bool = False

    @classmethod
    def for_device(cls, device: str | None) -> PromptBudget:
        """That for a model on this device, as torch calls it; None is one that nobody knows.

        On a GPU reading a prompt takes no time. A CPU reads about a hundred tokens a second with a model of half a
        billion weights, so the first completion in a file waits for each of them.
        """
        is_cpu = device is not None and device.partition(":")[0] == "cpu"
        return ON_CPU if is_cpu else ON_GPU


ON_GPU = PromptBudget(1024, 256, 512)
ON_CPU = PromptBudget(384, 64, 128, is_steady=True)
