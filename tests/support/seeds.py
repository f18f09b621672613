"""How many random examples a run tries, and from which seed.

An everyday run tries a sixth of the seeds of a test that is run once for each, a fifth of the examples of a test that
makes them itself, and a third of the views of a test whose views are Spark jobs; at least one of them. With
`HALFJOIN_ONE_IN=n` it tries one in n of each: `make test ALL=1` all, `.ci/run` every second (as an everyday run on a
slow machine). A run that asks for new examples tries all of these. Tests without random examples are the same in every
run.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from typing import Any

_NEW = any(map(os.environ.get, ("HALFJOIN_FUZZ", "HALFJOIN_FUZZ_SQL")))  # new examples
ONE_IN = 1 if _NEW else int(os.environ.get("HALFJOIN_ONE_IN", "0"))  # 0: an everyday run
_OF, _OF_SEEDS, _OF_VIEWS = 5, 6, 3  # an everyday run tries one in so many


def first_seed() -> int:
    """`HALFJOIN_SEED`, or a seed that nobody has tried if a run asks for new examples: others try the same ones."""
    return int(os.environ.get("HALFJOIN_SEED") or (random.SystemRandom().randrange(2**32) if _NEW else 1))


def some(examples: int, of: int = _OF) -> int:
    """How many of a test's examples this run tries; an everyday run tries one `of` so many."""
    return -(-examples // (ONE_IN or of))


def some_views(views: dict[str, str]) -> dict[str, str]:
    """The views, by name, that this run tries; an everyday run tries every third."""
    return dict(list(views.items())[:: ONE_IN or _OF_VIEWS])


def left_out(items: Iterable[Any]) -> list[Any]:
    """The tests that this run leaves to a whole one: of each function all but the first values of `seed`."""
    seeds: dict[str, dict[Any, None]] = {}
    seeded = [(item.nodeid.partition("[")[0], item.callspec.params["seed"], item) for item in items
              if "seed" in getattr(getattr(item, "callspec", None), "params", ())]  # fmt: skip
    for function, seed, _ in seeded:
        seeds.setdefault(function, {})[seed] = None
    tried = {function: set(list(found)[: some(len(found), _OF_SEEDS)]) for function, found in seeds.items()}
    return [item for function, seed, item in seeded if seed not in tried[function]]
