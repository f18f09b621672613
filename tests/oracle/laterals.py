"""Random items of FROM that read those before them: LATERAL queries, and calls that return rows."""

from __future__ import annotations

from tests.oracle.conditions import Conditions, Query, Source
from tests.oracle.values import Columns


class Laterals(Conditions):
    """Adds such items to others."""

    def lateral(self, source: Source, depth: int) -> Source:
        """The rows, each with those of a LATERAL subquery."""
        with self.inside(source.columns):
            query = self.written(source.columns) if self.rare and self.chance(25) else self.inner(source, depth)
        alias = self.fresh("l")
        columns = self.item(alias, query.columns)
        on = self.rng.choice(("true", "true", self.equality(source.columns, columns)))
        join, condition = self.rng.choice(((", LATERAL", ""), (" CROSS JOIN LATERAL", ""), (" JOIN LATERAL", on),
                                           (" LEFT JOIN LATERAL", on), (" LEFT JOIN LATERAL", on)))  # fmt: skip
        item = f"{join} ({query.text}) AS {alias}" + f" ON {condition}" * bool(condition)
        return Source(source.text + item, source.columns + columns)

    def inner(self, source: Source, depth: int) -> Query:
        """A query that reads the columns of the items before it."""
        if self.rare and self.chance(25):
            return self.query(depth - 1)
        inner = self.source(depth - 1)
        both = self.comparison(source.columns, inner.columns)
        where = f" FROM {inner.text} WHERE {both if both != '1 = 1' else self.predicate(inner.columns)}"
        items = self.exact(inner.columns)
        outer, kind = self.number(source.columns)
        ordered = f"{where} ORDER BY {self.order(items)}"
        forms = [
            self.selected([*items, (outer, kind)], where),
            self.selected([self.call(inner.columns, plain=True)], where),
            self.selected([items[0], ("count(*)", "big")], f"{where} GROUP BY {items[0][0]}"),
            self.selected(items, f"{ordered} LIMIT {self.rng.choice((1, 2))}"),
            self.selected(items, where, "SELECT DISTINCT"),
            self.selected([*items[:1], ("count(*) OVER ()", "big")], where),
        ]
        if self.rare:
            count = self.rng.choice((f"greatest({outer}, 0)", f"nullif(abs({outer}), 0)", self.count()))
            forms += [self.selected(items, f"{ordered} {limit}") for limit in (
                f"LIMIT {count}", f"OFFSET {count} LIMIT 2", f"FETCH FIRST ({count}) ROWS WITH TIES")]  # fmt: skip
        return self.rng.choice(forms)

    def count(self) -> str:
        """A subquery for a number of rows."""
        return f"(SELECT count(*) FROM {self.source(0).text})"

    def written(self, scope: Columns) -> Query:
        """Rows of VALUES, or of calls in a SELECT list, of a row's values."""
        (one, first), (other, second) = self.number(scope), self.value(scope)
        if self.chance(50):
            series = [(f"generate_series({start}, {self.small(scope)})", "int") for start in (1, 2)]
            return self.selected([*series, (other, second)], "")
        rest = self.rng.choice(("", f" UNION ALL SELECT {one}, {other}", " ORDER BY 1 LIMIT 1"))
        (low, _) = self.number(scope)
        columns = (("column1", "num" if first == "num" else first), ("column2", second))
        if rest.endswith("LIMIT 1"):
            rest = f" ORDER BY 1 {self.direction()}, 2 {self.direction()} LIMIT 1"
        return Query(f"VALUES ({one}, {other}), ({low if first == 'num' else one}, NULL){rest}", columns)

    def called(self, source: Source) -> Source:
        """The rows, each with those of a table function."""
        alias, stop, (member, kind) = self.fresh("f"), self.small(source.columns), self.number(source.columns)
        duck = self.in_duckdb
        form = self.rng.choice(("series", "rows from", "repeat", *(("left", "array") if self.rare else ())))
        if form == "repeat":
            made = (f"repeat_row(greatest({stop}, 0)) AS {alias}" if self.ours
                    else f"LATERAL (SELECT unnest(generate_series(1, {stop}))) AS {alias}" if duck
                    else f"generate_series(1, {stop}) AS {alias}")  # fmt: skip
            return Source(f"{source.text}, {made}", source.columns)
        if form == "series":
            columns: Columns = ((f"{alias}.n", "int"),)
            made = (f"LATERAL (SELECT unnest(generate_series(1, {stop})) AS n) AS {alias}" if duck
                    else f"generate_series(1, {stop}) AS {alias}(n)")  # fmt: skip
            return Source(f"{source.text}, {made}", source.columns + columns)
        if form == "left":
            made = f"LEFT JOIN generate_series(1, {stop}) WITH ORDINALITY AS {alias}(n, o) ON true"
            return Source(f"{source.text} {made}", (*source.columns, (f"{alias}.n", "int"), (f"{alias}.o", "big")))
        if form == "array":
            with self.inside(source.columns):
                inner = self.source(0)
                (own, kind), both = self.number(inner.columns), self.comparison(source.columns, inner.columns)
            array = f"ARRAY(SELECT {own} FROM {inner.text} WHERE {both} ORDER BY {own} + 0 {self.direction()})"
            columns = ((f"{alias}.e", kind), (f"{alias}.o", "big"))
            return Source(f"{source.text}, unnest({array}) WITH ORDINALITY AS {alias}(e, o)", source.columns + columns)
        columns = ((f"{alias}.n", "int"), (f"{alias}.e", kind), (f"{alias}.o", "big"))
        array = f"ARRAY[{member}, NULL]"
        made = (f"LATERAL (SELECT unnest(generate_series(1, {stop})) AS n, unnest({array}) AS e, "
                f"unnest(generate_series(1, greatest(2, {stop}))) AS o) AS {alias}" if duck
                else f"ROWS FROM (generate_series(1, {stop}), unnest({array})) WITH ORDINALITY AS {alias}(n, e, o)"
                )  # fmt: skip
        return Source(f"{source.text}, {made}", source.columns + columns)
