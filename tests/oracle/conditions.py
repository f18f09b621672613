"""Random conditions with subqueries, which may read the columns of all queries around them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from tests.oracle.values import WHOLE, Columns
from tests.oracle.windows import Windows


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


@dataclass
class Conditions(Windows):
    """Makes conditions. `temporal`: some depend on mz_now()."""

    temporal: bool = False

    @abstractmethod
    def query(self, depth: int) -> Query:
        """A query with `depth` queries inside each other, at most."""

    @abstractmethod
    def source(self, depth: int) -> Source:
        """One item of FROM."""

    def where(self, scope: Columns, depth: int) -> str:
        """A WHERE, or nothing."""
        parts = [self.predicate(scope) for _ in range(self.rng.choice((0, 0, 1)))]
        if self.around and self.chance(25):
            parts.append(self.comparison(self.around, scope))
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

    def scalar(self, scope: Columns, depth: int) -> tuple[str, str]:
        """A subquery as a value."""
        with self.inside(scope):
            inner = self.source(depth - 1)
            both, (own, kind) = self.comparison(scope, inner.columns), self.number(inner.columns)
            if self.rare and depth > 1 and self.chance(20):  # a subquery in a subquery
                own, kind = self.scalar(inner.columns, depth - 1)
                if kind == "list":
                    own, kind = f"cardinality({own})", "int"
                call, made, last = self.rng.choice(((f"max({own})", kind, ""), (f"sum({own})", "num", "")))
                return f"(SELECT {call} FROM {inner.text} WHERE {both}{last})", made
            rest = f" FROM {inner.text} WHERE {both}"
            if self.rare and self.chance(20):
                call, kind = self.call(inner.columns, plain=True)
                having = self.rng.choice(("", "", " HAVING count(*) > 1"))
                return f"(SELECT {call}{rest}{having})", kind
        call, made, last = self.rng.choice(((f"max({own})", kind, ""), ("count(*)", "big", ""),
                                            (own, kind, f" ORDER BY {own} {self.direction()} LIMIT 1")))  # fmt: skip
        if last and own == "1":
            last = " LIMIT 1"
        if self.chance(15):
            return f"ARRAY(SELECT {own}{rest} ORDER BY {own} + 0 {self.direction()})", "list"
        return f"(SELECT {call}{rest}{last})", made

    def subquery(self, scope: Columns, depth: int, further: Columns = ()) -> str:
        """A condition with a subquery, correlated or not. `further`: the columns of the queries around."""
        with self.inside(scope):
            inner = self.source(depth - 1)
        parts = []
        if (both := self.equality(scope, inner.columns)) != "1 = 1" and self.chance(70):
            parts.append(both if self.chance(85) else self.comparison(scope, inner.columns))
        if further and (both := self.equality(further, inner.columns)) != "1 = 1" and self.chance(50):
            parts.append(both)
        if self.chance(30):
            parts.append(self.predicate(inner.columns))
        if self.chance(12):
            with self.inside(scope):
                parts.append(self.subquery(inner.columns, max(depth - 1, 1), scope + further))
        rest = f" FROM {inner.text}" + (f" WHERE {' AND '.join(parts)}" if parts else "")
        return self.asked(scope, inner.columns, rest)

    def asked(self, scope: Columns, inner: Columns, rest: str) -> str:
        """What is asked of a subquery."""
        (left, _), (own, _) = self.number(scope), self.number(inner)
        negated = self.rng.choice(("", "NOT "))
        forms = ["exists", "in", "row", "scalar", "scalar", "quantified", "first"]
        match self.rng.choice([*forms, "array", "rows", "record", "whole"] if self.rare else forms):
            case "exists":
                return f"{negated}EXISTS (SELECT 1{rest})"
            case "in":
                return f"{left} {negated}IN (SELECT {own}{rest})"
            case "quantified":
                operator = self.rng.choice(("> ALL", "<= ANY", "= ANY", "<> ALL"))
                return f"{left} {operator} (SELECT {own}{rest})"
            case "array":
                operator = self.rng.choice(("> ALL", "<= ANY", "= ANY", "<> ALL"))
                return f"{left} {operator} (ARRAY(SELECT {own}{rest}))"
            case "row":
                (second, _), (its, _) = self.number(scope), self.number(inner)
                if not self.in_duckdb:  # which has no correlated IN of rows
                    return f"({left}, {second}) {negated}IN (SELECT {own}, {its}{rest})"
                equal = self.equal((left, second), (own, its))
                found = f"(SELECT count(*) FILTER (WHERE {equal}){rest}) > 0"
                unknown = f"(SELECT count(*) FILTER (WHERE {equal} IS NULL){rest}) = 0"
                return f"{negated}CASE WHEN {found} THEN true WHEN {unknown} THEN false END"
            case "rows":
                (second, _), (its, _) = self.number(scope), self.number(inner)
                operator = self.rng.choice(("= ANY", "< ANY", ">= ALL", "<> ALL"))
                return f"({left}, {second}) {operator} (SELECT {own}, {its}{rest})"
            case "record":
                (second, _), (its, _) = self.number(scope), self.number(inner)
                operator = self.rng.choice(("=", "<", ">=", "<>"))
                return f"({left}, {second}) {operator} (SELECT max({own}), min({its}){rest})"
            case "whole":
                mine, theirs = self.wholes(scope), self.wholes(inner)
                pairs = [(one, other) for one in mine for other in theirs if mine[one] == theirs[other]]
                one, other = self.rng.choice(pairs or [(f"ROW({left})", f"ROW({own})")])
                if not pairs:
                    return f"{left} {negated}IN (SELECT {own}{rest})"
                return f"{one} {self.rng.choice(('IN', 'NOT IN', '= ANY', '<> ALL'))} (SELECT {other}{rest})"
            case "first":
                items = [(own, "int"), *self.exact(inner)]
                items = [item for item in items if not item[0].isdigit()] or [("1 + 0", "int")]
                operator = self.rng.choice(("<", ">=", "="))
                return f"{left} {operator} (SELECT {own}{rest} ORDER BY {self.order(items)} LIMIT 1)"
            case _:
                call = self.rng.choice((f"max({own})", f"min({own})", "count(*)", f"sum({own})"))
                return f"{left} {self.rng.choice(('<', '>=', '='))} (SELECT {call}{rest})"
