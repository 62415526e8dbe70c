"""LocalEngine: answers requests with a model in this process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from specedit.config import DRAFTERS, DrafterName
from specedit.draft.merge import EditDrafter
from specedit.draft.shipped import table_for
from specedit.draft.vocabulary import Vocabulary
from specedit.engine import loop, reference
from specedit.engine.api import FimMarkers, GenerateRequest, Hints, TextChunk
from specedit.engine.budget import Budget, DraftBudget, FixedBudget
from specedit.engine.costs import CostTable, ForwardCosts, measured_once
from specedit.engine.kv_cache import KVCache
from specedit.engine.sampling import Sampler, check_sampling
from specedit.engine.stats import DecodeStats
from specedit.engine.stops import Emission, StopRule
from specedit.engine.target import DtypeName, Target
from specedit.engine.token_cache import TokenIds
from specedit.engine.tokens import Tokenizer
from specedit.engine.trace import Tracer
from specedit.errors import ContextOverflowError, EngineError, UsageError

#: The most nodes verified in one step. How many pay is another question, which only measured costs can answer: without
#: them a CPU gets fewer, as there a forward over many rows soon takes longer than the longer draft saves.
_DEFAULT_BUDGET = 128
_DEFAULT_BUDGET_CPU_UNMEASURED = 32

_NO_IDS: TokenIds = np.empty(0, dtype=np.int32)

_Decode = Callable[["_Job"], Iterator[Emission]]


class LocalEngine:
    """Runs one target model, one answer at a time; concurrent requests wait for each other.

    It keeps the KV cache of the last answer, so that the next request which begins with the same tokens reuses them.

    Attributes:
        model_name: what the model is called in reports.
        warnings: plain lines that a user should see once.
    """

    def __init__(
        self,
        target: Target,
        tokenizer: Tokenizer,
        *,
        model_name: str = "model",
        draft_budget: int | None = None,
        drafters: Collection[DrafterName] = DRAFTERS,
        costs: CostTable | None = None,
        stop_tokens: Collection[str] = (),
    ) -> None:
        """Make an engine.

        Args:
            target: the model whose output is reproduced.
            tokenizer: of the same model.
            model_name: what the model is called in reports.
            draft_budget: the most nodes verified in one step; 0 drafts nothing; None chooses.
            drafters: which parts of the drafter take part.
            costs: what forwards of the target cost; with it each step verifies as many nodes as pay, without it as many
                as the budget allows.
            stop_tokens: tokens that end an answer besides those that the model's own files name.
        """
        self.model_name = model_name
        self.warnings: list[str] = []
        self._target = target
        self._tokenizer = tokenizer
        self._budget = _budget(target, draft_budget, costs)
        self._drafters = tuple(drafters)
        if target.plain_only is not None:
            self.warnings.append(f"no drafting with this model: {target.plain_only}")
        named = {tokenizer.token_id(token) for token in stop_tokens} - {None}
        self._eos_ids = target.eos_ids | tokenizer.eos_ids | {token for token in named if token is not None}
        self._lock = threading.Lock()
        #: The thread whose answer is under way; waiting for itself it would wait forever.
        self._answering: int | None = None
        self._cache: KVCache = target.new_cache()
        self._cached_ids = _NO_IDS

    @classmethod
    def load(
        cls,
        path: Path,
        *,
        model_name: str | None = None,
        device: str = "auto",
        dtype: DtypeName = "auto",
        draft_budget: int | None = None,
        drafters: Collection[DrafterName] = DRAFTERS,
        costs_dir: Path | None = None,
        fim_markers: FimMarkers | None = None,
        stop_tokens: Collection[str] = (),
    ) -> LocalEngine:
        """Load model and tokenizer from a directory; arguments as in `Target.load`, `Tokenizer.load` and `__init__`.

        In `costs_dir` lie the measured costs of forwards; a model that is new there is measured, which takes about two
        seconds. Without it nothing is measured.

        Raises:
            ModelError: the model can't be loaded or can't be driven exactly.
        """
        tokenizer = Tokenizer.load(path, fim_markers)
        with ThreadPoolExecutor(1) as aside:
            warm = aside.submit(warm_up, tokenizer, drafters) if draft_budget != 0 else None
            target = Target.load(path, device=device, dtype=dtype)
        if warm is not None:
            warm.result()
        drafts = draft_budget != 0 and target.plain_only is None
        return cls(
            target,
            tokenizer,
            model_name=model_name or path.name,
            draft_budget=draft_budget,
            drafters=drafters,
            costs=measured_once(target, path, costs_dir) if drafts and costs_dir is not None else None,
            stop_tokens=stop_tokens,
        )

    @cached_property
    def _drafter(self) -> EditDrafter:
        return _drafter(self._tokenizer, self._target.vocab_size, self._drafters)

    def generate(self, request: GenerateRequest) -> Iterator[TextChunk]:
        """Stream the answer, drafted and verified; see `Engine.generate`."""
        decode = self._decode_plainly if self._target.plain_only is not None else self._decode_drafted
        return self._answer(request, decode)

    def generate_plain(self, request: GenerateRequest) -> Iterator[TextChunk]:
        """Stream the answer by plain decoding: the same text, one token a forward, to compare with."""
        return self._answer(request, self._decode_plainly)

    def _answer(self, request: GenerateRequest, decode: _Decode) -> Iterator[TextChunk]:
        job = _Job(request, self._target, self._tokenizer, self._eos_ids)
        if self._answering == threading.get_ident():
            raise EngineError("this thread has not finished its last answer: exhaust or close that iterator first")
        with self._lock:
            self._answering = threading.get_ident()
            try:
                for emission in decode(job):
                    step = job.tracer.step(job.stats.last_step, emission.token_ids) if request.trace else None
                    yield TextChunk(emission.text, job.stats.usage(), emission.finish_reason, step)
            except torch.OutOfMemoryError as error:
                raise EngineError(
                    f"the device ran out of memory ({error}): edit a smaller range, or set SPECEDIT_DEVICE=cpu"
                ) from error
            except RuntimeError as error:
                raise EngineError(f"the model failed ({error}): try again, or set SPECEDIT_DEVICE=cpu") from error
            finally:
                self._answering = None

    def _decode_drafted(self, job: _Job) -> Iterator[Emission]:
        reused = _common_prefix(self._cached_ids, job.prompt_ids[:-1])
        self._cached_ids = job.prompt_ids[:reused]
        self._cache.truncate(reused)
        job.stats.cached_tokens = reused
        self._drafter.begin(job.prompt_ids, job.prediction_ids, job.request.hints)
        written: list[int] = []
        try:
            for emission in loop.decode(
                self._target,
                self._cache,
                job.prompt_ids.tolist(),
                drafter=self._drafter,
                sampler=job.sampler,
                stop_rule=job.stop_rule,
                budget=self._budget,
                cancel=job.request.cancel,
                stats=job.stats,
            ):
                written.extend(emission.token_ids)
                yield emission
        finally:
            self._cached_ids = np.append(job.prompt_ids, np.array(written, dtype=np.int32))[: self._cache.length]

    def _decode_plainly(self, job: _Job) -> Iterator[Emission]:
        return reference.decode(
            self._target,
            job.prompt_ids.tolist(),
            sampler=job.sampler,
            stop_rule=job.stop_rule,
            cancel=job.request.cancel,
            stats=job.stats,
        )


class _Job:
    """One request in tokens: checked, encoded, with its own sampler, stop rule and counters."""

    def __init__(
        self, request: GenerateRequest, target: Target, tokenizer: Tokenizer, eos_ids: Collection[int]
    ) -> None:
        if sum((bool(request.messages), request.fim is not None, request.prompt is not None)) != 1:
            raise UsageError("a request needs exactly one of messages, fim and prompt")
        check_sampling(request.sampling, target.vocab_size)
        self.request = request
        self.prediction_ids = tokenizer.text_ids(request.prediction)
        if request.fim is not None:
            self.prompt_ids = np.array(tokenizer.encode_fim(request.fim), dtype=np.int32)
        elif request.prompt is not None:
            self.prompt_ids = np.array(tokenizer.encode_prompt(request.prompt), dtype=np.int32)
        else:
            self.prompt_ids = tokenizer.chat_ids(request.messages)
        limit = request.max_new_tokens
        if limit is None:
            limit = len(self.prediction_ids) * 3 // 2 + 256
        elif limit == "context":
            limit = max(1, target.context_tokens - len(self.prompt_ids))
        _check_room(len(self.prompt_ids), limit, target.context_tokens)
        self.sampler = Sampler(request.sampling, request.seed, self.prompt_ids.tolist())
        self.stop_rule = StopRule(tokenizer.stream(), eos_ids=eos_ids, stop_strings=request.stop, max_new_tokens=limit)
        self.stats = DecodeStats(prompt_tokens=len(self.prompt_ids))
        self.tracer = Tracer(tokenizer)


def _drafter(tokenizer: Tokenizer, vocab_size: int, drafters: Collection[DrafterName]) -> EditDrafter:
    vocabulary = Vocabulary.of(tokenizer, vocab_size, tokenizer.special_ids)
    table = table_for(tokenizer, vocab_size) if "ngram" in drafters else None
    return EditDrafter(vocabulary, parts=drafters, table=table)


def warm_up(tokenizer: Tokenizer, drafters: Collection[DrafterName]) -> None:
    """Draft something: what is unpacked, loaded or compiled once is then there before an answer waits for it."""
    drafter = _drafter(tokenizer, tokenizer.vocab_size, drafters)
    ids = tokenizer.text_ids("def half(x):\n    return x / 2\n")
    drafter.begin(ids, ids, Hints(substitutions=(("half", "third"),)))
    for token_ids in (ids[:4].tolist(), ids[:2].tolist()):
        drafter.commit(token_ids)
        drafter.propose(_DEFAULT_BUDGET)


def _budget(target: Target, draft_budget: int | None, costs: CostTable | None) -> Budget:
    if costs is not None and draft_budget != 0:
        return DraftBudget(ForwardCosts(costs), _DEFAULT_BUDGET if draft_budget is None else draft_budget)
    on_cpu = target.device.type == "cpu"
    default = _DEFAULT_BUDGET_CPU_UNMEASURED if on_cpu else _DEFAULT_BUDGET
    return FixedBudget(default if draft_budget is None else draft_budget)


def _check_room(prompt_tokens: int, answer_tokens: int, context_tokens: int) -> None:
    if answer_tokens < 0:
        raise UsageError(f"max_new_tokens is {answer_tokens}: it can't be negative")
    if prompt_tokens + answer_tokens > context_tokens:
        raise ContextOverflowError(
            f"the prompt has {prompt_tokens} tokens and the answer may take {answer_tokens}, together more than the "
            f"model's context of {context_tokens}: edit a smaller range, or lower --max-new-tokens"
        )


def _common_prefix(left: TokenIds, right: TokenIds) -> int:
    """How many tokens two sequences have in common at their start."""
    shared = min(len(left), len(right))
    different = np.flatnonzero(left[:shared] != right[:shared])
    return int(different[0]) if len(different) else shared
