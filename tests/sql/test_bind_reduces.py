"""GROUP BY, DISTINCT, set operations, LIMIT and windows: exact bound relations, and PostgreSQL's errors."""

from __future__ import annotations

from textwrap import dedent

import pytest

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.bind.bind import bind
from halfjoin.sql.parse.parse import parse_query
from tests.support.front import SCHEMA, bound, outputs, shown


def check(sql: str, tree: str) -> None:
    assert shown(sql) == dedent(tree).strip()


def test_an_expression_over_groups_reads_the_keys() -> None:
    check("SELECT a % 3 + 1 AS k, sum(b) AS n FROM t WHERE b > 0 GROUP BY a % 3 HAVING sum(b) > 3 AND count(*) > 1", """
        Project k = group.key + 1, n = group.sum
          Filter group.sum > 3 AND group.count > 1
            Aggregate group.key = t.a % 3, group.sum = sum(t.b), group.count = count(*)
              Filter t.b > 0
                Scan t
    """)


def test_a_column_wins_over_an_output_in_group_by() -> None:
    check("SELECT s AS b, count(*) AS n FROM t GROUP BY b, t.s", """
        Project b = group.s, n = group.count
          Aggregate group.b = t.b, group.s = t.s, group.count = count(*)
            Scan t
    """)
    assert shown("SELECT a + 1 AS k FROM t GROUP BY k") == shown("SELECT a + 1 AS k FROM t GROUP BY 1")


def test_an_output_wins_over_a_column_in_order_by() -> None:
    check("SELECT s AS b FROM t ORDER BY b LIMIT 1", """
        Project b = rows.b
          TopK 1 order by rows.b
            Project rows.b = t.s
              Scan t
    """)
    check("SELECT s AS b FROM t ORDER BY -b, t.b LIMIT 1", """
        Project b = rows.b
          TopK 1 order by rows.key, rows.key#2
            Project rows.b = t.s, rows.key = -t.b, rows.key#2 = t.b
              Scan t
    """)


def test_a_primary_key_decides_the_columns_that_are_read() -> None:
    check("SELECT t.s, count(*) AS n FROM t JOIN u ON t.a = u.a GROUP BY t.a ORDER BY t.d LIMIT 1", """
        Project s = rows.s, n = rows.n
          TopK 1 order by rows.key
            Project rows.s = group.s, rows.n = group.count, rows.key = group.d
              Aggregate group.a = t.a, group.s = t.s, group.d = t.d, group.count = count(*)
                Filter t.a = u.a
                  Join
                    Scan t
                    Scan u
    """)


def test_equal_aggregates_are_one() -> None:
    check("SELECT sum(b) AS x, sum(b) + 1 AS y, sum(t.b) FILTER (WHERE ok) AS z FROM t", """
        Project x = group.sum, y = group.sum + 1, z = group.sum#2
          Aggregate group.sum = sum(t.b), group.sum#2 = sum(t.b) where t.ok
            Scan t
    """)


def test_calls_with_all_their_clauses() -> None:
    check("SELECT string_agg(DISTINCT s, ',' ORDER BY s DESC) FILTER (WHERE ok) AS l, "
          "percentile_disc(0.5) WITHIN GROUP (ORDER BY d) AS m FROM t", """
        Project l = group.string_agg, m = group.percentile_disc
          Aggregate group.string_agg = string_agg(distinct t.s, ',' order by t.s desc) where t.ok, """
          """group.percentile_disc = percentile_disc(0.5 order by t.d)
            Scan t
    """)


def test_grouping_sets_are_a_union_of_aggregates() -> None:
    check("SELECT c, grouping(c) AS g, count(*) AS n FROM u GROUP BY ROLLUP (c)", """
        Project c = group.c, g = group.grouping, n = group.count
          UnionAll as (group.c, group.count, group.grouping)
            Project group#3.c = group#2.c, group#3.count = group#2.count, group#3.grouping = 0
              Aggregate group#2.c = u.c, group#2.count = count(*)
                Scan u
            Project group#5.c = NULL, group#5.count = group#4.count, group#5.grouping = 1
              Aggregate group#4.count = count(*)
                Scan u
    """)


@pytest.mark.parametrize(("by", "sets"), [
    ("ROLLUP (a, (c, x))", 3), ("CUBE (a, c, x)", 8), ("a, CUBE (c, x)", 4), ("ROLLUP (a), ROLLUP (c)", 4),
    ("GROUPING SETS (a, ROLLUP (c, x), ())", 5), ("GROUPING SETS (a, (a, c), GROUPING SETS (c, x))", 4),
    ("ROLLUP (a), ROLLUP (a)", 4), ("DISTINCT ROLLUP (a), ROLLUP (a)", 2),
])  # fmt: skip
def test_the_sets_of_parts_combine(by: str, sets: int) -> None:
    assert shown(f"SELECT count(*) FROM u GROUP BY {by}").count("Aggregate") == sets


def test_distinct() -> None:
    check("SELECT DISTINCT a, b + 1 AS k FROM t ORDER BY k DESC, a LIMIT 3", """
        Project a = rows.a, k = rows.k
          TopK 3 order by rows.k desc, rows.a
            Aggregate rows.a = t.a, rows.k = t.b + 1
              Scan t
    """)
    check("SELECT DISTINCT ON (s, a) b FROM t ORDER BY a, s DESC, b DESC LIMIT 2", """
        Project b = rows.b
          TopK 2 order by rows.key#2, rows.key desc, rows.b desc
            TopK 1 partition by rows.key, rows.key#2 order by rows.b desc
              Project rows.b = t.b, rows.key = t.s, rows.key#2 = t.a
                Scan t
    """)


def test_a_chain_of_unions_is_one() -> None:
    tree = """
        Project a = distinct.a
          Aggregate distinct.a = union.a
            UnionAll as (union.a)
              Project union#2.a = t.a
                Scan t
              Project union#3.c = u.c
                Scan u
              Project union#4.c = w.c
                Scan w
    """
    check("SELECT a FROM t UNION SELECT c FROM u UNION SELECT c FROM w", tree)
    check("SELECT a FROM t UNION (SELECT c FROM u UNION ALL SELECT c FROM w)", tree)
    assert shown("SELECT a FROM t UNION SELECT c FROM u UNION ALL SELECT c FROM w").count("UnionAll") == 2


def test_intersect_binds_tighter_and_counts_both_sides() -> None:
    check("SELECT a FROM t INTERSECT SELECT c FROM w", """
        Project a = intersect#4.a
          Filter intersect#4."copies left" > 0 AND intersect#4."copies right" > 0
            Aggregate intersect#4.a = intersect#3.a, intersect#4.copies left = count(*) where intersect#3.left, """
          """intersect#4.copies right = count(*) where NOT intersect#3.left
              UnionAll as (intersect#3.a, intersect#3.left)
                Project intersect.a = t.a, intersect.left = true
                  Scan t
                Project intersect#2.c = w.c, intersect#2.left = false
                  Scan w
    """)
    assert shown("SELECT a FROM t EXCEPT SELECT 1 INTERSECT SELECT 2").startswith("Project a = except")
    assert "repeat_row(greatest(" in shown("SELECT a FROM t EXCEPT ALL SELECT c FROM w")
    assert outputs("SELECT a FROM t INTERSECT ALL SELECT c FROM w") == ["a bigint"]


@pytest.mark.parametrize(("clauses", "top"), [
    ("ORDER BY a LIMIT 3", "TopK 3 order by rows.a"),
    ("ORDER BY a DESC OFFSET 2", "TopK all offset 2 order by rows.a desc"),
    ("ORDER BY a NULLS FIRST LIMIT 1 + 1 OFFSET '4'", "TopK 2 offset 4 order by rows.a nulls first"),
    ("ORDER BY 1 FETCH FIRST ROW ONLY", "TopK 1 order by rows.a"),
    ("ORDER BY a FETCH NEXT 2 ROWS WITH TIES", "TopK 2 with ties order by rows.a"),
    ("LIMIT 2.5", "TopK 3"),
])  # fmt: skip
def test_limit(clauses: str, top: str) -> None:
    assert shown(f"SELECT a FROM t {clauses}").splitlines()[1].strip() == top


@pytest.mark.parametrize("clauses", ["ORDER BY a", "LIMIT ALL", "LIMIT NULL", "OFFSET 0", "ORDER BY s LIMIT ALL"])
def test_no_limit_is_no_top_k(clauses: str) -> None:
    assert shown(f"SELECT a FROM t {clauses}") == shown("SELECT a FROM t")


def test_an_order_without_a_limit_is_noticed_once() -> None:
    for sql, count in (("SELECT a FROM (SELECT a FROM t ORDER BY a) q ORDER BY a", 1),
                       ("SELECT a FROM t ORDER BY a LIMIT 1", 0)):  # fmt: skip
        notices: list[str] = []
        bind(parse_query(sql), SCHEMA, sql, notices)
        assert notices == ["ORDER BY has no effect in a view without LIMIT: a view has no order"] * count


def test_windows_over_one_order_are_one() -> None:
    check("SELECT a, sum(b) OVER w AS q, rank() OVER w AS r, lag(b) IGNORE NULLS OVER (w ROWS 2 PRECEDING) AS l, "
          "count(*) FILTER (WHERE ok) OVER (PARTITION BY a RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS n "
          "FROM t WINDOW w AS (PARTITION BY s ORDER BY a DESC)", """
        Project a = t.a, q = window.sum, r = window.rank, l = window.lag, n = window.count
          Window window.count = count() where t.ok range current row to unbounded following partition by t.a
            Window window.sum = sum(t.b), window.rank = rank(), """
          """window.lag = lag(t.b) ignore nulls rows 2 preceding to current row partition by t.s order by t.a desc
              Project t.a = t.a, t.b = t.b, t.s = t.s, t.ok = t.ok
                Scan t
    """)


def test_windows_come_after_the_groups() -> None:
    check("SELECT s, sum(sum(b)) OVER (ORDER BY count(*)) AS x FROM t GROUP BY s HAVING count(*) > 1", """
        Project s = group.s, x = window.sum
          Window window.sum = sum(group.sum) order by group.count
            Filter group.count > 1
              Aggregate group.s = t.s, group.sum = sum(t.b), group.count = count(*)
                Scan t
    """)


def test_a_condition_on_row_number_is_a_top_k() -> None:
    numbered = "(SELECT *, {} OVER (PARTITION BY a ORDER BY c) AS n FROM u) q"
    check(f"SELECT c FROM {numbered.format('row_number()')} WHERE n <= 3 AND x > 1", """
        Project c = q.c
          Filter q.x > 1.0
            Project q.a = u.a, q.c = u.c, q.x = u.x
              TopK 3 partition by u.a order by u.c
                Scan u
    """)
    assert "TopK 2 with ties" in shown(f"SELECT c FROM {numbered.format('rank()')} WHERE 3 > n")
    assert "TopK" not in shown(f"SELECT c FROM {numbered.format('dense_rank()')} WHERE n < 3")
    assert "TopK" not in shown(f"SELECT c FROM {numbered.format('row_number()')} WHERE n <= 3 OR x > 1")
    check("SELECT c FROM u QUALIFY row_number() OVER (ORDER BY c) = 1", """
        Project c = u.c
          TopK 1 order by u.c
            Project u.c = u.c
              Scan u
    """)


def test_a_number_that_is_read_is_of_the_first_rows() -> None:
    check("SELECT c, row_number() OVER (ORDER BY c) AS n FROM u QUALIFY n <= 2", """
        Project c = u.c, n = window.row_number
          Filter window.row_number <= 2
            Window window.row_number = row_number() order by u.c
              TopK 2 order by u.c
                Project u.c = u.c
                  Scan u
    """)


def test_the_number_of_the_first_row_is_one() -> None:
    check("SELECT c, row_number() OVER (ORDER BY c) AS n FROM u QUALIFY n = 1", """
        Project c = u.c, n = window.row_number
          Filter window.row_number = 1
            Project u.c = u.c, window.row_number = 1
              TopK 1 order by u.c
                Project u.c = u.c
                  Scan u
    """)
    ties = shown("SELECT * FROM (SELECT c, rank() OVER w AS r, dense_rank() OVER w AS d, row_number() OVER w AS n "
                 "FROM u WINDOW w AS (ORDER BY c)) q WHERE r = 1")  # fmt: skip
    assert "window.rank = 1, window.dense_rank = 1, window.row_number = window.row_number" in ties


def test_a_temporal_filter_may_be_below_and_above_the_groups() -> None:
    check("SELECT a, max(b) AS m FROM t WHERE mz_now() < b GROUP BY a HAVING mz_now() > max(b)", """
        Project a = group.a, m = group.max
          Filter mz_now() > group.max
            Aggregate group.a = t.a, group.max = max(t.b)
              Filter mz_now() < t.b
                Scan t
    """)


@pytest.mark.parametrize(("sql", "types"), [
    ("SELECT sum(a) AS x, sum(b) AS y, avg(a) AS z, count(*) AS n FROM t",
     ["x bigint", "y numeric(38,0)", "z numeric(32,22)", "n bigint"]),
    ("SELECT DISTINCT 'x' AS k, NULL AS n FROM t", ["k text", "n text"]),
    ("SELECT 'x' AS k GROUP BY k", ["k text"]),
    ("SELECT NULL AS k UNION SELECT 1", ["k integer"]),
    ("SELECT a AS k FROM t EXCEPT SELECT '1'", ["k integer"]),
    ("SELECT lag(a, 1, b) OVER (ORDER BY a) AS k, ntile(2) OVER () AS n FROM t", ["k bigint", "n integer"]),
])  # fmt: skip
def test_types(sql: str, types: list[str]) -> None:
    assert outputs(sql) == types


UNGROUPED = 'column "{}" must appear in the GROUP BY clause or be used in an aggregate function'


@pytest.mark.parametrize(("sql", "reason", "at"), [
    ("SELECT s, d FROM t GROUP BY s", UNGROUPED.format("t.d"), "d FROM"),
    ("SELECT s || x.d::text FROM t AS x GROUP BY s", UNGROUPED.format("x.d"), "x.d"),
    ("SELECT *, count(*) FROM u", UNGROUPED.format("u.a"), "*,"),
    ("SELECT count(*) FROM u HAVING a > 1", UNGROUPED.format("u.a"), "a >"),
    ("SELECT count(*) FROM u ORDER BY a LIMIT 1", UNGROUPED.format("u.a"), "a LIMIT"),
    ("SELECT s, a FROM t GROUP BY s, b", UNGROUPED.format("t.a"), "a FROM"),
    ("SELECT sum(x) OVER (ORDER BY c) FROM u GROUP BY x", UNGROUPED.format("u.c"), "c)"),
    ("SELECT sum(count(*)) FROM t", "aggregate function calls cannot be nested", "count"),
    ("SELECT sum(rank() OVER ()) FROM t", "aggregate function calls cannot contain window function calls", "rank"),
    ("SELECT a FROM t WHERE sum(b) > 1", "aggregate functions are not allowed in WHERE", "sum"),
    ("SELECT 1 FROM t JOIN u ON sum(b) = c", "aggregate functions are not allowed in JOIN conditions", "sum"),
    ("SELECT sum(a) FILTER (WHERE max(b) > 1) FROM t", "aggregate functions are not allowed in FILTER", "max"),
    ("SELECT sum(b) AS x FROM t GROUP BY x", "aggregate functions are not allowed in GROUP BY", "x"),
    ("SELECT rank() OVER () AS x FROM t GROUP BY x", "window functions are not allowed in GROUP BY", "x"),
    ("SELECT a FROM t WHERE rank() OVER () > 1", "window functions are not allowed in WHERE", "rank"),
    ("SELECT 1 FROM t HAVING rank() OVER () > 1", "window functions are not allowed in HAVING", "rank"),
    ("SELECT sum(rank() OVER ()) OVER () FROM t", "window function calls cannot be nested", "rank"),
    ("SELECT row_number() FROM t", "window function row_number requires an OVER clause", "row_number"),
    ("SELECT lower(s) FILTER (WHERE ok) FROM t", "FILTER specified, but lower is not an aggregate function", "lower"),
    ("SELECT mode() FROM t", "WITHIN GROUP is required for ordered-set aggregate mode", "mode"),
    ("SELECT sum(1) WITHIN GROUP (ORDER BY a) FROM t", "sum is not an ordered-set aggregate, so it cannot have", "sum"),
    ("SELECT count() FROM t", "count(*) must be used to call a parameterless aggregate function", "count"),
    ("SELECT count(DISTINCT a ORDER BY b) FROM t", "in an aggregate with DISTINCT, ORDER BY expressions must", "count"),
    ("SELECT a FROM t GROUP BY 3", "GROUP BY position 3 is not in select list", "3"),
    ("SELECT a FROM t GROUP BY 'x'", "non-integer constant in GROUP BY", "'x'"),
    ("SELECT a AS x, s AS x FROM t ORDER BY x LIMIT 1", 'ORDER BY "x" is ambiguous', "x LIMIT"),
    ("SELECT a FROM t ORDER BY 2 LIMIT 1", "ORDER BY position 2 is not in select list", "2"),
    ("SELECT grouping(b) FROM t GROUP BY a", "arguments to GROUPING must be grouping expressions", "b)"),
    ("SELECT DISTINCT a FROM t ORDER BY s LIMIT 1", "for SELECT DISTINCT, ORDER BY expressions must appear", "s LIMIT"),
    ("SELECT DISTINCT ON (a) a FROM t ORDER BY b LIMIT 1", "SELECT DISTINCT ON expressions must match initial", "a) a"),
    ("SELECT a FROM t UNION SELECT a FROM u ORDER BY a + 1 LIMIT 1", "invalid UNION/INTERSECT/EXCEPT", "a + 1"),
    ("SELECT a FROM t EXCEPT SELECT a, c FROM u", "the parts of EXCEPT have different numbers of columns", "a, c"),
    ("SELECT a FROM t INTERSECT SELECT z FROM w", "types integer and text cannot be matched", "z"),
    ("SELECT a FROM t LIMIT -1", "LIMIT must not be negative", "1"),
    ("SELECT a FROM t OFFSET -1", "OFFSET must not be negative", "1"),
    ("SELECT a FROM t LIMIT a", "argument of LIMIT must not contain variables", "a"),
    ("SELECT a FROM t FETCH FIRST 1 ROW WITH TIES", "WITH TIES cannot be specified without ORDER BY clause", "1"),
    ("SELECT sum(a) OVER v FROM t", 'window "v" does not exist', "sum"),
    ("SELECT sum(a) OVER (w PARTITION BY b) FROM t WINDOW w AS (ORDER BY a)",
     'cannot override PARTITION BY clause of window "w"', "sum"),
    ("SELECT sum(a) OVER (w ORDER BY b) FROM t WINDOW w AS (ORDER BY a)",
     'cannot override ORDER BY clause of window "w"', "sum"),
    ("SELECT sum(DISTINCT a) OVER () FROM t", "DISTINCT is not implemented for window functions", "sum"),
    ("SELECT sum(a) OVER (ORDER BY b ROWS UNBOUNDED FOLLOWING) FROM t", "frame start cannot be UNBOUNDED", "sum"),
])  # fmt: skip
def test_mistakes(sql: str, reason: str, at: str) -> None:
    with pytest.raises(UnsupportedSQL) as caught:
        bound(sql)
    assert caught.value.reason.startswith(reason)
    assert caught.value.wrong or "parts of" in reason or "types" in reason
    assert (caught.value.line, caught.value.column) == (1, sql.rindex(at) + 1)


@pytest.mark.parametrize(("sql", "reason"), [
    ("SELECT count(*) FILTER (WHERE mz_now() > a) FROM t", "mz_now() is allowed only in comparisons"),
    ("SELECT max(mz_now()) FROM t", "mz_now() is allowed only in comparisons"),
    ("SELECT 1 FROM t GROUP BY mz_now() > a", "mz_now() is allowed only in comparisons"),
    ("SELECT a FROM t ORDER BY mz_now() LIMIT 1", "mz_now() is allowed only in comparisons"),
    ("SELECT a FROM t GROUP BY ALL", "GROUP BY ALL is not supported"),
    ("SELECT a FROM t LIMIT 5 PERCENT", "LIMIT with a percentage is not supported"),
])  # fmt: skip
def test_refused(sql: str, reason: str) -> None:
    with pytest.raises(UnsupportedSQL) as caught:
        bound(sql)
    assert caught.value.reason.startswith(reason)


def test_only_window_functions_have_windows() -> None:
    with pytest.raises(UnsupportedSQL, match="lower is not a window function nor an aggregate function"):
        bound("SELECT lower(s) OVER () FROM t")


def test_a_users_reduce_takes_the_columns_of_its_table() -> None:
    check("SELECT r.* FROM spans(TABLE u PARTITION BY c ORDER BY x DESC NULLS LAST) AS r (l)", """
        Project l = r.l, high = r.high
          Reduce spans(c = u.c, a = u.a, x = u.x) partition by u.c order by u.x desc nulls last as (r.c, r.l, r.high)
            Scan u
    """)


def test_a_name_finds_the_partition_where_no_other_has_it() -> None:
    check("SELECT c, r.low FROM spans(TABLE u AS v PARTITION BY (v.c)) AS r", """
        Project c = r.c, low = r.low
          Reduce spans(c = v.c, a = v.a, x = v.x) partition by v.c as (r.c, r.low, r.high)
            Scan u as v
    """)
    assert outputs("SELECT * FROM spans(TABLE u PARTITION BY c)") == ["low bigint", "high bigint"]
    assert outputs("SELECT * FROM w JOIN spans(TABLE u PARTITION BY c) AS r USING (c)") == [
        "c bigint", "z text", "low bigint", "high bigint"]  # fmt: skip
    assert outputs("SELECT c FROM w, spans(TABLE u PARTITION BY c) AS r") == ["c bigint"]  # w's


def test_a_correlated_reduce_is_partitioned_by_what_it_equates() -> None:
    check("SELECT w.z, r.low FROM w, spans(TABLE (SELECT x FROM u WHERE u.c = w.c)) AS r", """
        Project z = w.z, low = r.low
          Filter w.c = correlated.column1
            Join
              Scan w
              Reduce spans(x = subquery.x) partition by u.c as (correlated.column1, r.low, r.high)
                Project subquery.x = u.x, u.c = u.c
                  Scan u
    """)
