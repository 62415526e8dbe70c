"""LocalEngine: answers requests with a model in this process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from pathlib import Path

from specedit.config import DRAFTERS, DrafterName
from specedit.draft.merge import EditDrafter
from specedit.draft.priors import load_priors
from specedit.draft.shipped import table_for
from specedit.draft.vocabulary import Vocabulary
from specedit.engine.api import FimMarkers, GenerateRequest, Hints, TextChunk
from specedit.engine.budget import Budget, DraftBudget, FixedBudget
from specedit.engine.cache_pool import CachePool
from specedit.engine.costs import CostTable, ForwardCosts, measured_once
from specedit.engine.job import Drafting, Job
from specedit.engine.memory import free_memory_bytes
from specedit.engine.target import DtypeName, Target
from specedit.engine.tokens import Tokenizer
from specedit.errors import EngineError

#: The most nodes verified in one step. How many pay is another question, which only measured costs can answer: without
#: them a CPU gets fewer, as there a forward over many rows soon takes longer than the longer draft saves.
_DEFAULT_BUDGET = 128
_DEFAULT_BUDGET_CPU_UNMEASURED = 32

#: How much of loading is done once the libraries are imported, the tokenizer is there, all tensors of the weights are
#: there, the model was checked. A CPU maps the tensors in no time and reads them with the check; for a GPU most of the
#: time goes into the tensors.
_IMPORTED, _TOKENIZED, _WEIGHED, _CHECKED = 0.2, 0.4, 0.8, 0.9

#: Of keys and values, where nothing else is said: on the CPU, and the share of a device's free memory.
_DEFAULT_KV_BYTES_CPU = 2 << 30
_DEFAULT_KV_SHARE = 0.6


class LocalEngine:
    """Runs one target model.

    `generate` answers one request at a time; concurrent ones wait for each other. Whoever interleaves several answers
    takes `prepare` and pulls the chunks itself, from one thread. KV caches of recent answers are kept, so that the next
    request which begins with the same tokens reuses them.

    Attributes:
        model_name: what the model is called in reports.
        context_tokens: the most tokens of prompt and answer.
        device: what it runs on, as torch calls it.
        warnings: plain lines that a user should see once.
        pool: the KV caches.
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
        kv_bytes: int | None = None,
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
            kv_bytes: what keys and values of recent and of paused answers may take; None chooses.
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
        self.context_tokens = target.context_tokens
        self.device = str(target.device)
        self.pool = CachePool(target.new_cache, _kv_bytes(target) if kv_bytes is None else kv_bytes)
        self._lock = threading.Lock()
        #: The tokenizer remembers what it encoded, and must not be asked by two threads at once.
        self._encoding = threading.Lock()
        #: The thread whose answer is under way; waiting for itself it would wait forever.
        self._answering: int | None = None

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
        kv_bytes: int | None = None,
        fim_markers: FimMarkers | None = None,
        stop_tokens: Collection[str] = (),
        on_share: Callable[[float], None] = lambda _: None,
    ) -> LocalEngine:
        """Load model and tokenizer from a directory; arguments as in `Target.load`, `Tokenizer.load` and `__init__`.

        In `costs_dir` lie the measured costs of forwards; a model that is new there is measured, which takes about two
        seconds. Without it nothing is measured. `on_share` is told how much of the loading is done, 0 to 1 and never
        less than before; importing this module counts as the first fifth.

        Raises:
            ModelError: the model can't be loaded or can't be driven exactly.
        """
        on_share(_IMPORTED)
        tokenizer = Tokenizer.load(path, fim_markers)
        on_share(_TOKENIZED)
        with ThreadPoolExecutor(1) as aside:
            warm = aside.submit(warm_up, tokenizer, drafters) if draft_budget != 0 else None
            target = Target.load(
                path,
                device=device,
                dtype=dtype,
                on_share=lambda share: on_share(_TOKENIZED + share * (_WEIGHED - _TOKENIZED)),
            )
        on_share(_CHECKED)
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
            kv_bytes=kv_bytes,
            stop_tokens=stop_tokens,
        )

    @cached_property
    def _new_drafter(self) -> Callable[[], EditDrafter]:
        return _drafters(self._tokenizer, self._target.vocab_size, self._drafters)

    def generate(self, request: GenerateRequest) -> Iterator[TextChunk]:
        """Stream the answer, drafted and verified; see `Engine.generate`."""
        return self._answer(request, plain=False)

    def generate_plain(self, request: GenerateRequest) -> Iterator[TextChunk]:
        """Stream the answer by plain decoding: the same text, one token a forward, to compare with."""
        return self._answer(request, plain=True)

    def prepare(self, request: GenerateRequest, *, plain: bool = False) -> Iterator[TextChunk]:
        """Check and encode a request, from any thread. The chunks then come one a forward, the first when asked for.

        Closing the iterator ends the answer; what was read and written of it stays in the pool.

        Raises:
            ContextOverflowError: prompt and answer do not fit.
            UsageError: the request is wrong.
            UnsupportedModelError: the model lacks the chat template or the FIM markers that it needs.
        """
        with self._encoding:
            job = Job(request, self._target, self._tokenizer, self._eos_ids)
        if plain or self._target.plain_only is not None:
            return job.run(None)
        return job.run(Drafting(self._new_drafter, self._budget, self.pool))

    def _answer(self, request: GenerateRequest, *, plain: bool) -> Iterator[TextChunk]:
        chunks = self.prepare(request, plain=plain)
        if self._answering == threading.get_ident():
            raise EngineError("this thread has not finished its last answer: exhaust or close that iterator first")
        with self._lock:
            self._answering = threading.get_ident()
            try:
                yield from chunks
            finally:
                self._answering = None


def _drafters(tokenizer: Tokenizer, vocab_size: int, drafters: Collection[DrafterName]) -> Callable[[], EditDrafter]:
    """Makes a drafter an answer; what they share is made once."""
    vocabulary = Vocabulary.of(tokenizer, vocab_size, tokenizer.special_ids)
    table = table_for(tokenizer, vocab_size) if "ngram" in drafters else None
    priors = load_priors("plain" if table is None else "table")
    return partial(EditDrafter, vocabulary, parts=drafters, table=table, priors=priors)


def warm_up(tokenizer: Tokenizer, drafters: Collection[DrafterName]) -> None:
    """Draft something: what is unpacked, loaded or compiled once is then there before an answer waits for it."""
    _ = tokenizer.spelled
    drafter = _drafters(tokenizer, tokenizer.vocab_size, drafters)()
    ids = tokenizer.text_ids("def half(x):\n    return x / 2\n")
    drafter.begin(ids, ids, Hints(substitutions=(("half", "third"),)))
    for token_ids in (ids[:4].tolist(), ids[:2].tolist()):
        drafter.commit(token_ids)
        drafter.propose(_DEFAULT_BUDGET)


def _kv_bytes(target: Target) -> int:
    free = free_memory_bytes(target.device)
    return _DEFAULT_KV_BYTES_CPU if free is None else int(free * _DEFAULT_KV_SHARE)


def _budget(target: Target, draft_budget: int | None, costs: CostTable | None) -> Budget:
    if costs is not None and draft_budget != 0:
        return DraftBudget(ForwardCosts(costs), _DEFAULT_BUDGET if draft_budget is None else draft_budget)
    on_cpu = target.device.type == "cpu"
    default = _DEFAULT_BUDGET_CPU_UNMEASURED if on_cpu else _DEFAULT_BUDGET
    return FixedBudget(default if draft_budget is None else draft_budget)
