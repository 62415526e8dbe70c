"""Benchmarks: what drafting gains, and whether the edits are made."""
