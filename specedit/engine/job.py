"""Job: one request in tokens, and its answer a forward at a time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch

from specedit.draft.merge import EditDrafter
from specedit.draft.tree import BoolArray, IntArray
from specedit.engine import loop, reference
from specedit.engine.api import GenerateRequest, TextChunk, TokenLogprob
from specedit.engine.budget import Budget
from specedit.engine.cache_pool import CachePool, Lease
from specedit.engine.healing import Healing
from specedit.engine.kv_cache import KVCache
from specedit.engine.logprobs import token_logprobs
from specedit.engine.memory import is_out_of_memory, release_memory, trim_heap
from specedit.engine.sampling import Sampler, check_sampling
from specedit.engine.stats import DecodeStats
from specedit.engine.stops import Emission, StopRule
from specedit.engine.target import Target
from specedit.engine.tokens import Prompt, Tokenizer
from specedit.engine.trace import Tracer
from specedit.errors import ContextOverflowError, EngineError, OutOfMemoryError, UsageError


@dataclass(frozen=True, slots=True)
class Drafting:
    """What a drafted answer takes part in.

    Attributes:
        new_drafter: makes the drafter of this answer.
        budget: shared by all answers of an engine.
        pool: likewise.
    """

    new_drafter: Callable[[], EditDrafter]
    budget: Budget
    pool: CachePool


class Job:
    """One request: checked, encoded, with its own sampler, stop rule and counters.

    Attributes:
        request: what was asked for.
        prompt_ids: [tokens].
        stats: counted into.
    """

    def __init__(
        self, request: GenerateRequest, target: Target, tokenizer: Tokenizer, eos_ids: Collection[int]
    ) -> None:
        """Check and encode a request.

        Raises:
            ContextOverflowError: prompt and answer do not fit.
            UsageError: the request is wrong.
            UnsupportedModelError: the model lacks the chat template or the FIM markers that it needs.
        """
        request.check()
        check_sampling(request.sampling, target.vocab_size)
        self.request = request
        prompt = _prompt(request, tokenizer)
        self.prompt_ids = prompt.token_ids
        self._hidden_bytes = len(prompt.begun[: prompt.hidden_chars].encode())
        # What of the answer is hidden takes room too, at most a token a byte.
        used = len(prompt.token_ids) + self._hidden_bytes
        self._prediction_ids = tokenizer.text_ids(request.prediction)
        limit = request.max_new_tokens
        if limit is None:
            limit = len(self._prediction_ids) * 3 // 2 + 256
        elif limit == "context":
            limit = max(1, target.context_tokens - used)
        _check_room(used, limit, target.context_tokens)
        self._target = target
        self._tokenizer = tokenizer
        healing: Healing | None = None
        if prompt.begun:
            healing = Healing(tokenizer.spelled, prompt.begun.encode(), vocab_size=target.vocab_size, barred=eos_ids)
        self._sampler = Sampler(request.sampling, request.seed, self.prompt_ids.tolist(), healing)
        self._stop_rule = StopRule(
            tokenizer.stream(),
            eos_ids=eos_ids,
            stop_strings=request.stop,
            max_new_tokens=limit,
            hidden_chars=prompt.hidden_chars,
            typed_chars=len(prompt.begun) - prompt.hidden_chars,
        )
        self._tracer = Tracer(tokenizer)
        self.stats = DecodeStats(prompt_tokens=len(self.prompt_ids))

    def run(self, drafting: Drafting | None) -> Iterator[TextChunk]:
        """The answer, a chunk a forward; those that only read the prompt give empty ones.

        Args:
            drafting: None decodes plainly.

        Raises:
            OutOfMemoryError: the device has no memory left.
            EngineError: the model failed.
        """
        try:
            for emission in self._plain() if drafting is None else self._drafted(drafting):
                yield self._chunk(emission)
        except RuntimeError as error:
            if is_out_of_memory(error):
                raise _out_of_memory(error) from error
            raise EngineError(f"the model failed ({error}): try again, or set SPECEDIT_DEVICE=cpu") from error

    def _drafted(self, drafting: Drafting) -> Iterator[Emission]:
        pool, drafter = drafting.pool, drafting.new_drafter()
        lease = pool.lend(self.prompt_ids)
        self.stats.cached_tokens = lease.reused
        written: list[int] = []
        try:
            drafter.begin(self.prompt_ids, self._prediction_ids, self.request.hints)
            for emission in loop.decode(
                _Frugal(self._target, pool, lease),
                lease.cache,
                self.prompt_ids.tolist(),
                drafter=drafter,
                sampler=self._sampler,
                stop_rule=self._stop_rule,
                budget=drafting.budget,
                cancel=self.request.cancel,
                stats=self.stats,
                with_logits=self.request.logprobs is not None,
            ):
                written.extend(emission.token_ids)
                pool.touch(lease)
                yield emission
        finally:
            pool.end(lease, np.append(self.prompt_ids, np.array(written, dtype=np.int32)))
            trim_heap()

    def _plain(self) -> Iterator[Emission]:
        return reference.decode(
            self._target,
            self.prompt_ids.tolist(),
            sampler=self._sampler,
            stop_rule=self._stop_rule,
            cancel=self.request.cancel,
            stats=self.stats,
            with_logits=self.request.logprobs is not None,
        )

    def _chunk(self, emission: Emission) -> TextChunk:
        request, token_ids = self.request, emission.token_ids
        traced = request.trace and bool(token_ids)
        tokens: tuple[TokenLogprob, ...] = ()
        if emission.logits is not None and request.logprobs is not None:
            told = token_logprobs(emission.logits, token_ids, request.logprobs, self._tokenizer.token_bytes)
            tokens = tuple(self._behind_what_is_hidden(told))
        return TextChunk(
            emission.text,
            self.stats.usage(),
            emission.finish_reason,
            self._tracer.step(self.stats.last_step, token_ids) if traced else None,
            tokens,
        )

    def _behind_what_is_hidden(self, tokens: Iterable[TokenLogprob]) -> Iterator[TokenLogprob]:
        """The tokens that spell the answer; the first may begin before it, and is told without that part."""
        for token in tokens:
            hidden = min(self._hidden_bytes, len(token.token_bytes))
            self._hidden_bytes -= hidden
            if hidden == 0:
                yield token
            elif hidden < len(token.token_bytes):
                yield replace(token, token_bytes=token.token_bytes[hidden:])


class _Frugal:
    """The target, for one answer: where the device has no memory left, what others have cached goes first."""

    def __init__(self, target: Target, pool: CachePool, lease: Lease) -> None:
        self._target = target
        self._pool = pool
        self._lease = lease
        self.vocab_size = target.vocab_size
        self.context_tokens = target.context_tokens
        self.prefill_chunk_tokens = target.prefill_chunk_tokens

    def forward(
        self,
        cache: KVCache,
        token_ids: IntArray,
        positions: IntArray,
        mask: BoolArray,
        *,
        last_rows: int | None = None,
    ) -> torch.Tensor:
        """As `Target.forward`."""
        try:
            return self._target.forward(cache, token_ids, positions, mask, last_rows=last_rows)
        except RuntimeError as error:
            if not is_out_of_memory(error) or not self._pool.evict_all_but(self._lease):
                raise
        # Not within the handler, whose traceback keeps the failed forward's tensors.
        release_memory()
        return self._target.forward(cache, token_ids, positions, mask, last_rows=last_rows)


def _prompt(request: GenerateRequest, tokenizer: Tokenizer) -> Prompt:
    if request.fim is not None:
        return tokenizer.encode_fim(request.fim)
    if request.prompt is not None:
        return Prompt(np.array(tokenizer.encode_prompt(request.prompt), dtype=np.int32))
    return Prompt(tokenizer.chat_ids(request.messages))


def _check_room(prompt_tokens: int, answer_tokens: int, context_tokens: int) -> None:
    if answer_tokens < 0:
        raise UsageError(f"max_new_tokens is {answer_tokens}: it can't be negative")
    if prompt_tokens + answer_tokens > context_tokens:
        raise ContextOverflowError(
            f"the prompt has {prompt_tokens} tokens and the answer may take {answer_tokens}, together more than the "
            f"model's context of {context_tokens}: edit a smaller range, or lower --max-new-tokens"
        )


def _out_of_memory(error: RuntimeError) -> OutOfMemoryError:
    return OutOfMemoryError(
        f"the device ran out of memory ({error}): edit a smaller range, or take a smaller model or another device"
    )
