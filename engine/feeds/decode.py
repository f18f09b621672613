"""Decode the JSON values that Debezium writes into Arrow values that a table's column can take."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import md5
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.feeds.decimals import unscaled
from halfjoin.engine.feeds.encodings import Encoding
from halfjoin.engine.scalar.casts_text import from_text
from halfjoin.engine.scalar.duck import rows_of
from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.updates.updates import Ints, Mask
from halfjoin.sql.functions.json_text import value_of
from halfjoin.sql.functions.json_text import written as json_written
from halfjoin.sql.types import FLOATS, INTEGERS, STORED_DIGITS, STRINGS, WORKING_DIGITS, Kind, SqlType

_WHOLE = ("BIGINT", "UBIGINT")
_NUMBERS = (*_WHOLE, "DOUBLE")
_TEXT = ("VARCHAR",)
_NOT_FINITE = ("NaN", "Infinity", "-Infinity")
_OF_BYTES = ("Decimal", "VariableScaleDecimal")  # bytes, unless the converter writes numbers (decimal.format=NUMERIC)
_UNITS = {
    "Date": pa.date32(), "Time": pa.time32("ms"), "MicroTime": pa.time64("us"), "NanoTime": pa.time64("ns"),
    "Timestamp": pa.timestamp("ms"), "MicroTimestamp": pa.timestamp("us"), "NanoTimestamp": pa.timestamp("ns"),
}  # fmt: skip
# Debezium sends this for a value that PostgreSQL stores out of line and the change left as it was; for bytes, arrays
# and hstore it puts the same word into their forms.
_WORD = b"__debezium_unavailable_value"
_UNAVAILABLE = (
    _WORD.decode(), b64encode(_WORD).decode(), _WORD.hex(), json.dumps([*_WORD], separators=(",", ":")),
    str(UUID(bytes=md5(_WORD, usedforsecurity=False).digest(), version=3)),  # as Java's nameUUIDFromBytes
    *(json.dumps({_WORD.decode(): _WORD.decode()}, separators=(",", colon)) for colon in (":", ": ")),
)  # fmt: skip
_SAY = (
    "name the encoding: hj.debezium(messages, encodings={{{column!r}: {choices}}}), or of a source the option encodings"
)

Exactly = Callable[[Ints], list[str]]  # the numbers of some rows, or the arrays, as the message writes them


class Undecodable(Exception):
    """A value that cannot be decoded: its row, and the reason."""

    def __init__(self, row: int, why: str) -> None:
        super().__init__(row, why)
        self.row, self.why = row, why


@dataclass(frozen=True, slots=True)
class Values:
    """A column's JSON values. `kind` is each value's type in DuckDB's words, `text` its text (a string's content)."""

    column: str
    kind: pa.Array
    text: pa.Array

    def slice(self, start: int, stop: int) -> Values:
        """The values in `[start, stop)`."""
        return Values(self.column, self.kind.slice(start, stop - start), self.text.slice(start, stop - start))

    def take(self, rows: Ints) -> Values:
        """The values at some positions."""
        return Values(self.column, self.kind.take(pa.array(rows)), self.text.take(pa.array(rows)))

    def where(self, mask: Mask) -> Values:
        """The values where the mask is true, NULL elsewhere."""
        keep = pa.array(mask)
        return Values(self.column, pc.if_else(keep, self.kind, None), pc.if_else(keep, self.text, None))

    def only(self, type: SqlType, kinds: Sequence[str]) -> pa.Array:
        """The texts. Refuses values of other kinds than these."""
        self.refuse(pc.invert(pc.is_in(self.kind, pa.array(kinds))), lambda text: f"{text} is not a valid {type}")
        return self.text

    def refuse(self, bad: pa.Array, why: Callable[[str], str]) -> None:
        """Refuse the first value for which `bad` is true."""
        rows = np.flatnonzero(_mask(pc.and_(bad, self.text.is_valid())))
        if len(rows):
            text = self.text[int(rows[0])].as_py()
            shown = text if len(text) <= 60 else text[:57] + "..."
            raise Undecodable(int(rows[0]), why(repr(shown) if self.kind[int(rows[0])].as_py() == "VARCHAR" else shown))

    def as_json(self, written: Exactly) -> Values:
        """Values of jsonb as texts of JSON. A string is such a text already, and null is NULL, as in PostgreSQL's
        json_populate_record. `written`: the other values of some rows as texts."""
        other = pc.invert(pc.is_in(self.kind, pa.array(["VARCHAR", "NULL", None])))
        mask: Mask = other.to_numpy(zero_copy_only=False)
        if not mask.any():
            return self
        texts = pa.array(written(np.flatnonzero(mask)), pa.string())
        text = pc.replace_with_mask(self.text, pa.array(mask), texts)
        return Values(self.column, pc.if_else(pa.array(mask), "VARCHAR", self.kind), text)

    def any(self, kind: str) -> bool:
        """Whether any value has this kind."""
        return bool(pc.any(pc.equal(self.kind, kind), min_count=0).as_py())


def fields(objects: pa.Array, names: Sequence[str]) -> dict[str, Values]:
    """The values of some fields of JSON objects. A missing field is NULL."""
    if not names:
        return {}
    paths = ", ".join(_pointer(name) for name in names)
    parts = ", ".join(f"json_type(f[{i}]) AS k{i}, f[{i}]->>'$' AS t{i}" for i in range(1, len(names) + 1))
    found = rows_of(f"SELECT {parts} FROM (SELECT json_extract(v, [{paths}]) AS f FROM arguments)",
                    pa.table({"v": objects}))  # fmt: skip
    return {
        name: Values(name, _one(found, f"k{i}", pa.string()), _one(found, f"t{i}", pa.string()))
        for i, name in enumerate(names, 1)
    }


def _pointer(name: str) -> str:
    return "'/" + name.replace("~", "~0").replace("/", "~1").replace("'", "''") + "'"


def decoded(values: Values, type: SqlType, encoding: Encoding | None, exactly: Exactly | None) -> pa.Array:
    """The values, in an Arrow type that converts to a column of the SQL type.

    The engine refuses values whose meaning needs a schema or an encoding that is missing: a number alone is not a time.

    Raises:
        Undecodable: with the first row that fails.
    """
    try:
        return _decoded(values, type, encoding, exactly)
    except pa.ArrowInvalid:  # some value in [low, high) is out of range
        low, high = 0, len(values.text)
        while high - low > 1:
            middle = (low + high) // 2
            try:
                _decoded(values.slice(low, middle), type, encoding, None)
                low = middle
            except pa.ArrowInvalid:
                high = middle
        raise Undecodable(low, f"{values.text[low].as_py()} is out of range for {type}") from None


def _decoded(values: Values, type: SqlType, encoding: Encoding | None, exactly: Exactly | None) -> pa.Array:
    values.refuse(pc.is_in(values.text, pa.array(_UNAVAILABLE)), lambda _: (
        "is unchanged, and was not sent; let the source send whole rows (ALTER TABLE ... REPLICA IDENTITY FULL)"
    ))  # fmt: skip
    if type.kind is Kind.ARRAY and type.element is not None:
        return _array(values, type, type.element, encoding, exactly)
    name = encoding.name if encoding is not None else ""
    match type.kind:
        case Kind.BOOLEAN:
            return values.only(type, ("BOOLEAN",)).cast(pa.bool_())
        case Kind.NUMERIC | Kind.SMALLINT | Kind.INTEGER | Kind.BIGINT | Kind.REAL | Kind.DOUBLE if (
            encoding is not None and name in _OF_BYTES and not any(values.any(kind) for kind in _NUMBERS)
        ):
            return _decimals(values, type, encoding)
        case kind if kind in INTEGERS:
            return values.only(type, _WHOLE).cast(pa.decimal128(20, 0))
        case kind if kind in FLOATS:
            finite = pc.or_(pc.is_in(values.kind, pa.array(_NUMBERS)), pc.is_in(values.text, pa.array(_NOT_FINITE)))
            values.refuse(pc.invert(finite), lambda text: f"{text} is not a valid {type}")
            return _floats(values, type)
        case Kind.NUMERIC:
            if name != "string":
                values.refuse(pc.equal(values.kind, "VARCHAR"), lambda text: (
                    f"{text} may be a number in text or the base64 of its digits; "
                    + _SAY.format(column=values.column, choices=f"'string' or 'Decimal({type.scale or 0})'")
                ))  # fmt: skip
            return _exact(values, type, exactly)
        case Kind.BYTEA:
            return _bytes(values, type, name)
        case Kind.RECORD:
            return values.only(type, ("OBJECT",))
        case Kind.DATE | Kind.TIME | Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return _moments(values, type, name or ("Date" if type.kind is Kind.DATE else ""))
        case _:
            if type.kind in STRINGS and name in ("bytes", "Bits", "Decimal"):
                values.refuse(values.text.is_valid(), lambda text: f"{text} is bytes in base64, not {type}")
            return values.only(type, _TEXT)


def _floats(values: Values, type: SqlType) -> pa.Array:
    """The nearest number of the type. Refuses a number beyond the type's range, instead of infinity or zero."""
    try:
        return from_text(type)(values.text)
    except Failed as error:
        bad = error.mask if error.mask is not None else np.ones(len(values.text), np.bool_)
        values.refuse(pa.array(bad), lambda text: f"{text} is out of range for {type}")
        raise


def _exact(values: Values, type: SqlType, exactly: Exactly | None) -> pa.Array:
    """Numbers as texts. DuckDB reads numbers beyond 64-bit integers as floats, so `exactly` gives their digits."""
    texts = values.only(type, (*_NUMBERS, *_TEXT))
    rounded = np.flatnonzero(_mask(pc.equal(values.kind, "DOUBLE")))
    if not len(rounded):
        return texts
    if exactly is None:
        raise Undecodable(int(rounded[0]), f"{texts[int(rounded[0])].as_py()} is not exact; send it as text "
                                           "(decimal.handling.mode=string)")  # fmt: skip
    mask = np.zeros(len(texts), np.bool_)
    mask[rounded] = True
    return pc.replace_with_mask(texts, pa.array(mask), pa.array(exactly(rounded), pa.string()))


def _decimals(values: Values, type: SqlType, encoding: Encoding) -> pa.Array:
    """Read bytes of whole numbers, with the scale of the column or of each value."""
    if encoding.name == "Decimal":
        values.only(type, _TEXT)
        return unscaled(_blobs(values), encoding.scale or 0)
    parts = rows_of(
        "SELECT TRY_CAST(v->>'/scale' AS INTEGER) AS scale, v->>'/value' AS value FROM arguments",
        pa.table({"v": values.only(type, ("OBJECT",))}),
    )
    scales, inner = _one(parts, "scale", pa.int32()), _one(parts, "value", pa.string())
    fit = pc.and_(pc.less_equal(pc.abs(scales), STORED_DIGITS), inner.is_valid())
    values.refuse(pc.invert(pc.fill_null(fit, False)), lambda text: f"{text} lacks the scale or value of a {type}")
    return _scaled(_blobs(Values(values.column, values.kind, inner)), scales)


def _scaled(blobs: pa.Array, scales: pa.Array) -> pa.Array:
    """Decimals that each have a scale, all in the largest of these scales."""
    every = pc.unique(scales).drop_null().to_pylist()
    kind = pa.decimal256(WORKING_DIGITS, max([0, *every]))
    found = pa.nulls(len(blobs), kind)
    for scale in every:
        mask = pc.fill_null(pc.equal(scales, scale), False)
        found = pc.replace_with_mask(found, mask, unscaled(blobs.filter(mask), scale).cast(kind))
    return found


def _bytes(values: Values, type: SqlType, name: str) -> pa.Array:
    if name == "string":
        values.refuse(values.text.is_valid(), lambda text: (
            f"{text} may be base64 or hex; " + _SAY.format(column=values.column, choices="'base64' or 'hex'")
        ))  # fmt: skip
    values.only(type, _TEXT)
    return _blobs(values, "unhex" if name == "hex" else "from_base64")


def _blobs(values: Values, function: str = "from_base64") -> pa.Array:
    blobs = _one(
        rows_of(f"SELECT try({function}(v)) AS v FROM arguments", pa.table({"v": values.text})), "v", pa.binary()
    )
    values.refuse(blobs.is_null(), lambda text: f"{text} is not {'hex' if function == 'unhex' else 'base64'}")
    return blobs


def _moments(values: Values, type: SqlType, name: str) -> pa.Array:
    """Dates, times and timestamps, from numbers of a unit or from ISO texts (in UTC if a text has no zone)."""
    if not any(values.any(kind) for kind in _NUMBERS):
        texts = values.only(type, _TEXT)
        zoned = type.kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ)
        return texts if zoned else pc.replace_substring_regex(texts, "(Z|[+-]00:?00)$", "")
    if name not in _UNITS:
        choices = "'MicroTime'" if type.kind is Kind.TIME else "'Timestamp' or 'MicroTimestamp'"
        values.refuse(pc.is_in(values.kind, pa.array(_NUMBERS)), lambda text: (
            f"{text} is a number of an unknown unit; " + _SAY.format(column=values.column, choices=choices)
        ))  # fmt: skip
    wanted = _UNITS[name]
    numbers = values.only(type, _WHOLE).cast(pa.int64())
    return (numbers.cast(pa.int32()) if wanted.bit_width == 32 else numbers).cast(wanted)


def _array(values: Values, type: SqlType, element: SqlType, encoding: Encoding | None,
           exactly: Exactly | None) -> pa.Array:  # fmt: skip
    texts = values.only(type, ("ARRAY",))
    lists = _one(
        rows_of("""SELECT from_json(CAST(v AS JSON), '["JSON"]') AS v FROM arguments""", pa.table({"v": texts})),
        "v", pa.list_(pa.string()),
    )  # fmt: skip
    parts = rows_of("SELECT json_type(v) AS kind, CAST(v AS JSON)->>'$' AS text FROM arguments",
                    pa.table({"v": lists.flatten()}))  # fmt: skip
    inner = Values(values.column, _one(parts, "kind", pa.string()), _one(parts, "text", pa.string()))
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()

    def written(some: Ints) -> list[str]:
        assert exactly is not None
        whole = exactly(np.flatnonzero(_mask(lists.is_valid())))
        items = [item for text in whole for item in value_of(text)]  # type: ignore[union-attr]
        return [json_written(items[row]) for row in some]

    digits = None if exactly is None or element.kind is Kind.ARRAY else written
    if element.kind in (Kind.JSON, Kind.JSONB) and digits is not None:
        inner = inner.as_json(digits)
    try:
        items = decoded(inner, element, encoding and (encoding.items or encoding), digits)
    except Undecodable as problem:
        raise Undecodable(int(np.repeat(np.arange(len(lists)), lengths)[problem.row]), problem.why) from None
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    return pa.ListArray.from_arrays(offsets, items, mask=texts.is_null())


def _one(table: pa.Table, name: str, type: Any) -> pa.Array:
    column = table.column(name).cast(type)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, type)


def _mask(column: pa.Array) -> Mask:
    mask: Mask = pc.fill_null(column, False).to_numpy(zero_copy_only=False)
    return mask
