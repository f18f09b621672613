"""What the page shows of one view or table: its text, plan, the work of the last batch, contents, errors."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from halfjoin.engine.engine import Engine
from halfjoin.errors import HalfjoinError
from halfjoin.shell.cells import cells

MOST_ROWS = 200
_CELL = 400  # characters of a value


def collections(engine: Engine) -> dict[str, Any]:
    """All tables, views, nodes and arrangements: what each holds, and what would go if a view were dropped."""
    stats = engine.stats()
    alone: dict[str, int] = {}
    for one in stats.collections:
        if len(one.users) == 1:
            alone[one.users[0]] = alone.get(one.users[0], 0) + one.row_bytes + one.index_bytes
    for index in stats.arrangements:
        if len(index.users) == 1:
            alone[index.users[0]] = alone.get(index.users[0], 0) + index.bytes
    return {
        "collections": [one.model_dump(exclude={"runs", "rounds"}) | {"frees": _frees(one.name, one.kind, alone, one)}
                        for one in stats.collections],
        "arrangements": [one.model_dump() for one in stats.arrangements],
        "sinks": [one.model_dump() for one in stats.sinks],
        "sources": [one.model_dump(exclude={"options", "position"}) for one in stats.sources],
    }  # fmt: skip


def _frees(name: str, kind: str, alone: dict[str, int], one: Any) -> int | None:
    return alone.get(name, 0) + one.row_bytes + one.index_bytes if kind == "materialized view" else None


def view(engine: Engine, name: str) -> dict[str, Any]:
    """A view's SQL, its plan as EXPLAIN gives it, and the work of its nodes in the last batch that reached it.

    Raises:
        UnknownName: nothing has that name.
    """
    quoted = name.replace('"', '""')
    made = engine.execute(f'SHOW CREATE "{quoted}"')
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
        "errors": own.errors if own else 0,
    }  # fmt: skip


def contents(engine: Engine, name: str, as_of: int | None) -> dict[str, Any]:
    """Some rows of a view as of a time; why it cannot be read, if it cannot."""
    quoted = name.replace('"', '""')
    return answer(engine, f'SELECT * FROM "{quoted}" LIMIT {MOST_ROWS}', as_of)


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
