"""Extract row images from Debezium's envelopes in JSON: the row before and the row after each change."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.feeds.members import member
from halfjoin.engine.feeds.messages import invalid_message
from halfjoin.engine.scalar.duck import rows_of
from halfjoin.engine.updates.updates import Ints, Mask
from halfjoin.sql.functions.json_text import JsonError, value_of, written

_AFTER, _BOTH, _GONE, _TRUNCATED = ("c", "r"), "u", "d", "t"
# A message is an envelope, or {"schema": ..., "payload": envelope}; NULL, a tombstone, is neither.
_ENVELOPES = """
    SELECT
        n, coalesce(json_type(body), 'NULL') AS kind, body->>'/op' AS op,
        CASE WHEN json_type(body, '/before') = 'OBJECT' THEN CAST(body->'/before' AS VARCHAR) END AS before,
        CASE WHEN json_type(body, '/after') = 'OBJECT' THEN CAST(body->'/after' AS VARCHAR) END AS after, schema
    FROM (
        SELECT
            n, CASE WHEN wrapped THEN m->'/payload' ELSE CAST(m AS JSON) END AS body,
            CASE WHEN wrapped THEN CAST(m->'/schema' AS VARCHAR) END AS schema
        FROM (
            SELECT n, m, json_type(m, '/op') IS NULL AND json_exists(m, '/payload') AS wrapped
            FROM arguments WHERE m IS NOT NULL
        )
    )
    ORDER BY n
"""


@dataclass(frozen=True, slots=True)
class Images:
    """Row images in the order of their messages, `before` ahead of `after`.

    `json[i]` is an image of message `message[i]`. `after[i]` says whether it is the row after the change. `schema[i]`
    is the schema in its message, or null. `truncated` is the last message that truncates the table, or None. The images
    are those of the messages after it.
    """

    texts: pa.Array
    json: pa.Array
    message: Ints
    after: Mask
    schema: pa.Array
    truncated: int | None

    def number(self, row: int, column: str) -> str:
        """A number of an image, with the digits that the message has."""
        try:
            message = json.loads(self._text(row), parse_float=str, parse_int=str, object_pairs_hook=_first)
            return str(self._image(row, message)[column])
        except RecursionError:
            return self._value(row, column)

    def written(self, row: int, column: str) -> str:
        """A value of an image as canonical JSON, in which numbers have all their digits.

        Raises:
            JsonError: it has none, as it is nested too deep.
        """
        try:
            return written(self._image(row, value_of(self._text(row)))[column])
        except JsonError:  # of the value, or of another one in the message
            return written(value_of(self._value(row, column)))

    def _value(self, row: int, column: str) -> str:
        """The text of a value, in a message that may be nested too deep to be read."""
        text, end, at = self._text(row), 0, 0
        wrapped = member(text, "op") is None
        for name in (*(["payload"] if wrapped else []), "after" if self.after[row] else "before", column):
            found = member(text, name, at)
            assert found is not None
            at, end = found
        return text[at:end]

    def _text(self, row: int) -> str:
        text: str = self.texts[int(self.message[row])].as_py()
        return text

    def _image(self, row: int, message: Any) -> dict[str, Any]:
        envelope = message if "op" in message else message["payload"]
        image: dict[str, Any] = envelope["after" if self.after[row] else "before"]
        return image


def _first(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object with the first member of each name, which is the one that DuckDB finds."""
    return dict(reversed(pairs))


def images(table: str, texts: pa.Array, *, keyed: bool) -> Images:
    """The images in messages. NULL is a tombstone.

    In a table with a key an update may come without the row before it.

    Raises:
        InvalidRow: a message is not an envelope, or lacks an image. The error has the number of the first one.
    """
    numbered = pa.table({"n": pa.array(np.arange(len(texts))), "m": texts})
    invalid = rows_of("SELECT min(n) AS n FROM arguments WHERE NOT json_valid(m)", numbered).column(0)[0].as_py()
    if invalid is not None:
        shown = texts[invalid].as_py()
        raise invalid_message(table, invalid, f"is not JSON: {shown[:60]!r}")
    found = rows_of(_ENVELOPES, numbered)
    found = found.filter(pc.not_equal(found.column("kind"), "NULL"))
    found = found.cast(pa.schema([(f.name, f.type if f.name == "n" else pa.string()) for f in found.schema]))
    op, has_before, has_after = found.column("op"), found.column("before").is_valid(), found.column("after").is_valid()
    _check(table, found, op, has_before, has_after, keyed=keyed)
    cut = np.flatnonzero(_mask(pc.equal(op, _TRUNCATED)))
    truncated = int(found.column("n")[int(cut[-1])].as_py()) if len(cut) else None
    if len(cut):  # what came before the last truncation is gone
        found = found.slice(int(cut[-1]) + 1)
        op, has_before, has_after = (column.slice(int(cut[-1]) + 1) for column in (op, has_before, has_after))
    gone = np.flatnonzero(_mask(pc.and_(has_before, _any(op, (_BOTH, _GONE)))))
    come = np.flatnonzero(_mask(pc.and_(has_after, _any(op, (*_AFTER, _BOTH)))))
    after = np.concatenate([np.zeros(len(gone), np.bool_), np.ones(len(come), np.bool_)])
    place = np.concatenate([gone, come])
    order = np.lexsort((after, place))
    image = pa.concat_arrays([_taken(found, "before", gone), _taken(found, "after", come)]).take(pa.array(order))
    numbers = found.column("n").to_numpy()
    return Images(texts, image, numbers[place[order]], after[order], _taken(found, "schema", place[order]),
                  truncated)  # fmt: skip


def _check(table: str, found: pa.Table, op: Any, has_before: Any, has_after: Any, *, keyed: bool) -> None:
    """Refuse the first message that is wrong, and say why."""
    not_null, lacks_before, lacks_after = pc.is_valid(op), pc.invert(has_before), pc.invert(has_after)
    needs_before = (_GONE,) if keyed else (_BOTH, _GONE)
    wrong: list[tuple[Any, Callable[[str | None], str]]] = [
        (pc.not_equal(found.column("kind"), "OBJECT"), lambda _: "is not a JSON object, as an envelope is"),
        (pc.invert(not_null), lambda _: (
            "has no op, so it is not an envelope; give rows from ExtractNewRecordState as plain rows"
        )),
        (pc.and_(not_null, pc.invert(_any(op, (*_AFTER, _BOTH, _GONE, _TRUNCATED)))), lambda op: (
            f"has the op {op!r}, which is not one of c, r, u, d, t"
        )),
        (pc.and_(lacks_after, _any(op, (*_AFTER, _BOTH))), lambda op: f"has the op {op!r} and no row after it"),
        (pc.and_(lacks_before, _any(op, needs_before)), lambda op: (
            f"has the op {op!r} and no row before it; let the source send it (in PostgreSQL: ALTER TABLE ... "
            f"REPLICA IDENTITY {'DEFAULT, or FULL' if keyed else 'FULL'})"
        )),
    ]  # fmt: skip
    first: tuple[int, str] | None = None
    for bad, why in wrong:
        rows = np.flatnonzero(_mask(bad))
        if len(rows) and (first is None or rows[0] < first[0]):
            first = int(rows[0]), why(op[int(rows[0])].as_py())
    if first is not None:
        raise invalid_message(table, found.column("n")[first[0]].as_py(), first[1])


def _any(op: Any, ops: Sequence[str]) -> Any:
    return pc.is_in(op, pa.array(ops))


def _mask(column: Any) -> Mask:
    mask: Mask = pc.fill_null(column, False).to_numpy()
    return mask


def _taken(found: pa.Table, name: str, rows: Ints) -> pa.Array:
    taken = found.column(name).take(pa.array(rows))
    return pa.concat_arrays(taken.chunks) if taken.num_chunks else pa.nulls(0, pa.string())
