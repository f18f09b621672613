"""Random items of FROM: tables, views, queries, and joins of all kinds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.oracle.conditions import Query, Source
from tests.oracle.laterals import Laterals
from tests.oracle.values import EXACT, WHOLE, Columns

TABLES = {
    "a": (("k", "int"), ("v", "int"), ("s", "text")),
    "b": (("k", "int"), ("x", "int"), ("d", "span"), ("t", "date")),
    "c": (("x", "int"), ("y", "float"), ("d", "span"), ("p", "num")),
}


@dataclass
class Sources(Laterals):
    """Makes items of FROM over the tables and over views made earlier."""

    named: dict[str, Columns] = field(default_factory=lambda: dict(TABLES))

    def selected(self, items: Sequence[tuple[str, str]], rest: str, head: str = "SELECT") -> Query:
        """The query of these items."""
        columns = tuple((f"c{number}", kind) for number, (_, kind) in enumerate(items))
        listed = ", ".join(f"{text} AS c{number}" for number, (text, _) in enumerate(items))
        return Query(f"{head} {listed}{rest}", columns)

    def table(self) -> Source:
        alias, names = self.fresh("t"), list(self.named)
        name = names[-1] if names[-1][0] == "w" and self.chance(50) else self.rng.choice(names)
        return Source(f"{name} AS {alias}", self.item(alias, self.named[name]))

    def source(self, depth: int) -> Source:
        """One item."""
        if depth == 0 or self.chance(15):
            return self.table()
        if self.rare and self.chance(3):
            alias = self.fresh("q")
            rows = self.rng.sample(("(1, 'p')", "(2, NULL)", "(NULL, 'q')", "(0, 'p')", "(1, 'p')"), 2)
            columns = self.item(alias, (("m", "int"), ("s", "text")))
            return Source(f"(VALUES {', '.join(rows)}) AS {alias} (m, s)", columns)
        query, alias = self.query(depth), self.fresh("q")
        return Source(f"({query.text}) AS {alias}", self.item(alias, query.columns))

    def joined(self, depth: int) -> Source:
        """One item, or a join of two or three, and at times what reads it: LATERAL, or a table function."""
        source = self.source(depth - 1)
        for _ in range(self.rng.choice((0, 0, 1, 1, 2))):
            other = self.source(self.rng.choice((0, depth - 1)))
            kind = self.rng.choice(("JOIN", "LEFT JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
            if kind == "FULL JOIN" and self.rare and self.chance(50):
                source = self.full(source, other, self.comparison(source.columns, other.columns))
                continue
            columns = source.columns + other.columns
            if kind == "FULL JOIN":  # PostgreSQL takes equalities only
                on = self.equality(source.columns, other.columns)
            else:
                on = self.comparison(source.columns, other.columns)
                if self.chance(15):
                    on = f"{on} AND {self.predicate(self.rng.choice((source.columns, other.columns, columns)))}"
                if self.chance(6):
                    on = f"{on} AND {self.subquery(self.rng.choice((source.columns, other.columns)), 1)}"
            joined = f"{source.text} {kind} {other.text} ON {on}"
            source = Source(f"({joined})" if self.rare and self.chance(10) else joined, columns)
        if self.chance(12):
            source = self.lateral(source, depth)
        if self.chance(8):
            source = self.called(source)
        return source

    def full(self, left: Source, right: Source, on: str) -> Source:
        """A FULL JOIN on any condition, which PostgreSQL takes as two joins."""
        columns, alias = left.columns + right.columns, self.fresh("q")
        made = self.selected(columns, f" FROM {left.text} FULL JOIN {right.text} ON {on}")
        if not self.ours:
            first = self.selected(columns, f" FROM {left.text} LEFT JOIN {right.text} ON {on}")
            padded = [*(("NULL", kind) for _, kind in left.columns), *right.columns]
            lonely = f" FROM {right.text} WHERE NOT EXISTS (SELECT 1 FROM {left.text} WHERE {on})"
            made = Query(f"{first.text} UNION ALL {self.selected(padded, lonely).text}", made.columns)
        return Source(f"({made.text}) AS {alias}", self.item(alias, made.columns))

    def using(self, depth: int) -> Query:
        """A join by columns that both sides have, which are one in the result."""
        one, other = self.query(depth - 1), self.query(depth - 1)
        kinds = dict(other.columns)
        common = [name for name, _ in one.columns if name in kinds]
        shared = [(name, kind) for name, kind in one.columns if kind in EXACT and (
            kinds.get(name) == kind or (kind in WHOLE and kinds.get(name) in WHOLE))]  # fmt: skip
        left, right = self.fresh("q"), self.fresh("q")
        join = self.rng.choice(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
        if not shared:
            return one
        (name, kind) = self.rng.choice(shared)
        merged = (name, "num" if kind in WHOLE else kind)
        kept = [*self.exact(self.item(left, one.columns)), *self.exact(self.item(right, other.columns))]
        by = f"USING ({name})"
        if self.rare and len(shared) == len(common) and self.chance(30):
            join, by = f"NATURAL {join}", ""
        elif self.rare and self.chance(40):
            alias = self.fresh("u")
            by, merged = f"{by} AS {alias}", (f"{alias}.{name}", merged[1])
        elif self.rare and self.chance(40):
            by = f"USING ({', '.join(name for name, _ in shared)})"
        rest = f" FROM ({one.text}) AS {left} {join} ({other.text}) AS {right} {by}"
        return self.selected([merged, *kept], f"{rest}{self.where((merged, *kept), 0)}")

    def with_names(self, depth: int) -> Query:
        """A query over a query of WITH, which may be read more than once."""
        one, name, before = self.query(depth - 1), self.fresh("w"), dict(self.named)
        listed = [f"n{number}" for number, _ in enumerate(one.columns)]
        self.named |= {name: tuple((new, kind) for new, (_, kind) in zip(listed, one.columns, strict=True))}
        query, self.named = self.query(depth), before
        how = self.rng.choice(("", "", "MATERIALIZED ", "NOT MATERIALIZED "))
        text = f"SELECT * FROM ({query.text}) AS {self.fresh('q')}" if "WITH" in query.text[:6] else query.text
        return Query(f"WITH {name} ({', '.join(listed)}) AS {how}({one.text}) {text}", query.columns)
