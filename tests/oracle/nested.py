"""Random queries of aggregates, DISTINCT, set operations, outer joins, top-k, windows and subqueries, nested deep.

Orders say where NULLs go, and what LIMIT or a window leaves open is equal rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.oracle.sources import TABLES, Query, Source, Sources
from tests.oracle.values import EXACT, WHOLE, Columns

__all__ = ["TABLES", "Nested", "Query"]


class Nested(Sources):
    """Makes queries."""

    def query(self, depth: int) -> Query:
        if depth == 0:
            return self._select(self.table(), 0)
        if depth > 1 and self.chance(4):
            return self.using(depth)
        if self.chance(5):
            return self._negated(depth)
        forms = (self._aggregate, self._aggregate, self._aggregate, self._window, self._top, self._set_operation,
                 self._distinct, self._select, self._select)  # fmt: skip
        form = self.rng.choice(forms)
        return form(self.joined(depth), depth)

    def _select(self, source: Source, depth: int) -> Query:
        items = [self.value(source.columns) for _ in range(self.rng.choice((1, 2, 2, 3)))]
        passed = self.of_kinds(source.columns, ("real", "list"))
        if passed and self.chance(70):
            items.append(self.rng.choice(passed))
        if depth and self.chance(15):
            items.append(self._scalar(source.columns, depth))
        if self.chance(5):
            unnest = "unnest({})" if self.in_duckdb else "{}"
            series = [unnest.format(f"generate_series({start}, {self.small(source.columns)})") for start in (1, 2)]
            items += [(one, "int") for one in series]
        return self.selected(items, f" FROM {source.text}{self.where(source.columns, depth)}")

    def _scalar(self, scope: Columns, depth: int) -> tuple[str, str]:
        """A subquery as a value."""
        inner = self.source(depth - 1)
        both, (own, kind) = self.comparison(scope, inner.columns), self.number(inner.columns)
        call, made, last = self.rng.choice(((f"max({own})", kind, ""), ("count(*)", "big", ""),
                                            (own, kind, f" ORDER BY {own} {self.direction()} LIMIT 1")))  # fmt: skip
        if last and own == "1":
            last = " LIMIT 1"
        if self.chance(15):
            array = f"ARRAY(SELECT {own} FROM {inner.text} WHERE {both} ORDER BY {own} + 0 {self.direction()})"
            return array, "list"
        return f"(SELECT {call} FROM {inner.text} WHERE {both}{last})", made

    def _distinct(self, source: Source, depth: int) -> Query:
        items = [self.value(source.columns) for _ in range(self.rng.choice((1, 2, 3)))]
        rest = f" FROM {source.text}{self.where(source.columns, depth)}"
        if self.chance(40):  # the first row of each value of the first columns
            order = ", ".join(f"{text} {self.direction()}" for text, _ in items)
            by = ", ".join(text for text, _ in items[: self.rng.choice((1, 1, 2))])
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
        (key, kind), (number, _) = self.value(source.columns), self.number(source.columns)
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

    def _aggregate(self, source: Source, depth: int) -> Query:
        scope = source.columns
        keys = [self.value(scope) for _ in range(self.rng.choice((0, 1, 1, 1, 2)))]
        keys = [key for key in keys if key[0] in dict(scope) or not self.chance(50)]
        keys = [key for number, key in enumerate(keys) if key[0] != "1" and key not in keys[:number]]
        made = [self.call(scope) for _ in range(self.rng.choice((1, 1, 2, 3)))]
        rest = f" FROM {source.text}{self.where(scope, depth)}"
        if keys:
            listed, first, last = ", ".join(text for text, _ in keys), keys[0][0], keys[-1][0]
            form = self.rng.choice(("{0}",) * 6 + ("ROLLUP ({0})", "CUBE ({0})", "GROUPING SETS (({0}), ())",
                                                   "GROUPING SETS (({0}), ({1}), ({2}), ())", "{2}, ROLLUP ({0})"))
            if form != "{0}" and self.chance(50):
                made.append((f"grouping({listed})", "int"))
            rest += f" GROUP BY {form.format(listed, first, last)}"
        if self.chance(30):
            rest += f" HAVING {self._having(scope)}"
        items = [*keys, *made]
        if keys and self.chance(15):
            counted = self.rng.choice(("count(*)", self.call(scope, plain=True)[0]))
            direction = self.direction()
            made.append((f"rank() OVER (ORDER BY {counted} {direction})", "big"))
            items = [*keys, *made]
        self.rng.shuffle(items)
        return self.selected(items, rest)

    def _having(self, scope: Columns) -> str:
        text, _ = self.number(scope)
        table = self.table()
        own, _ = self.number(table.columns)
        return self.rng.choice(("count(*) > 1", "count(*) <> 2", f"sum({text}) > 1", f"coalesce(max({text}), 1) > 0",
                                f"min({text}) IS NOT NULL", f"max({text}) > 1 OR count(*) > 2",
                                f"count(*) >= (SELECT min({own}) FROM {table.text})",
                                f"max({text}) IN (SELECT {own} FROM {table.text})"))  # fmt: skip

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
