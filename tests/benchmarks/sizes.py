"""The batches of the benchmarks of query 3: how many rows, and how many batches of so many."""

from __future__ import annotations

SIZES = {1: 200, 100: 60, 10_000: 9}  # rows in a batch: how many such batches
ROWS = sum(size * count for size, count in SIZES.items())
