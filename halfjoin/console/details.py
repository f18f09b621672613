"""What the page shows of one view or table: its text, plan, the work of the last batch, contents, errors."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from halfjoin.engine.engine import Engine
from halfjoin.engine.statements.creating import qualified
from halfjoin.engine.statements.stats import CollectionStats, Stats
from halfjoin.errors import HalfjoinError
from halfjoin.shell.cells import cells

MOST_ROWS = 200
MOST_ERRORS = 10
_CELL = 400  # characters of a value


def collections(engine: Engine) -> dict[str, Any]:
    """All tables, views, nodes and arrangements: what each holds, and what would go if a view were dropped."""
    stats = engine.stats()
    return {
        "collections": [one.model_dump(exclude={"runs", "rounds"}) | {"frees": _frees(one, stats)}
                        for one in stats.collections],
        "arrangements": [one.model_dump() for one in stats.arrangements],
        "sinks": [one.model_dump() for one in stats.sinks],
        "sources": [one.model_dump(exclude={"options", "position"}) for one in stats.sources],
    }  # fmt: skip


def _frees(view: CollectionStats, stats: Stats) -> int | None:
    """The bytes that dropping a view gives back: its own, its nodes' that no other view shares, and those of the
    arrangements that nothing else uses. None for what is no view, or is read by others, so that it stays."""
    if view.kind != "materialized view" or view.users:
        return None
    gone = {view.name: view} | {one.name: one for one in stats.collections
                                if one.kind == "node" and one.users == [view.name]}  # fmt: skip
    indexes = [one.bytes for one in stats.arrangements
               if one.collection not in gone and one.users and gone.keys() >= set(one.users)]  # fmt: skip
    return sum(one.row_bytes + one.index_bytes for one in gone.values()) + sum(indexes)


def view(engine: Engine, name: str) -> dict[str, Any]:
    """A view's SQL, its plan as EXPLAIN gives it, and the work of its nodes in the last batch that reached it,
    and the first rows because of which it cannot be read.

    Raises:
        UnknownName: nothing has that name.
    """
    made = engine.execute(f"SHOW CREATE {qualified(name)}")
    text = "" if made is None else str(made["create_statement"][0].as_py())
    stats = engine.stats()
    own = next((one for one in stats.collections if one.name == name), None)
    maintained = own is not None and own.kind == "materialized view"
    plan = json.loads(engine.explain(name, format="json")) if maintained else None
    names = {name, *(node["name"] for node in plan["nodes"])} if plan else {name}
    last = next((batch for batch in reversed(engine.activity().recent) if names & batch.nodes.keys()), None)
    work = {} if last is None else {one: {"rows": did.rows, "ms": round(did.seconds * 1000, 3), "found": did.found}
                                    for one, did in last.nodes.items() if one in names}  # fmt: skip
    return {
        "name": name, "sql": text, "plan": plan, "work": work, "in": {} if last is None else dict(last.tables),
        "held": {one.name: {"rows": one.updates, "bytes": one.row_bytes + one.index_bytes}
                 for one in stats.collections if one.name in names},
        "since": own.since if own else None, "upper": stats.upper, "clock": stats.clock,
        "errors": _errors(engine, name) if maintained else None,
    }  # fmt: skip


def _errors(engine: Engine, name: str) -> dict[str, Any] | None:
    """The first rows because of which a view cannot be read, and whether there are `more`; None if it can be."""
    found = engine.errors(name, limit=MOST_ERRORS + 1)
    if not found.num_rows:
        return None
    return {**table(found.slice(0, MOST_ERRORS)), "more": found.num_rows > MOST_ERRORS}


def contents(engine: Engine, name: str, as_of: int | None) -> dict[str, Any]:
    """Some rows of a view as of a time; why it cannot be read, if it cannot."""
    return answer(engine, f"SELECT * FROM {qualified(name)} LIMIT {MOST_ROWS}", as_of)


def answer(engine: Engine, sql: str, as_of: int | None) -> dict[str, Any]:
    """The first rows of a query, or its error."""
    try:
        rows = engine.query(sql, as_of=as_of)
    except HalfjoinError as error:
        return {"error": f"{type(error).__name__}: {error}"}
    return table(rows)


def table(rows: pa.Table) -> dict[str, Any]:
    """The first rows of a table as texts. Long values are cut."""
    shown = cells(rows.slice(0, MOST_ROWS))
    return {
        "columns": [{"name": one.name, "number": _is_number(one.type)} for one in rows.schema],
        "rows": [[None if value is None else value[:_CELL] for value in row] for row in shown],
        "count": rows.num_rows,
    }  # fmt: skip


def _is_number(type: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type) or pa.types.is_floating(type) or pa.types.is_decimal(type))
