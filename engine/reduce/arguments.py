"""The arguments that an aggregate sees, group by group, in their final order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from halfjoin.engine.reduce.groups import Segments
from halfjoin.engine.updates.updates import Ints


@dataclass(frozen=True)
class Arguments(Segments):
    """One array for each argument."""

    args: tuple[pa.Array, ...]
    count: Ints
    starts: Ints

    @cached_property
    def ends(self) -> Ints:
        """The values up to each one, with their counts, from the first value of the first group on."""
        found: Ints = self.count.cumsum()
        return found

    @cached_property
    def before(self) -> Ints:
        """The values before each group, with their counts; one entry more than there are groups."""
        found: Ints = np.concatenate([np.zeros(1, np.int64), self.ends])[self.starts]
        return found

    @cached_property
    def sizes(self) -> Ints:
        """The number of values of each group, with their counts."""
        found: Ints = self.before[1:] - self.before[:-1]
        return found
