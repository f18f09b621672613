"""Random items of FROM, and conditions with subqueries."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.oracle.calls import Calls
from tests.oracle.values import EXACT, WHOLE, Columns

TABLES = {
    "a": (("k", "int"), ("v", "int"), ("s", "text")),
    "b": (("k", "int"), ("x", "int"), ("d", "span")),
    "c": (("x", "int"), ("y", "float"), ("d", "span")),
}


@dataclass(frozen=True)
class Query:
    """A SELECT and its columns."""

    text: str
    columns: Columns

    def named(self, alias: str) -> Columns:
        """Its columns as those of an item of FROM."""
        return tuple((f"{alias}.{name}", kind) for name, kind in self.columns)


@dataclass(frozen=True)
class Source:
    """An item of FROM."""

    text: str
    columns: Columns  # the names with the alias


@dataclass
class Sources(Calls):
    """Makes items of FROM over the tables and over views made earlier. `temporal`: some depend on mz_now()."""

    temporal: bool = False
    named: dict[str, Columns] = field(default_factory=lambda: dict(TABLES))

    @abstractmethod
    def query(self, depth: int) -> Query:
        """A query with `depth` queries inside each other, at most."""

    def selected(self, items: Sequence[tuple[str, str]], rest: str, head: str = "SELECT") -> Query:
        """The query of these items."""
        columns = tuple((f"c{number}", kind) for number, (_, kind) in enumerate(items))
        listed = ", ".join(f"{text} AS c{number}" for number, (text, _) in enumerate(items))
        return Query(f"{head} {listed}{rest}", columns)

    # FROM.

    def table(self) -> Source:
        alias = self.fresh("t")
        name = self.rng.choice(list(self.named))
        return Source(f"{name} AS {alias}", tuple((f"{alias}.{column}", kind) for column, kind in self.named[name]))

    def source(self, depth: int) -> Source:
        """One item."""
        if depth == 0 or self.chance(15):
            return self.table()
        query, alias = self.query(depth), self.fresh("q")
        return Source(f"({query.text}) AS {alias}", query.named(alias))

    def joined(self, depth: int) -> Source:
        """One item, or a join of two or three, and at times what reads it: LATERAL, or a table function."""
        source = self.source(depth - 1)
        for _ in range(self.rng.choice((0, 0, 1, 1, 2))):
            other = self.source(self.rng.choice((0, depth - 1)))
            kind = self.rng.choice(("JOIN", "LEFT JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
            columns = source.columns + other.columns
            if kind == "FULL JOIN":  # PostgreSQL takes equalities only
                on = self.equality(source.columns, other.columns)
            else:
                on = self.comparison(source.columns, other.columns)
                if self.chance(15):
                    on = f"{on} AND {self.predicate(self.rng.choice((source.columns, other.columns, columns)))}"
                if self.chance(6):
                    on = f"{on} AND {self.subquery(self.rng.choice((source.columns, other.columns)), 1)}"
            source = Source(f"{source.text} {kind} {other.text} ON {on}", columns)
        if self.chance(12):
            source = self.lateral(source, depth)
        if self.chance(8):
            source = self.called(source)
        return source

    def lateral(self, source: Source, depth: int) -> Source:
        """The rows, each with those of a LATERAL subquery."""
        inner, alias = self.source(depth - 1), self.fresh("l")
        both = self.comparison(source.columns, inner.columns)
        where = f" FROM {inner.text} WHERE {both if both != '1 = 1' else self.predicate(inner.columns)}"
        items = self.exact(inner.columns)
        outer, kind = self.number(source.columns)
        query = self.rng.choice((
            self.selected([*items, (outer, kind)], where),
            self.selected([self.call(inner.columns, plain=True)], where),
            self.selected([items[0], ("count(*)", "big")], f"{where} GROUP BY {items[0][0]}"),
            self.selected(items, f"{where} ORDER BY {self.order(items)} LIMIT {self.rng.choice((1, 2))}"),
            self.selected(items, where, "SELECT DISTINCT"),
            self.selected([*items[:1], ("count(*) OVER ()", "big")], where),
        ))  # fmt: skip
        columns = query.named(alias)
        on = self.rng.choice(("true", "true", self.equality(source.columns, columns)))
        join, condition = self.rng.choice(((", LATERAL", ""), (" CROSS JOIN LATERAL", ""), (" JOIN LATERAL", on),
                                           (" LEFT JOIN LATERAL", on), (" LEFT JOIN LATERAL", on)))  # fmt: skip
        item = f"{join} ({query.text}) AS {alias}" + f" ON {condition}" * bool(condition)
        return Source(source.text + item, source.columns + columns)

    def called(self, source: Source) -> Source:
        """The rows, each with those of a table function."""
        alias, stop, (member, kind) = self.fresh("f"), self.small(source.columns), self.number(source.columns)
        duck = self.in_duckdb
        form = self.rng.choice(("series", "rows from", "repeat"))
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
        columns = ((f"{alias}.n", "int"), (f"{alias}.e", kind), (f"{alias}.o", "big"))
        array = f"ARRAY[{member}, NULL]"
        made = (f"LATERAL (SELECT unnest(generate_series(1, {stop})) AS n, unnest({array}) AS e, "
                f"unnest(generate_series(1, greatest(2, {stop}))) AS o) AS {alias}" if duck
                else f"ROWS FROM (generate_series(1, {stop}), unnest({array})) WITH ORDINALITY AS {alias}(n, e, o)"
                )  # fmt: skip
        return Source(f"{source.text}, {made}", source.columns + columns)

    # Conditions.

    def where(self, scope: Columns, depth: int) -> str:
        """A WHERE, or nothing."""
        parts = [self.predicate(scope) for _ in range(self.rng.choice((0, 0, 1)))]
        if depth and self.chance(35):
            parts.append(self.subquery(scope, depth))
            if self.chance(30):
                parts[-1] = f"({parts[-1]} OR {self.predicate(scope)})"
        if self.temporal and self.chance(35):
            names = [name for name, _ in self.of_kinds(scope, WHOLE)]
            if names:
                operator = self.rng.choice(("<=", "<", ">=", ">"))
                parts.append(f"mz_now() {operator} {self.rng.choice(names)} + {self.rng.choice((1, 2, 4))}")
        return f" WHERE {' AND '.join(parts)}" if parts else ""

    def subquery(self, scope: Columns, depth: int, further: Columns = ()) -> str:
        """A condition with a subquery, correlated or not. `further`: the columns of the queries around."""
        inner = self.source(depth - 1)
        parts = []
        if (both := self.equality(scope, inner.columns)) != "1 = 1" and self.chance(70):
            parts.append(both if self.chance(85) else self.comparison(scope, inner.columns))
        if further and (both := self.equality(further, inner.columns)) != "1 = 1" and self.chance(50):
            parts.append(both)
        if self.chance(30):
            parts.append(self.predicate(inner.columns))
        if self.chance(12):
            parts.append(self.subquery(inner.columns, max(depth - 1, 1), scope + further))
        rest = f" FROM {inner.text}" + (f" WHERE {' AND '.join(parts)}" if parts else "")
        return self.asked(scope, inner.columns, rest)

    def asked(self, scope: Columns, inner: Columns, rest: str) -> str:
        """What is asked of a subquery."""
        (left, _), (own, _) = self.number(scope), self.number(inner)
        negated = self.rng.choice(("", "NOT "))
        match self.rng.choice(("exists", "in", "row", "scalar", "scalar", "quantified", "first")):
            case "exists":
                return f"{negated}EXISTS (SELECT 1{rest})"
            case "in":
                return f"{left} {negated}IN (SELECT {own}{rest})"
            case "quantified":
                operator = self.rng.choice(("> ALL", "<= ANY", "= ANY", "<> ALL"))
                return f"{left} {operator} (SELECT {own}{rest})"
            case "row":
                (second, _), (its, _) = self.number(scope), self.number(inner)
                if not self.in_duckdb:  # which has no correlated IN of rows
                    return f"({left}, {second}) {negated}IN (SELECT {own}, {its}{rest})"
                equal = self.equal((left, second), (own, its))
                found = f"(SELECT count(*) FILTER (WHERE {equal}){rest}) > 0"
                unknown = f"(SELECT count(*) FILTER (WHERE {equal} IS NULL){rest}) = 0"
                return f"{negated}CASE WHEN {found} THEN true WHEN {unknown} THEN false END"
            case "first":
                items = [(own, "int"), *self.exact(inner)]
                items = [item for item in items if not item[0].isdigit()] or [("1 + 0", "int")]
                operator = self.rng.choice(("<", ">=", "="))
                return f"{left} {operator} (SELECT {own}{rest} ORDER BY {self.order(items)} LIMIT 1)"
            case _:
                call = self.rng.choice((f"max({own})", f"min({own})", "count(*)", f"sum({own})"))
                return f"{left} {self.rng.choice(('<', '>=', '='))} (SELECT {call}{rest})"

    def using(self, depth: int) -> Query:
        """A join by columns that both sides have, which are one in the result."""
        one, other = self.query(depth - 1), self.query(depth - 1)
        kinds = dict(other.columns)
        shared = [(name, kind) for name, kind in one.columns if kind in EXACT and (
            kinds.get(name) == kind or (kind in WHOLE and kinds.get(name) in WHOLE))]  # fmt: skip
        left, right = self.fresh("q"), self.fresh("q")
        join = self.rng.choice(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
        if not shared:
            return one
        (name, kind) = self.rng.choice(shared)
        merged = (name, "num" if kind in WHOLE else kind)
        items = [merged, *self.exact(one.named(left)), *self.exact(other.named(right))]
        return self.selected(items, f" FROM ({one.text}) AS {left} {join} ({other.text}) AS {right} USING ({name})")
