"""CachePool: the KV caches of answers under way and of recent ones, within so many bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from specedit.engine.kv_cache import KVCache
from specedit.engine.token_cache import TokenIds


@dataclass(eq=False, slots=True)
class Lease:
    """A cache that an answer works with.

    Attributes:
        cache: its rows begin `token_ids`; between two steps the pool may empty it.
        token_ids: those of the prompt; when the lease has ended, of prompt and answer.
        reused: rows that stood at the start.
        is_idle: no answer works with it any more.
        used: when it was used last, by the pool's clock.
    """

    cache: KVCache
    token_ids: TokenIds
    reused: int = 0
    is_idle: bool = False
    used: int = 0

    @property
    def known_ids(self) -> TokenIds:
        """What the rows stand for, as far as the pool knows."""
        return self.token_ids[: self.cache.length]


class CachePool:
    """Lends KV caches, the rows of a recent prompt's common start already in them.

    When they take too many bytes together, the idle ones go first, then those of paused answers, which read their
    prompt and their own text again when they go on; in both the one that was not used for the longest time. The cache
    that was used last always stays. Not thread-safe: whoever runs the target's forwards calls it.
    """

    def __init__(self, new_cache: Callable[[], KVCache], limit_bytes: int) -> None:
        """Make an empty pool.

        Args:
            new_cache: makes an empty cache.
            limit_bytes: of keys and values; the cache in use may be larger.
        """
        self._new_cache = new_cache
        self._limit_bytes = limit_bytes
        self._leases: list[Lease] = []
        self._clock = 0

    def __len__(self) -> int:
        return len(self._leases)

    @property
    def num_bytes(self) -> int:
        """Bytes held by all caches."""
        return sum(lease.cache.num_bytes for lease in self._leases)

    def lend(self, prompt_ids: TokenIds) -> Lease:
        """A cache with as many rows of the prompt as any other has in common with it, all but the last token.

        An idle cache that is of use for the most part is lent itself, any other's rows are copied.
        """
        wanted = prompt_ids[:-1]
        shared, source = max(
            ((common_prefix(lease.known_ids, wanted), lease) for lease in self._leases),
            key=lambda found: (found[0], found[1].is_idle, found[1].used),
            default=(0, None),
        )
        if source is not None and source.is_idle and 2 * shared >= source.cache.length:
            self._leases.remove(source)
            source.cache.truncate(shared)
            lease = Lease(source.cache, prompt_ids, shared)
        elif source is not None and shared:
            lease = Lease(source.cache.fork(shared), prompt_ids, shared)
        else:
            lease = Lease(self._new_cache(), prompt_ids)
        self._leases.append(lease)
        self.touch(lease)
        return lease

    def touch(self, lease: Lease) -> None:
        """Take note that `lease` was just used, and make room if there is too much."""
        self._clock += 1
        lease.used = self._clock
        for victim in self._victims(lease):
            if self.num_bytes <= self._limit_bytes:
                break
            self._evict(victim)

    def end(self, lease: Lease, token_ids: TokenIds) -> None:
        """The answer is over; its rows stand for the first of `token_ids` and are kept for the next request."""
        lease.token_ids = token_ids
        lease.is_idle = True
        for other in [other for other in self._leases if other.is_idle and other is not lease]:
            if len(other.known_ids) == common_prefix(other.known_ids, lease.known_ids):
                self._leases.remove(other)
        self.touch(lease)

    def evict_all_but(self, lease: Lease) -> bool:
        """Empty all other caches, as the device has no memory left; whether there was anything."""
        found = False
        for victim in self._victims(lease):
            found = found or victim.cache.num_bytes > 0
            self._evict(victim)
        return found

    def _victims(self, lease: Lease) -> list[Lease]:
        """All others, the first to go first."""
        others = [other for other in self._leases if other is not lease]
        return sorted(others, key=lambda other: (not other.is_idle, other.used))

    def _evict(self, victim: Lease) -> None:
        victim.cache.truncate(0)
        if victim.is_idle:
            self._leases.remove(victim)


def common_prefix(left: TokenIds, right: TokenIds) -> int:
    """How many tokens two sequences have in common at their start."""
    shared = min(len(left), len(right))
    different = np.flatnonzero(left[:shared] != right[:shared])
    return int(different[0]) if len(different) else shared
