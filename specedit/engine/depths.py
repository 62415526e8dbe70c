"""Depths of draft nodes in a few buckets: acceptance is learned and told by them."""

from __future__ import annotations

DEPTH_BUCKETS = ("1", "2-3", "4-7", "8-15", "16-31", "32+")
"""A bucket is the highest bit of the depth; the children of the root have depth 1."""


def depth_bucket(depth: int) -> int:
    """The index into `DEPTH_BUCKETS` for a node's depth."""
    return min(depth.bit_length(), len(DEPTH_BUCKETS)) - 1
