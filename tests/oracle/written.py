"""Hand-written views for SQL that the grammar does not make. Some have a text for DuckDB."""

from __future__ import annotations

VIEWS: dict[str, str] = {
    "natural join": "SELECT x, y, a.s FROM a JOIN b USING (x, s)",
    "natural keyword": "SELECT * FROM (SELECT x, s FROM a) AS p NATURAL JOIN (SELECT x, y FROM b) AS q",
    "using, star once": "SELECT * FROM (SELECT x, k FROM a) AS p JOIN (SELECT x, y FROM b) AS q USING (x)",
    "self-join three times": (
        "SELECT p.x, q.y, r.s FROM b AS p, b AS q, b AS r WHERE p.x = q.x AND q.y = r.y AND p.s = r.s"
    ),
    "triangle": "SELECT a.k FROM a, b, c WHERE a.x = b.x AND b.y = c.y AND c.lo = a.k",
    "expression keys": "SELECT a.k, b.y FROM a, b WHERE a.x + 1 = b.y",
    "both sides computed": "SELECT a.k, b.d FROM a, b WHERE a.x + b.x = b.y * 2",
    "null-safe key": "SELECT a.k, c.hi FROM a, c WHERE a.x IS NOT DISTINCT FROM c.y",
    "transitive constant": "SELECT a.k, b.d, c.ts FROM a, b, c WHERE a.x = b.x AND b.x = c.y AND a.x = 2",
    "inequality only": "SELECT a.k, b.y FROM a, b WHERE a.x < b.y",
    "cross product": "SELECT a.k, c.hi FROM a CROSS JOIN c",
    "or of joins": "SELECT a.k, b.y FROM a, b WHERE (a.x = b.x AND a.s = 'a') OR (a.x = b.x AND b.s = 'b')",
    "or without a common key": "SELECT a.k, b.y FROM a, b WHERE a.x = b.x OR a.s = b.s",
    "key across types": "SELECT a.k, b.y FROM a, b WHERE a.p = b.y",
    "text keys of two types": "SELECT a.k, b.x FROM a, b WHERE a.s = b.s",
    "dates": "SELECT b.d - date '2020-02-01' AS days, b.d + 30 AS later FROM b WHERE b.d >= date '2000-01-01'",
    "date parts": "SELECT extract(year FROM b.d) AS y, extract(month FROM b.d) AS m FROM b",
    "case and coalesce": (
        "SELECT CASE WHEN a.x > 1 THEN 'many' WHEN a.x = 1 THEN 'one' END AS c, coalesce(a.s, 'none') AS s FROM a"
    ),
    "simple case": "SELECT CASE a.s WHEN 'a' THEN 1 WHEN 'b' THEN 2 ELSE 0 END AS c FROM a",
    "integer division truncates": "SELECT (a.x - 3) / 2 AS q, (a.x - 3) % 2 AS r FROM a",
    "numeric is exact": "SELECT a.p * 3 AS p3, a.p + 0.1 AS p1, round(a.p, 1) AS pr FROM a",
    "numeric products": "SELECT a.p * a2.p AS pp FROM a, a AS a2 WHERE a.x = a2.x",
    "casts": "SELECT a.x::text AS t, a.p::integer AS i, a.k::bigint AS b FROM a",
    "strings": (
        "SELECT upper(s) || '-' || length(s) AS u, substring(s, 1, 1) AS f, position('b' IN s) AS p, replace(s, "
        "'a', 'x') AS r FROM b"
    ),
    "like and regex": "SELECT s FROM b WHERE s LIKE 'a%' OR s ~ '^B'",
    "in lists with null": "SELECT a.k FROM a WHERE a.x NOT IN (1, NULL)",
    "no from": "SELECT 1 AS one, 'a' AS a",
    "values": "SELECT * FROM (VALUES (1, 'x'), (2, NULL)) AS v(n, t)",
    "values joined": "SELECT v.t, b.y FROM b JOIN (VALUES (1, 'x'), (2, 'y'), (1, 'z')) AS v(n, t) ON v.n = b.x",
    "with": (
        "WITH p AS (SELECT x, s FROM b WHERE y > 0), q AS (SELECT x FROM p) SELECT p.s, q.x FROM p, q WHERE p.x = "
        "q.x"
    ),
    "with shadows a table": "WITH a AS (SELECT x FROM b) SELECT a.x FROM a, c WHERE a.x = c.y",
    "union all of joins": "SELECT a.k AS n FROM a, b WHERE a.x = b.x UNION ALL SELECT c.lo FROM c UNION ALL SELECT 7",
    "join over unions": "SELECT u.x, c.hi FROM (SELECT x FROM a UNION ALL SELECT x FROM b) AS u, c WHERE u.x = c.y",
    "false": "SELECT a.k FROM a WHERE false",
    "null condition": "SELECT a.k FROM a WHERE NULL",
    "lateral subquery": "SELECT a.k, l.y FROM a, LATERAL (SELECT b.y FROM b WHERE b.x = a.x) AS l",
    "series of a column": "SELECT a.k, g.n FROM a, generate_series(1, a.x) AS g(n)",
    "series as a join key": "SELECT a.k, b.s FROM a, generate_series(1, a.x) AS g(n), b WHERE b.y = g.n",
    "series of dates": "SELECT b.x, g.t FROM b, generate_series(b.d, b.d + 2, interval '1 day') AS g(t)",
    "series in the select list": "SELECT k, generate_series(1, 2) AS g FROM a",
    "unnest": "SELECT c.y, u.e FROM c, unnest(c.r) AS u(e)",
    "unnest as a join key": "SELECT c.y, a.k FROM c, unnest(c.r) AS u(e), a WHERE a.x = u.e",
    "unnest with ordinality": "SELECT c.y, u.e, u.i FROM c, unnest(c.r) WITH ORDINALITY AS u(e, i)",
    "split to table": "SELECT b.x, w.p FROM b, regexp_split_to_table('p' || b.s || 'q', 'a') AS w(p)",
    "temporal": "SELECT c.lo, c.hi FROM c WHERE c.lo <= mz_now() AND mz_now() < c.hi",
    "temporal between": "SELECT c.y FROM c WHERE mz_now() BETWEEN c.lo AND c.hi",
    "temporal or null": "SELECT c.lo, c.hi FROM c WHERE c.hi IS NULL OR mz_now() < c.hi",
    "temporal or temporal": "SELECT c.lo FROM c WHERE mz_now() < c.lo OR mz_now() >= c.hi",
    "temporal not": "SELECT c.lo FROM c WHERE NOT (mz_now() >= c.lo AND mz_now() <= c.hi)",
    "temporal equality": "SELECT c.y FROM c WHERE mz_now() = c.lo",
    "temporal join": "SELECT a.k, c.hi FROM a, c WHERE a.x = c.y AND mz_now() < c.hi AND c.lo <= mz_now()",
    "temporal over both inputs": "SELECT a.k, c.hi FROM a, c WHERE a.x = c.y AND mz_now() < c.hi + a.k",
    "temporal numeric": "SELECT a.k FROM a WHERE mz_now() > a.p",
    "temporal timestamp": "SELECT c.y FROM c WHERE mz_now() <= c.ts",
    "temporal plus interval": "SELECT c.y FROM c WHERE mz_now() < c.ts + interval '5 milliseconds'",
    "temporal date": "SELECT b.x FROM b WHERE mz_now() >= b.d",
    "view over a temporal view": (
        "SELECT w.hi, b.y FROM (SELECT y, hi FROM c WHERE mz_now() < c.hi) AS w, b WHERE w.y = b.x AND mz_now() "
        ">= b.x"
    ),
}

# What DuckDB writes otherwise: its own integer division, rounding, laterals, and mz_now() as milliseconds.
IN_DUCKDB: dict[str, str] = {
    "integer division truncates": "SELECT trunc((a.x - 3) / 2.0)::int AS q, (a.x - 3) % 2 AS r FROM a",
    "casts": "SELECT a.x::text AS t, (sign(a.p) * floor(abs(a.p) + 0.5))::integer AS i, a.k::bigint AS b FROM a",
    "like and regex": "SELECT s FROM b WHERE s LIKE 'a%' OR regexp_matches(s, '^B')",
    "series of a column": "SELECT a.k, g.n FROM a, LATERAL (SELECT unnest(generate_series(1, a.x)) AS n) AS g",
    "series as a join key": (
        "SELECT a.k, b.s FROM a, LATERAL (SELECT unnest(generate_series(1, a.x)) AS n) AS g, b WHERE b.y = g.n"
    ),
    "series of dates": (
        "SELECT b.x, g.t FROM b, LATERAL (SELECT unnest(generate_series(b.d::timestamp, (b.d + 2)::timestamp, "
        "interval '1 day')) AS t) AS g"
    ),
    "series in the select list": "SELECT k, unnest(generate_series(1, 2)) AS g FROM a",
    "unnest": "SELECT c.y, u.e FROM c, LATERAL (SELECT unnest(c.r) AS e) AS u",
    "unnest as a join key": "SELECT c.y, a.k FROM c, LATERAL (SELECT unnest(c.r) AS e) AS u, a WHERE a.x = u.e",
    "unnest with ordinality": (
        "SELECT c.y, u.e, u.i FROM c, LATERAL (SELECT unnest(c.r) AS e, unnest(range(1, len(c.r) + 1)) AS i) AS u"
    ),
    "split to table": (
        "SELECT b.x, w.p FROM b, LATERAL (SELECT unnest(string_split('p' || b.s || 'q', 'a')) AS p) AS w"
    ),
    "temporal timestamp": "SELECT c.y FROM c WHERE mz_now() <= epoch_us(c.ts) / 1000.0",
    "temporal plus interval": (
        "SELECT c.y FROM c WHERE mz_now() < epoch_us(c.ts + interval '5 milliseconds') / 1000.0"
    ),
    "temporal date": "SELECT b.x FROM b WHERE mz_now() >= epoch_ms(b.d)",
}

# What Spark SQL writes otherwise: days as numbers, divisions, rounding casts, laterals, and milliseconds.
IN_SPARK: dict[str, str] = {
    "dates": "SELECT datediff(b.d, date '2020-02-01') AS days, b.d + 30 AS later FROM b WHERE b.d >= date '2000-01-01'",
    "integer division truncates": "SELECT (a.x - 3) div 2 AS q, (a.x - 3) % 2 AS r FROM a",
    "casts": "SELECT string(a.x) AS t, int(round(a.p)) AS i, bigint(a.k) AS b FROM a",
    "null condition": "SELECT a.k FROM a WHERE boolean(NULL)",
    "series of a column": (
        "SELECT a.k, g.n FROM a LATERAL VIEW explode(CASE WHEN a.x >= 1 THEN sequence(1, a.x) END) g AS n"
    ),
    "series as a join key": (
        "SELECT g.k, b.s FROM (SELECT a.k, e.n FROM a LATERAL VIEW explode(CASE WHEN a.x >= 1 THEN sequence(1, a.x) "
        "END) e AS n) AS g, b WHERE b.y = g.n"
    ),
    "series of dates": (
        "SELECT b.x, g.t FROM b LATERAL VIEW explode(sequence(timestamp(b.d), timestamp(b.d + 2), interval 1 day)) "
        "g AS t"
    ),
    "unnest with ordinality": "SELECT c.y, u.e, u.i + 1 FROM c LATERAL VIEW posexplode(c.r) u AS i, e",
    "split to table": "SELECT b.x, w.p FROM b LATERAL VIEW explode(split('p' || b.s || 'q', 'a')) w AS p",
    "temporal timestamp": "SELECT c.y FROM c WHERE MZ_NOW() * 1000 <= unix_micros(timestamp(c.ts))",
    "temporal plus interval": "SELECT c.y FROM c WHERE MZ_NOW() * 1000 < unix_micros(timestamp(c.ts)) + 5000",
    "temporal date": "SELECT b.x FROM b WHERE MZ_NOW() >= unix_millis(timestamp(b.d))",
}
