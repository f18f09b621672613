"""Public errors: real calls set their fields, pickling keeps them whole, and a text is rendered once."""

from __future__ import annotations

import base64
import copy
import datetime as dt
import pickle
import subprocess
import sys
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin import errors
from halfjoin.engine.intake.rows import unnumbered
from halfjoin.engine.spark import task_errors
from halfjoin.sql.expr import Expr
from halfjoin.sql.functions.render import render

ERRORS = [
    hj.HalfjoinError("this fails", remedy="do that"),
    hj.UnsupportedSQL("no", remedy="write yes", sql="SELECT no", line=1, column=8, wrong=True),
    hj.UnknownName("table", "orderz", ["orders", "customers"]),
    hj.InvalidRow("is bad", remedy="mend it", table="t", column="x", row=3, key={"k": 1}, value=Decimal("1.5")),
    hj.InvalidTime("closed", time=4, upper=5, since=0, table="t"),
    hj.Conflict("taken", name="t", holder="another process"),
    hj.DataError("division by zero", view="v", time=4, row="t.x = 0", more=2),
    hj.StorageError("cannot be read", path="/warehouse"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "code"), [
    (lambda engine: engine.explain("v", format="pdf"), "22023"), (lambda engine: hj.Engine(memory="lots"), "22023"),
    (lambda engine: engine.apply({"t": []}, batch_id=5), "22023"), (lambda engine: hj.Engine(runner="x"), "22023"),
    (lambda engine: (engine.close(), engine.read("t")), "08003"),
])  # fmt: skip
def test_what_a_caller_gave_is_no_internal_error(call: Any, code: str, engine: hj.Engine) -> None:
    with pytest.raises(hj.HalfjoinError) as found:
        call(engine)
    assert found.value.sqlstate == code


@pytest.fixture
def engine() -> hj.Engine:
    engine = hj.Engine(clock="own")
    engine.execute("CREATE TABLE t (k bigint PRIMARY KEY, x integer, n numeric(8,2) NOT NULL)")
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT k, 10 / x AS y FROM t")
    engine.apply({"t": [{"k": 1, "x": 5, "n": 1}]}, time=4)
    return engine


def fields_of(error: BaseException, *names: str) -> list[Any]:
    return [getattr(error, name) for name in names]


@pytest.mark.parametrize(("row", "column", "value", "text"), [
    ({"k": 3, "x": "a", "n": 1}, "x", "a", "t.x: row 1: 'a' is not a valid integer"),
    ({"k": 3, "x": 2**40, "n": 1}, "x", 2**40, "t.x: row 1: 1099511627776 is out of range for integer"),
    ({"k": 3, "n": None}, "n", None, "t.n: row 1: is NULL, and the column is NOT NULL"),
    ({"k": 3}, "n", None, "t.n: row 1: is missing, and the column is NOT NULL"),
])  # fmt: skip
def test_a_bad_row_names_table_column_row_and_value(engine: hj.Engine, row: Any, column: str, value: Any, text: str
                                                    ) -> None:
    with pytest.raises(hj.InvalidRow) as caught:
        engine.apply({"t": [{"k": 2, "x": 1, "n": 1}, row]}, time=5)
    assert fields_of(caught.value, "table", "column", "row", "value") == ["t", column, 1, value]
    assert str(caught.value) == text


def test_a_value_that_would_be_rounded_has_a_remedy(engine: hj.Engine) -> None:
    with pytest.raises(hj.InvalidRow) as caught:
        engine.apply({"t": [{"k": 2, "x": 1, "n": Decimal("1.005")}]}, time=5)
    assert caught.value.value == Decimal("1.005")
    assert caught.value.remedy == "round it to 2 digits after the point, or give the column more of them"
    assert str(caught.value).endswith(f"; {caught.value.remedy}")


@pytest.mark.parametrize("rows", [[{"k": 1, "x": 9, "n": 1}], hj.deletes([{"k": 1, "x": 9, "n": 1}])])
def test_a_broken_key_is_a_field(engine: hj.Engine, rows: Any) -> None:
    with pytest.raises(hj.InvalidRow, match=r"t: row 0: .*\(k\) = \(1\)") as caught:
        engine.apply({"t": rows}, time=5)
    assert fields_of(caught.value, "table", "column", "row", "key") == ["t", None, 0, {"k": 1}]


def test_a_message_is_named_by_its_number(engine: hj.Engine) -> None:
    messages = [None, {"op": "c", "before": None, "after": {"k": "x", "x": 1, "n": 1}}]
    with pytest.raises(hj.InvalidRow) as caught:
        engine.apply({"t": hj.debezium(messages, encodings={"n": "string"})}, time=5)
    assert fields_of(caught.value, "table", "column", "row", "called") == ["t", "k", 1, "message 1"]
    assert str(caught.value) == "t.k: message 1: 'x' is not a valid bigint"


@pytest.mark.parametrize("reason", ["is bad", "t.x: row 7: is bad", "a: message 3: b"])
def test_what_a_value_says_changes_no_field(reason: str) -> None:
    table = hj.Engine()
    table.execute("CREATE TABLE t (k bigint)")
    given = pa.table({"k": [reason]})
    with pytest.raises(hj.InvalidRow) as caught:
        table.apply({"t": given})
    renamed = unnumbered(caught.value, table._state.catalog.table("t"), given)
    assert fields_of(renamed, "table", "column", "row", "key", "value") == ["t", "k", None, {"k": reason}, reason]
    assert str(renamed) == f"t.k: the row with (k) = ({reason!r}): {reason!r} is not a valid bigint"


def test_a_closed_time_says_upper(engine: hj.Engine) -> None:
    with pytest.raises(hj.InvalidTime) as caught:
        engine.apply({"t": [{"k": 2, "x": 1, "n": 1}]}, time=3)
    assert fields_of(caught.value, "time", "upper") == [3, 5]
    with pytest.raises(hj.InvalidTime) as caught:
        engine.apply({"t": [{"k": 2, "x": 1, "n": 1, "__time": 3}]}, time=6)
    assert fields_of(caught.value, "time", "upper", "table") == [3, 5, "t"]
    with pytest.raises(hj.InvalidTime) as caught:
        engine.read("v", as_of=9)
    assert fields_of(caught.value, "time", "since", "upper", "table") == [9, 0, 5, "v"]
    assert caught.value.remedy == "later times are not closed yet: apply a batch, or advance"
    with pytest.raises(hj.InvalidTime) as caught:
        engine.read("v", as_of="soon")
    assert caught.value.time == "soon"


def test_an_unknown_name_has_its_kind_and_candidates(engine: hj.Engine) -> None:
    with pytest.raises(hj.UnknownName) as caught:
        engine.execute("SELECT k,\n  z FROM t")
    assert fields_of(caught.value, "kind", "name", "line", "column") == ["column", "z", 2, 3]
    with pytest.raises(hj.UnknownName) as caught:
        engine.apply({"t": [{"k": 2, "xx": 1}]}, time=5)
    assert fields_of(caught.value, "kind", "name", "candidates") == ["column of t", "xx", ("k", "x", "n")]
    assert caught.value.remedy == "did you mean x?"


def test_sql_that_is_refused_has_its_place(engine: hj.Engine) -> None:
    sql = "CREATE MATERIALIZED VIEW w AS\nSELECT x, count(*) FROM t"
    with pytest.raises(hj.UnsupportedSQL) as caught:
        engine.execute(sql)
    reason = 'column "t.x" must appear in the GROUP BY clause or be used in an aggregate function'
    assert fields_of(caught.value, "reason", "sql", "line") == [reason, sql, 2]
    assert caught.value.remedy == "or write any_value(...) of it"
    with pytest.raises(hj.UnsupportedSQL) as caught:
        engine.execute("UPDATE t SET x = max(x)")
    assert caught.value.reason == "aggregate functions are not allowed in UPDATE"


def test_a_failing_view_names_itself_time_and_row(engine: hj.Engine) -> None:
    engine.apply({"t": [{"k": 2, "x": 0, "n": 1}, {"k": 3, "x": 0, "n": 1}]}, time=7)
    with pytest.raises(hj.DataError) as caught:
        engine.read("v")
    assert fields_of(caught.value, "view", "time", "row", "more") == ["v", 7, "t.x = 0", 1]
    assert str(caught.value) == (
        "v cannot be read as of 7: division by zero in 10 / t.x, for a row with t.x = 0 (and 1 more)"
    )
    changes = engine.subscribe("v", as_of=4)
    next(changes)
    with pytest.raises(hj.DataError) as caught:
        next(changes)
    assert fields_of(caught.value, "view", "time", "row") == ["v", 7, "t.x = 0"]
    assert "mend the rows" in (caught.value.remedy or "")


def test_a_missing_folder_is_a_path(tmp_path: Any) -> None:
    with pytest.raises(hj.StorageError) as caught:
        hj.Engine(tmp_path / "none", read_only=True)
    assert caught.value.path == str(tmp_path / "none")


def test_a_conflict_says_who_holds_what(engine: hj.Engine, tmp_path: Any) -> None:
    with pytest.raises(hj.Conflict) as caught:
        engine.execute("DROP TABLE t")
    assert fields_of(caught.value, "name", "holder") == ["t", "v"]
    with hj.Engine(tmp_path), pytest.raises(hj.Conflict) as caught:
        hj.Engine(tmp_path)
    assert caught.value.name == str(tmp_path) and "process" in (caught.value.holder or "")


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_travel_whole(error: hj.HalfjoinError) -> None:
    error.add_note("seen")
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(other) is type(error)
        assert vars(other) == vars(error)
        assert (str(other), other.args) == (str(error), error.args)
    arrived = task_errors.unpacked(f"org.apache.spark.SparkException: 1; {task_errors.packed(error)} at line 7")
    assert arrived is not None and str(arrived) == str(error)
    assert vars(arrived) == {name: value for name, value in vars(error).items() if name != "__notes__"}


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_text_is_made_of_the_fields(error: hj.HalfjoinError) -> None:
    assert str(error.with_()) == str(error) == error.args[0]
    assert str(error.with_(remedy="wait")).endswith("wait")
    assert error.with_(remedy="wait").remedy == "wait"
    with pytest.raises(TypeError):
        error.with_(colour="red")


class Odd:
    """A value that no other process knows."""

    def __reduce__(self) -> Any:
        return print, ("unpickled",)

    def __repr__(self) -> str:
        return "odd"


def test_nothing_but_errors_is_unpacked(capsys: pytest.CaptureFixture[str]) -> None:
    error = hj.InvalidRow("is bad", table="t", value=Odd())
    arrived = task_errors.unpacked(task_errors.packed(error))
    assert isinstance(arrived, hj.InvalidRow) and arrived.value == "odd"
    for data in (Odd(), dt.date(2024, 1, 1), [error.with_(value=Odd())]):
        forged = base64.b64encode(pickle.dumps(data)).decode()
        assert task_errors.unpacked(f"halfjoin-error:{forged};") is None
    assert task_errors.unpacked("halfjoin-error:////;") is None
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("value", [dt.datetime(2024, 1, 1, tzinfo=dt.UTC), Decimal("1.5"), b"\x00", [1, None]])
def test_plain_values_keep_their_type_in_tasks(value: object) -> None:
    arrived = task_errors.unpacked(task_errors.packed(hj.InvalidRow("is bad", value=value)))
    assert isinstance(arrived, hj.InvalidRow) and arrived.value == value


def test_a_row_without_a_number_is_named_by_whatever_values_it_has() -> None:
    odd = pa.array([b"\xff"]).view(pa.string())
    columns = {"s": odd, "l": pa.ListArray.from_arrays([0, 1], odd), "d": pa.array([4_000_000], pa.date32())}
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (s text, l text[], d date)")
        table, given = engine._state.catalog.table("t"), pa.table(columns)
        with pytest.raises(hj.InvalidRow) as problem:
            engine.apply({"t": given})
    named = unnumbered(problem.value, table, given)
    assert named.key == {"s": b"\xff", "l": None, "d": "12921-08-18"}
    assert "not valid UTF-8" in str(named)


def test_a_row_keeps_its_names_in_tasks() -> None:
    """Arrow gives moments in zones, and intervals of its own, which are not plain."""
    moment = dt.datetime(2024, 7, 1, tzinfo=ZoneInfo("America/New_York"))
    key = {"k": 1, "at": moment, "lasts": pa.MonthDayNano([1, 2, 3])}
    arrived = task_errors.unpacked(task_errors.packed(hj.InvalidRow("is bad", key=key, value=moment)))
    assert isinstance(arrived, hj.InvalidRow) and arrived.key is not None
    assert dict(arrived.key) == key | {"lasts": repr(key["lasts"])}
    assert arrived.value == moment and arrived.value.utcoffset() == dt.timedelta(hours=-4)
    assert str(arrived).startswith("the row with (k, at, lasts) = (1, datetime.datetime(2024, 7, 1, 0, 0, tzinfo=")


def test_a_long_value_is_shown_in_part_and_kept_whole() -> None:
    error = hj.InvalidRow("is bad", value="x" * 1000)
    assert len(str(error)) < 100 and len(error.value) == 1000


def test_the_errors_need_nothing_heavy() -> None:
    program = "import sys, halfjoin.errors; print(*(name for name in sys.modules if 'halfjoin.' in name or name in "
    program += "('numpy', 'pyarrow', 'sqlglot', 'pydantic')))"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    light = ["errors", "sqlstates", "uncompiled", "version"]
    assert sorted(done.stdout.split()) == [f"halfjoin.{name}" for name in light]
    assert {name for name in hj.__all__ if hasattr(errors, name)} == {type(error).__name__ for error in ERRORS}


def test_errors_lists_the_rows_that_a_read_names_one_of(engine: hj.Engine) -> None:
    engine.execute("CREATE MATERIALIZED VIEW w AS SELECT k % 2 AS p, max(10 / (x * k)) AS z FROM t GROUP BY 1")
    bad = [{"k": 10 + n, "x": n // 3 * 5, "n": 1} for n in range(6)]
    engine.apply({"t": bad}, time=5)
    for view in ("v", "w"):
        found = engine.errors(view)
        with pytest.raises(hj.DataError) as caught:
            engine.read(view)
        first = found.slice(0, 1).to_pylist()[0] if found.num_rows else {}
        assert fields_of(caught.value, "view", "reason", "row") == [first["view"], first["error"], first["row"]]
        assert sum(found["count"].to_pylist()) == 1 + caught.value.more
    assert engine.errors("v").to_pylist() == [
        {"view": "v", "error": "division by zero in 10 / t.x", "row": "t.x = 0", "count": 3}]  # fmt: skip
    assert engine.errors("v", as_of=4).num_rows == engine.errors("t").num_rows == 0
    engine.apply({"t": hj.deletes([{"k": one["k"]} for one in bad])}, time=6)
    assert engine.errors("v").num_rows == engine.errors("w").num_rows == 0
    assert engine.errors("v", as_of=5)["count"].to_pylist() == [3]


def test_errors_of_a_view_include_those_of_what_it_reads(engine: hj.Engine) -> None:
    engine.execute("""
        CREATE MATERIALIZED VIEW above AS SELECT y, 1 / (y - 2) AS z FROM v;
        CREATE MATERIALIZED VIEW loop AS WITH RECURSIVE r(a, b) AS
            (SELECT k, x FROM t UNION SELECT a, 8 / b - 1 FROM r WHERE b < 9) SELECT * FROM r;
        CREATE VIEW plain AS SELECT * FROM v""")
    engine.apply({"t": [{"k": n, "x": 0, "n": 1} for n in range(20, 60)]}, time=5)
    assert [list(one.values()) for one in engine.errors("above").to_pylist()] == [
        ["above", "division by zero in 1 / (v.y - 2)", "v.y = 2", 1],
        ["v", "division by zero in 10 / t.x", "t.x = 0", 40]]  # fmt: skip
    engine.execute("CREATE MATERIALIZED VIEW each AS SELECT 1 / (k - k) AS z FROM t")
    assert engine.errors("each").num_rows == 41 and engine.errors("each", limit=7).num_rows == 7
    for limit in (-1, "7", True, 1.5):
        with pytest.raises(hj.HalfjoinError, match="is not a number of lines"):
            engine.errors("each", limit=limit)  # type: ignore[arg-type]
    with pytest.raises(hj.HalfjoinError, match="3 is not the name of a table or view"):
        engine.errors(3)  # type: ignore[arg-type]
    assert {one["view"] for one in engine.errors("loop").to_pylist()} == {"a part of loop"}
    assert all("loop#" not in text for one in engine.errors("loop").to_pylist() for text in (one["error"], one["row"]))
    with pytest.raises(hj.UnsupportedSQL, match="plain is a plain view"):
        engine.errors("plain")
    with pytest.raises(hj.UnknownName, match="abov"):
        engine.errors("abov")
    with pytest.raises(hj.InvalidTime, match="cannot read v as of 9"):
        engine.errors("v", as_of=9)


@pytest.mark.parametrize("of", [list, dict])
@pytest.mark.parametrize("kind", ["jsonb", "bigint[]", "bigint", "text", "date[]"])
def test_a_value_that_is_nested_too_deep_is_refused(kind: str, of: type) -> None:
    deep: Any = of()
    for _ in range(100_000):
        deep = {"a": deep} if of is dict else [deep]
    with hj.Engine() as engine:
        engine.execute(f"CREATE TABLE t (v {kind})")
        with pytest.raises(hj.InvalidRow, match=f"t.v: row 1: a {of.__name__} that is nested too deep is not a valid"):
            engine.apply({"t": [{"v": None}, {"v": deep}]})


def test_an_expression_is_written_once_for_all_rows_that_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []

    def noted(expr: Expr) -> str:
        written.append(render(expr))
        return written[-1]

    monkeypatch.setattr("halfjoin.engine.linear.failures.render", noted)
    engine = hj.Engine(clock="own")
    engine.execute("CREATE TABLE t (k bigint, d bigint); CREATE MATERIALIZED VIEW v AS SELECT k / d AS q FROM t")
    engine.apply({"t": [{"k": k, "d": 0} for k in range(100)]}, time=1)
    with pytest.raises(hj.DataError, match="and 99 more"):
        engine.read("v")
    assert written == ["t.k / t.d"] * 2  # at first as if none failed
