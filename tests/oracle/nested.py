"""Random queries of all forms, nested deep: each is made of smaller ones.

Orders say where NULLs go, and what LIMIT or a window leaves open is equal rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.oracle.conditions import Query, Source
from tests.oracle.grouped import Grouped
from tests.oracle.sources import TABLES
from tests.oracle.values import EXACT, WHOLE

__all__ = ["TABLES", "Nested", "Query"]


class Nested(Grouped):
    """Makes queries."""

    def query(self, depth: int) -> Query:
        """A query with `depth` queries inside each other, at most."""
        if depth == 0:
            return self._select(self.table(), 0)
        if depth > 1 and self.chance(4):
            return self.using(depth)
        if self.rare and depth > 1 and self.chance(6):
            return self.with_names(depth)
        if self.chance(5):
            return self._negated(depth)
        forms = (self.aggregate, self.aggregate, self.aggregate, self._window, self._top, self._set_operation,
                 self._distinct, self._select, self._select)  # fmt: skip
        form = self.rng.choice((*forms, self._in_order, self._series) if self.rare else forms)
        return form(self.joined(depth), depth)

    def _select(self, source: Source, depth: int) -> Query:
        items = [self.value(source.columns) for _ in range(self.rng.choice((1, 2, 2, 3)))]
        passed = self.of_kinds(source.columns, ("real", "list"))
        if passed and self.chance(70):
            items.append(self.rng.choice(passed))
        if depth and self.chance(15):
            items.append(self.scalar(source.columns, depth))
        if self.around and self.chance(25):
            items.append(self.number(self.around))
        if self.rare and self.chance(12):
            (one, _), (other, _) = self.number(source.columns), self.number(source.columns)
            one, other = f"({one})::int", f"({other})::int"
            case = f"CASE ({one}, {other}) WHEN (1, 2) THEN 1 WHEN ({other}, 0) THEN 2 END"
            items.append(self.rng.choice(((case, "int"), (f"({self.of_rows(source.columns)})", "bool"))))
        if self.chance(5):
            unnest = "unnest({})" if self.in_duckdb else "{}"
            series = [unnest.format(f"generate_series({start}, {self.small(source.columns)})") for start in (1, 2)]
            items += [(one, "int") for one in series]
        return self.selected(items, f" FROM {source.text}{self.where(source.columns, depth)}")

    def _in_order(self, source: Source, depth: int) -> Query:
        """What the order of a subquery decides."""
        items = self.exact(source.columns)
        rest = f" FROM {source.text}{self.where(source.columns, depth)} ORDER BY {self.order(items)}"
        inner, alias = self.selected(items, rest), self.fresh("q")
        columns = self.item(alias, inner.columns)
        source = Source(f"({inner.text}) AS {alias}", columns)
        rest = f" FROM {source.text}{self.where(columns, 0)}"
        number, kind = self.number(columns)
        limit = self.rng.choice(("LIMIT 2", "OFFSET 1", "LIMIT 1 OFFSET 1"))
        return self.rng.choice((
            self.selected(columns, f"{rest} {limit}"),
            self.selected([*columns, ("row_number() OVER ()", "big")], rest),
            self.selected([*columns, (f"lag({number}) OVER ()", kind)], rest),
            self.selected([(f"array_agg({number})", "list"), ("count(*)", "big")], rest),
            self.selected([columns[0], (f"array_agg({number})", "list")], f"{rest} GROUP BY {columns[0][0]}"),
        ))  # fmt: skip

    def _series(self, source: Source, depth: int) -> Query:
        """Calls that return rows, beside keys and in orders."""
        rest = f" FROM {source.text}{self.where(source.columns, depth)}"
        series = (f"generate_series(1, {self.small(source.columns)})", "int")
        items, (call, kind) = self.exact(source.columns), self.call(source.columns, plain=True)
        keys = items[:1]
        return self.rng.choice((
            self.selected([series, *keys, (call, kind)], f"{rest} GROUP BY {series[0]}, {keys[0][0]}"),
            self.selected([series, *keys, ("count(*)", "big")], f"{rest} GROUP BY ROLLUP (1, {keys[0][0]})"),
            self.selected([series, *items], f"{rest} ORDER BY {series[0]} DESC, {self.order(items)} LIMIT 4"),
            self.selected([*items, series, (f"count({keys[0][0]}) OVER ()", "big")], rest),
            self.selected([*items, series, ("unnest(ARRAY[1, NULL])", "int")], rest),
        ))  # fmt: skip

    def _distinct(self, source: Source, depth: int) -> Query:
        items = [self.value(source.columns) for _ in range(self.rng.choice((1, 2, 3)))]
        rest = f" FROM {source.text}{self.where(source.columns, depth)}"
        if self.chance(40):  # the first row of each value of the first columns
            order = ", ".join(f"{text} {self.direction()}" for text, _ in items)
            by = ", ".join(text for text, _ in items[: self.rng.choice((1, 1, 2))])
            if self.rare and self.chance(15):
                by = self.whole(source.columns)
                return self.selected(items, f"{rest} ORDER BY {by}, {order}", f"SELECT DISTINCT ON ({by})")
            if not any(text.isdigit() for text, _ in items):
                return self.selected(items, f"{rest} ORDER BY {order}", f"SELECT DISTINCT ON ({by})")
        return self.selected(items, rest, "SELECT DISTINCT")

    def _set_operation(self, source: Source, depth: int) -> Query:
        kinds = [kind for _, kind in source.columns if kind in EXACT][:2] or ["int"]
        operator = self.rng.choice(("UNION", "UNION", "UNION ALL", "EXCEPT", "EXCEPT ALL", "EXCEPT ALL", "INTERSECT",
                                    "INTERSECT ALL"))  # fmt: skip
        sides = []
        for side in (source, self.joined(max(depth - 1, 1))):
            items = [(self.of_kind(side.columns, kind), kind) for kind in kinds]
            sides.append(self.selected(items, f" FROM {side.text}{self.where(side.columns, depth - 1)}"))
        widest = tuple((name, "num" if kind in WHOLE else kind) for name, kind in sides[0].columns)
        return Query(f"({sides[0].text}) {operator} ({sides[1].text})", widest)

    def _negated(self, depth: int) -> Query:
        """Rows with counts below 0: taken from others, or summed."""
        source = self.joined(max(depth - 1, 1))
        rest = f" FROM {source.text}{self.where(source.columns, 0)}"
        if self.chance(50):
            items = self.exact(source.columns)
            condition = self.predicate(source.columns)
            both = f"{rest}{' AND' if ' WHERE ' in rest[len(source.text):] else ' WHERE'}"
            if not self.ours:
                return self.selected(items, f"{both} ({condition}) IS NOT TRUE")
            taken = both.replace(source.text, f"{source.text}, repeat_row(-1) AS r", 1)
            gone = self.selected(items, f"{taken} {condition}")
            return Query(f"({self.selected(items, rest).text}) UNION ALL ({gone.text})", gone.columns)
        scope = tuple(column for column in source.columns if column[1] != "span")  # its groups need an order
        (key, kind), (number, _) = self.value(scope), self.number(scope)
        times = self.rng.choice((-1, -2, 2))
        if key == "1":
            key = "1 + 0"
        if self.ours:
            rest = rest.replace(source.text, f"{source.text}, repeat_row({times}) AS r", 1)
            sums = [("count(*)", "big"), (f"sum({number})", "num")]
        else:
            sums = [(f"{times} * count(*)", "big"), (f"{times} * sum({number})", "num")]
        return self.selected([(key, kind), *sums], f"{rest} GROUP BY {key}")

    def _top(self, source: Source, depth: int) -> Query:
        items = self.exact(source.columns)
        rest = f" FROM {source.text}{self.where(source.columns, depth)}"
        if self.chance(30):  # the first rows of each group
            inner = self.selected(items, rest)
            names = [(f"g.{name}", kind) for name, kind in inner.columns]
            number = self.rng.choice(("row_number()", "rank()", "dense_rank()"))
            order = self.order(names if number == "row_number()" else names[-1:])
            over = f"{number} OVER (PARTITION BY {names[0][0]} ORDER BY {order})"
            numbered = self.selected([*names, (over, "big")], f" FROM ({inner.text}) AS g")
            last = self.rng.choice((1, 2))
            shown = [(f"h.{name}", kind) for name, kind in numbered.columns[: self.rng.choice((-1, len(items) + 1))]]
            return self.selected(shown, f" FROM ({numbered.text}) AS h WHERE h.c{len(items)} <= {last}")
        if self.chance(15):
            over, _ = self.over(items, peers=True)
            return self._qualified(items, rest, f"{over} {self.rng.choice(('<=', '>', '='))} {self.rng.choice('12')}")
        if self.chance(20):
            order, first = self.order(items[:1]), self.rng.choice((1, 2, 3))
            if self.in_duckdb:  # which has no WITH TIES
                return self._qualified(items, rest, f"rank() OVER (ORDER BY {order}) <= {first}")
            return self.selected(items, f"{rest} ORDER BY {order} FETCH FIRST {first} ROWS WITH TIES")
        if self.rare and self.chance(15):
            limit = self.rng.choice((f"LIMIT {self.count()}", f"LIMIT 3 OFFSET {self.count()} / 3"))
            return self.selected(items, f"{rest} ORDER BY {self.order(items)} {limit}")
        if self.rare and self.chance(10):
            order = f"{self.whole(source.columns)} {self.rng.choice(('', 'DESC'))}, {self.order(items)}"
            return self.selected(items, f"{rest} ORDER BY {order} LIMIT 3")
        limit = self.rng.choice(("LIMIT 1", "LIMIT 2", "LIMIT 3", "LIMIT 4", "LIMIT 2 OFFSET 1", "OFFSET 1",
                                 "FETCH FIRST 2 ROWS ONLY"))  # fmt: skip
        return self.selected(items, f"{rest} ORDER BY {self.order(items)} {limit}")

    def _qualified(self, items: Sequence[tuple[str, str]], rest: str, condition: str) -> Query:
        """QUALIFY, which PostgreSQL does not have."""
        if self.ours or self.in_duckdb:
            return self.selected(items, f"{rest} QUALIFY {condition}")
        inner = self.selected([*items, (condition, "bool")], rest)
        shown = inner.columns[: len(items)]
        return self.selected(shown, f" FROM ({inner.text}) AS g WHERE c{len(items)}")

    def _window(self, source: Source, depth: int) -> Query:
        items = self.exact(source.columns)
        rest = f" FROM {source.text}{self.where(source.columns, depth)}"
        if self.chance(12):
            number, kind = self.rng.choice(self.of_kinds(tuple(items), WHOLE) or [("1", "int")])
            window = f"WINDOW w AS (PARTITION BY {items[0][0]} ORDER BY {self.order(items[-1:])})"
            calls = [("rank() OVER w", "big"), (f"max({number}) OVER (w {self.frame('GROUPS')})", kind)]
            return self.selected([*items, *calls], f"{rest} {window}")
        calls = [self.over(items, peers=bool(number)) for number in range(self.rng.choice((1, 1, 2)))]
        return self.selected([*items, *calls], rest)
