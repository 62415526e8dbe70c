"""Log probabilities of an answer's tokens, for whoever asks for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from specedit.engine.api import TokenLogprob


def token_logprobs(
    logits: torch.Tensor,  # [tokens, vocabulary]
    token_ids: Sequence[int],
    top: int,
    token_bytes: Callable[[int], bytes],
) -> tuple[TokenLogprob, ...]:
    """Each token's log probability by the target's logits, and the `top` most probable ones in its place.

    Penalties, temperature and the like play no part.
    """
    logprobs = logits[: len(token_ids)].float().log_softmax(-1)
    ids = torch.tensor(token_ids, device=logits.device)
    own = logprobs.gather(1, ids[:, None])[:, 0].tolist()
    best = logprobs.topk(min(top, logprobs.shape[1]))
    return tuple(
        TokenLogprob(
            token_bytes(token_id),
            logprob,
            tuple(
                TokenLogprob(token_bytes(other), value)
                for other, value in zip(best.indices[row].tolist(), best.values[row].tolist(), strict=True)
            ),
        )
        for row, (token_id, logprob) in enumerate(zip(token_ids, own, strict=True))
    )
