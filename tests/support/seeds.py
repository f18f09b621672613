"""Where new random examples begin: at a seed that `make fuzz` names, so that all processes try the same ones."""

from __future__ import annotations

import os
import random


def first_seed() -> int:
    """`HALFJOIN_SEED`, or one that nobody has tried."""
    return int(os.environ.get("HALFJOIN_SEED") or random.SystemRandom().randrange(2**32))
