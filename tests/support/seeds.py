"""The first seed of new random examples. `make fuzz` names it, so that all processes try the same examples."""

from __future__ import annotations

import os
import random


def first_seed() -> int:
    """`HALFJOIN_SEED`, or a seed that nobody has tried."""
    return int(os.environ.get("HALFJOIN_SEED") or random.SystemRandom().randrange(2**32))
