"""Random queries of aggregates, DISTINCT, set operations, outer joins, top-k, windows and subqueries, nested deep.

PostgreSQL and DuckDB read them alike: orders say where NULLs go, and what LIMIT or a window leaves open is equal rows.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count

# Kinds of columns: `real` is a number that is right up to rounding, so nothing depends on it; `list` an array.
WHOLE = ("int", "big", "num")
EXACT = (*WHOLE, "text", "float", "bool")
Columns = tuple[tuple[str, str], ...]  # the name and the kind of each column


@dataclass(frozen=True)
class Query:
    """A SELECT and its columns."""

    text: str
    columns: Columns


@dataclass(frozen=True)
class Source:
    """An item of FROM."""

    text: str
    columns: Columns  # the names with the alias


TABLES = {
    "a": (("k", "int"), ("v", "int"), ("s", "text")),
    "b": (("k", "int"), ("x", "int")),
    "c": (("x", "int"), ("y", "float")),
}


@dataclass
class Nested:
    """Makes queries over the tables and over views made earlier. `temporal`: some depend on mz_now()."""

    rng: random.Random
    temporal: bool = False
    named: dict[str, Columns] = field(default_factory=lambda: dict(TABLES))
    numbers: count[int] = field(default_factory=count)

    def query(self, depth: int) -> Query:
        """A query with `depth` queries inside each other, at most."""
        if depth == 0:
            return self._select(self._table(), 0)
        forms = (self._aggregate, self._aggregate, self._aggregate, self._window, self._top, self._set_operation,
                 self._distinct, self._select, self._select)  # fmt: skip
        form = self.rng.choice(forms)
        return form(self._from(depth), depth)

    # FROM.

    def _table(self) -> Source:
        alias = f"t{next(self.numbers)}"
        name = self.rng.choice(list(self.named))
        return Source(f"{name} AS {alias}", tuple((f"{alias}.{column}", kind) for column, kind in self.named[name]))

    def _source(self, depth: int) -> Source:
        if depth == 0 or self.chance(15):
            return self._table()
        query, alias = self.query(depth), f"q{next(self.numbers)}"
        return Source(f"({query.text}) AS {alias}", tuple((f"{alias}.{name}", kind) for name, kind in query.columns))

    def _from(self, depth: int) -> Source:
        """One item, or a join of two or three."""
        source = self._source(depth - 1)
        for _ in range(self.rng.choice((0, 0, 1, 1, 2))):
            other = self._source(self.rng.choice((0, depth - 1)))
            kind = self.rng.choice(("JOIN", "LEFT JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
            on = self._equality(source.columns, other.columns)
            if self.chance(15) and kind != "FULL JOIN":  # PostgreSQL cannot do that for FULL
                on = f"{on} AND {self.predicate(self.rng.choice((source.columns, other.columns)))}"
            source = Source(f"{source.text} {kind} {other.text} ON {on}", source.columns + other.columns)
        return source

    def _equality(self, left: Columns, right: Columns) -> str:
        pairs = [(one, other) for one, kind in left for other, second in right
                 if kind == second or (kind in WHOLE and second in WHOLE)]  # fmt: skip
        pairs = [(one, other) for one, other in pairs if dict(left)[one] in EXACT]
        if not pairs:
            return "1 = 1"
        one, other = self.rng.choice(pairs)
        return f"{one} = {other}"

    # Expressions.

    def chance(self, percent: int) -> bool:
        return self.rng.random() * 100 < percent

    def of_kinds(self, scope: Columns, kinds: Sequence[str]) -> list[tuple[str, str]]:
        """The columns of these kinds."""
        return [(name, kind) for name, kind in scope if kind in kinds]

    def number(self, scope: Columns) -> tuple[str, str]:
        """A whole number."""
        columns = self.of_kinds(scope, WHOLE)
        if not columns:
            return "1", "int"
        name, kind = self.rng.choice(columns)
        form = self.rng.choice(("{0}", "{0}", "{0}", "{0}", "{0} + 1", "coalesce({0}, 1)", "- {0}", "nullif({0}, 1)",
                                "CASE WHEN {0} > 1 THEN {0} ELSE 0 END"))  # fmt: skip
        return form.format(name), kind

    def value(self, scope: Columns) -> tuple[str, str]:
        """Any exact value."""
        columns = self.of_kinds(scope, EXACT)
        if not columns or self.chance(30):
            return self.number(scope)
        return self.rng.choice(columns)

    def predicate(self, scope: Columns) -> str:
        """A condition."""
        text, kind = self.value(scope)
        if kind == "bool":
            return self.rng.choice((f"{text}", f"NOT {text}", f"{text} IS NOT TRUE"))
        literals = {"text": ("'p'", "'q'"), "float": ("0.5", "0.1")}.get(kind, ("0", "1", "2", "3"))
        return self.rng.choice((  # most are true of most rows, or little would be left of nested queries
            f"{text} {self.rng.choice(('=', '<', '>'))} {self.rng.choice(literals)}",
            f"{text} >= {literals[0]}", f"{text} <> {literals[-1]}", f"coalesce({text} <> {literals[0]}, true)",
            f"{text} IS NOT NULL", f"{text} IS NOT NULL", f"{text} IS DISTINCT FROM {literals[0]}",
            f"({text} IS NULL OR {text} IN ({', '.join(literals[:2])}))",
        ))  # fmt: skip

    def where(self, scope: Columns, depth: int) -> str:
        """A WHERE, or nothing."""
        parts = [self.predicate(scope) for _ in range(self.rng.choice((0, 0, 1)))]
        if depth and self.chance(35):
            parts.append(self._subquery(scope, depth))
            if self.chance(30):
                parts[-1] = f"({parts[-1]} OR {self.predicate(scope)})"
        if self.temporal and self.chance(35):
            names = [name for name, _ in self.of_kinds(scope, WHOLE)]
            if names:
                operator = self.rng.choice(("<=", "<", ">=", ">"))
                parts.append(f"mz_now() {operator} {self.rng.choice(names)} + {self.rng.choice((1, 2, 4))}")
        return f" WHERE {' AND '.join(parts)}" if parts else ""

    def _subquery(self, scope: Columns, depth: int) -> str:
        """A condition with a subquery, correlated or not."""
        inner = self._source(depth - 1)
        both = self._equality(scope, inner.columns)
        correlated = f" WHERE {both}" if self.chance(70) and both != "1 = 1" else ""
        if self.chance(30):
            correlated += f"{' AND' if correlated else ' WHERE'} {self.predicate(inner.columns)}"
        form = self.rng.choice(("exists", "in", "scalar", "quantified"))
        if form == "exists":
            return f"{self.rng.choice(('', 'NOT '))}EXISTS (SELECT 1 FROM {inner.text}{correlated})"
        (left, _), (own, _) = self.number(scope), self.number(inner.columns)
        if form == "in":
            return f"{left} {self.rng.choice(('', 'NOT '))}IN (SELECT {own} FROM {inner.text}{correlated})"
        if form == "quantified":
            operator = self.rng.choice(("> ALL", "<= ANY", "= ANY", "<> ALL"))
            return f"{left} {operator} (SELECT {own} FROM {inner.text}{correlated})"
        call = self.rng.choice((f"max({own})", f"min({own})", "count(*)", f"sum({own})"))
        return f"{left} {self.rng.choice(('<', '>=', '='))} (SELECT {call} FROM {inner.text}{correlated})"

    # Queries.

    def _select(self, source: Source, depth: int) -> Query:
        items = [self.value(source.columns) for _ in range(self.rng.choice((1, 2, 2, 3)))]
        passed = self.of_kinds(source.columns, ("real", "list"))
        if passed and self.chance(70):
            items.append(self.rng.choice(passed))
        if depth and self.chance(15):
            inner = self._source(depth - 1)
            both, (own, kind) = self._equality(source.columns, inner.columns), self.number(inner.columns)
            call, made = self.rng.choice(((f"max({own})", kind), ("count(*)", "big")))
            items.append((f"(SELECT {call} FROM {inner.text} WHERE {both})", made))
        return self._selected(items, f" FROM {source.text}{self.where(source.columns, depth)}")

    def _selected(self, items: Sequence[tuple[str, str]], rest: str, head: str = "SELECT") -> Query:
        columns = tuple((f"c{number}", kind) for number, (_, kind) in enumerate(items))
        listed = ", ".join(f"{text} AS c{number}" for number, (text, _) in enumerate(items))
        return Query(f"{head} {listed}{rest}", columns)

    def _distinct(self, source: Source, depth: int) -> Query:
        items = [self.value(source.columns) for _ in range(self.rng.choice((1, 2)))]
        rest = f" FROM {source.text}{self.where(source.columns, depth)}"
        if self.chance(40):  # the first row of each value of the first column
            order = ", ".join(f"{text} {self._direction()}" for text, _ in items)
            if not any(text.isdigit() for text, _ in items):
                return self._selected(items, f"{rest} ORDER BY {order}", f"SELECT DISTINCT ON ({items[0][0]})")
        return self._selected(items, rest, "SELECT DISTINCT")

    def _set_operation(self, source: Source, depth: int) -> Query:
        kinds = [kind for _, kind in source.columns if kind in EXACT][:2] or ["int"]
        operator = self.rng.choice(("UNION", "UNION", "UNION ALL", "EXCEPT", "EXCEPT ALL", "EXCEPT ALL", "INTERSECT",
                                    "INTERSECT ALL"))  # fmt: skip
        sides = []
        for side in (source, self._from(max(depth - 1, 1))):
            items = [self._of_kind(side.columns, kind) for kind in kinds]
            sides.append(self._selected([(text, kind) for text, kind in zip(items, kinds, strict=True)],
                                        f" FROM {side.text}{self.where(side.columns, depth - 1)}"))  # fmt: skip
        widest = tuple((name, "num" if kind in WHOLE else kind) for name, kind in sides[0].columns)
        return Query(f"({sides[0].text}) {operator} ({sides[1].text})", widest)

    def _of_kind(self, scope: Columns, kind: str) -> str:
        if kind in WHOLE:
            return self.number(scope)[0]
        names = [name for name, own in scope if own == kind]
        literal = {"text": "'p'", "float": "0.5::double precision", "bool": "true"}
        return self.rng.choice(names) if names else literal[kind]

    def _direction(self) -> str:
        return f"{self.rng.choice(('ASC', 'DESC'))} NULLS {self.rng.choice(('FIRST', 'LAST'))}"

    def _exact(self, source: Source) -> list[tuple[str, str]]:
        found = self.of_kinds(source.columns, EXACT)
        self.rng.shuffle(found)
        return found[:3] or [("1 + 1", "int")]

    def _order(self, items: Sequence[tuple[str, str]]) -> str:
        return ", ".join(f"{text} {self._direction()}" for text, _ in items)

    def _top(self, source: Source, depth: int) -> Query:
        items = self._exact(source)
        rest = f" FROM {source.text}{self.where(source.columns, depth)}"
        if self.chance(40):  # the first rows of each group
            inner = self._selected(items, rest)
            names = [(f"g.{name}", kind) for name, kind in inner.columns]
            number = self.rng.choice(("row_number()", "rank()", "dense_rank()"))
            order = self._order(names if number == "row_number()" else names[-1:])
            over = f"{number} OVER (PARTITION BY {names[0][0]} ORDER BY {order})"
            numbered = self._selected([*names, (over, "big")], f" FROM ({inner.text}) AS g")
            last = self.rng.choice((1, 2))
            shown = [(f"h.{name}", kind) for name, kind in numbered.columns[: self.rng.choice((-1, len(items) + 1))]]
            return self._selected(shown, f" FROM ({numbered.text}) AS h WHERE h.c{len(items)} <= {last}")
        limit = self.rng.choice(("LIMIT 1", "LIMIT 2", "LIMIT 3", "LIMIT 4", "LIMIT 2 OFFSET 1", "OFFSET 1"))
        return self._selected(items, f"{rest} ORDER BY {self._order(items)} {limit}")

    def _aggregate(self, source: Source, depth: int) -> Query:
        scope = source.columns
        keys = [self.value(scope) for _ in range(self.rng.choice((0, 1, 1, 1, 2)))]
        keys = [key for key in keys if key[0] in dict(scope) or not self.chance(50)]
        keys = [key for number, key in enumerate(keys) if key[0] != "1" and key not in keys[:number]]
        made = [self.call(scope) for _ in range(self.rng.choice((1, 1, 2, 3)))]
        rest = f" FROM {source.text}{self.where(scope, depth)}"
        if keys:
            listed = ", ".join(text for text, _ in keys)
            form = self.rng.choice(("{}", "{}", "{}", "{}", "ROLLUP ({})", "CUBE ({})", "GROUPING SETS (({}), ())"))
            if form != "{}" and self.chance(50):
                made.append((f"grouping({listed})", "int"))
            rest += f" GROUP BY {form.format(listed)}"
        if self.chance(30):
            rest += f" HAVING {self._having(scope)}"
        items = [*keys, *made]
        if keys and self.chance(15):
            counted = self.rng.choice(("count(*)", self.call(scope, plain=True)[0]))
            direction = self._direction()
            made.append((f"rank() OVER (ORDER BY {counted} {direction})", "big"))
            items = [*keys, *made]
        self.rng.shuffle(items)
        return self._selected(items, rest)

    def _having(self, scope: Columns) -> str:
        text, _ = self.number(scope)
        return self.rng.choice(("count(*) > 1", "count(*) <> 2", f"sum({text}) > 1", f"coalesce(max({text}), 1) > 0",
                                f"min({text}) IS NOT NULL", f"max({text}) > 1 OR count(*) > 2"))  # fmt: skip

    def call(self, scope: Columns, *, plain: bool = False) -> tuple[str, str]:
        """An aggregate. `plain`: its value is exact and compares."""
        text, kind = self.number(scope)
        value, own = self.value(scope)
        wider = {"int": "big"}.get(kind, "num")
        least, its = (text, kind) if own == "bool" else (value, own)
        calls = [("count(*)", "big"), (f"count({value})", "big"), (f"count(DISTINCT {value})", "big"),
                 (f"sum({text})", wider), (f"sum({text})", wider), (f"sum(DISTINCT {text})", wider),
                 (f"max({least})", its), (f"min({least})", its),
                 *((f"{name}({self.predicate(scope)})", "bool") for name in ("bool_and", "bool_or"))]  # fmt: skip
        if kind != "num":
            calls += [(f"bit_or({text})", kind), (f"bit_and({text})", kind), (f"bit_xor({text})", kind)]
        texts = [name for name, _ in self.of_kinds(scope, ("text",))]
        floats = [name for name, _ in self.of_kinds(scope, ("float",))]
        if not plain:
            calls += [(f"avg({text})", "real"), (f"stddev({text})", "real"), (f"var_pop({text})", "real"),
                      (f"array_agg({text} ORDER BY {text} {self._direction()})", "list")]  # fmt: skip
            calls += [(f"sum({name})", "real") for name in floats] + [(f"avg({name})", "real") for name in floats]
        if texts:
            name = self.rng.choice(texts)
            calls += [(f"string_agg({name}, ',' ORDER BY {name})", "text")] * 2
        found, made = self.rng.choice(calls)
        if self.chance(15):
            found += f" FILTER (WHERE {self.predicate(scope)})"
        elif not plain and self.chance(6):
            fraction = self.rng.choice(("0.5", "0.25", "1"))
            return f"percentile_disc({fraction}) WITHIN GROUP (ORDER BY {text})", kind
        elif not plain and self.chance(6):
            return f"percentile_cont(0.5) WITHIN GROUP (ORDER BY {text})", "real"
        return found, made

    def _window(self, source: Source, depth: int) -> Query:
        items = self._exact(source)
        whole = tuple(self.of_kinds(tuple(items), WHOLE))
        calls = [self._over(items, whole, peers=bool(number)) for number in range(self.rng.choice((1, 1, 2)))]
        return self._selected([*items, *calls], f" FROM {source.text}{self.where(source.columns, depth)}")

    def _over(self, items: Sequence[tuple[str, str]], whole: Columns, *, peers: bool) -> tuple[str, str]:
        """A call. `peers`: equal rows have equal results; with two calls that tell them apart, any pairs are right."""
        parted = f"PARTITION BY {self.rng.choice(items)[0]} " if self.chance(70) else ""
        by_all = f"ORDER BY {self._order(items)}"
        by_one = f"ORDER BY {self.rng.choice(items)[0]} {self._direction()}"
        value, kind = self.rng.choice(items)
        if self.chance(45):
            ranks = [("rank()", "big", by_one), ("dense_rank()", "big", by_one), ("percent_rank()", "real", by_one),
                     ("cume_dist()", "real", by_one)]  # fmt: skip
            places = [("row_number()", "big", by_all), ("ntile(2)", "int", by_all), (f"lag({value})", kind, by_all),
                      (f"lead({value}, 2)", kind, by_all)]  # fmt: skip
            call, made, order = self.rng.choice(ranks if peers else ranks + places)
            return f"{call} OVER ({parted}{order})", made
        number, own = self.rng.choice(whole) if whole else ("1", "int")
        calls = [(f"sum({number})", {"int": "big"}.get(own, "num")), ("count(*)", "big"), (f"count({value})", "big"),
                 (f"avg({number})", "real"), (f"max({number})", own), (f"min({number})", own)]  # fmt: skip
        if self.chance(30) and not peers:
            call, made = self.rng.choice([(f"{name}({value})", kind) for name in ("first_value", "last_value")])
            return f"{call} OVER ({parted}{by_all} {self._frame('ROWS')})", made
        call, made = self.rng.choice(calls)
        unit = self.rng.choice(("", "GROUPS", "RANGE") if peers else ("", "ROWS", "ROWS", "GROUPS", "RANGE"))
        if unit == "RANGE" and whole:
            order = f"ORDER BY {self.rng.choice(whole)[0]} {self._direction()}"
            return f"{call} OVER ({parted}{order} {self._frame(unit)})", made
        order = by_all if unit == "ROWS" else by_one
        frame = self._frame(unit) if unit in ("ROWS", "GROUPS") else ""
        return f"{call} OVER ({parted}{order} {frame})", made

    def _frame(self, unit: str) -> str:
        bounds = ("UNBOUNDED PRECEDING", "2 PRECEDING", "1 PRECEDING", "CURRENT ROW", "1 FOLLOWING",
                  "UNBOUNDED FOLLOWING")  # fmt: skip
        start = self.rng.randrange(4)
        end = self.rng.randrange(max(start, 2), 6)
        exclude = f" EXCLUDE {self.rng.choice(('GROUP', 'TIES'))}" if self.chance(15) else ""
        return f"{unit} BETWEEN {bounds[start]} AND {bounds[end]}{exclude}"
