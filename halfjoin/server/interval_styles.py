"""Intervals of answers as a client's IntervalStyle asks for: `P1Y2M3DT4H5M6S` with iso_8601, which Rails reads."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from halfjoin.engine.scalar.values import mask_of, raw
from halfjoin.engine.updates.intervals import fields
from halfjoin.sql.types import TEXT, Kind, SqlType

POSTGRES, ISO = "postgres", "iso_8601"


def styled(rows: pa.Table, types: Sequence[SqlType], formats: Sequence[int]) -> tuple[pa.Table, list[SqlType]]:
    """Rows whose intervals, and arrays of them, are ISO texts where they go as text, with the types to print."""
    shown = list(types)
    for at, (type, format) in enumerate(zip(types, formats, strict=True)):
        if not format and _of_intervals(type):
            made, shown[at] = _texts(rows.column(at).combine_chunks(), type)
            rows = rows.set_column(at, rows.schema.field(at).with_type(made.type), made)
    return rows, shown


def _of_intervals(type: SqlType) -> bool:
    return type.kind is Kind.INTERVAL or (type.element is not None and _of_intervals(type.element))


def _texts(values: pa.Array, type: SqlType) -> tuple[pa.Array, SqlType]:
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)
    if type.element is None:
        months, days, micros = (part.tolist() for part in fields(values))
        rows = zip(months, days, micros, mask_of(values.is_valid()), strict=True)
        return pa.array([_iso(m, d, u) if given else None for m, d, u, given in rows], pa.string()), TEXT
    items, element = _texts(values.values, type.element)
    offsets = pa.array(raw(values.offsets))
    made = pa.ListArray.from_arrays(offsets, items, mask=values.is_null() if values.null_count else None)
    return made, SqlType(Kind.ARRAY, element=element)


def _iso(months: int, days: int, micros: int) -> str:
    """An interval as PostgreSQL writes it; each part of the time has the sign of the whole time."""
    if not (months or days or micros):
        return "PT0S"
    sign = "-" if micros < 0 else ""
    minutes, rest = divmod(abs(micros), 60_000_000)
    years = int(months / 12)
    date = ((years, "Y"), (months - 12 * years, "M"), (days, "D"))
    text = "P" + "".join(f"{count}{unit}" for count, unit in date if count) + ("T" if micros else "")
    text += "".join(f"{sign}{count}{unit}" for count, unit in ((minutes // 60, "H"), (minutes % 60, "M")) if count)
    seconds = f"{rest // 1_000_000}.{rest % 1_000_000:06}".rstrip("0").rstrip(".")
    return text + (f"{sign}{seconds}S" if rest else "")
