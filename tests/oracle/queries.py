"""Random queries with everything that a query may have, in SQL that halfjoin and PostgreSQL read alike.

Nothing in them fails or depends on an order that is not said: no division, subqueries as values aggregate, LIMIT comes
after an order by all columns.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.oracle.choice import Choices, chance
from tests.oracle.expressions import LITERALS, Bound, Scope, equality, for_halfjoin, predicate, scalar
from tests.oracle.schema import TABLES

_AGGREGATES = {
    "int": ("sum({})", "min({})", "max({})", "avg({})", "count({})", "count(DISTINCT {})", "sum(DISTINCT {})"),
    "numeric": ("sum({})", "avg({})", "max({})", "count({})", "min({})"),
    "text": ("min({})", "max({})", "count(DISTINCT {})", "string_agg({0}, ',' ORDER BY {0})",
             "string_agg(DISTINCT {}, '-')"),
    "date": ("min({})", "max({})", "count({})"),
    "timestamp": ("min({})", "max({})", "count(DISTINCT {})"),
}
_RESULTS = {"sum": "numeric", "avg": "numeric", "count": "int", "string_agg": "text"}
_WINDOWS = ("row_number()", "rank()", "dense_rank()", "count(*)", "sum({i})", "min({v})", "lag({v})", "lead({v}, 2)",
            "first_value({v})", "last_value({v})", "ntile(2)", "sum({i}) FILTER (WHERE {p})", "avg({i})")
_FRAMES = ("", "", "", " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW", " ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING",
           " RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
           " GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING")
_FORMS = ("plain", "plain", "plain", "distinct", "group", "group", "total", "window")
_JOINS = ("JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LATERAL", ",")
_KINDS = ("int", "int", "int", "text", "numeric", "date", "timestamp")


@dataclass(frozen=True)
class Item:
    """An output: its text and kind."""

    text: str
    kind: str


@dataclass
class Queries:
    """Makes queries; aliases are never used twice. Of `maintained` ones a view can be made."""

    choices: Choices
    maintained: bool = False
    ctes: list[tuple[str, tuple[tuple[str, str], ...]]] = field(default_factory=list)
    count: int = 0

    def query(self) -> str:
        """A query, which may have WITH and may be a set operation."""
        clause = ""
        if chance(self.choices, 20):
            kinds = [self.choices.one_of(_KINDS) for _ in range(self.choices.integer(1, 3))]
            body, name = self.body(kinds, self.choices.integer(0, 1), ()), self.alias()
            columns = tuple((f"{name}{i}", kind) for i, kind in enumerate(kinds))
            clause = f"WITH {name} ({', '.join(column for column, _ in columns)}) AS ({body}) "
            self.ctes.append((name, columns))
        kinds = [self.choices.one_of(_KINDS) for _ in range(self.choices.integer(1, 3))]
        return for_halfjoin(clause + self.body(kinds, self.choices.integer(0, 2), ()))

    def alias(self) -> str:
        """A new name."""
        self.count += 1
        return f"q{self.count}"

    def body(self, kinds: list[str], depth: int, outer: Scope) -> str:
        """A SELECT or a set operation with outputs of these kinds, perhaps with ORDER BY all columns and LIMIT."""
        if depth and chance(self.choices, 20):
            word = "UNION ALL" if self.maintained else self.choices.one_of((
                "UNION ALL", "UNION", "INTERSECT", "EXCEPT", "EXCEPT ALL", "INTERSECT ALL"))
            text = f"{self.select(kinds, depth - 1, outer)} {word} {self.select(kinds, depth - 1, outer)}"
        else:
            text = self.select(kinds, depth, outer)
        if not self.maintained and chance(self.choices, 15):
            keys = ", ".join(f"{place} {self.choices.one_of(('', 'DESC', 'ASC NULLS FIRST', 'DESC NULLS LAST'))}"
                             for place in range(1, len(kinds) + 1))
            text += f" ORDER BY {keys}"
            if chance(self.choices, 60):
                text += f" LIMIT {self.choices.integer(0, 4)}"
            if chance(self.choices, 30):
                text += f" OFFSET {self.choices.integer(0, 2)}"
            text = f"({text})"
        return text

    def select(self, kinds: list[str], depth: int, outer: Scope) -> str:
        """One SELECT."""
        source, scope = self.source(depth, outer)
        visible = scope + outer
        where = self.conditions(visible, depth)
        form = "plain" if self.maintained else self.choices.one_of(_FORMS)
        if form in ("group", "total"):
            return self.grouped(kinds, source, where, scope, outer, form == "group", depth)
        texts = [self.value(visible, kind, depth) for kind in kinds]
        if form == "window":
            texts[0] = f"{self.window(scope, kinds[0])}"
        word = "DISTINCT " if form == "distinct" else ""
        return f"SELECT {word}{', '.join(self.named(texts))} FROM {source}{where}"

    def grouped(self, kinds: list[str], source: str, where: str, scope: Scope, outer: Scope, keyed: bool,
                depth: int) -> str:
        """A SELECT with aggregates, with GROUP BY or over all rows."""
        keys: list[Item] = []
        if keyed:
            for _ in range(self.choices.integer(1, 2)):
                kind = self.choices.one_of([bound.kind for bound in scope])
                keys.append(Item(scalar(self.choices, scope, kind, 0), kind))
            keys = [key for key in keys if any(key.text == bound.text for bound in scope)]
        texts = []
        for kind in kinds:
            own = [key.text for key in keys if key.kind == kind]
            texts.append(self.choices.one_of(own) if own and chance(self.choices, 50) else self.aggregate(scope, kind))
        text = f"SELECT {', '.join(self.named(texts))} FROM {source}{where}"
        if keys:
            listed = ", ".join(key.text for key in keys)
            form = self.choices.one_of(("{}", "{}", "{}", "ROLLUP ({})", "CUBE ({})", "GROUPING SETS (({}), ())"))
            text += f" GROUP BY {form.format(listed)}"
        if chance(self.choices, 25):
            text += f" HAVING count(*) {self.choices.one_of(('>', '<=', '<>'))} {self.choices.integer(0, 3)}"
        return text

    def aggregate(self, scope: Scope, kind: str) -> str:
        """An aggregate whose result is of a kind."""
        if kind == "int" and chance(self.choices, 30):
            return "count(*)"
        form = self.choices.one_of(_AGGREGATES[kind])
        if _RESULTS.get(form.partition("(")[0], kind) != kind:
            form = "max({})"
        text = form.format(scalar(self.choices, scope, kind, 1))
        if chance(self.choices, 20):
            text += f" FILTER (WHERE {predicate(self.choices, scope, 0)})"
        return text

    def window(self, scope: Scope, kind: str) -> str:
        """A window function of a kind, over an order that decides among all rows that differ in it."""
        value = scalar(self.choices, scope, kind, 0)
        value = f"{value}::text" if kind == "text" else value
        number = scalar(self.choices, scope, "int", 0)
        forms = [form for form in _WINDOWS if "{v}" in form or kind == "int"]
        sums = [form for form in _WINDOWS if form.startswith(("sum", "avg"))]
        forms = [*forms, *sums] if kind == "numeric" else [form for form in forms if form not in sums]
        text = self.choices.one_of(forms).format(i=number, v=value, p=predicate(self.choices, scope, 0))
        order = ", ".join(dict.fromkeys(bound.text for bound in scope))
        part = f"PARTITION BY {self.choices.one_of(scope).text} " if chance(self.choices, 60) else ""
        first = f"{self.choices.one_of(scope).text} {self.choices.one_of(('', 'DESC'))}, "
        return f"{text} OVER ({part}ORDER BY {first}{order}{self.choices.one_of(_FRAMES)})"

    def value(self, scope: Scope, kind: str, depth: int) -> str:
        """An expression, sometimes a subquery."""
        if depth and not self.maintained and chance(self.choices, 12):
            source, inner = self.source(depth - 1, scope)
            return (f"(SELECT {self.aggregate(inner, kind)} FROM {source}"
                    f"{self.conditions(inner + scope, depth - 1)})")
        return scalar(self.choices, scope, kind, 1)

    def conditions(self, scope: Scope, depth: int) -> str:
        """WHERE, or nothing."""
        parts = [predicate(self.choices, scope, 1) for _ in range(self.choices.integer(0, 2))]
        if depth and not self.maintained and chance(self.choices, 25):
            parts.append(self.membership(scope, depth - 1))
        if not parts:
            return ""
        return f" WHERE {self.choices.one_of((' AND ', ' AND ', ' OR ')).join(parts)}"

    def membership(self, scope: Scope, depth: int) -> str:
        """EXISTS, IN, ANY or ALL of a subquery."""
        form = self.choices.one_of(("EXISTS", "NOT EXISTS", "IN", "IN", "NOT IN", "< ANY", "<> ALL", ">= ALL", "= ANY"))
        kind = self.choices.one_of([bound.kind for bound in scope])
        around = scope if chance(self.choices, 50) else ()
        query = self.body([kind], depth, around)
        if "EXISTS" in form:
            source, inner = self.source(0, scope)
            return f"{form} (SELECT * FROM {source}{self.conditions(inner + scope, 0)})"
        return f"({scalar(self.choices, scope, kind, 0)} {form} ({query}))"

    def source(self, depth: int, outer: Scope) -> tuple[str, Scope]:
        """FROM: one to three items, joined in any way."""
        text, scope = self.item(depth, outer)
        for _ in range(self.choices.integer(0, 2) if depth else self.choices.integer(0, 1)):
            way = self.choices.one_of(("JOIN", "JOIN", ",") if self.maintained else _JOINS)
            if way == "LATERAL":
                name = self.alias()
                kinds = [self.choices.one_of(_KINDS) for _ in range(self.choices.integer(1, 2))]
                body = self.body(kinds, max(depth - 1, 0), scope)
                word = self.choices.one_of(("CROSS JOIN LATERAL {}", "LEFT JOIN LATERAL {} ON true"))
                columns = [f"{name}{i}" for i in range(len(kinds))]
                text += " " + word.format(f"({body}) AS {name} ({', '.join(columns)})")
                scope += tuple(Bound(f"{name}.{column}", kind) for column, kind in zip(columns, kinds, strict=True))
                continue
            right, added = self.item(depth, outer)
            if way == ",":
                text += f" CROSS JOIN {right}"
            else:
                condition = equality(self.choices, scope, added)
                if chance(self.choices, 25) and way != "FULL JOIN":
                    condition += f" AND {predicate(self.choices, scope + added, 0)}"
                if way == "FULL JOIN" and " = " not in condition:
                    way = "LEFT JOIN"
                text += f" {way} {right} ON {condition}"
            scope += added
        return text, scope

    def item(self, depth: int, outer: Scope) -> tuple[str, Scope]:
        """A table, a query of WITH, or a subquery."""
        name = self.alias()
        if depth and chance(self.choices, 25):
            kinds = [self.choices.one_of(_KINDS) for _ in range(self.choices.integer(1, 3))]
            columns = [f"{name}{i}" for i in range(len(kinds))]
            body = self.body(kinds, depth - 1, outer if chance(self.choices, 20) else ())
            return (f"({body}) AS {name} ({', '.join(columns)})",
                    tuple(Bound(f"{name}.{column}", kind) for column, kind in zip(columns, kinds, strict=True)))
        if self.ctes and chance(self.choices, 40):
            cte, found = self.choices.one_of(self.ctes)
            return f"{cte} AS {name}", tuple(Bound(f"{name}.{column}", kind) for column, kind in found)
        table = self.choices.one_of(TABLES)
        return f"{table.name} AS {name}", tuple(Bound(f"{name}.{column.name}", column.kind) for column in table.columns
                                                if column.kind in LITERALS)

    @staticmethod
    def named(texts: list[str]) -> list[str]:
        """Outputs with names of their own."""
        return [f"{text} AS o{place}" for place, text in enumerate(texts)]
