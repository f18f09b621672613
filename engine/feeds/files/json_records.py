"""Reads JSON lines: an object a line, whose values are read as those of messages are."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.catalog.models import Table
from halfjoin.engine.feeds.debezium import Messages
from halfjoin.engine.feeds.decode import fields
from halfjoin.engine.feeds.files.block import Bad, Block, Raw, rows_together
from halfjoin.engine.feeds.members import last_members
from halfjoin.engine.feeds.source import POLL_BYTES
from halfjoin.engine.scalar.duck import rows_of
from halfjoin.engine.updates.updates import DIFF, TIME, Ints
from halfjoin.errors import InvalidRow

_BLANK = r"^\s*$"


def json_blocks(file: BinaryIO, table: Table, encodings: Mapping[str, str]) -> Iterator[Raw]:
    """The blocks of a file of JSON lines. Fields that the table does not have are left out. `encodings`: by column."""
    first, rest = 1, file.read(len(BOM_UTF8)).removeprefix(BOM_UTF8)  # some programs begin a text with it
    while data := file.read(POLL_BYTES):
        whole, newline, after = data.rpartition(b"\n")
        if not newline:
            rest += data
            continue
        lines, rest = (rest + whole).split(b"\n"), after
        yield Raw(first + len(lines) - 1, partial(_block, lines, first, table, encodings))
        first += len(lines)
    if rest:
        yield Raw(first, partial(_block, [rest], first, table, encodings))


def _block(lines: list[bytes], first: int, table: Table, encodings: Mapping[str, str]) -> Block:
    texts, bad = _decoded(lines)
    number = np.arange(first, first + len(lines))
    for row, why in _not_objects(texts).items():
        bad[row] = why
    usable = texts.is_valid().to_numpy(zero_copy_only=False) & ~_blank(texts)
    usable[list(bad)] = False
    sieve = _Sieve(last_members(pc.if_else(pa.array(usable), texts, None)), table, encodings, bad)
    sieve.pour(np.flatnonzero(usable))
    records: list[Bad] = [(int(number[row]), lines[row].decode(errors="backslashreplace"), why)
                          for row, why in sorted(bad.items())]  # fmt: skip
    kept = np.concatenate([np.zeros(0, np.int64), *(rows for rows, _ in sieve.parts)])
    if not sieve.parts:
        return Block(pa.table({}), kept, records, lambda row: "")
    rows = rows_together([one for _, one in sieve.parts])
    return Block(rows, number[kept], records, lambda row: str(texts[int(kept[row])]))


def _decoded(lines: list[bytes]) -> tuple[pa.Array, dict[int, str]]:
    try:
        return pa.array(lines, pa.binary()).cast(pa.string()), {}
    except pa.ArrowInvalid:  # some are not UTF-8
        texts: list[str | None] = []
        bad: dict[int, str] = {}
        for row, line in enumerate(lines):
            try:
                texts.append(line.decode())
            except UnicodeDecodeError as problem:
                texts.append(None)
                bad[row] = f"is not UTF-8: {problem}"
        return pa.array(texts, pa.string()), bad


def _blank(texts: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    found: np.ndarray[tuple[int], np.dtype[np.bool_]]
    found = pc.fill_null(pc.match_substring_regex(texts, _BLANK), True).to_numpy(zero_copy_only=False)
    return found


def _not_objects(texts: pa.Array) -> dict[int, str]:
    """The rows that are not objects in JSON, with the reason."""
    found = rows_of(
        "SELECT n, CASE WHEN json_valid(v) THEN 'is not an object: it is ' || lower(json_type(v)) ELSE 'is not JSON' "
        "END AS why FROM arguments WHERE v IS NOT NULL AND NOT regexp_full_match(v, '\\s*') AND "
        "(NOT json_valid(v) OR json_type(v) <> 'OBJECT')",
        pa.table({"n": np.arange(len(texts)), "v": texts}),
    )  # fmt: skip
    return dict(zip(found.column("n").to_pylist(), found.column("why").to_pylist(), strict=True))


@dataclass(slots=True)
class _Sieve:
    """Reads objects, and finds those that do not fit by halving."""

    texts: pa.Array
    table: Table
    encodings: Mapping[str, str]
    bad: dict[int, str]
    parts: list[tuple[Ints, pa.Table]] = field(default_factory=list)

    def pour(self, rows: Ints) -> None:
        """Read the objects of some rows, in their order."""
        if not len(rows):
            return
        try:
            self.parts.append((rows, self._read(rows)))
        except InvalidRow as problem:
            if len(rows) == 1:
                self.bad[int(rows[0])] = str(problem.with_(table=None, row=None, called=None))
                return
            self.pour(rows[: len(rows) // 2])
            self.pour(rows[len(rows) // 2 :])

    def _read(self, rows: Ints) -> pa.Table:
        texts = self.texts.take(pa.array(rows))
        columns = [column.name for column in self.table.columns if column.generated is None]
        messages = pc.binary_join_element_wise('{"op":"r","after":', texts, "}", "")
        read = Messages(messages, "messages", encodings=self.encodings, columns=columns).read(self.table)
        found = {name: read.rows.columns[name] for name in columns}
        for name, values in fields(texts, (TIME, DIFF)).items():
            if values.text.null_count < len(texts):
                found[name] = _whole(name, values.text)
        return pa.table(found)


def _whole(name: str, texts: pa.Array) -> pa.Array:
    """The values of `__time` or `__diff`; a row without `__diff` is one copy more."""
    try:
        numbers = texts.cast(pa.int64())
    except pa.ArrowInvalid as problem:
        raise InvalidRow(f"is not a whole number: {problem}", column=name) from None
    if name == DIFF:
        return numbers.fill_null(1)
    if numbers.null_count:
        raise InvalidRow("must be given in every row or in none", column=name)
    return numbers
