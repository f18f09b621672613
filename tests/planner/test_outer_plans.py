"""Plans of outer joins and subqueries: what is an input that is looked up, and what keeps state."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import halfjoin
from halfjoin.planner.plan import InputKind, Join, Reduce, ViewPlan

ABSENT, PADDED, PLAIN, PRESENT = InputKind.ABSENT, InputKind.PADDED, InputKind.PLAIN, InputKind.PRESENT


@pytest.fixture
def engine() -> Iterator[halfjoin.Engine]:
    with halfjoin.Engine() as engine:
        for name in "abcd":
            engine.execute(f"CREATE TABLE {name} (id integer PRIMARY KEY, k integer, x integer NOT NULL)")
        yield engine


def planned(engine: halfjoin.Engine, sql: str) -> ViewPlan:
    engine.execute(f"CREATE MATERIALIZED VIEW v AS {sql}")
    plan: ViewPlan = engine._state.maintained["v"].plan
    return plan


def kinds(plan: ViewPlan) -> list[list[tuple[str, InputKind]]]:
    """The alias and kind of each input of each branch of the view's own join."""
    return [[(path.alias, path.kind) for path in branch.paths] for branch in plan.branches]


STATELESS = {
    "SELECT a.x, b.x AS y FROM a LEFT JOIN b ON b.k = a.k": [[("a", PLAIN), ("b", PADDED)]],
    "SELECT a.x, b.x AS y FROM a RIGHT JOIN b USING (k)": [[("b", PLAIN), ("a", PADDED)]],
    "SELECT a.x, b.x AS y FROM a FULL JOIN b USING (k)": [
        [("a", PLAIN), ("b", PADDED)], [("b", PLAIN), ("a", ABSENT)]],
    "SELECT a.x FROM a WHERE EXISTS (SELECT * FROM b WHERE b.k = a.k AND b.x > 3)": [[("a", PLAIN), ("b", PRESENT)]],
    "SELECT a.x FROM a WHERE NOT EXISTS (SELECT * FROM b WHERE b.k = a.k)": [[("a", PLAIN), ("b", ABSENT)]],
    "SELECT a.x FROM a WHERE a.k IN (SELECT DISTINCT k FROM b)": [[("a", PLAIN), ("b", PRESENT)]],
    "SELECT a.x FROM a WHERE a.x NOT IN (SELECT x FROM b WHERE b.k = a.k)": [[("a", PLAIN), ("b", ABSENT)]],
    "SELECT a.x FROM a WHERE a.x NOT IN (SELECT x FROM b)": [[("a", PLAIN), ("b", ABSENT)]],
    "SELECT a.x, (SELECT b.x FROM b WHERE b.id = a.k) AS y FROM a": [[("a", PLAIN), ("b", PADDED)]],
    "SELECT a.x, s.y FROM a LEFT JOIN LATERAL (SELECT b.x AS y FROM b WHERE b.k = a.k) AS s ON true": [
        [("a", PLAIN), ("b", PADDED)]],
    """SELECT a.x, c.x AS y FROM a LEFT JOIN b ON b.k = a.k LEFT JOIN c ON c.k = b.x AND a.x > 1
       WHERE NOT EXISTS (SELECT * FROM d WHERE d.k = a.k)""": [
        [("a", PLAIN), ("b", PADDED), ("c", PADDED), ("d", ABSENT)]],
    "SELECT a.x, c.x AS y FROM a LEFT JOIN (b LEFT JOIN c ON c.k = b.x) ON b.k = a.k": [
        [("a", PLAIN), ("b", PADDED), ("c", PADDED)]],
    # A NULL of either side asks for more than the match: a row with a NULL, and any row at all.
    "SELECT a.x FROM a WHERE a.k NOT IN (SELECT k FROM b WHERE b.x = a.x)": [
        [("a", PLAIN), ("b", ABSENT), ("b#or2", ABSENT), ("b#or3", ABSENT)]],
}  # fmt: skip


@pytest.mark.parametrize("sql", STATELESS)
def test_a_match_by_equality_keeps_nothing(engine: halfjoin.Engine, sql: str) -> None:
    plan = planned(engine, sql)
    assert plan.below == ()
    assert kinds(plan) == STATELESS[sql]
    assert all(key.keys for key in plan.arrangements)


INNER = {
    "b.x = 3": PLAIN, "b.x > a.x": PLAIN, "b.k IS NOT NULL": PLAIN, "NOT (b.x IS NULL)": PLAIN,
    "b.x = 3 OR b.x IN (4, 5)": PLAIN, "(b.x = 3) IS TRUE": PLAIN, "b.x < 2 AND a.x = 1": PLAIN,
    "a.x - b.x > 3": PLAIN, "abs(b.x) < 2": PADDED,  # what may fail for rows of b that have no partner
    "b.x IS NULL": ABSENT,  # as b.x is NOT NULL
    "coalesce(b.x, 0) = 0": PADDED, "b.x = 3 OR a.x = 1": PADDED, "a.x = 1": PADDED,
    "b.x IS DISTINCT FROM 3": PADDED, "(b.x = 3) IS NOT TRUE": PADDED,
    "CASE WHEN b.x = 3 THEN false ELSE true END": PADDED,
}  # fmt: skip


@pytest.mark.parametrize("condition", INNER)
def test_a_condition_that_rejects_nulls_makes_it_inner(engine: halfjoin.Engine, condition: str) -> None:
    plan = planned(engine, f"SELECT a.x, b.k FROM a LEFT JOIN b ON b.k = a.k WHERE {condition}")
    assert kinds(plan) == [[("a", PLAIN), ("b", INNER[condition])]]


def test_what_may_fail_for_pairs_alone_leaves_it_inner(engine: halfjoin.Engine) -> None:
    sql = "SELECT 6 / b.x AS part FROM a LEFT JOIN b ON b.k = a.k, c WHERE c.k = b.x AND a.x / c.x < 9"
    plan = planned(engine, sql)
    assert {kind for branch in kinds(plan) for _, kind in branch} == {PLAIN}
    engine.execute("INSERT INTO a VALUES (1, 1, 8), (2, 2, 8); INSERT INTO c VALUES (1, 2, 4), (2, 0, 0)")
    engine.execute("INSERT INTO b VALUES (1, 1, 2), (2, 3, 0)")  # the second one has no partner
    assert engine.read("v").to_pylist() == engine.query(sql).to_pylist() == [{"part": 3}]


def test_an_inner_join_makes_what_it_reads_inner(engine: halfjoin.Engine) -> None:
    plan = planned(engine, "SELECT a.x FROM a LEFT JOIN b ON b.k = a.k LEFT JOIN c ON c.k = b.x JOIN d ON d.k = c.x")
    assert {kind for branch in kinds(plan) for _, kind in branch} == {PLAIN}


def test_a_side_that_is_a_join_is_a_node_of_what_is_read(engine: halfjoin.Engine) -> None:
    plan = planned(engine, "SELECT a.x, c.x AS y FROM a LEFT JOIN (b JOIN c ON c.k = b.x) ON b.k = a.k")
    (node,) = plan.below
    assert isinstance(node, Join)
    assert [column.name for column in node.columns] == ["k", "x"]


def test_other_conditions_keep_the_combinations_that_match(engine: halfjoin.Engine) -> None:
    plan = planned(engine, "SELECT a.x, b.k FROM a LEFT JOIN b ON b.x < a.k")
    reduce = next(node for node in plan.below if isinstance(node, Reduce))
    assert len(reduce.keys) == 1  # a.k, not rows
    assert [len(branch) for branch in kinds(plan)] == [2, 2]


def test_any_row_is_asked_of_a_count(engine: halfjoin.Engine) -> None:
    plan = planned(engine, "SELECT a.x FROM a WHERE EXISTS (SELECT * FROM b)")
    reduce = next(node for node in plan.below if isinstance(node, Reduce))
    assert reduce.keys == ()


def test_scalar_subqueries_are_groups_of_what_correlates_them(engine: halfjoin.Engine) -> None:
    plan = planned(engine, "SELECT a.x FROM a WHERE a.x < (SELECT max(b.x) FROM b WHERE b.k = a.k)")
    (reduce,) = (node for node in plan.below if isinstance(node, Reduce))
    assert [column.name for column in reduce.keys] == ["k"]
    assert kinds(plan)[0][0] == ("a", PLAIN) and kinds(plan)[0][1][1] is PLAIN  # NULL is not less


def test_a_default_row_that_joins_is_kept(engine: halfjoin.Engine) -> None:
    plan = planned(engine, "SELECT a.x, c.k FROM a LEFT JOIN b ON b.k = a.k, c WHERE coalesce(b.x, 0) = c.x")
    assert len(plan.below) == 1
    assert not plan.warnings


def test_a_join_by_a_merged_column_is_looked_up(engine: halfjoin.Engine) -> None:
    plan = planned(engine, "SELECT k, d.x FROM a FULL JOIN b USING (k) JOIN d USING (k)")
    assert plan.below == ()
    assert not plan.warnings


MULTIPLYING = {
    "FULL JOIN": "SELECT count(*) AS n FROM a AS j0 " + " ".join(
        f"FULL JOIN a AS j{n} ON j{n}.k = j{n - 1}.k" for n in range(1, 30)),
    "ON": "SELECT count(*) AS n FROM a AS j0 " + " ".join(
        f"LEFT JOIN a AS j{n} ON j{n}.x < j{n - 1}.k OR j{n}.id = j{n - 1}.x" for n in range(1, 30)),
    "NOT IN": "SELECT count(*) AS n FROM a AS j0 WHERE " + " AND ".join(
        f"j{n}.k NOT IN (SELECT j{n + 1}.k FROM a AS j{n + 1} WHERE j{n + 1}.x > 1" for n in range(20)) + ")" * 20,
}  # fmt: skip


@pytest.mark.parametrize("sql", MULTIPLYING.values(), ids=MULTIPLYING.keys())
def test_joins_that_multiply_are_refused_at_once(engine: halfjoin.Engine, sql: str) -> None:
    """Each of these reads one of its sides several times, so thirty of them would never be planned."""
    for text in (sql, f"CREATE MATERIALIZED VIEW v AS {sql}"):
        with pytest.raises(halfjoin.UnsupportedSQL, match="over one another read more than 10,000 tables"):
            engine.execute(text)
    assert engine.query("SELECT count(*) AS n FROM a").to_pylist() == [{"n": 0}]
