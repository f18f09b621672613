"""Collections: their text says what the operators say, names and values are quoted, nonsense is refused."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import halfjoin as hj

ODD = ["order", "of", "iterate", "this", "loop", "Total", "a b", 'a "b" c', "größe", "x;--", "1st", "group", "values"]
VALUES = [
    None, True, False, 0, -1, 2**31, -(2**63), 1.5, -0.1, 1e300, float("inf"), float("-inf"), Decimal("1.50"),
    Decimal("-2.5"), Decimal("1E+3"), "", "it's", "'; DROP TABLE t; --", "a\nb", r"back\slash", "$$", "/* x", "-- x",
    "größe", b"\x00\xff",
    datetime.date(2024, 2, 29), datetime.datetime(2024, 1, 31, 10, 0, 0, 5), datetime.time(23, 59, 59, 1),
    datetime.datetime(2024, 1, 31, 10, tzinfo=datetime.UTC), [1, 2, None], ["a", "b'c"],
]  # fmt: skip


@pytest.fixture
def engine() -> hj.Engine:
    made = hj.Engine(clock="own")
    made.execute("CREATE TABLE t (a bigint, b bigint)")
    made.apply({"t": [{"a": 1, "b": 2}, {"a": 2, "b": 3}, {"a": 3, "b": 1}]}, time=1)
    return made


T = hj.collection("t")


def rows(engine: hj.Engine, collection: hj.Collection) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in engine.query(collection).to_pylist()), key=repr)


@pytest.mark.parametrize("name", ODD)
def test_odd_names_are_columns_and_tables(name: str, engine: hj.Engine) -> None:
    made = T.map(**{name: "a"}).iterate(lambda inner: inner.concat(inner).distinct(), trace="Round of It")
    engine.create_view(name, made)
    assert engine.read(name).column_names == [name, "Round of It"]
    assert rows(engine, hj.collection(name).map("*", again=1).reduce(n="count(*)")) == [(3,)]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_value_is_the_value_and_nothing_more(value: Any, engine: hj.Engine) -> None:
    found = engine.query(T.filter("a = 1").map(x=f"{hj.lit(value)}"))["x"].to_pylist()
    assert found == [value] and type(found[0]) is type(value)
    if not isinstance(value, str):
        assert engine.query(T.filter("a = 1").map(x=value))["x"].to_pylist() == [value]


def test_a_span_of_time_is_a_value(engine: hj.Engine) -> None:
    span = datetime.timedelta(days=-1, seconds=5, microseconds=7)
    assert rows(engine, T.filter("a = 1").map(x=f"TIMESTAMP '2024-01-02' + {hj.lit(span)}")) == [
        (datetime.datetime(2024, 1, 2) + span,)
    ]


@pytest.mark.parametrize("value", [object(), {"a": 1}, [], Decimal("NaN"), "a\0b", 1j], ids=range(6))
def test_a_value_without_a_literal_is_refused(value: Any) -> None:
    with pytest.raises(hj.HalfjoinError, match="no literal"):
        hj.lit(value)


@pytest.mark.parametrize("text", [
    "a; DROP TABLE t", "a) FROM t --", "a, b", "a AS b", "a FROM t", "1 UNION SELECT 2", "DISTINCT a", "a -- b\n)", "",
    "/* nothing */", "'open", "a ORDER BY b", "a LIMIT 1", "(a", "SELECT a",
])  # fmt: skip
@pytest.mark.parametrize("operator", ["filter", "map", "reduce", "join", "flat_map"])
def test_text_that_is_not_one_expression_is_refused(text: str, operator: str) -> None:
    operators: dict[str, Callable[[], hj.Collection]] = {
        "filter": lambda: T.filter(text), "map": lambda: T.map(x=text), "reduce": lambda: T.reduce(by=[text]),
        "join": lambda: T.join(T, text), "flat_map": lambda: T.flat_map(text),
    }  # fmt: skip
    with pytest.raises(hj.UnsupportedSQL, match="is not one SQL expression"):
        operators[operator]()


def test_comments_and_lines_of_an_expression_end_with_it(engine: hj.Engine) -> None:
    found = T.filter("a /* c */ = -- d\n 1 -- e").map("b", text="'x\n y' -- f")
    assert rows(engine, found.reduce(by=["text -- g", "b"], n="count(*)")) == [("x\n y", 2, 1)]


REFUSED: dict[str, Callable[[], object]] = {
    "is not SQL text": lambda: T.filter(3),  # type: ignore[arg-type]
    "map needs columns": lambda: T.map(),
    "reduce needs groups": lambda: T.reduce(),
    "order is the order in which a function sees": lambda: T.reduce(by="a", order="count(*)"),
    "is not a collection; execute": lambda: hj.Engine().create_view("v", "SELECT 1"),  # type: ignore[arg-type]
    "None is not a name": lambda: hj.Engine().create_view(None, T),  # type: ignore[arg-type]
    "is not one column": lambda: T.map(x="this.*"),
    "a view keeps the name of a function": lambda: T.flat_map(lambda batch: batch),  # type: ignore[arg-type]
    "a view keeps the name .* register_reduce": lambda: T.reduce(lambda rows: rows, by="a"),  # type: ignore[arg-type]
    "takes names of columns in by, and no aggregates": lambda: T.reduce("f", by="a", n="count(*)"),
    "takes names of columns in by": lambda: T.reduce("f", by="a % 2"),
    "names of columns in by": lambda: T.reduce("f", by={"k": "a"}),
    "'x y' is not one SQL expression": lambda: T.reduce("f", by="a", order="x y"),
    "1 is not a name": lambda: hj.iterate({1: T}, lambda now: now),  # type: ignore[dict-item]
    "is not a call of a table function": lambda: T.flat_map("a + 1"),
    "are not names of columns": lambda: T.join(T, ["a = 1"]),
    "'t' is not a collection": lambda: T.concat("t"),  # type: ignore[arg-type]
    "'' is not a name": lambda: hj.collection(""),
    "is not a positive number of rounds": lambda: T.iterate(lambda inner: inner, rounds=0),
    "None is not a collection": lambda: T.iterate(lambda inner: None),  # type: ignore[arg-type,return-value]
    "starts with x, and its body returns y": lambda: hj.iterate({"x": T}, lambda now: {"y": T}),
    "starts with nothing": lambda: hj.iterate({}, lambda now: {}),
    "returns a dict": lambda: hj.iterate({"x": T}, lambda now: T),  # type: ignore[arg-type,return-value]
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_is_no_operator_is_refused(reason: str) -> None:
    with pytest.raises(hj.HalfjoinError, match=reason):
        REFUSED[reason]()


def test_the_inside_of_a_loop_has_no_meaning_outside(engine: hj.Engine) -> None:
    inside: list[hj.Collection] = []

    def body(inner: hj.Collection) -> hj.Collection:
        inside.append(inner)
        return inner.map("b", "a")

    loop = T.iterate(body)
    for leaked in (inside[0], inside[0].filter("a = 1"), loop.join(inside[0], "a"), T.iterate(lambda x: inside[0])):
        with pytest.raises(hj.HalfjoinError, match="is read outside of the loop"):
            leaked.sql()
        assert "Collection" in repr(leaked)


def test_steps_do_not_hide_tables(engine: hj.Engine) -> None:
    for name in ("step", "loop", "rest", "step_2"):
        engine.execute(f"CREATE TABLE {name} (a bigint)")
        engine.apply({name: [{"a": len(name)}]}, time=engine.stats().upper)
    small = T.filter("a <= (SELECT max(a) FROM step_2) - 4").map("a")
    made = small.iterate(lambda x: x.filter("a IN (SELECT a - 3 FROM loop)")).concat(hj.collection("step"))
    made = made.concat(hj.collection("rest").iterate(lambda x: x.distinct()))
    assert rows(engine, made) == [(1,), (4,), (4,)]


def test_a_collection_that_is_read_twice_is_written_once() -> None:
    common = T.filter("a > 1")
    assert common.join(common, ["a", "b"]).concat(common).sql().count("a > 1") == 1
    assert T.iterate(lambda x: x.concat(common).distinct()).concat(common).sql().count("a > 1") == 1
    loop = common.iterate(lambda x: x.map("a", b="b - b"))
    assert loop.join(loop, "a").sql().count("WITH ITERATIVE") == 1


def test_a_loop_that_reads_no_variable_is_written_outside(engine: hj.Engine) -> None:
    def body(x: hj.Collection) -> hj.Collection:
        zeros = T.iterate(lambda y: y.map("a", b="greatest(b - 1, 0)"))
        return x.join(zeros, "a", "a", b="other.b")

    made = T.iterate(body)
    assert made.sql().index("greatest") < made.sql().rindex("WITH ITERATIVE")
    engine.create_view("v", made)
    assert rows(engine, hj.collection("v")) == [(1, 0), (2, 0), (3, 0)]


def test_a_long_chain_is_a_view_or_refused(engine: hj.Engine) -> None:
    chain = T
    for _ in range(40):
        chain = chain.map("a", b="b + 1").filter("a > 0")
    assert rows(engine, chain.filter("a = 1")) == [(1, 42)]
    for _ in range(2_000):
        chain = chain.filter("a > 0")
    with pytest.raises(hj.UnsupportedSQL, match="nested too deep"):
        engine.create_view("v", chain)


def test_columns_of_one_name_are_refused_or_named(engine: hj.Engine) -> None:
    with pytest.raises(hj.UnsupportedSQL, match="column b appears twice"):
        engine.create_view("v", T.join(T, "a"))
    engine.create_view("v", T.join(T, "a", "a", "this.b", other_b="other.b"))
    assert engine.read("v").column_names == ["a", "b", "other_b"]


def test_functions_of_the_user_are_called_by_name(engine: hj.Engine) -> None:
    def twice(batch: pa.RecordBatch) -> pa.RecordBatch:
        numbers = batch.column(0).to_pylist()
        return pa.RecordBatch.from_pydict({"y": [2 * n for n in numbers], "__row": list(range(len(numbers)))})

    engine.register_table_function("twice", twice, returns={"y": "bigint"})
    engine.register_aggregate("most", takes=["bigint"], returns="bigint",
                              function=lambda rows, counts: max(rows.column(0).to_pylist()))  # fmt: skip
    engine.create_view("v", T.flat_map("twice(a)").reduce(by={"odd": "a % 2"}, y="most(y)"))
    assert rows(engine, hj.collection("v")) == [(0, 4), (1, 6)]


def test_reduces_of_the_user_are_called_by_name(engine: hj.Engine) -> None:
    def last(rows: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_pydict({"value": rows["b"].to_pylist()[-1:], "rows": [len(rows)]})

    engine.register_reduce("last", last, returns={"value": "bigint", "rows": "bigint"})
    odd = T.map("b", **{"Odd Key": "a % 2"})
    engine.create_view("v", odd.reduce("last", by='"Odd Key"', order="b DESC"))
    assert engine.read("v").column_names == ["Odd Key", "value", "rows"]
    assert rows(engine, hj.collection("v")) == [(0, 3, 1), (1, 1, 2)]
    assert rows(engine, T.reduce("last", order=["b", "a DESC"])) == [(3, 3)]
    loop = odd.iterate(lambda x: x.reduce("last", by='"Odd Key"', order="b").map('"Odd Key"', b="value")
                                  .join(odd, '"Odd Key"', "other.b", '"Odd Key"'))  # fmt: skip
    assert rows(engine, loop) == [(1, 1), (2, 1), (3, 0)]


def test_a_view_of_a_collection_is_kept(tmp_path: Path) -> None:
    with hj.Engine(tmp_path / "w", clock="own") as engine:
        engine.execute("CREATE TABLE t (a bigint, b bigint)")
        made = T.iterate(lambda x: x.join(T, "this.b = other.a", "this.a", "other.b").concat(T).distinct())
        engine.create_view("v", made)
        engine.apply({"t": [{"a": 1, "b": 2}, {"a": 2, "b": 3}]}, time=1)
    with hj.Engine(tmp_path / "w") as engine:
        engine.apply({"t": [{"a": 3, "b": 4}, {"a": 1, "b": 2, "__diff": -1}]}, time=2)
        assert rows(engine, hj.collection("v")) == [(2, 3), (2, 4), (3, 4)]
        assert made.sql() in engine.execute("SHOW VIEWS")["definition"].to_pylist()[0]  # type: ignore[index]


def test_explain_shows_a_collection_as_its_text(engine: hj.Engine) -> None:
    made = T.filter("a > 1").iterate(lambda x: x.map("a", b="0::bigint"))
    assert engine.explain(made) == engine.explain(made.sql())
    assert "the recursive query loop (a, b), at most 5,000 rounds" in engine.explain(made)


def test_a_body_is_not_asked_about_nothing(engine: hj.Engine) -> None:
    none = T.filter("a > 9").map("a")
    seven = T.reduce(a="7::bigint + count(*) * 0")
    engine.create_view("once", none.iterate(lambda x: x.concat(seven), rounds=1))
    engine.create_view("twice", T.map("a").iterate(lambda x: x.map(a="a * 10").concat(seven), rounds=2))
    assert rows(engine, hj.collection("once")) == [(7,)]
    assert rows(engine, hj.collection("twice")) == [(100,), (200,), (300,), (7,), (70,)]


def test_all_variables_go_on_together(engine: hj.Engine) -> None:
    one = T.filter("a = 1").map("a")
    pair = {"x": one, "y": one.map(a="a + 10")}
    swapped = hj.iterate(pair, lambda now: {"x": now["y"], "y": now["x"]}, rounds=3)
    assert [rows(engine, swapped[name]) for name in "xy"] == [[(11,)], [(1,)]]


def test_a_loop_that_goes_on_is_an_error_and_heals(engine: hj.Engine) -> None:
    engine.create_view("v", T.iterate(lambda x: x.map(a="b", b="a")))
    with pytest.raises(hj.DataError, match="changes after 5,000 rounds still"):
        engine.read("v")
    engine.execute("SET TIME = 2; UPDATE t SET a = 4, b = 4")
    assert rows(engine, hj.collection("v")) == [(4, 4)] * 3
