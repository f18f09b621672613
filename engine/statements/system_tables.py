"""The tables of PostgreSQL's catalog as collections, made for one query that reads them."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from halfjoin.engine.arrange.collection import Collection
from halfjoin.engine.arrange.run import make_run
from halfjoin.engine.batch.state import State
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.system.counted import Counted
from halfjoin.engine.updates.updates import Updates, constant
from halfjoin.sql.relation import Relation, Scan, parts_inside
from halfjoin.sql.system import SCHEMAS


def system_tables(relation: Relation) -> set[str]:
    """The tables of the catalog that a query reads."""
    found = set[str]()
    for part in parts_inside(relation):
        if isinstance(part, Scan) and part.collection.partition(".")[0] in SCHEMAS:
            found.add(part.collection)
    return found


def with_system(state: State, names: set[str], time: int) -> State:
    """The state with these tables. Their rows are there at `time`, whatever the definitions were then."""
    made: dict[str, Collection] = {}
    system = state.catalog.system()
    for name in names:
        columns = (*(system.columns(name) or ()), *system.hidden())
        values = system.rows(name, names)
        arrays = {one.name: pa.array(values[one.name], arrow_type(one.type)) for one in columns}
        length = len(next(iter(arrays.values())))
        updates = Updates(arrays, constant(time, length), constant(1, length))
        schema = {key: array.type for key, array in arrays.items()}
        made[name] = Collection(name, schema, 1, held=(make_run(updates, state.upper),) if length else ())
    return replace(state, tables=Counted({**state.tables, **made}))
