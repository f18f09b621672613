"""Plain messages as Debezium's envelopes in JSON, so that one reader decodes the values of both.

A value becomes `{"op": "r", "after": {...}}`: the row of its key from now on, or a row more. A message without a value
becomes `{"op": "d", "before": {...}}` with its key. Fields of the key, and the parts of the message that the source
includes, come before those of the value and count before them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.catalog.models import Table
from halfjoin.engine.feeds.encodings import Encoding
from halfjoin.engine.feeds.kafka.avro import Schemas, Unreadable, Writer
from halfjoin.engine.feeds.kafka.options import KafkaOptions
from halfjoin.engine.feeds.kafka.records import Records
from halfjoin.engine.feeds.members import last_members
from halfjoin.engine.scalar.duck import rows_of
from halfjoin.engine.updates.updates import Ints
from halfjoin.sql.types import FLOATS, INTEGERS, Kind

_BARE = (*INTEGERS, *FLOATS, Kind.NUMERIC, Kind.BOOLEAN)  # their texts are JSON as they are


@dataclass(slots=True)
class Envelopes:
    """One text for each message: an envelope, NULL if there is nothing to say.

    `bad` has the reasons of messages that cannot be read. `encodings[group[i]]` is how the columns of message `i` are
    written, by its schema.
    """

    json: pa.Array
    group: Ints
    encodings: list[Mapping[str, Encoding]]
    bad: dict[int, str]


@dataclass(slots=True)
class _Texts:
    """Values or keys as JSON; NULL for one that is not there, or is bad."""

    json: pa.Array
    writers: Sequence[Writer | None] | None = None  # None: nobody has a schema
    bad: dict[int, str] = field(default_factory=dict)


def envelopes(records: Records, options: KafkaOptions, table: Table, schemas: Schemas | None) -> Envelopes:
    """The envelopes of messages."""
    values = _in_json(records.value, "avro" in options.format, schemas, "its value")
    _refuse(values, pa.array(np.ones(len(records), np.bool_)), "its value")
    if options.debezium:
        return Envelopes(values.json, *_grouped(values, None, envelope=True), values.bad)
    values.json = last_members(values.json)
    keys = _keys(records, options, table, schemas)
    empty = pa.array([value is None for value in records.value], pa.bool_())
    bad = {**values.bad, **keys.bad, **_without_key(table, options, empty, keys)}
    members = [_inner(keys.json), *_included(records, options)]
    image = _object([*members, _inner(values.json)])
    deletion = pc.binary_join_element_wise('{"op":"d","before":', _object(members[:1]), "}", "")
    message = pc.binary_join_element_wise('{"op":"r","after":', image, "}", "")
    json = pc.if_else(empty, deletion, message)
    good = np.ones(len(records), np.bool_)
    good[list(bad)] = False
    return Envelopes(pc.if_else(pa.array(good), json, None), *_grouped(values, keys, envelope=False), bad)


def _without_key(table: Table, options: KafkaOptions, empty: pa.Array, keys: _Texts) -> dict[int, str]:
    """The reasons against messages without a value that delete no row."""
    if not table.primary_key:
        why, wrong = "it has no value, and the table has no PRIMARY KEY, so there is no row to delete", empty
    elif options.key is None:
        why, wrong = "it has no value, and without the option key nobody knows which row to delete", empty
    else:
        why, wrong = "it has neither a key nor a value", pc.and_(empty, keys.json.is_null())
    return dict.fromkeys(np.flatnonzero(wrong.to_numpy(zero_copy_only=False)).tolist(), why)


def _in_json(blobs: Sequence[bytes | None], avro: bool, schemas: Schemas | None, what: str) -> _Texts:
    bad: dict[int, str] = {}
    texts: list[str | None] = [None] * len(blobs)
    if avro:
        assert schemas is not None
        writers: list[Writer | None] = [None] * len(blobs)
        for row, blob in enumerate(blobs):
            try:
                if blob is not None:
                    writers[row], texts[row] = schemas.read(blob)
            except Unreadable as problem:
                bad[row] = f"{what} {problem}"
        return _Texts(pa.array(texts, pa.string()), writers, bad)
    try:
        return _Texts(pa.array(blobs, pa.binary()).cast(pa.string()))
    except pa.ArrowInvalid:  # some are not UTF-8
        for row, blob in enumerate(blobs):
            try:
                texts[row] = None if blob is None else blob.decode()
            except UnicodeDecodeError as problem:
                bad[row] = f"{what} is not UTF-8: {problem}"
        return _Texts(pa.array(texts, pa.string()), bad=bad)


def _refuse(found: _Texts, needs_object: pa.Array, what: str) -> None:
    """Note the texts that are not JSON, or not objects where they must be, and make them NULL."""
    kinds = rows_of(
        "SELECT n, json_valid(v) AS valid, CASE WHEN json_valid(v) THEN json_type(v) END AS kind FROM arguments "
        "WHERE v IS NOT NULL AND (NOT json_valid(v) OR (o AND json_type(v) <> 'OBJECT'))",
        pa.table({"n": np.arange(len(found.json)), "v": found.json, "o": needs_object}),
    )
    for row, valid, kind in zip(*(column.to_pylist() for column in kinds.columns), strict=True):
        found.bad[row] = f"{what} is not JSON" if not valid else f"{what} is not an object in JSON, but {kind.lower()}"
    if found.bad:
        good = np.ones(len(found.json), np.bool_)
        good[list(found.bad)] = False
        found.json = pc.if_else(pa.array(good), found.json, None)


def _keys(records: Records, options: KafkaOptions, table: Table, schemas: Schemas | None) -> _Texts:
    """The keys as objects. One that is a plain value is the only column of the PRIMARY KEY."""
    count = len(records)
    if options.key is None:
        return _Texts(pa.nulls(count, pa.string()))
    found = _in_json(records.key, options.key == "avro", schemas, "its key")
    first = next(column for column in table.columns if column.name == table.primary_key[0])
    single = len(table.primary_key) == 1
    if options.key == "text" and first.type.kind not in _BARE:
        found.json = _quoted(found.json)
    _refuse(found, pa.array(np.full(count, not single)), "its key")
    found.json = last_members(found.json)
    if single:
        plain = pc.invert(pc.starts_with(pc.utf8_ltrim_whitespace(found.json), "{"))
        wrapped = pc.binary_join_element_wise(f"{{{_name(first.name)}:", found.json, "}", "")
        found.json = pc.if_else(plain, wrapped, found.json)
    return found


def _included(records: Records, options: KafkaOptions) -> list[pa.Array]:
    """The members for columns that take parts of the message. A part that is not there is left out."""
    members = []
    for column, part in options.included().items():
        if part == "key":
            texts = _quoted(_in_json(records.key, False, None, "its key").json)
        else:
            numbers = pa.array(getattr(records, part))
            texts = pc.if_else(pc.greater_equal(numbers, 0), numbers, None).cast(pa.string())
        members.append(pc.binary_join_element_wise(f"{_name(column)}:", texts, ""))
    return members


def _grouped(
    values: _Texts, keys: _Texts | None, *, envelope: bool
) -> tuple[Ints, list[Mapping[str, Encoding]]]:
    """Messages with the same schemas are a group: the number of each message's, and the encodings of each group."""
    count = len(values.json)
    schemas = [one.writers for one in (keys, values) if one is not None and one.writers is not None]
    if not schemas:
        return np.zeros(count, np.int64), [{}]
    numbers: dict[tuple[Writer | None, ...], int] = {}
    group = np.array([numbers.setdefault(each, len(numbers)) for each in zip(*schemas, strict=True)], np.int64)
    made: list[Mapping[str, Encoding]] = []
    for each in numbers:
        known = [writer.encodings(envelope=envelope) for writer in reversed(each) if writer is not None]
        made.append({name: one for encodings in known for name, one in encodings.items()})
    return group, made


def _inner(objects: pa.Array) -> pa.Array:
    """The members of objects, without braces; NULL if there are none."""
    trimmed = pc.utf8_trim_whitespace(objects)
    inner = pc.utf8_trim_whitespace(pc.utf8_slice_codeunits(trimmed, 1, -1))
    return pc.if_else(pc.equal(inner, ""), None, inner)


def _object(members: Sequence[pa.Array]) -> pa.Array:
    joined = members[0]
    for member in members[1:]:
        joined = pc.coalesce(pc.binary_join_element_wise(joined, member, ","), joined, member)
    return pc.binary_join_element_wise("{", pc.fill_null(joined, ""), "}", "")


def _quoted(texts: pa.Array) -> pa.Array:
    quoted = rows_of("SELECT CAST(to_json(v) AS VARCHAR) AS v FROM arguments", pa.table({"v": texts}))["v"]
    found = quoted.combine_chunks().cast(pa.string())
    return pc.if_else(texts.is_valid(), found, None)


def _name(column: str) -> str:
    return str(_quoted(pa.array([column]))[0].as_py())
