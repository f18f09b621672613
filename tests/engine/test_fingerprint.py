"""Fingerprints of batches: equal content has one in any order, form and split; any other value changes it."""

from __future__ import annotations

import datetime as dt
import functools
import itertools
import operator
import sqlite3
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import halfjoin as hj
from halfjoin.engine.intake.fingerprint import Partial, agree, digest, partial
from halfjoin.engine.intake.rows import submitted
from halfjoin.engine.intake.upserts import latest
from halfjoin.engine.updates.codes import _NULL

TYPES = {
    "b": ("boolean", [True, False]),
    "s": ("smallint", [0, 1, -1]),
    "l": ("bigint", [0, 1, -1, 2**63 - 1, int(_NULL.view(np.int64))]),
    "r": ("real", [0.0, 0.5, float("nan"), float("inf")]),
    "d": ("double precision", [0.0, 1.0, 5e-324, float("nan")]),
    "n": ("numeric(30,2)", [Decimal("0.00"), Decimal("0.01"), Decimal(2**65)]),
    "x": ("text", ["", "a", "\1", "\1\1", "NULL", "ab"]),
    "c": ("char(3)", ["a", "b"]),
    "y": ("bytea", [b"", b"\0", b"\0\0", b"a"]),
    "a": ("date", [dt.date(1970, 1, 1), dt.date(1970, 1, 2)]),
    "o": ("time", [dt.time(0), dt.time(0, 0, 1)]),
    "p": ("timestamp", [dt.datetime(1970, 1, 1), dt.datetime(1970, 1, 1, 0, 0, 0, 1)]),
    "z": ("timestamptz", [dt.datetime(1970, 1, 1, tzinfo=dt.UTC), dt.datetime(1970, 1, 2, tzinfo=dt.UTC)]),
    "u": ("uuid", ["00000000-0000-0000-0000-000000000000", "00000000-0000-0000-0000-000000000001"]),
    "e": ("integer[]", [[], [0], [None], [0, None], [None, 0], [0, 0], [1, 0]]),
    "f": ("text[]", [[], [""], ["", ""], ["ab"], ["a", "b"], [None]]),
}
DDL = f"CREATE TABLE t ({', '.join(f'{name} {kind}' for name, (kind, _) in TYPES.items())})"
ROW = st.fixed_dictionaries({
    **{name: st.sampled_from([None, *values]) for name, (_, values) in TYPES.items()},
    "__time": st.sampled_from([0, 1, 2**40]),
    "__diff": st.sampled_from([1, -1, 2, 0]),
})  # fmt: skip


@functools.cache
def _table(ddl: str = DDL, name: str = "t") -> Any:
    engine = hj.Engine()
    engine.execute(ddl)
    return engine._state.catalog.table(name)


def _of(rows: Any, ddl: str = DDL) -> Partial:
    table = _table(ddl)
    return partial(latest(table, submitted(table, rows)))


@given(st.lists(ROW, min_size=1, max_size=6), st.data())
def test_any_order_and_any_split_give_the_same(rows: list[dict[str, Any]], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(rows))
    assert _of(shuffled) == _of(rows)
    cuts = [0, *sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=3))), len(rows)]
    whole = submitted(_table(), shuffled)
    pieces = [
        type(whole)({name: column.slice(a, b - a) for name, column in whole.columns.items()}, b - a,
                    whole.time[a:b], whole.diff[a:b])  # type: ignore[index]
        for a, b in itertools.pairwise(cuts)
    ]  # fmt: skip
    assert functools.reduce(operator.add, map(partial, pieces)) == _of(rows)


@given(st.lists(ROW, min_size=1, max_size=4), st.data())
def test_one_changed_value_gives_another(rows: list[dict[str, Any]], data: st.DataObject) -> None:
    number = data.draw(st.integers(0, len(rows) - 1))
    name = data.draw(st.sampled_from(list(rows[number])))
    choices = {"__time": [0, 1, 2**40], "__diff": [1, -1, 2, 0]}.get(name) or [None, *TYPES[name][1]]
    value = data.draw(st.sampled_from([c for c in choices if repr(c) != repr(rows[number][name])]))
    changed = [dict(row) for row in rows]
    changed[number][name] = value
    assert _of(changed) != _of(rows)


@given(st.lists(ROW, min_size=1, max_size=4))
def test_a_row_more_or_less_gives_another(rows: list[dict[str, Any]]) -> None:
    assert len({_of(rows).sums, _of([*rows, rows[0]]).sums, _of(rows[1:]).sums}) == 3


@pytest.mark.parametrize("name", TYPES)
def test_every_value_of_a_type_is_told_from_the_others(name: str) -> None:
    kind, values = TYPES[name]
    ddl = f"CREATE TABLE t (v {kind})"
    assert len({_of([{"v": value}], ddl).sums for value in [None, *values]}) == len(values) + 1


def test_what_the_engine_takes_for_one_value_is_one() -> None:
    zero, nan = np.array([0x8000000000000000, 0x7FF8000000000001], np.uint64).view(np.float64)
    assert str(zero) == "-0.0"
    for given_, same in ((zero, 0.0), (nan, float("nan"))):
        assert _of([{"d": given_}]) == _of([{"d": same}])
        assert _of([{"r": given_}]) == _of([{"r": same}])


def test_the_form_of_the_rows_does_not_count() -> None:
    rows = [{"l": 1, "x": "a", "d": 1.5}, {"l": 2, "x": None, "d": None}]
    forms = [rows, pa.Table.from_pylist(rows), pd.DataFrame(rows), {"x": ["a", None], "d": [1.5, None], "l": [1, 2]},
             hj.inserts(rows), [{**row, "__diff": 1} for row in rows], pa.Table.from_pylist(rows).slice(0, 2),
             pa.Table.from_pylist(rows).take([1, 0])]  # fmt: skip
    assert len(set(map(_of, forms))) == 1


def test_meaning_time_and_table_count() -> None:
    ddl = "CREATE TABLE t (k bigint PRIMARY KEY, v text)"
    rows = [{"k": 1, "v": "a"}]
    one, other = _of(rows, ddl), _of(hj.upserts(rows), ddl)
    timed = _of([{**rows[0], "__time": 0}], ddl)
    marks = {digest({"t": one}, None, True), digest({"t": one}, 0, True), digest({"t": one}, None, False),
             digest({"u": one}, None, True), digest({"t": other}, None, True), digest({}, None, True),
             digest({"t": one, "u": one}, None, True), digest({"t": timed}, 0, True)}  # fmt: skip
    assert len(marks) == 8
    with pytest.raises(ValueError, match="different"):
        one + other


def test_of_upserts_the_order_of_one_key_counts_and_no_other() -> None:
    ddl = "CREATE TABLE t (k bigint PRIMARY KEY, v text)"
    a, b, c = {"k": 1, "v": "a"}, {"k": 1, "v": "b"}, {"k": 2, "v": "c"}
    assert _of(hj.upserts([a, b, c]), ddl) == _of(hj.upserts([c, a, b]), ddl) == _of(hj.upserts([c, b]), ddl)
    assert _of(hj.upserts([a, b, c]), ddl) != _of(hj.upserts([b, a, c]), ddl)


def test_a_retry_in_another_order_changes_nothing() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (k bigint)")
    engine.apply({"t": [{"k": 1}, {"k": 2}]}, time=1, batch_id="one")
    assert engine.apply({"t": [{"k": 2}, {"k": 1}]}, time=1, batch_id="one").upper == 2
    with pytest.raises(hj.Conflict, match="one"):
        engine.apply({"t": [{"k": 2}, {"k": 2}]}, time=1, batch_id="one")
    assert engine.read("t").num_rows == 2


@pytest.mark.parametrize("meaning", [hj.inserts, hj.upserts, hj.deletes])
def test_columns_that_are_not_named_do_not_count(meaning: Any) -> None:
    narrow = "CREATE TABLE t (k bigint PRIMARY KEY, v text)"
    wide = "CREATE TABLE t (w bigint, k bigint PRIMARY KEY, v text, x text DEFAULT 'x')"
    for rows in ([{"k": 1, "v": "a"}], [{"k": 1, "v": None}], [{"k": 1, "v": "a"}, {"k": 2}]):
        assert _of(meaning(rows), narrow) == _of(meaning(rows), wide)
        assert _of(meaning(rows), wide) != _of(meaning([{**row, "x": "x"} for row in rows]), wide)


def test_a_null_counts_in_upserts() -> None:
    ddl = "CREATE TABLE t (k bigint PRIMARY KEY, v text, w text)"
    rows: list[dict[str, Any]] = [{"k": 1}, {"k": 1, "v": None}, {"k": 1, "w": None}, {"k": 1, "v": None, "w": None}]
    assert len({_of(hj.upserts([row]), ddl).sums for row in rows}) == 4
    assert len({_of([row], ddl).sums for row in rows}) == 1


def test_values_of_two_columns_or_rows_are_not_taken_for_each_other() -> None:
    ddl = "CREATE TABLE t (a bigint, b bigint)"
    rows = [[{"a": 1, "b": 2}], [{"a": 2, "b": 1}], [{"a": 1}], [{"b": 1}],
            [{"a": 1, "b": 1}, {"a": 2, "b": 2}], [{"a": 1, "b": 2}, {"a": 2, "b": 1}]]  # fmt: skip
    assert len({_of(one, ddl).sums for one in rows}) == len(rows)


@pytest.mark.parametrize("meaning", [hj.inserts, hj.upserts])
def test_a_batch_may_come_again_after_a_column_was_added(tmp_path: Path, meaning: Any) -> None:
    """Spark gives a sink its last batch again when a query starts, and before that a table is altered."""
    rows = [{"k": 1, "v": "a"}, {"k": 2, "v": None}]
    with hj.Engine(tmp_path) as engine:
        engine.execute("CREATE TABLE t (k bigint PRIMARY KEY, v text)")
        engine.apply({"t": meaning(rows)}, time=1, batch_id="one")
    with hj.Engine(tmp_path) as engine:
        engine.execute("ALTER TABLE t ADD COLUMN w bigint DEFAULT 7")
        assert engine.apply({"t": meaning(rows)}, time=1, batch_id="one").upper == 2
        with pytest.raises(hj.Conflict, match="one"):
            engine.apply({"t": meaning([{**row, "w": 7} for row in rows])}, time=1, batch_id="one")
        assert [row["w"] for row in engine.read("t").to_pylist()] == [7, 7]


def test_a_mark_of_an_older_version_is_believed(tmp_path: Path) -> None:
    with hj.Engine(tmp_path) as engine:
        engine.execute("CREATE TABLE t (k bigint)")
        engine.apply({"t": [{"k": 1}]}, time=1, batch_id="one")
    with sqlite3.connect(tmp_path / "journal.sqlite") as journal:
        (mark,) = journal.execute("SELECT mark FROM batch").fetchone()
        journal.execute("UPDATE batch SET mark = ?", (mark[1:],))
    journal.close()
    with hj.Engine(tmp_path) as engine:
        assert engine.apply({"t": [{"k": 1}]}, time=1, batch_id="one").upper == 2
        assert engine.read("t").num_rows == 1
    assert not agree(mark, mark[:-1] + bytes([mark[-1] ^ 1]))


@pytest.mark.parametrize("kept", [False, True])
def test_a_batch_of_a_table_that_was_made_anew_is_another(tmp_path: Path, kept: bool) -> None:
    """Else a notebook that runs again has an empty table."""
    with hj.Engine(tmp_path if kept else None) as engine:
        engine.execute("CREATE TABLE t (k bigint)")
        engine.apply({"t": [{"k": 1}]}, time=1, batch_id="one")
        engine.execute("ALTER TABLE t ADD CHECK (k > 0); ALTER TABLE t RENAME TO u; ALTER TABLE u RENAME TO t")
        assert engine.apply({"t": [{"k": 1}]}, time=1, batch_id="one").upper == 2
        engine.execute("DROP TABLE t; CREATE TABLE t (k bigint)")
        with pytest.raises(hj.Conflict, match="'one' was used for these rows before a table"):
            engine.apply({"t": [{"k": 1}]}, time=1, batch_id="one")
        engine.apply({"t": [{"k": 1}]}, time=2, batch_id="two")
        assert engine.read("t").num_rows == 1


def test_a_mark_without_the_ids_of_tables_is_compared_by_the_rows() -> None:
    one = _of([{"k": 1}], "CREATE TABLE t (k bigint)")
    new = digest({"t": one}, None, True, {"t": "a"})
    assert agree(digest({"t": one}, None, True), new) and not agree(digest({"t": one}, 0, True), new)
    assert not agree(digest({"t": one}, None, True, {"t": "b"}), new)
