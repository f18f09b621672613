"""Random views of the forms that few queries have: hypothetical ranks, percentiles of a group's own fraction.

Each form is a method of `Corners`. It has a small query of its own, and at times a query or a join around it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.oracle.calls import Calls
from tests.oracle.values import Columns

A: Columns = (("a.k", "int"), ("a.v", "int"), ("a.s", "text"))


@dataclass
class Corners(Calls):
    """Makes queries over the tables a (k, v, s), b (k, x) and c (x, y)."""

    def query(self, form: str) -> str:
        """A query of a form; at times it is an item of a join."""
        text = FORMS[form](self)
        if self.chance(25):
            word = self.rng.choice(("JOIN", "LEFT JOIN"))
            return f"SELECT w.x AS wx, o.* FROM b AS w {word} ({text}) AS o ON w.k = o.c0 OR w.x = 1"
        return text

    def hypothetical(self) -> str:
        """Where a row would stand in each group."""
        keys = self.rng.choice(("a.k", "a.k", "ROLLUP (a.k)", "CUBE (a.k, a.s)", "()"))
        key, text = "NULL::int" if keys == "()" else "a.k", "a.s" if "a.s" in keys else "'p'"
        ranks = [f"{self.rank(key, text)}{self.filtered()} AS r{number}" for number in range(2)]
        return f"SELECT {key} AS c0, {', '.join(ranks)} FROM a GROUP BY {keys}"

    def rank(self, key: str, text: str) -> str:
        function = self.rng.choice(("rank", "dense_rank", "percent_rank", "cume_dist"))
        number = self.rng.choice(("1", f"{key} + 0", "NULL", "2 - 1"))
        v, s = f"a.v {self.direction()}", f"a.s {self.direction()}"
        args, order = self.rng.choice(((number, v), (text, s), (f"{number}, {text}", f"{v}, {s}"),
                                       (f"{text}, {number}", f"{s}, {v}")))  # fmt: skip
        return f"{function}({args}) WITHIN GROUP (ORDER BY {order})"

    def fractions(self) -> str:
        """Percentiles whose fraction is a key, or computed from keys."""
        keys = self.rng.choice(("c.y", "c.y", "ROLLUP (c.y)", "c.y, c.x"))
        inside = "least(greatest(c.y, 0), 1)"
        one = self.rng.choice((inside, f"1 - {inside}", f"coalesce({inside}, 0.3)"))
        fraction = self.rng.choice((one, one, f"ARRAY[{one}, 0.5, NULL]"))
        call = self.rng.choice(("percentile_cont({}) WITHIN GROUP (ORDER BY b.x {})",
                                "percentile_disc({}) WITHIN GROUP (ORDER BY b.x {})"))  # fmt: skip
        on = self.rng.choice(("true", "b.x = c.x", "b.k <= c.x"))
        order = self.rng.choice(("", "DESC"))
        return (f"SELECT max(c.x) AS c0, c.y AS p, {call.format(fraction, order)}{self.filtered('b.k')} AS q "
                f"FROM c LEFT JOIN b ON {on} GROUP BY {keys}")  # fmt: skip

    def limits(self) -> str:
        """LIMIT and OFFSET that read columns of the query around, or are subqueries."""
        order = ", ".join(f"{name} {self.direction()}" for name in ("b.x", "b.k"))
        keyed = self.rng.choice(("", "", " WHERE b.k = o.k", " WHERE b.x < o.v"))
        count = self.rng.choice(("greatest(o.v, 0)", "nullif(o.k, 0) + 0", "coalesce(o.k, 1)",
                                 "(SELECT count(*) FROM c)", "(SELECT max(c.x) FROM c WHERE c.x = o.k)"))  # fmt: skip
        limit = self.rng.choice((f"LIMIT {count}", f"LIMIT {count}", f"OFFSET {count}", f"LIMIT 2 OFFSET {count}",
                                 f"LIMIT {count} OFFSET 1", f"FETCH FIRST ({count}) ROWS WITH TIES"))  # fmt: skip
        inner = f"SELECT b.k, b.x FROM b{keyed} ORDER BY {order} {limit}"
        form = self.rng.choice(("lateral", "left", "value", "exists", "top"))
        if form == "top":
            return f"SELECT o.k AS c0, o.v, o.s FROM a AS o ORDER BY o.v {self.direction()}, o.k, o.s " \
                f"LIMIT (SELECT count(*) / 2 FROM b) OFFSET (SELECT count(*) / 3 FROM c)"
        if form == "value":
            return f"SELECT o.k AS c0, o.v, (SELECT sum(z.x) FROM ({inner}) AS z) AS n FROM a AS o"
        if form == "exists":
            return f"SELECT o.k AS c0, o.v FROM a AS o WHERE EXISTS ({inner})"
        join = f"LEFT JOIN LATERAL ({inner}) AS z ON true" if form == "left" else f"CROSS JOIN LATERAL ({inner}) AS z"
        return f"SELECT o.k AS c0, o.v, z.k AS d, z.x FROM a AS o {join}"

    def groupings(self) -> str:
        """grouping() of a query in its subqueries."""
        keys = self.rng.choice(("ROLLUP (a.k, a.s)", "CUBE (a.k, a.s)", "GROUPING SETS ((a.k), (a.s), ())", "a.k, a.s"))
        call = self.rng.choice(("grouping(a.k)", "grouping(a.s, a.k)", "grouping(a.k) + grouping(a.s)"))
        value = self.rng.choice((f"(SELECT {call})", f"(SELECT {call} + count(*) FROM b WHERE b.k = a.k)",
                                 f"(SELECT max(b.x) FROM b WHERE b.x = {call})",
                                 f"(SELECT (SELECT {call}) + count(*) FROM b)"))  # fmt: skip
        having = self.rng.choice(("", "", f" HAVING EXISTS (SELECT 1 FROM c WHERE c.x = {call})"))
        return f"SELECT a.k AS c0, a.s, count(*) AS n, {value} AS g FROM a GROUP BY {keys}{having}"

    def rows(self) -> str:
        """Whole rows as values, of both sides of a join and of written rows."""
        join = self.rng.choice(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
        on = self.rng.choice(("t.k = u.k", "t.k = u.k AND u.x > 0", "t.k < u.x"))
        on = "t.k = u.k" if join == "FULL JOIN" else on
        source = f"b AS t {join} b AS u ON {on}"
        sides = ("t", "u", "u.*", "(t)", "ROW(t.k, u.x)", "(t.x, u.x)")
        one, other = self.rng.choice((("t", "u"), ("u", "t"), ("t.*", "u"), ("(t.k, t.x)", "(u.k, u.x)"),
                                      ("(t.k, u.x)", "(1, NULL)"), ("ROW(u.k, t.x)", "ROW(1, 2)"),
                                      ("u", "(t.k, t.x)"), ("t", "ROW(1, 2)")))  # fmt: skip
        compared = f"{one} {self.rng.choice(('=', '<>', '<', '<=', '>', '>=', 'IS DISTINCT FROM'))} {other}"
        test = f"{self.rng.choice(sides)} IS {self.rng.choice(('', 'NOT '))}NULL"
        both = self.rng.choice((compared, test, f"NOT {test}", f"{compared} OR {test}",
                                "(t.k, u.x) IN ((1, 2), (0, 1), (2, NULL))", "ROW(t.k, t.x) BETWEEN (0, 1) AND (1, 2)"))
        side, key = self.rng.choice(sides), self.rng.choice(("t", "u", "(t.x, u.k)", "u.*, t.k"))
        shown = (f"coalesce(t.k, u.k) AS c0, t.x, u.x AS y, {compared} AS a, {test} AS b, "
                 f"CASE (t.k, u.x) WHEN (1, 2) THEN 1 WHEN (u.k, t.x) THEN 2 END AS d")  # fmt: skip
        columns = "t.k AS c0, t.x, u.k AS uk, u.x AS ux"
        return self.rng.choice((
            f"SELECT {shown} FROM {source}",
            f"SELECT {shown} FROM {source} WHERE {both}",
            f"SELECT max(t.k) AS c0, count({side}) AS n, count(DISTINCT {side}) AS m, "
            f"count(*) FILTER (WHERE {both}) AS o FROM {source} GROUP BY {key}",
            f"SELECT DISTINCT ON ({key}) {columns} FROM {source} ORDER BY {key}, t.k, t.x, u.k, u.x",
            f"SELECT {columns} FROM {source} ORDER BY {key.split(', ')[0]} DESC, t, u LIMIT 3",
            f"SELECT t.k AS c0, rank() OVER (PARTITION BY ROW(t.x) ORDER BY {key}) AS r, count({side}) OVER () AS n "
            f"FROM {source}",
            f"SELECT t.k AS c0, (SELECT count(*) FROM b AS z WHERE z = t) AS n FROM {source} WHERE {both}",
            f"SELECT t.k AS c0, (t).x AS tx, (u).k AS uk FROM {source} WHERE EXISTS "
            f"(SELECT 1 FROM b AS z WHERE z IS NOT DISTINCT FROM u)",
        ))  # fmt: skip

    def records(self) -> str:
        """Rows of a table among those of a subquery."""
        where = self.rng.choice(("", "", " WHERE z.k = t.k", " WHERE z.x > t.x", " WHERE z.k IS NULL", " LIMIT 0"))
        more = self.rng.choice(("", " UNION ALL SELECT y FROM b AS y WHERE y.x = 1"))
        query = f"(SELECT z FROM b AS z{where}){more}" if "LIMIT" in where else f"SELECT z FROM b AS z{where}{more}"
        test = self.rng.choice(("t IN ({})", "t NOT IN ({})", "NOT t IN ({})", "t = ANY ({})", "t <> ALL ({})"))
        if self.chance(50):
            return f"SELECT t.k AS c0, t.x FROM b AS t WHERE {test.format(query)}"
        return f"SELECT t.k AS c0, t.x, {test.format(query)} AS i, t.x IS NULL OR {test.format(query)} AS j FROM b AS t"

    def alike(self) -> str:
        """What DuckDB reads alike: rows that are compared as records, LIMIT with a subquery."""
        operator = self.rng.choice(("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"))
        one, other = self.rng.choice((("t", "u"), ("u", "t")))
        if "DISTINCT" in operator and self.chance(50):
            one, other = self.rng.choice((("(t.k, u.x)", "(u.k, t.x)"), ("(t.k, t.x)", "(1, NULL)")))
        limit = self.rng.choice(("(SELECT max(c.x) FROM c)", "(SELECT count(*) FROM c)", "3"))
        return self.rng.choice((
            f"SELECT t.k AS c0, t.x, u.x AS y, {one} {operator} {other} AS d FROM b AS t, b AS u",
            f"SELECT t.k AS c0, t.x, u.x AS y FROM b AS t JOIN b AS u ON {one} {operator} {other}",
            f"SELECT t.k AS c0, t.x FROM b AS t ORDER BY t.x {self.direction()}, t.k {self.direction()} "
            f"LIMIT {limit} OFFSET (SELECT count(*) FROM c WHERE c.x = 1)",
        ))  # fmt: skip

    def series(self) -> str:
        """Calls that return rows, as keys of groups and of orders; VALUES in set operations."""
        stop = self.rng.choice(("least(a.v, 3)", "2", "a.k"))
        call = f"generate_series(1, {stop})"
        values = self.rng.choice(("VALUES (0, 1), (1, 2) UNION ALL SELECT b.k, b.x FROM b",
                                  "VALUES (0, 1), (1, 2) EXCEPT SELECT b.k, b.x FROM b",
                                  "VALUES (1, 2), (0, NULL) ORDER BY 1 LIMIT 1"))  # fmt: skip
        return self.rng.choice((
            "SELECT a.k AS c0, g.g FROM a, generate_series(1, (SELECT count(*) FROM b WHERE b.k = a.k)) AS g (g)",
            "SELECT (SELECT max(b.x) FROM b WHERE b.k = a.k) AS c0, count(*) AS n FROM a "
            "GROUP BY (SELECT max(b.x) FROM b WHERE b.k = a.k)",
            f"SELECT {call} AS c0, a.s, count(*) AS n FROM a GROUP BY {call}, a.s",
            f"SELECT {call} AS c0, a.s, count(*) AS n, sum(a.k) OVER () AS m FROM a GROUP BY c0, a.s, a.k",
            f"SELECT {call} AS c0, a.s, count(*) AS n, grouping(a.s) AS g FROM a GROUP BY ROLLUP (c0, a.s)",
            f"SELECT a.k AS c0, a.s, {call} AS g FROM a ORDER BY {call} DESC, a.k, a.s, a.v LIMIT 4",
            f"SELECT a.k AS c0, a.s FROM a ORDER BY {call} USING >, a.k USING <, a.s, a.v LIMIT 4",
            f"SELECT x.p AS c0, x.q, a.s FROM ({values}) AS x (p, q) LEFT JOIN a ON a.k = x.p",
        ))  # fmt: skip

    def filtered(self, column: str = "a.v") -> str:
        return f" FILTER (WHERE {column} {self.rng.choice(('> 0', '<> 1', 'IS NOT NULL'))})" if self.chance(30) else ""


FORMS: dict[str, Callable[[Corners], str]] = {
    "hypothetical": Corners.hypothetical,
    "fractions": Corners.fractions,
    "limits": Corners.limits,
    "groupings": Corners.groupings,
    "rows": Corners.rows,
    "series": Corners.series,
    "records": Corners.records,
    "alike": Corners.alike,
}
IN_DUCKDB = ("alike",)  # the forms that DuckDB reads alike
