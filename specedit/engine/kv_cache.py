"""KVCache: the keys and values of committed tokens, in preallocated slabs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

_FIRST_CAPACITY_ROWS = 64


@dataclass(slots=True)
class _Layer:
    """One layer's slabs, [1, kv_heads, capacity, head_dim] each; rows beyond `length` are garbage."""

    keys: torch.Tensor | None = None
    values: torch.Tensor | None = None
    length: int = 0


class KVCache:
    """Keys and values of one sequence, a row a token, for all layers of a model.

    Three verbs change it: `append` writes the rows of one forward behind those that stand, `keep` keeps one path of a
    draft tree, `truncate` cuts to a length. `fork` begins another cache with its first rows. The slabs double when they
    are full, so most appends copy nothing else. They take shape, dtype and device from the first rows they are given,
    and are inference tensors: no gradients.
    """

    def __init__(self, num_layers: int) -> None:
        self._layers = [_Layer() for _ in range(num_layers)]

    @property
    def length(self) -> int:
        """Rows that stand in every layer."""
        return min(layer.length for layer in self._layers)

    @property
    def num_bytes(self) -> int:
        """Bytes held by the slabs, unused rows counted."""
        slabs = (slab for layer in self._layers for slab in (layer.keys, layer.values) if slab is not None)
        return sum(slab.numel() * slab.element_size() for slab in slabs)

    @torch.inference_mode()
    def append(
        self,
        layer_index: int,
        keys: torch.Tensor,  # [1, kv_heads, rows, head_dim]
        values: torch.Tensor,  # [1, kv_heads, rows, head_dim]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write rows behind those that stand in this layer.

        Returns:
            Views [1, kv_heads, length + rows, head_dim] of all keys and values that now stand there.
        """
        layer = self._layers[layer_index]
        end = layer.length + keys.shape[2]
        layer.keys = _write(layer.keys, layer.length, keys)
        layer.values = _write(layer.values, layer.length, values)
        layer.length = end
        return layer.keys[:, :, :end], layer.values[:, :, :end]

    @torch.inference_mode()
    def keep(self, base: int, path: Sequence[int]) -> None:
        """Keep the first `base` rows and, behind them, the rows of `path`; drop all others.

        Args:
            base: rows that stay where they are.
            path: rows counted from `base`, ascending: row 0 and the accepted path of a tree that stands at `base`.

        Raises:
            ValueError: a row that does not stand, or rows that do not ascend.
        """
        rows = [base + row for row in path]
        if any(lower >= upper for lower, upper in zip([base - 1, *rows], [*rows, self.length], strict=True)):
            raise ValueError(f"can't keep rows {list(path)} from {base} on: {self.length} rows stand")
        end = base + len(rows)
        if rows != list(range(base, end)):
            for layer in self._layers:
                for slab in (layer.keys, layer.values):
                    if slab is not None:
                        index = torch.tensor(rows, device=slab.device)
                        slab[:, :, base:end] = slab.index_select(2, index)
        self.truncate(end)

    def truncate(self, length: int) -> None:
        """Cut every layer to its first `length` rows; 0 empties the cache and gives its memory back.

        Raises:
            ValueError: fewer rows stand, or `length` is negative.
        """
        if not 0 <= length <= self.length:
            raise ValueError(f"can't truncate to {length} rows: {self.length} stand")
        for layer in self._layers:
            layer.length = length
            if length == 0:
                layer.keys = layer.values = None

    @torch.inference_mode()
    def fork(self, length: int) -> KVCache:
        """Another cache with a copy of the first `length` rows.

        Raises:
            ValueError: fewer rows stand, or `length` is negative.
        """
        if not 0 <= length <= self.length:
            raise ValueError(f"can't fork at {length} rows: {self.length} stand")
        copy = KVCache(len(self._layers))
        for index, layer in enumerate(self._layers):
            if length and layer.keys is not None and layer.values is not None:
                copy.append(index, layer.keys[:, :, :length], layer.values[:, :, :length])
        return copy


def _write(slab: torch.Tensor | None, start: int, rows: torch.Tensor) -> torch.Tensor:
    end = start + rows.shape[2]
    if slab is None or end > slab.shape[2]:
        batch, heads, _, head_dim = rows.shape
        capacity = max(_FIRST_CAPACITY_ROWS, 2 * (slab.shape[2] if slab is not None else 0), end)
        grown = rows.new_empty(batch, heads, capacity, head_dim)
        if slab is not None:
            grown[:, :, :start] = slab[:, :, :start]
        slab = grown
    slab[:, :, start:end] = rows
    return slab
