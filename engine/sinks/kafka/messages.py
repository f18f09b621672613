"""The messages of a sink: what a delivery changes, as JSON, at most one change for each key.

With a key, a message says the row of the key from now on. The rows of a key in one delivery are at most one that goes
and one that comes, as the key tells rows apart. Without a key (envelope `debezium` only), each copy of a row is a
message of its own, and the whole row is the message's key, so that all about one row is in one partition.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.scalar.json_made import to_jsonb
from halfjoin.engine.updates import limits
from halfjoin.engine.updates.codes import codes
from halfjoin.engine.updates.consolidate import consolidate, groups
from halfjoin.engine.updates.updates import Ints, Updates, concat
from halfjoin.errors import DataError
from halfjoin.sql.types import Kind, SqlType

_SLICE = 1 << 16  # rows that are written as JSON at a time


@dataclass(frozen=True, slots=True)
class Shape:
    """What messages show: a collection's columns, the key's columns, and the envelope."""

    collection: str
    columns: Mapping[str, SqlType]
    key: Sequence[str]
    debezium: bool


@dataclass(frozen=True, slots=True)
class Change:
    """Changes of rows as JSON texts: their keys, the row before and the row after; NULL where there is none."""

    key: pa.Array
    before: pa.Array
    after: pa.Array


def changes(shape: Shape, pieces: Iterable[Updates]) -> Iterator[Change]:
    """What the pieces change, added up. They are read several times if they are many.

    Raises:
        DataError: two rows have one key, or a row would be there fewer than no times.
    """
    total = sum(map(len, pieces))
    parts = max(1, -(-total // limits.PIECE_ROWS))
    for part in range(parts):
        some = [piece if parts == 1 else _part(shape, piece, part, parts) for piece in pieces]
        if some:
            net = consolidate(concat(some), by_time=False)
            yield from (_keyed(shape, net) if shape.key else _plain(shape, net))


def _part(shape: Shape, piece: Updates, part: int, parts: int) -> Updates:
    """The updates of one part of the keys, so that what belongs together comes together."""
    columns = [piece.columns[name] for name in shape.key or shape.columns]
    return piece.filter(codes(columns, len(piece)).view(np.uint64) % np.uint64(parts) == part)


def _keyed(shape: Shape, net: Updates) -> Iterator[Change]:
    _, which = np.unique(groups([net.columns[name] for name in shape.key], len(net)), return_inverse=True)
    goes, comes = (_places(shape, net, which, np.flatnonzero(net.diff == sign)) for sign in (-1, 1))
    if len(wrong := np.flatnonzero(np.abs(net.diff) > 1)):
        raise _doubled(shape, net, int(wrong[0]))
    for start in range(0, len(goes), _SLICE):
        gone, come = goes[start : start + _SLICE], comes[start : start + _SLICE]
        some = np.where(come < 0, gone, come)
        yield Change(objects(shape, net.take(some), shape.key), _rows(shape, net, gone), _rows(shape, net, come))


def _places(shape: Shape, net: Updates, which: Ints, rows: Ints) -> Ints:
    """For each key, the row of it among `rows`, -1 if there is none."""
    places = np.full(int(which.max(initial=-1)) + 1, -1, np.int64)
    places[which[rows]] = rows
    if len(again := np.flatnonzero(places[which[rows]] != rows)):
        raise _doubled(shape, net, int(rows[again[0]]))
    return places


def _doubled(shape: Shape, net: Updates, row: int) -> DataError:
    key = {name: net.columns[name][row].as_py() for name in shape.key}
    return DataError(f"two rows of {shape.collection} have the key {key}, and a topic has one for each key")


def _plain(shape: Shape, net: Updates) -> Iterator[Change]:
    order = np.argsort(np.where(net.diff < 0, 0, 1), kind="stable")
    rows = np.repeat(order, np.abs(net.diff[order]))
    for start in range(0, len(rows), _SLICE):
        some = net.take(rows[start : start + _SLICE])
        text = objects(shape, some, tuple(shape.columns))
        goes = pa.array(some.diff < 0)
        yield Change(text, pc.if_else(goes, text, None), pc.if_else(goes, None, text))


def _rows(shape: Shape, net: Updates, places: Ints) -> pa.Array:
    """The rows at some places as JSON, NULL where the place is -1."""
    found = np.flatnonzero(places >= 0)
    texts = objects(shape, net.take(places[found]), tuple(shape.columns))
    at = np.full(len(places), -1, np.int64)
    at[found] = np.arange(len(found))
    return texts.take(pa.array(at, mask=at < 0))


def objects(shape: Shape, rows: Updates, names: Sequence[str]) -> pa.Array:
    """Some columns of rows as JSON objects. Numbers have all their digits, moments are ISO 8601, bytes are base64."""
    parts: list[Any] = []
    for number, name in enumerate(names):
        column, kind = rows.columns[name], shape.columns[name]
        text = pc.fill_null(_base64(column) if kind.kind is Kind.BYTEA else to_jsonb(kind)(column), "null")
        parts += [f"{',' if number else '{'}{json.dumps(name, ensure_ascii=False)}:", text]
    return pc.binary_join_element_wise(*parts, "}", "")


def _base64(column: pa.Array) -> pa.Array:
    from halfjoin.engine.scalar.duck import rows_of

    made = rows_of("SELECT to_base64(v) AS v FROM arguments", pa.table({"v": column}))["v"].combine_chunks()
    return pc.binary_join_element_wise('"', made.cast(pa.string()), '"', "")


def envelopes(shape: Shape, some: Change, snapshot: bool, source: str) -> tuple[pa.Array, pa.Array]:
    """The keys and the values of messages. A row that goes has a message without a value as well, if it has a key:
    it lets a topic forget the key.

    `snapshot`: the rows are those that a new topic starts with. `source`: an object in JSON, about the sink.
    """
    if not shape.debezium:
        return some.key, some.after
    before, after = some.before, some.after
    op = pc.if_else(after.is_null(), "d", pc.if_else(before.is_null(), "r" if snapshot else "c", "u"))
    rest = f',"source":{source},"op":"'
    value = pc.binary_join_element_wise('{"before":', pc.fill_null(before, "null"), ',"after":',
                                        pc.fill_null(after, "null"), rest, op, '"}', "")  # fmt: skip
    gone = np.flatnonzero(after.is_null().to_numpy(zero_copy_only=False))
    if not shape.key or not len(gone):
        return some.key, value
    order = np.sort(np.concatenate([2 * np.arange(len(value)), 2 * gone + 1]))
    rows, empty = pa.array(order // 2), pa.array(order % 2 == 1)
    return some.key.take(rows), pc.if_else(empty, None, value.take(rows))
