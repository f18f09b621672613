"""Upserts and deletes that name only some columns keep the others, whatever the form, the time and the runner."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import halfjoin as hj
from tests.support.seeds import some

TABLE = "CREATE TABLE t (k integer PRIMARY KEY, a integer, b text, c integer NOT NULL)"
OLD = {"k": 1, "a": 10, "b": "old", "c": 3}


@pytest.fixture(params=["memory", "warehouse"])
def engine(request, tmp_path):
    with hj.Engine(None if request.param == "memory" else tmp_path / "w", runner="local") as engine:
        engine.execute(TABLE)
        engine.execute("CREATE MATERIALIZED VIEW v AS SELECT k, a, b, c FROM t")
        engine.apply({"t": [OLD]}, time=1)
        yield engine


def contents(engine, name="t", as_of=None):
    return sorted(engine.read(name, as_of).to_pylist(), key=lambda row: row["k"])


FORMS = {
    "dicts": lambda rows: rows,
    "columns": lambda rows: {name: [row[name] for row in rows] for name in rows[0]},
    "arrow": pa.Table.from_pylist,
}


@pytest.mark.parametrize("form", FORMS)
def test_unnamed_columns_keep_their_values(engine, form):
    engine.apply({"t": hj.upserts(FORMS[form]([{"k": 1, "a": 11}]))}, time=2)
    assert contents(engine) == contents(engine, "v") == [OLD | {"a": 11}]
    engine.apply({"t": hj.upserts(FORMS[form]([{"k": 1, "a": None}]))}, time=3)  # named, so it becomes NULL
    assert contents(engine) == contents(engine, "v") == [OLD | {"a": None}]


def test_upserts_of_one_key_compose_in_order(engine):
    rows = [{"k": 1, "a": 11}, {"k": 1, "b": "new"}, {"k": 1, "a": 12}, {"k": 2, "c": 5}, {"k": 2, "b": "two"}]
    engine.apply({"t": hj.upserts(rows)}, time=2)
    assert contents(engine, "v") == [OLD | {"a": 12, "b": "new"}, {"k": 2, "a": None, "b": "two", "c": 5}]


def test_unnamed_columns_are_those_at_the_rows_own_time(engine):
    rows = [{"k": 1, "b": "at nine", "__time": 9}, {"k": 1, "a": 11, "__time": 5}]
    engine.apply({"t": hj.upserts(rows)}, time=2)
    engine.advance(20)
    assert contents(engine, "v", 4) == [OLD]
    assert contents(engine, "v", 5) == [OLD | {"a": 11}]
    assert contents(engine, "v", 9) == [OLD | {"a": 11, "b": "at nine"}]


def test_a_new_row_must_have_what_is_not_null(engine):
    for rows in ([{"k": 7, "a": 1}], {"k": [7], "a": [1]}, [OLD, {"k": 7, "a": 1}]):
        with pytest.raises(hj.InvalidRow, match=r"^t\.c: the row with \(k\) = \(7\): is new and does not name the"):
            engine.apply({"t": hj.upserts(rows)}, time=2)
    with pytest.raises(hj.InvalidRow, match=r"t\.c: row 0: is NULL, and the column is NOT NULL"):
        engine.apply({"t": hj.upserts([{"k": 1, "c": None}])}, time=2)
    with pytest.raises(hj.InvalidRow, match=r"t\.k: row 1: is missing, and the column is NOT NULL"):
        engine.apply({"t": hj.upserts([{"k": 1, "a": 1}, {"a": 2}])}, time=2)
    assert contents(engine) == [OLD]


@pytest.mark.parametrize("form", FORMS)
def test_deletes_may_name_the_key_alone(engine, form):
    engine.apply({"t": [{"k": 2, "c": 1}]}, time=2)
    engine.apply({"t": hj.deletes(FORMS[form]([{"k": 1}]))}, time=3)
    assert contents(engine) == contents(engine, "v") == [{"k": 2, "a": None, "b": None, "c": 1}]
    with pytest.raises(hj.InvalidRow, match=r"deletes a row that is not there: \(k\) = \(1\)"):
        engine.apply({"t": hj.deletes(FORMS[form]([{"k": 1}]))}, time=4)


def test_what_deletes_name_must_be_right(engine):
    with pytest.raises(hj.InvalidRow, match="b is 'old', not 'other'"):
        engine.apply({"t": hj.deletes([{"k": 1, "b": "other"}])}, time=2)
    engine.apply({"t": hj.deletes([{"k": 1, "b": "old"}])}, time=2)
    assert contents(engine) == []


def test_without_a_key_deletes_mean_what_inserts_mean():
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (a integer, b integer)")
        engine.apply({"t": [{"a": 1, "b": 2}, {"a": 1}]}, time=1)
        engine.apply({"t": hj.deletes([{"a": 1}])}, time=2)
        assert engine.read("t").to_pylist() == [{"a": 1, "b": 2}]


def test_a_retry_of_partial_upserts_is_the_same_batch(engine):
    rows = [{"k": 1, "a": 11}, {"k": 1, "b": "new"}]
    engine.apply({"t": hj.upserts(rows)}, time=2, batch_id="one")
    assert engine.apply({"t": hj.upserts([{"k": 1, "b": "new", "a": 11}])}, time=2, batch_id="one").time == 2
    for other in ([{"k": 1, "a": 11}], [{"k": 1, "a": 11, "b": "new", "c": None}], [{"k": 1, "a": None, "b": "new"}]):
        with pytest.raises((hj.Conflict, hj.InvalidRow)):
            engine.apply({"t": hj.upserts(other)}, time=2, batch_id="one")
    engine.apply({"t": hj.upserts([{"k": 1, "a": None}])}, time=3, batch_id="two")
    with pytest.raises(hj.Conflict):
        engine.apply({"t": hj.upserts([{"k": 1, "a": None, "b": None}])}, time=3, batch_id="two")
    assert contents(engine) == [OLD | {"a": None, "b": "new"}]


UPSERT = st.tuples(st.integers(0, 2), st.integers(0, 2), st.fixed_dictionaries({}, optional={
    "a": st.none() | st.integers(0, 3), "b": st.none() | st.sampled_from("xy")}))  # fmt: skip


@settings(max_examples=some(100), deadline=None)
@given(st.lists(st.lists(UPSERT, max_size=6), max_size=5))
def test_partial_upserts_are_dictionary_updates(batches):
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (k integer PRIMARY KEY, a integer, b text)")
        expected, upper = {}, 0
        for batch in batches:
            rows = [{"k": k, "__time": upper + later, **named} for k, later, named in batch]
            engine.apply({"t": hj.upserts(rows)}, time=None if rows else upper)
            for k, _, named in sorted(batch, key=lambda one: one[1]):
                expected[k] = {"a": None, "b": None} | expected.get(k, {}) | named
            upper = engine.stats().upper
            found = {row["k"]: {"a": row["a"], "b": row["b"]} for row in engine.read("t").to_pylist()}
            assert found == expected
