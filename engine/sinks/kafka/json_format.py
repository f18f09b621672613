"""Messages in JSON. Numbers have all their digits, moments are ISO 8601, bytes are base64."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.scalar.json_made import to_jsonb
from halfjoin.engine.sinks.kafka.messages import Change, Shape
from halfjoin.engine.updates.updates import Updates
from halfjoin.sql.types import Kind

_BEFORE, _AFTER, _SOURCE = '{"before":', ',"after":', ',"source":'


@dataclass(frozen=True, slots=True)
class JsonFormat:
    """Keys and rows as JSON objects; a `Format`."""

    shape: Shape

    def key(self, rows: Updates) -> pa.Array:
        """The keys of rows."""
        return self._objects(rows, self.shape.key)

    def row(self, rows: Updates) -> pa.Array:
        """Rows, with all columns."""
        return self._objects(rows, tuple(self.shape.columns))

    def row_as_key(self, rows: pa.Array) -> pa.Array:
        """A row that is its own key is written alike."""
        return rows

    def envelope(self, some: Change, op: pa.Array, upper: int) -> pa.Array:
        """The values of messages in Debezium's envelope."""
        source = json.dumps({"connector": "halfjoin", "table": self.shape.collection, "upper": upper})
        return pc.binary_join_element_wise(
            _BEFORE, pc.fill_null(some.before, "null"), _AFTER, pc.fill_null(some.after, "null"),
            f'{_SOURCE}{source},"op":"', op, '"}', "",
        )  # fmt: skip

    def read(self, key: bytes, value: bytes) -> tuple[str, str | None, str | None]:
        """The key, the row before and the row after, in the very texts of the message: a number that was read and
        written again would not have all its digits."""
        text = value.decode()
        if not self.shape.debezium:
            json.loads(text)
            return key.decode(), None, text
        before, place = _part(text, 0, _BEFORE)
        after, place = _part(text, place, _AFTER)
        if not text.startswith(_SOURCE, place):
            raise ValueError("not an envelope of a sink")
        return key.decode(), before, after

    def _objects(self, rows: Updates, names: Sequence[str]) -> pa.Array:
        parts: list[Any] = []
        for number, name in enumerate(names):
            column, kind = rows.columns[name], self.shape.columns[name]
            text = pc.fill_null(_base64(column) if kind.kind is Kind.BYTEA else to_jsonb(kind)(column), "null")
            parts += [f"{',' if number else '{'}{json.dumps(name, ensure_ascii=False)}:", text]
        return pc.binary_join_element_wise(*parts, "}", "")


def _part(text: str, place: int, label: str) -> tuple[str | None, int]:
    """The text of the value behind a label, None for null, and the place behind it."""
    if not text.startswith(label, place):
        raise ValueError("not an envelope of a sink")
    start = place + len(label)
    value, end = json.JSONDecoder().raw_decode(text, start)
    return None if value is None else text[start:end], end


def _base64(column: pa.Array) -> pa.Array:
    from halfjoin.engine.scalar.duck import rows_of

    made = rows_of("SELECT to_base64(v) AS v FROM arguments", pa.table({"v": column}))["v"].combine_chunks()
    return pc.binary_join_element_wise('"', made.cast(pa.string()), '"', "")
