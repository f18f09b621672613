"""The roads of the world, a real graph: the package `scgraph_data` ships them as Python source."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_NEIGHBOUR = re.compile(r"(\d+): ")


def roads() -> tuple[NDArray[np.int64], int]:
    """The edges, from and to, one row for each direction of a road; and the number of nodes.

    The source has one dict for each node: the neighbours and the kilometres to them. It is read as text, since Python
    takes minutes to compile it.
    """
    spec = find_spec("scgraph_data")
    if spec is None or spec.origin is None:
        raise SystemExit("the roads are in the package scgraph_data: pip install scgraph_data")
    text = (Path(spec.origin).parent / "world_highways.py").read_text()
    start, stop = text.index("graph=[{"), text.index("}]")
    each = [_NEIGHBOUR.findall(one) for one in text[start:stop].split("}, {")]
    sources = np.repeat(np.arange(len(each)), [len(one) for one in each])
    targets = np.array([int(number) for one in each for number in one], np.int64)
    return np.stack([sources, targets], axis=1), len(each)
