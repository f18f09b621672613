"""A part of a file as rows of the table, with the records that cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from halfjoin.engine.updates.updates import Ints

Bad: TypeAlias = tuple[int, str, str]  # the number of a record, its text, and what is wrong with it


@dataclass(frozen=True, slots=True)
class Block:
    """The rows of some records that come one after the other.

    `number`: of each row its record's number in the file, from 1. `text`: shows the record of a row.
    """

    rows: pa.Table
    number: Ints
    bad: Sequence[Bad]
    text: Callable[[int], str]


Raw: TypeAlias = Callable[[], Block]  # makes a block; a block that is applied already is passed over unmade
