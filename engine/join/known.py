"""Finds the rows of a collection whose keys a query tells: `WHERE k = 5`, `k IN (1, 2)` (`planner.known`).

The keys are looked up in every run of an arrangement, as a half-join looks up changed rows. Codes are compared, not
keys: the operator of the path tests each row that is found. No row is found twice, since no code is asked for twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import pyarrow as pa

from halfjoin.engine.arrange.index import KeyColumns
from halfjoin.engine.arrange.keys import key_columns
from halfjoin.engine.arrange.part import Part
from halfjoin.engine.linear.tables import Registry
from halfjoin.engine.scalar import compile
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.scalar.literals import array_of_constants
from halfjoin.engine.updates.codes import codes, distinct
from halfjoin.engine.updates.consolidate import cancel
from halfjoin.engine.updates.updates import Ints, Updates, concat, gathered, indices_of
from halfjoin.planner.plan import ArrangementKey, Known
from halfjoin.sql.expr import Column, Literal
from halfjoin.sql.functions import cast
from halfjoin.sql.types import Kind, SqlType

_VALUE = "value"
_ALIKE = (frozenset((Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT)), frozenset((Kind.TEXT, Kind.VARCHAR)))


@dataclass(frozen=True, slots=True)
class KnownRows:
    """A compiled `Known`: the keys as columns, and their distinct codes."""

    arrangement: ArrangementKey
    columns: KeyColumns
    keys: list[pa.Array]
    codes: Ints

    def __call__(self, parts: Sequence[Part], closed: int, upper: int, names: Sequence[str]) -> Iterator[Updates]:
        """The updates with times below `upper` that have one of the keys, with the columns `names`, added up: only the
        contents at `upper - 1` matter, so their times have no meaning. Updates below `closed` may be added up before.
        """
        found = list[Updates]()
        for part in parts if len(self.codes) else ():
            for run in part.narrowed(self.arrangement, self.columns, self.keys, names):
                for index in run.entries(self.arrangement, self.columns, closed):
                    for _, rows in index.find(self.codes):
                        source = run.updates.columns
                        columns = gathered({name: source[name] for name in names}, indices_of(rows))
                        found.append(Updates(columns, run.updates.time[rows], run.diffs(rows, closed)))
        if not found:
            return
        whole = concat(found)
        early = whole.time < upper
        whole = whole if early.all() else whole.filter(early)
        if len(whole):
            yield cancel(whole, by_time=False)


def compile_known(known: Known, registry: Registry) -> KnownRows:
    """Make the lookup of known keys executable. A value that the key's type does not have finds nothing."""
    key = known.arrangement
    each = [cells_of(values, expr.type) for expr, values in zip(key.keys, known.values, strict=True)]
    if len(each) == 1:
        keys = each
    else:
        places = np.array(list(product(*(range(len(one)) for one in each))), np.int64).reshape(-1, len(each))
        keys = [one.take(pa.array(places[:, number])) for number, one in enumerate(each)]
    return KnownRows(key, key_columns(key, registry), keys, distinct(codes(keys, len(keys[0]))))


def cells_of(values: Sequence[Literal], type: SqlType) -> pa.Array:
    """The values as a column of a key. Those that do not fit its type are left out."""
    cells = list[pa.Array]()
    for own in dict.fromkeys(value.type for value in values):
        column = array_of_constants([value.value for value in values if value.type == own], own)
        if own != type and not any(own.kind in kinds and type.kind in kinds for kinds in _ALIKE):
            made = compile(cast(Column(_VALUE, own), type, explicit=True)).evaluate({_VALUE: column}, len(column))
            column = made.values
        elif own.kind in _ALIKE[0]:
            column = column.cast(pa.int64())
        cells.append(column.drop_null())
    return pa.concat_arrays(cells) if cells else pa.nulls(0, arrow_type(type))
