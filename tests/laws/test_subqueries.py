"""Subqueries in SQL: at every readable time after every batch, a view agrees with DuckDB over its tables."""

from __future__ import annotations

import os
import random
from typing import NamedTuple

import pytest

from tests.oracle.joined import TABLES, run

SEEDS = range(int(os.environ.get("HALFJOIN_FUZZ", "60")))


class Texts(NamedTuple):
    """SQL for halfjoin, and for DuckDB."""

    ours: str
    duckdb: str


def both(text: str) -> Texts:
    return Texts(text, text)


def wrapped(form: str, *parts: Texts) -> Texts:
    """The parts in the places {} of a form."""
    return Texts(form.format(*(part.ours for part in parts)), form.format(*(part.duckdb for part in parts)))


def condition(rng: random.Random, column: str) -> str:
    return rng.choice([f"{column} > 0", f"{column} IS NULL", f"{column} = 1", f"coalesce({column}, 0) <> 2"])


def inside(rng: random.Random, depth: int, *outers: str, equal: bool) -> tuple[Texts, str]:
    """FROM and WHERE of a random subquery that may read `k` and `x` of the aliases around it, and its alias."""
    outer = rng.choice(outers)
    alias = f"s{depth}"
    table, parts = f"{rng.choice(TABLES)} AS {alias}", list[Texts]()
    if rng.random() < 0.75:
        operator = "=" if equal or rng.random() < 0.7 else rng.choice(["<", "<>", ">="])
        parts.append(both(f"{alias}.{rng.choice('kx')} {operator} {outer}.{rng.choice('kx')}"))
    if rng.random() < 0.3:
        parts.append(both(f"{alias}.{rng.choice('kx')} = {rng.choice(outers)}.{rng.choice('kx')}"))
    if rng.random() < 0.3:
        parts.append(both(condition(rng, f"{alias}.{rng.choice('kx')}")))
    if rng.random() < 0.1:
        parts.append(both(condition(rng, f"{outer}.x")))
    if rng.random() < 0.2:
        rows = f"SELECT * FROM {rng.choice(TABLES)} AS y{depth} WHERE y{depth}.k = {rng.choice(outers)}.k"
        table = f"(WITH w{depth} AS ({rows}) SELECT * FROM w{depth}) AS {alias}"
    if rng.random() < 0.25:
        table += f" {rng.choice(['JOIN', 'LEFT JOIN'])} {rng.choice(TABLES)} AS j{depth} ON j{depth}.k = {alias}.x"
    if depth < 2 and rng.random() < 0.25:
        parts.append(asked(rng, depth + 1, alias, *outers))
    where = " WHERE " * bool(parts)
    ours, duckdb = zip(*parts, strict=True) if parts else ((), ())
    return Texts(*(f"{table}{where}{' AND '.join(texts)}" for texts in (ours, duckdb))), alias


def asked(rng: random.Random, depth: int, *outers: str) -> Texts:
    """EXISTS, IN, ANY or ALL."""
    texts, alias = inside(rng, depth, *outers, equal=False)
    outer = rng.choice(outers)
    value, output = f"{outer}.{rng.choice('kx')}", f"{alias}.{rng.choice('kx')}"
    negated = rng.choice(["", "NOT "])
    operator, word = rng.choice(["=", "<>", "<", ">="]), rng.choice(["ANY", "ALL"])
    form = rng.choice([
        "{negated}EXISTS (SELECT 1 FROM {text})",
        "{value} {negated}IN (SELECT {output} FROM {text})",
        "{negated}{value} {operator} {word} (SELECT {output} FROM {text})",
        "row",
    ])  # fmt: skip
    if form == "row":  # DuckDB has no correlated IN of rows
        equal = f"({alias}.x = {outer}.k AND {alias}.k = {outer}.x)"
        counted = (f"CASE WHEN count(*) FILTER ({equal}) > 0 THEN true "
                   f"WHEN count(*) FILTER ({equal} IS NULL) = 0 THEN false END")
        return Texts(
            f"({outer}.k, {outer}.x) {negated}IN (SELECT {alias}.x, {alias}.k FROM {texts.ours})",
            f"{negated}(SELECT {counted} FROM {texts.duckdb})",
        )
    return Texts(*(form.format(negated=negated, value=value, output=output, operator=operator, word=word, text=text)
                   for text in texts))  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
def test_exists_in_any_and_all_agree_with_duckdb(seed: int) -> None:
    rng = random.Random(seed)
    queries = []
    for _ in range(2):
        join = "a AS t" + rng.choice(["", "", " LEFT JOIN b AS u ON u.k = t.k", " JOIN b AS u ON u.k = t.k"])
        parts = [asked(rng, 1, "t") for _ in range(rng.choice([1, 1, 2]))]
        where = " AND ".join("{}" for _ in parts)
        queries.append(wrapped(f"SELECT t.k, t.x FROM {join} WHERE {where}", *parts))
    assert not run(seed, queries)


@pytest.mark.parametrize("seed", SEEDS)
def test_truth_values_of_subqueries_agree_with_duckdb(seed: int) -> None:
    rng = random.Random(seed)
    assert not run(seed, [
        wrapped(f"SELECT t.k, t.x, {{}} AS found FROM {rng.choice(TABLES)} AS t", asked(rng, 1, "t")),
        wrapped(f"SELECT t.k, t.x FROM a AS t WHERE {{}} OR {condition(rng, 't.x')}", asked(rng, 1, "t")),
    ])  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
def test_scalar_subqueries_agree_with_duckdb(seed: int) -> None:
    rng = random.Random(seed)
    queries = []
    for _ in range(2):
        texts, alias = inside(rng, 1, "t", equal=rng.random() < 0.7)
        call = rng.choice(["count(*)", "max(@)", "sum(@)", "coalesce(min(@), 7) + count(@)", "count(DISTINCT @)"])
        having = rng.choice(["", "", " HAVING count(*) > 1"])
        value = wrapped(f"(SELECT {call} FROM {{}}{having})".replace("@", f"{alias}.{rng.choice('kx')}"), texts)
        form = rng.choice([
            f"SELECT t.k, t.x, {{}} AS found FROM {rng.choice(TABLES)} AS t",
            f"SELECT t.k, t.x FROM a AS t WHERE {{}} {rng.choice(['=', '<', '>='])} t.x",
            "SELECT t.k, t.x FROM a AS t WHERE coalesce({}, 1) = 1",
        ])  # fmt: skip
        queries.append(wrapped(form, value))
    assert not run(seed, queries)


@pytest.mark.parametrize("seed", SEEDS)
def test_lateral_subqueries_agree_with_duckdb(seed: int) -> None:
    rng = random.Random(seed)
    queries = []
    for _ in range(2):
        texts, alias = inside(rng, 1, "t", equal=rng.random() < 0.6)
        listed = rng.choice([
            "SELECT @.k AS p, @.x AS q FROM {}",
            "SELECT DISTINCT @.x AS p, 1 AS q FROM {}",
            "SELECT count(*) AS p, max(@.x) AS q FROM {}",
            "SELECT @.k AS p, count(*) AS q FROM {} GROUP BY @.k",
            "SELECT @.k AS p, @.x AS q FROM {} ORDER BY @.k, @.x LIMIT 1",
            "SELECT p, q FROM (SELECT @.k AS p, @.x AS q FROM {}) AS inside",
        ])  # fmt: skip
        value = wrapped(listed.replace("@", alias), texts)
        form = rng.choice([
            "SELECT t.k, t.x, l.p, l.q FROM a AS t, LATERAL ({}) AS l",
            "SELECT t.k, t.x, l.p, l.q FROM a AS t LEFT JOIN LATERAL ({}) AS l ON true",
            "SELECT t.k, t.x, l.p, l.q FROM a AS t LEFT JOIN LATERAL ({}) AS l ON l.p = t.x",
            "SELECT t.k, t.x, l.p, l.q FROM a AS t JOIN LATERAL ({}) AS l ON l.q > 0 AND t.k = 1",
        ])  # fmt: skip
        queries.append(wrapped(form, value))
    assert not run(seed, queries)


@pytest.mark.parametrize("seed", SEEDS)
def test_subqueries_in_on_agree_with_duckdb(seed: int) -> None:
    rng = random.Random(seed)
    join, sides = rng.choice(["JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN"]), rng.choice(["t", "u", "tu", "ut"])
    form = f"SELECT t.k, t.x, u.x AS y FROM a AS t {join} b AS u ON {rng.choice(['u.k = t.k AND', ''])} {{}}"
    assert not run(seed, [wrapped(form, asked(rng, 1, *sides))])


FURTHER = [
    "SELECT t.k, (SELECT count(*) FROM b AS u WHERE u.x < (SELECT avg(w.x) FROM a AS w WHERE w.k = u.k AND w.x > t.x)) "
    "AS n FROM a AS t",
    "SELECT t.k, (SELECT count(*) FROM b AS u WHERE u.x <= (SELECT count(*) FROM a AS w WHERE w.x > t.x)) "
    "AS n FROM a AS t",
    "SELECT t.k, (SELECT count(p.x) + 10 * count(q.x) FROM (SELECT * FROM b AS u WHERE u.x < t.k) AS p "
    "FULL JOIN (SELECT * FROM a AS w WHERE w.x > t.k) AS q ON q.k = p.k) AS n FROM a AS t",
    "SELECT t.k FROM a AS t WHERE EXISTS (SELECT 1 FROM b AS u, (SELECT count(*) AS n FROM b AS w WHERE w.x < t.k) "
    "AS q WHERE q.n = u.x)",
    "SELECT t.k FROM a AS t WHERE EXISTS (SELECT 1 FROM b AS u, (VALUES (t.k), (t.x)) AS z (y) WHERE z.y < u.x)",
    "SELECT t.k, u.x FROM a AS t LEFT JOIN b AS u ON u.k = t.k OR t.x NOT IN (SELECT w.k FROM b AS w WHERE w.x = u.x)",
]


@pytest.mark.parametrize("sql", FURTHER)
def test_queries_further_out_agree_with_duckdb(sql: str) -> None:
    for seed in range(5):
        assert not run(seed, [both(sql)])
