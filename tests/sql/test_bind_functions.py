"""Table functions: in FROM beside their inputs, and in SELECT lists."""

from __future__ import annotations

from textwrap import dedent

import pytest

from halfjoin.errors import UnknownName, UnsupportedSQL
from halfjoin.sql.relation import TableFunction
from tests.support.front import bound, outputs, shown


def check(sql: str, tree: str) -> None:
    assert shown(sql) == dedent(tree).strip()


def call(sql: str) -> TableFunction:
    relation = bound(sql)
    while not isinstance(relation, TableFunction):
        relation = relation.input  # type: ignore[union-attr]
    return relation


@pytest.mark.parametrize("lateral", ["", "LATERAL "])
def test_reads_columns_to_the_left(lateral: str) -> None:
    check(f"SELECT t.a, g.x FROM t, {lateral}generate_series(1, t.a) AS g (x), repeat_row(g.x)", """
        Project a = t.a, x = g.x
          TableFunction repeat_row(g.x)
            TableFunction generate_series(1, t.a) as (g.x)
              Scan t
    """)


def test_stands_between_joins() -> None:
    check("SELECT t.a FROM t CROSS JOIN generate_series(1, t.a) g JOIN u ON u.a = g", """
        Project a = t.a
          Filter u.a = g.g
            Join
              TableFunction generate_series(1, t.a) as (g.g)
                Scan t
              Scan u
    """)


@pytest.mark.parametrize(("sql", "columns"), [
    ("SELECT * FROM generate_series(1, 2)", ["generate_series integer"]),
    ("SELECT * FROM generate_series(1, 2) g", ["g integer"]),
    ("SELECT * FROM generate_series('2024-01-01', '2024-01-03', interval '1 day') g", ["g timestamptz"]),
    ("SELECT g FROM generate_series(1, 2) AS g (x)", ["g integer"]),
    ("SELECT x FROM generate_series(1, 2) AS g (x)", ["x integer"]),
    ("SELECT g.g, g.ordinality FROM generate_series(1, 2) WITH ORDINALITY AS g", ["g integer", "ordinality bigint"]),
    ("SELECT x, n FROM generate_series(1, 2) WITH ORDINALITY AS g (x, n)", ["x integer", "n bigint"]),
    ("SELECT y FROM t, pulse(b)", ["y bigint"]),
    ("SELECT p.z FROM t, pulse(b) AS p (z)", ["z bigint"]),
    ("SELECT * FROM pair(1, 'x') WITH ORDINALITY", ["p bigint", "q text", "ordinality bigint"]),
    ("SELECT pulse(1)", ["pulse bigint"]),
    ("SELECT 1 AS one FROM repeat_row(3)", ["one integer"]),
])  # fmt: skip
def test_columns(sql: str, columns: list[str]) -> None:
    assert outputs(sql) == columns


@pytest.mark.parametrize(("args", "type"), [
    ("1, 2", "integer"), ("1::smallint, 2", "integer"), ("1, b", "bigint"), ("a, 9, b", "bigint"),
    ("1, '3'", "integer"), ("1, 2.5", "numeric(18,1)"), ("a, n, 0.125", "numeric(18,3)"),
    ("ts, ts, '1 day'", "timestamp"), ("d, ts, interval '1 day'", "timestamp"),
    ("d, d, interval '1 month'", "timestamptz"),
    ("d, '2020-02-01', interval '1 day'", "timestamptz"), ("ts::timestamptz, ts, '1 day'", "timestamptz"),
])  # fmt: skip
def test_types_of_generate_series(args: str, type: str) -> None:
    function = call(f"SELECT g FROM t, generate_series({args}) g")
    assert str(function.outputs[0].type) == type
    assert {str(arg.type) for arg in function.args} <= {type, "interval"}


def test_other_argument_types() -> None:
    assert [str(arg.type) for arg in call("SELECT 1 AS k FROM t, repeat_row(a)").args] == ["bigint"]
    assert [str(arg.type) for arg in call("SELECT 1 AS k FROM t, regexp_split_to_table(s, 'x') w").args] == ["text"] * 2
    assert [str(arg.type) for arg in call("SELECT * FROM pair('x', 1.5)").args] == ["text", "numeric(2,1)"]
    assert [str(column.type) for column in call("SELECT e FROM t, unnest(arr) e").outputs] == ["integer"]


def test_in_the_select_list() -> None:
    check("SELECT a, unnest(arr) + 1 AS e FROM t WHERE a > 1", """
        Project a = t.a, e = unnest.unnest + 1
          TableFunction unnest(t.arr) as (unnest.unnest)
            Filter t.a > 1
              Scan t
    """)


def test_calls_in_a_select_list_run_in_lockstep() -> None:
    check("SELECT unnest(arr) AS e, generate_series(1, generate_series(a, 2)) AS g FROM t", """
        Project e = unnest.unnest, g = generate_series.generate_series
          TableFunction generate_series(1, unnest.generate_series) as (generate_series.generate_series)
            TableFunction ROWS FROM(unnest(t.arr), generate_series(t.a, 2)) as (unnest.unnest, unnest.generate_series)
              Scan t
    """)


def test_lateral_values_count_through_the_row() -> None:
    check("SELECT v.k, v.l FROM u, LATERAL (VALUES ('a', u.a), ('c', u.c)) AS v (k, l)", """
        Project k = v.k, l = v.l
          Project u.a = u.a, u.c = u.c, u.x = u.x, number.number = number.number, \
v.k = CASE WHEN number.number = 1 THEN 'a' ELSE 'c' END, v.l = CASE WHEN number.number = 1 THEN u.a ELSE u.c END
            TableFunction generate_series(1, 2) as (number.number)
              Scan u
    """)


@pytest.mark.parametrize(("sql", "reason", "instead"), [
    ("SELECT g FROM generate_series(1) g", "no table function generate_series(integer)", "generate_series takes"),
    ("SELECT g FROM generate_series(1, true) g", "no table function generate_series(integer, boolean)", "takes"),
    ("SELECT g FROM generate_series(1, 1e-19) g", "generate_series with 19 decimals", "round the arguments"),
    ("SELECT g FROM t, generate_series(d, d) g", "generate_series over dates or timestamps needs an interval",
     "interval '1 day'"),
    ("SELECT a FROM t, repeat_row(n)", "no table function repeat_row(numeric(10,2))", "the weight"),
    ("SELECT a, repeat_row(2) FROM t", "repeat_row has no columns", "write it in FROM"),
    ("SELECT unnest(arr), repeat_row(1) FROM t", "repeat_row has no columns", "in FROM"),
    ("SELECT CASE WHEN ok THEN unnest(arr) END FROM t", "unnest returns rows, which is not allowed in a conditional",
     "in FROM"),
    ("SELECT a FROM t WHERE unnest(arr) = 1", "unnest returns rows, which is not allowed", "FROM ..., unnest(...)"),
    ("SELECT e FROM unnest('{1}') e", "no table function unnest(unknown literal)", "one array"),
    ("SELECT g FROM generate_series(1, 2) AS g (x, y)", "g has 1 columns, but 2 names are given", None),
    ("SELECT y FROM pulse(1) AS p (y integer)", "a list of column types is not supported", "name the columns"),
])  # fmt: skip
def test_refused(sql: str, reason: str, instead: str | None) -> None:
    with pytest.raises(UnsupportedSQL) as caught:
        bound(sql)
    assert caught.value.reason.startswith(reason)
    assert instead is None or instead in (caught.value.remedy or "")
    assert caught.value.line == 1


def test_unknown_functions() -> None:
    with pytest.raises(UnknownName) as caught:
        bound("SELECT * FROM generate_serie(1, 2)")
    assert str(caught.value).endswith("did you mean generate_series or generate_subscripts?")
    with pytest.raises(UnknownName, match="unknown table function 'lowers'"):
        bound("SELECT * FROM lowers('x')")


def test_what_stands_to_the_right_cannot_be_read() -> None:
    with pytest.raises(UnknownName, match="unknown table or alias 't'"):
        bound("SELECT g FROM generate_series(1, t.a) g, t")
