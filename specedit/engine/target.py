"""The target model: any causal language model of transformers, used unmodified. Only this file touches its caches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.cache_utils import Cache, CacheLayerMixin
from transformers.utils import logging as transformers_logging

from specedit.draft.tree import BoolArray, DraftTree, IntArray
from specedit.engine.kv_cache import KVCache
from specedit.errors import ModelError, UnsupportedModelError

DtypeName = Literal["auto", "float32", "bfloat16", "float16"]

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
_MASKED_LAYER_TYPES = {"full_attention", "sliding_attention"}

#: How far a tree's logits may lie from those of a plain run, as a share of their range, before the model counts as one
#: that does not follow mask and positions. Rounding stays far below it, a mask that is ignored far above.
_TREE_CHECK_TOLERANCE = {torch.float32: 0.002, torch.float64: 0.002}
_TREE_CHECK_TOLERANCE_LOW_PRECISION = 0.06

_PREFILL_CHUNK_TOKENS = 512
_PREFILL_CHUNK_TOKENS_CPU = 128


class Target:
    """A causal language model that verifies draft trees.

    Attributes:
        model: the transformers model, in inference mode only.
        plain_only: why this model can only be decoded one token a step, or None where trees can be verified.
    """

    def __init__(self, model: Any) -> None:
        self.model = model.eval()
        self._config = self.model.config.get_text_config()
        self.device = next(model.parameters()).device
        self.dtype = next(model.parameters()).dtype
        self._layer_types = _layer_types(self._config)
        self.plain_only = self._find_obstacle()

    @classmethod
    def load(
        cls,
        path: Path,
        *,
        device: str = "auto",
        dtype: DtypeName = "auto",
        on_share: Callable[[float], None] = lambda _: None,
    ) -> Target:
        """Load a directory of safetensors.

        Args:
            path: holds config.json and the weights.
            device: as torch calls it; "auto" takes CUDA, else MPS, else the CPU.
            dtype: "auto" takes float32 on the CPU, bfloat16 on CUDA, float16 on MPS.
            on_share: told which share of the weights' tensors is there, 0 to 1.

        Raises:
            ModelError: the files are no causal language model, or weights are missing or left over (all are named).
        """
        place = _choose_device(device)
        kind = _choose_dtype(dtype, place)
        with _quiet_loading(on_share):
            try:
                model, info = AutoModelForCausalLM.from_pretrained(
                    path,
                    dtype=kind,
                    local_files_only=True,
                    output_loading_info=True,
                    trust_remote_code=False,
                    use_safetensors=True,
                )
            except (OSError, ValueError, KeyError, ImportError) as error:
                raise ModelError(f"can't load the model in {path}: {error}") from error
        wrong = {
            name: sorted(info[name]) for name in ("missing_keys", "unexpected_keys", "mismatched_keys") if info[name]
        }
        if wrong:
            listed = "; ".join(f"{name.replace('_', ' ')}: {', '.join(map(str, keys))}" for name, keys in wrong.items())
            raise ModelError(f"the weights in {path} do not fit their config ({listed}): pull the model again")
        try:
            return cls(model.to(place))
        except torch.OutOfMemoryError as error:
            raise ModelError(
                f"the model in {path} does not fit on {place}: use a smaller one, or set SPECEDIT_DEVICE=cpu"
            ) from error

    @property
    def vocab_size(self) -> int:
        """Columns of the logits."""
        return int(self._config.vocab_size)

    @property
    def context_tokens(self) -> int:
        """The most tokens that the model was made to attend to."""
        return int(getattr(self._config, "max_position_embeddings", 1 << 30))

    @property
    def prefill_chunk_tokens(self) -> int:
        """Tokens of a prompt to read in one forward: as few as cost little more, as nothing stops a forward."""
        return _PREFILL_CHUNK_TOKENS_CPU if self.device.type == "cpu" else _PREFILL_CHUNK_TOKENS

    @property
    def eos_ids(self) -> frozenset[int]:
        """The tokens that its generation config ends an answer at."""
        generation = getattr(self.model, "generation_config", None)
        eos = generation.eos_token_id if generation is not None else self._config.eos_token_id
        return frozenset(eos if isinstance(eos, (list, tuple)) else [] if eos is None else [eos])

    def new_cache(self) -> KVCache:
        """An empty cache for one sequence."""
        return KVCache(int(self._config.num_hidden_layers))

    @torch.inference_mode()
    def forward(
        self,
        cache: KVCache,
        token_ids: IntArray,  # [rows]
        positions: IntArray,  # [rows]
        mask: BoolArray,  # [rows, rows]
        *,
        last_rows: int | None = None,
    ) -> torch.Tensor:
        """Run rows that see all of the cache and, of each other, what `mask` lets them see.

        Their keys and values are appended to the cache; a forward that fails leaves it as it was.

        Returns:
            Logits [rows, vocabulary], of as many of the last rows as were asked for.
        """
        rows = len(token_ids)
        assert positions.shape == (rows,)
        assert mask.shape == (rows, rows)
        base = cache.length
        try:
            out = self.model(
                input_ids=torch.from_numpy(token_ids)[None].to(self.device),
                position_ids=torch.from_numpy(positions)[None].to(self.device),
                attention_mask=self._attention_mask(base, positions, mask),
                cache=Cache(layers=[_SlabLayer(cache, index) for index in range(self._config.num_hidden_layers)]),
                use_cache=True,
                # All, where it is 0.
                logits_to_keep=last_rows or 0,
            )
        except BaseException:
            cache.truncate(base)
            raise
        return cast(torch.Tensor, out.logits[0])

    def plain_feed(self) -> Callable[[Sequence[int]], torch.Tensor]:
        """A fresh sequence decoded with transformers' own cache and masks.

        Returns:
            A function from the next tokens to the last row of logits [vocabulary].
        """
        cache: Any = None

        @torch.inference_mode()
        def feed(token_ids: Sequence[int]) -> torch.Tensor:
            nonlocal cache
            ids = torch.tensor([list(token_ids)], device=self.device)
            out = self.model(input_ids=ids, cache=cache, use_cache=True, logits_to_keep=1)
            cache = out.cache
            return cast(torch.Tensor, out.logits[0, -1])

        return feed

    def _attention_mask(
        self, base: int, positions: IntArray, mask: BoolArray
    ) -> torch.Tensor | dict[str, torch.Tensor]:
        """The 4-D mask [1, 1, rows, base + rows], or one for each kind of layer where a model mixes them."""
        full = np.concatenate((np.ones((len(positions), base), dtype=np.bool_), mask), axis=1)
        if "sliding_attention" not in self._layer_types:
            return self._to_model(full)
        # Distance is counted in positions: siblings of a tree stand side by side in the cache.
        key_positions = np.concatenate((np.arange(base), positions))
        sliding = full & (positions[:, None] - key_positions[None, :] < self._config.sliding_window)
        if self._layer_types == {"sliding_attention"}:
            return self._to_model(sliding)
        return {"full_attention": self._to_model(full), "sliding_attention": self._to_model(sliding)}

    def _to_model(self, mask: BoolArray) -> torch.Tensor:
        allowed = torch.from_numpy(mask)[None, None].to(self.device)
        if self.model.config._attn_implementation == "sdpa":
            return allowed
        # Eager attention adds the mask to the scores: a boolean one would be silently wrong.
        blocked = torch.finfo(self.dtype).min
        return torch.zeros(allowed.shape, dtype=self.dtype, device=self.device).masked_fill(~allowed, blocked)

    def _find_obstacle(self) -> str | None:
        """Why trees can't be verified on this model, found out before anyone relies on it."""
        if getattr(self.model, "_is_stateful", False) or not self._layer_types <= _MASKED_LAYER_TYPES:
            kinds = ", ".join(sorted(self._layer_types - _MASKED_LAYER_TYPES)) or "recurrent"
            return f"{self._config.model_type} has {kinds} layers, which can't be cut back after a rejected draft"
        try:
            gap = self._tree_gap()
        except (TypeError, ValueError, KeyError, AttributeError, IndexError, RuntimeError) as error:
            return f"{self._config.model_type} takes no draft trees ({type(error).__name__}: {error})"
        tolerance = _TREE_CHECK_TOLERANCE.get(self.dtype, _TREE_CHECK_TOLERANCE_LOW_PRECISION)
        if not gap <= tolerance:
            return f"{self._config.model_type} does not follow a tree's attention mask and positions"
        return None

    def _tree_gap(self) -> float:
        """How far the logits of a small tree are from plain runs over its two branches, as a share of their range."""
        step = max(1, self.vocab_size // 7)
        first, second, left, right, leaf = (number * step % self.vocab_size for number in range(1, 6))
        tree = DraftTree.of([second, left, right, leaf], parents=[-1, 0, 0, 2])
        token_ids = np.array([first, second, left, right, leaf])
        logits = self.forward(self.new_cache(), token_ids, tree.positions(0), tree.mask).double()
        worst = torch.zeros(())
        for row, tokens in ((2, [first, second, left]), (4, [first, second, right, leaf])):
            plain = self.plain_feed()(tokens).double()
            gap = (logits[row] - plain).abs().max() / (plain.max() - plain.min())
            worst = torch.maximum(worst, gap.cpu())
        return float(worst)


class _SlabLayer(CacheLayerMixin):  # type: ignore[misc]
    """Shows one layer of a `KVCache` to transformers. With a 4-D mask and positions only `update` is called."""

    is_sliding = False

    def __init__(self, cache: KVCache, index: int) -> None:
        super().__init__()
        self._cache = cache
        self._index = index

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return self._cache.append(self._index, key_states, value_states)

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Nothing to do: the slabs take their shape from the first rows."""

    def get_seq_length(self) -> int:
        return self._cache.length

    def get_max_length(self) -> int:
        return -1

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self._cache.length + query_length, 0


def convert_gguf(gguf_path: Path, out_dir: Path) -> None:
    """Turn a GGUF file into a directory of float32 safetensors with its tokenizer, ready for `Target.load`.

    Raises:
        UnsupportedModelError: transformers can't read this architecture from GGUF.
    """
    source = {"pretrained_model_name_or_path": gguf_path.parent, "gguf_file": gguf_path.name}
    with _quiet_loading():
        try:
            tokenizer = AutoTokenizer.from_pretrained(**source)
            model = AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32)
        except (OSError, ValueError, KeyError, NotImplementedError) as error:
            raise UnsupportedModelError(f"can't convert {gguf_path}: {error}") from error
        # What is saved is dequantized, so it must not claim to be quantized.
        del model.config.quantization_config
        model.config.architectures = [type(model).__name__]
        model.is_quantized = False
        model.hf_quantizer = None
        model.save_pretrained(out_dir)
        tokenizer.save_pretrained(out_dir)


def _layer_types(config: Any) -> set[str]:
    if getattr(config, "layer_types", None):
        return set(config.layer_types)
    sliding = getattr(config, "sliding_window", None) and getattr(config, "use_sliding_window", True)
    return {"sliding_attention" if sliding else "full_attention"}


def cuda_memory_bytes() -> int | None:
    """Memory of the first CUDA device, or None where there is none."""
    return int(torch.cuda.get_device_properties(0).total_memory) if torch.cuda.is_available() else None


def _choose_device(name: str) -> torch.device:
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ModelError(f'the device {name!r} can\'t be used here: choose another, or "auto"') from error
    return device


def _choose_dtype(name: DtypeName, device: torch.device) -> torch.dtype:
    if name != "auto":
        return _DTYPES[name]
    return {"cuda": torch.bfloat16, "mps": torch.float16}.get(device.type, torch.float32)


class _quiet_loading:  # noqa: N801 - reads as a verb where it is used
    """Keeps transformers' own progress bars and warnings off the terminal while it loads; tells how far it is."""

    def __init__(self, on_share: Callable[[float], None] = lambda _: None) -> None:
        self._on_share = on_share

    def __enter__(self) -> None:
        self._verbosity = transformers_logging.get_verbosity()
        self._bars = transformers_logging.is_progress_bar_enabled()
        transformers_logging.set_verbosity_error()
        transformers_logging.disable_progress_bar()
        self._hook = transformers_logging.set_tqdm_hook(self._bar)

    def __exit__(self, *_: object) -> None:
        transformers_logging.set_tqdm_hook(self._hook)
        transformers_logging.set_verbosity(self._verbosity)
        if self._bars:
            transformers_logging.enable_progress_bar()

    def _bar(self, make: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """What transformers goes through while it draws nothing: of the weights, each is counted."""
        items = given[0] if given else None
        if isinstance(items, Sized) and isinstance(items, Iterable) and named.get("desc") == "Loading weights":
            return self._counted(items)
        return make(*given, **named)

    def _counted(self, items: Any) -> Iterator[Any]:
        for done, item in enumerate(items):
            self._on_share(done / len(items))
            yield item
