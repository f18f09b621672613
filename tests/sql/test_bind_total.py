"""Every text is bound, or refused with a reason. No other exception gets out."""

from __future__ import annotations

import pytest

from halfjoin.errors import UnknownName, UnsupportedSQL
from halfjoin.nesting import bounded
from halfjoin.sql.bind.bind import bind
from halfjoin.sql.bind.changes import bind_delete, bind_insert, bind_update
from halfjoin.sql.bind.describe import describe
from halfjoin.sql.bind.merging import bind_merge
from halfjoin.sql.bind.query import bind_query
from halfjoin.sql.bind.tables import names_of
from halfjoin.sql.definitions import CreateView
from halfjoin.sql.parse.parse import parse
from halfjoin.sql.statements import Delete, Explain, Insert, Merge, Select, Statement, Update
from tests.support.front import SCHEMA

SNIPPETS = r"""
SELECT
SELECT 1
SELECT FROM t
SELECT ,
SELECT * FROM
SELECT * FROM t WHERE
SELECT a FROM t;;
;
SELECT a b c FROM t
SELECT a AS "x y", "a" FROM t
SELECT 'it''s', E'a\tb', $$raw$$, 'a' 'b', U&'\0041', B'101', X'1F', N'x'
SELECT 1.5, .5, 1e3, 1e-3, 1E400, 99999999999999999999, 0x1F, 1_000, 2147483648, 9223372036854775808
SELECT 12345678901234567890123456789012345678901234567890123456789012345678901234567890
SELECT -2147483648, - -1, +1, -9223372036854775808
SELECT NULL, TRUE, FALSE, NULL::integer, NULL IS NULL
SELECT NULL + NULL, NULL = NULL, NULL AND TRUE, NOT NULL
SELECT a + b, a - b, a * b, a / b, a % b, a ^ b, -a FROM t
SELECT a & 1, a | 1, a # 1, a << 1, a >> 1, ~a, |/ a, ||/ a, @ a, a ! FROM t
SELECT a // b FROM t
SELECT s || s, s || a, a || s, s || NULL FROM t
SELECT s -> 'x', s ->> 'x', s #> 'x' FROM t
SELECT a = 1, a <> 1, a != 1, a < 1, a <= 1, a > 1, a >= 1, a == 1 FROM t
SELECT a = 'x' FROM t
SELECT s = 1 FROM t
SELECT d = '2020-01-01', d = '2020-13-01' FROM t
SELECT d < ts, ts < d, d + 1, d - d, d + interval '1 day', ts - ts FROM t
SELECT ok AND a FROM t
SELECT NOT a FROM t
SELECT ok AND ok OR NOT ok FROM t
SELECT a BETWEEN 1 AND 2, a NOT BETWEEN 1 AND 2, a BETWEEN SYMMETRIC 2 AND 1 FROM t
SELECT a IN (1, 2), a IN (1, 'x'), a NOT IN (1, NULL), a IN () FROM t
SELECT (a, b) = (1, 2), (a, b) IN ((1, 2), (3, 4)), (a, b) < (1, 2), ROW(1, 2) = ROW(1, 2) FROM t
SELECT s LIKE 'a%', s NOT LIKE 'a%', s ILIKE 'a%', s LIKE 'a!%' ESCAPE '!', s NOT LIKE 'x' ESCAPE '!' FROM t
SELECT s ~ 'x', s ~* 'x', s !~ 'x', s !~* 'x', s ~~ 'x', s !~~ 'x', s ~~* 'x', s SIMILAR TO 'x' FROM t
SELECT a IS NULL, a IS NOT NULL, a ISNULL, a NOTNULL FROM t
SELECT ok IS TRUE, ok IS NOT TRUE, ok IS FALSE, ok IS UNKNOWN, ok IS NOT UNKNOWN, a IS TRUE FROM t
SELECT a IS DISTINCT FROM b, a IS NOT DISTINCT FROM NULL FROM t
SELECT s IS NORMALIZED, s IS JSON, s IS DOCUMENT FROM t
SELECT CASE WHEN ok THEN 1 ELSE 2.5 END, CASE a WHEN 1 THEN 'x' WHEN 2 THEN 'y' END FROM t
SELECT CASE WHEN a THEN 1 END FROM t
SELECT CASE WHEN ok THEN 1 ELSE 'x' END FROM t
SELECT COALESCE(a, b, 1), NULLIF(a, 1), GREATEST(a, b), LEAST(a, 2.5) FROM t
SELECT COALESCE(), COALESCE(a, s) FROM t
SELECT a::text, a::bigint, s::integer, d::timestamp, ts::date, n::integer, a::boolean, ok::integer, s::date FROM t
SELECT a::json, s::point, a::nosuch FROM t
SELECT CAST(a AS numeric(5,2)), CAST(a AS numeric), CAST(a AS numeric(99,2)), TRY_CAST(a AS text) FROM t
SELECT s::varchar(3), s::char(3), s::varchar(0), s::varchar(x), ts::timestamp(3) FROM t
SELECT int '5', date '2020-01-01', time '10:00', timestamp '2020-01-01 10:00'
SELECT timestamptz '2020-01-01 10:00+02', bool 'yes', TRY_CAST(1 AS text)
SELECT 1 FROM (SELECT 1) JOIN (SELECT 2) ON TRUE
SELECT interval '1 day' + d AS x FROM t
SELECT interval '1' day + d AS x, interval '1 month 2 days' + d AS y, interval '1-2' year to month + d AS z FROM t
SELECT interval 'x' + d FROM t
SELECT interval '1 day'
SELECT ARRAY[1, 2], ARRAY[]::integer[], ARRAY[], ARRAY[1, 'x'], ARRAY[ARRAY[1]], '{1,2}'::integer[]
SELECT arr[1], arr[1:2], arr[1][2], arr['x'], s[1] FROM t
SELECT a = ANY(arr), a = ALL(arr), a = SOME(arr), a <> ALL(ARRAY[1, 2]), a = ANY(s), a = ANY(SELECT a FROM u) FROM t
SELECT a = ANY('{1,2}') FROM t
SELECT EXTRACT(year FROM d), EXTRACT(nonsense FROM d), EXTRACT(epoch FROM ts), DATE_PART('day', ts) FROM t
SELECT POSITION('a' IN s), SUBSTRING(s FROM 1 FOR 2), SUBSTRING(s FROM 2), SUBSTRING(s FOR 2), SUBSTRING(s, 1, 2) FROM t
SELECT TRIM(s), TRIM(BOTH 'x' FROM s), TRIM(LEADING FROM s), TRIM(TRAILING 'x' FROM s), TRIM(s, 'x') FROM t
SELECT OVERLAY(s PLACING 'x' FROM 1 FOR 2) FROM t
SELECT ts AT TIME ZONE 'UTC', ts AT TIME ZONE 'Europe/Berlin', d AT TIME ZONE 'UTC' FROM t
SELECT s COLLATE "C", s COLLATE "de_DE" FROM t
SELECT date_trunc('day', ts), to_char(ts, 'YYYY-MM-DD'), make_date(2020, 1, 1), to_timestamp(5), age(ts) FROM t
SELECT lower(s), upper(a), length(s), nosuch(s), concat(s, a), "Lower"(s) FROM t
SELECT round(n), round(n, 1), round(x), abs(a), ceil(x), floor(n), sqrt(a), power(a, 2), mod(a, 2) FROM t, u
SELECT left(s, 1), right(s, 1), replace(s, 'a', 'b'), if(ok, 1, 2), format('%s', s), char_length(s) FROM t
SELECT now(), current_date, current_timestamp, localtime, random(), current_user, version()
SELECT mz_now()
SELECT a FROM t WHERE mz_now() < ts
SELECT a FROM t WHERE ts > mz_now() AND mz_now() >= d OR ok
SELECT a FROM t WHERE mz_now() BETWEEN d AND ts
SELECT a FROM t WHERE d BETWEEN ts AND mz_now()
SELECT a FROM t WHERE mz_now() NOT BETWEEN d AND ts
SELECT a FROM t WHERE mz_now() - interval '1 day' < ts
SELECT a FROM t WHERE ts < mz_now() + interval '1 day'
SELECT a FROM t WHERE mz_now() < x
SELECT a FROM t WHERE mz_now() < '2020-01-01' AND mz_now() < NULL AND mz_now() < 5 AND mz_now() = 5.5
SELECT a FROM t WHERE mz_now() < s
SELECT a FROM t WHERE mz_now()
SELECT a FROM t WHERE mz_now() < mz_now()
SELECT a FROM t WHERE mz_now() IN (1, 2)
SELECT a FROM t WHERE mz_now() IS NULL
SELECT a FROM t WHERE CASE WHEN mz_now() < ts THEN ok END
SELECT a FROM t WHERE (mz_now() < ts) = ok
SELECT a FROM t WHERE mz_now()::timestamp < ts AND mz_now()::bigint > a AND mz_now()::mz_timestamp < 5
SELECT a FROM t WHERE NOT (mz_now() < ts)
SELECT t.a FROM t JOIN u ON t.a = u.a AND mz_now() < ts
SELECT a FROM t, generate_series(1, mz_now()) g
SELECT a FROM t WHERE a
SELECT a FROM t WHERE 'true'
SELECT a FROM t WHERE NULL
SELECT a FROM nosuch
SELECT nosuch FROM t
SELECT t.nosuch, x.a FROM t
SELECT x.a FROM t
SELECT a FROM t, u
SELECT t.a, u.a FROM t, u
SELECT t.a, u.a AS ua FROM t, u WHERE t.a = u.a
SELECT * FROM t
SELECT * FROM t, u
SELECT t.*, u.c FROM t, u
SELECT nosuch.* FROM t
SELECT *, 1 AS one FROM u
SELECT * EXCEPT (a) FROM u
SELECT count(*) FROM t
SELECT sum(a), max(b) FILTER (WHERE ok), string_agg(s, ',' ORDER BY a), count(DISTINCT a) FROM t
SELECT a FROM t GROUP BY a
SELECT a FROM t GROUP BY ALL
SELECT a FROM t HAVING ok
SELECT DISTINCT a FROM t
SELECT DISTINCT ON (a) a FROM t
SELECT a FROM t ORDER BY a
SELECT a FROM t LIMIT 3
SELECT a FROM t OFFSET 3
SELECT a FROM t FETCH FIRST 3 ROWS ONLY
SELECT a FROM t FOR UPDATE
SELECT * FROM (SELECT a INTO x FROM t) AS s
SELECT row_number() OVER (), rank() OVER w FROM t WINDOW w AS (ORDER BY a)
SELECT lag(a) OVER (PARTITION BY b ORDER BY a ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t
SELECT a FROM t TABLESAMPLE SYSTEM (10)
SELECT a FROM ONLY t
SELECT a FROM public.t
SELECT public.t.a FROM t
SELECT a FROM t AS x
SELECT x.a FROM t AS x (k, l)
SELECT k, l FROM t AS x (k, l)
SELECT k FROM u AS x (k, l, m, o)
SELECT "Name", "select" FROM "Odd"
SELECT name FROM "Odd"
SELECT * FROM odd
SELECT T.A FROM T
SELECT a FROM t JOIN u USING (a)
SELECT a, t.a AS ta, u.a AS ua FROM t JOIN u USING (a)
SELECT a FROM t JOIN u USING (nosuch)
SELECT * FROM t NATURAL JOIN u
SELECT * FROM t JOIN w USING (a)
SELECT u.a, z FROM u JOIN w USING (c) JOIN t USING (a)
SELECT * FROM u JOIN w ON u.c = w.c
SELECT t.a FROM t JOIN u ON t.a = u.a JOIN w ON w.c = u.c
SELECT t.a FROM (t JOIN u ON t.a = u.a) JOIN w ON w.c = u.c
SELECT t.a FROM t JOIN (u JOIN w ON w.c = u.c) ON t.a = u.a
SELECT t.a FROM t JOIN u JOIN w ON u.c = w.c ON t.a = u.a
SELECT t.a FROM t JOIN u
SELECT t.a FROM t CROSS JOIN u
SELECT t.a FROM t CROSS JOIN u ON t.a = u.a
SELECT t.a FROM t LEFT JOIN u ON t.a = u.a
SELECT t.a FROM t FULL OUTER JOIN u USING (a)
SELECT t.a FROM t NATURAL LEFT JOIN u
SELECT t.a FROM t SEMI JOIN u ON t.a = u.a
SELECT t.a FROM t INNER JOIN u ON t.a = u.a
SELECT t.a FROM t, u, t
SELECT t.a FROM t, u AS t
SELECT x.a FROM t x, t y WHERE x.a = y.b
SELECT t.a FROM t, u JOIN w ON t.a = w.c
SELECT q FROM (SELECT a AS q FROM t) s
SELECT q FROM (SELECT a AS q FROM t)
SELECT s.q FROM (SELECT a AS q, b AS q FROM t) s
SELECT k FROM (SELECT a, b FROM t) s (k, l)
SELECT t.a FROM t, (SELECT t.b AS q) s
SELECT t.a, q FROM t, LATERAL (SELECT t.b + c AS q FROM u WHERE u.a = t.a) s
SELECT t.a, q FROM t, LATERAL (SELECT c AS q FROM u UNION ALL SELECT t.b) s
SELECT t.a, q FROM t LEFT JOIN LATERAL (SELECT 1 AS q) s ON TRUE
SELECT t.a, q FROM t CROSS JOIN LATERAL (SELECT t.a + 1 AS q) s
SELECT t.a, k, l FROM t, LATERAL (VALUES (1, t.a), (2, t.b), (3, NULL)) v (k, l)
SELECT q FROM LATERAL (SELECT 1 AS q) s
SELECT * FROM (VALUES (1, 'x'), (2, NULL)) v (k, l)
SELECT * FROM (VALUES (1, 'x'), (2)) v
SELECT * FROM (VALUES (1), ('x')) v
VALUES (1, 2), (3, 4)
VALUES (1), (2.5), (NULL)
TABLE t
WITH q AS (SELECT a FROM t) SELECT * FROM q
WITH q (k) AS (SELECT a FROM t), r AS (SELECT k + 1 AS l FROM q) SELECT * FROM q, r
WITH t AS (SELECT 1 AS one) SELECT * FROM t
WITH q AS (SELECT a FROM t) SELECT x.a, y.a AS b FROM q x, q y
WITH q AS (SELECT * FROM q) SELECT * FROM q
WITH RECURSIVE q AS (SELECT 1 AS k UNION ALL SELECT k + 1 FROM q) SELECT * FROM q
WITH q AS (DELETE FROM t RETURNING a) SELECT * FROM q
WITH q (k, l) AS (SELECT a FROM t) SELECT * FROM q
SELECT a FROM t UNION ALL SELECT a FROM u
SELECT a FROM t UNION ALL SELECT c FROM u UNION ALL SELECT '3' UNION ALL VALUES (NULL)
(SELECT a FROM t) UNION ALL (SELECT a FROM u UNION ALL SELECT c FROM w)
SELECT a FROM t UNION ALL SELECT s FROM t
SELECT a, b FROM t UNION ALL SELECT a FROM t
SELECT a FROM t UNION SELECT a FROM u
SELECT a FROM t INTERSECT SELECT a FROM u
SELECT a FROM t EXCEPT ALL SELECT a FROM u
SELECT a FROM t UNION ALL SELECT a FROM u ORDER BY a LIMIT 3
SELECT a FROM t UNION ALL (SELECT a FROM u LIMIT 1)
SELECT a FROM t WHERE a IN (SELECT a FROM u)
SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a)
SELECT a FROM t WHERE a = (SELECT max(a) FROM u)
SELECT (SELECT 1) FROM t
SELECT ARRAY(SELECT a FROM t)
SELECT g FROM generate_series(1, 3) g
SELECT * FROM generate_series(1, 3)
SELECT generate_series FROM generate_series(1, 3, 2)
SELECT g.x FROM t, generate_series(1, t.a) AS g (x)
SELECT g.x, g.n FROM t, generate_series(1, t.b, t.a) WITH ORDINALITY AS g (x, n)
SELECT g FROM t, generate_series(d, ts, interval '1 day') g
SELECT g FROM t, generate_series(d, d, '1 day') g
SELECT g FROM t, generate_series(d, d) g
SELECT g FROM generate_series('2020-01-01', '2020-01-02', '1 day') g
SELECT g FROM generate_series(1, 2.5) g
SELECT g FROM generate_series(1) g
SELECT g FROM generate_series(t.a, 5) g, t
SELECT g FROM (SELECT 1) x, generate_series(1, x) g
SELECT t.a FROM t, repeat_row(t.a)
SELECT t.a FROM t, repeat_row(-1) r
SELECT t.a FROM t, repeat_row(1, 2)
SELECT t.a FROM t, repeat_row('x')
SELECT a, repeat_row(2) FROM t
SELECT a, unnest(arr) FROM t
SELECT a, unnest(arr) + 1 AS k FROM t WHERE a > 1
SELECT unnest(arr), generate_series(1, 2) FROM t
SELECT CASE WHEN ok THEN unnest(arr) END FROM t
SELECT a FROM t WHERE unnest(arr) = 1
SELECT unnest(s) FROM t
SELECT * FROM unnest(ARRAY[1, 2]) x
SELECT * FROM unnest(ARRAY[1, 2], ARRAY[3]) x
SELECT e, o FROM t, unnest(arr) WITH ORDINALITY AS q (e, o)
SELECT w FROM t, regexp_split_to_table(s, '\s+') AS w
SELECT y FROM t, pulse(b) AS p
SELECT p.z FROM t, pulse(b) AS p (z)
SELECT p, q FROM t, pair(a, 'x')
SELECT pair(a) FROM t
SELECT pulse(a) FROM t
SELECT r.a, r.* FROM spans(TABLE t PARTITION BY a, s ORDER BY b DESC NULLS LAST, a + 1) AS r (x)
SELECT w.z, r.low FROM w, spans(TABLE (SELECT a, b FROM t WHERE t.a = w.c) q PARTITION BY (q.b)) AS r
SELECT u.c, low FROM u LEFT JOIN LATERAL spans(TABLE u AS v (k) ORDER BY k) ON low = c
SELECT low FROM spans(TABLE (t JOIN w ON a = c)), spans(TABLE(pv)) AS s
SELECT spans(TABLE t), pulse(TABLE t) FROM spans(t.a)
SELECT * FROM pulse(TABLE t PARTITION BY a) WHERE EXISTS (TABLE t)
SELECT * FROM nosuch(1)
SELECT * FROM lower('x')
SELECT * FROM t, ROWS FROM (generate_series(1, 2), generate_series(1, 3)) x
SELECT * FROM pulse(1) AS p (y integer)
SELECT * FROM t PIVOT (max(a) FOR b IN (1, 2))
SELECT * FROM pv, named WHERE pv.a = named.k
SELECT x.b1 FROM pv AS x
SELECT a FROM pv AS x (k)
SELECT $1
SELECT ?, :x, @y
SELECT * FROM read_csv('/etc/passwd')
SELECT * FROM '/etc/passwd'
INSERT INTO t (a) VALUES (1), (2)
INSERT INTO t (a, d) VALUES (1, 'not a date')
INSERT INTO t (a, a) VALUES (1, 2)
INSERT INTO t (nosuch) VALUES (1)
INSERT INTO nosuch VALUES (1)
INSERT INTO t VALUES (1)
INSERT INTO u VALUES (1, 2, 3), (4, 5)
INSERT INTO u SELECT a, b, n FROM t
INSERT INTO u SELECT count(*) FROM t
INSERT INTO u (a) WITH q AS (SELECT 1 AS k) SELECT k FROM q
INSERT INTO u (a) VALUES (DEFAULT)
INSERT INTO u DEFAULT VALUES
INSERT INTO u (a) VALUES (1) RETURNING a
INSERT INTO u (a) VALUES (mz_now())
DELETE FROM t
DELETE FROM t WHERE a = 1 OR t.b = 2
DELETE FROM t x WHERE t.a = 1
DELETE FROM t WHERE nosuch = 1
DELETE FROM t WHERE a IN (SELECT a FROM u)
DELETE FROM t WHERE mz_now() < ts
UPDATE t SET b = b + 1, s = NULL WHERE ok
UPDATE t SET b = 'x'
UPDATE t SET a = a, a = b
UPDATE t SET nosuch = 1
UPDATE t SET b = (SELECT 1)
EXPLAIN SELECT a FROM t
EXPLAIN ANALYZE SELECT a FROM t
EXPLAIN SELECT a FROM t AS OF 5
CREATE VIEW v AS SELECT a FROM t
CREATE MATERIALIZED VIEW v (k) AS SELECT a, b FROM t
CREATE MATERIALIZED VIEW v (k, l, m) AS SELECT a, b FROM t
CREATE MATERIALIZED VIEW v AS VALUES (1), (2)
CREATE MATERIALIZED VIEW v AS TABLE t
CREATE MATERIALIZED VIEW v AS SELECT a FROM t WITH DATA
CREATE MATERIALIZED VIEW v IN CLUSTER c AS SELECT a FROM t
CREATE MATERIALIZED VIEW v
CREATE VIEW
CREATE
DROP
SHOW
SUBSCRIBE
EXPLAIN
EXPLAIN VIEW
AS OF 5
SELECT 1 AS OF
SELECT 1 AS OF 5
SELECT 1 AS OF 'yesterday'
SELECT 1 AS OF now()
SELECT ((((((((((1))))))))))
SELECT a FROM t -- comment
SELECT /* comment */ a FROM t
""".strip().splitlines()


@pytest.mark.parametrize("sql", SNIPPETS)
def test_bound_or_refused(sql: str) -> None:
    try:
        for statement in parse(sql):
            _carry_out(statement, sql)
    except (UnsupportedSQL, UnknownName) as error:
        assert str(error)


NO_COLUMNS = ("SELECT", "SELECT FROM t")


@pytest.mark.parametrize("sql", SNIPPETS)
def test_named_and_bound_as_a_query_or_refused(sql: str) -> None:
    try:
        for statement in parse(sql):
            if isinstance(statement, Select):
                names_of(statement.query, SCHEMA, sql)
                assert bind_query(statement.query, SCHEMA, sql).names or sql in NO_COLUMNS
    except (UnsupportedSQL, UnknownName) as error:
        assert str(error)


@pytest.mark.parametrize("connector", [" AND ", " OR "])
def test_a_long_chain_of_conditions(connector: str) -> None:
    sql = "SELECT a FROM t WHERE " + connector.join(f"a = {i}" for i in range(3000))
    _carry_out(parse(sql)[0], sql)


@pytest.mark.parametrize(("deep", "deeper"), [
    ("SELECT " + " + ".join("1" * 490), "SELECT " + " + ".join("1" * 5000)),
    ("SELECT " + "(" * 20 + "1" + ")" * 20, "SELECT " + "(" * 3000 + "1" + ")" * 3000),
    ("SELECT * FROM " + "(SELECT * FROM " * 60 + "t" + ")" * 60,
     "SELECT * FROM " + "(SELECT * FROM " * 300 + "t" + ")" * 300),
])
def test_nesting_has_a_limit(deep: str, deeper: str) -> None:
    with bounded():
        _carry_out(parse(deep)[0], deep)
    with pytest.raises(UnsupportedSQL, match="nested too deep"):
        parse(deeper)


def _carry_out(statement: Statement, sql: str) -> None:
    match statement:
        case Select(query=query) | CreateView(query=query):
            describe(bind(query, SCHEMA, sql), types=True)
        case Explain(query=query) if query is not None:
            describe(bind(query, SCHEMA, sql))
        case Insert():
            describe(bind_insert(statement, SCHEMA, sql).relation)
        case Delete():
            describe(bind_delete(statement, SCHEMA, sql).relation)
        case Update():
            describe(bind_update(statement, SCHEMA, sql).relation)
        case Merge():
            describe(bind_merge(statement, SCHEMA, sql).relation)
