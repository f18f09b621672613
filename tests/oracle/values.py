"""Random expressions over the columns of a row: numbers, conditions, row values, orders.

PostgreSQL and DuckDB read most of SQL alike. Where one of them does not, a grammar says the same in other words: it is
made once for each dialect from the same random numbers, so it must draw the same ones for all.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Literal

# Kinds of columns: `real` is a number that is right up to rounding, so nothing depends on it; `list` an array;
# `span` an interval, of which equal ones may look different. A `num` may be of any type of numbers.
WHOLE = ("int", "big", "num")
EXACT = (*WHOLE, "text", "float", "bool", "span", "date")
LITERALS = {"text": ("'p'", "'q'"), "float": ("0.5::double precision", "0.1::double precision"),
            "bool": ("true", "false"),
            "span": ("interval '1 day'", "interval '30 days'"), "date": ("date '2020-02-29'", "date '2020-03-01'")}
Columns = tuple[tuple[str, str], ...]  # the name and the kind of each column
Oracle = Literal["duckdb", "postgres"]


@dataclass
class Values:
    """Makes expressions. `oracle`: who answers; `ours`: whether the text is for halfjoin. `around`: the columns of the
    queries around the one that is being made, which its conditions may read."""

    rng: random.Random
    oracle: Oracle = "duckdb"
    ours: bool = True
    numbers: count[int] = field(default_factory=count)
    around: Columns = ()
    rows: dict[str, Columns] = field(default_factory=dict)  # of items of FROM that have rows

    @property
    def in_duckdb(self) -> bool:
        """Whether the text is for DuckDB."""
        return self.oracle == "duckdb" and not self.ours

    @property
    def rare(self) -> bool:
        """Whether there may be what DuckDB does not have, or reads otherwise."""
        return self.oracle == "postgres"

    @contextmanager
    def inside(self, scope: Columns) -> Iterator[None]:
        """What is made in here stands in a query that has these columns."""
        around = self.around
        self.around = (around + scope) if self.rare else ()
        yield
        self.around = around

    def chance(self, percent: int) -> bool:
        return self.rng.random() * 100 < percent

    def fresh(self, letter: str) -> str:
        """A new alias."""
        return f"{letter}{next(self.numbers)}"

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

    def small(self, scope: Columns) -> str:
        """A number of rows: at most 3, at times NULL or negative."""
        text, _ = self.number(scope)
        return f"least({text}, 3)::int"

    def value(self, scope: Columns) -> tuple[str, str]:
        """Any exact value."""
        columns = self.of_kinds(scope, EXACT)
        if not columns or self.chance(30):
            return self.number(scope)
        return self.rng.choice(columns)

    def of_kind(self, scope: Columns, kind: str) -> str:
        """A value of this kind."""
        if kind in WHOLE:
            return self.number(scope)[0]
        names = [name for name, own in scope if own == kind]
        return self.rng.choice(names) if names else LITERALS[kind][0]

    def predicate(self, scope: Columns) -> str:
        """A condition."""
        if self.chance(6):
            return self.row_values(scope)
        if self.rare and self.chance(8):
            return self.of_rows(scope)
        if self.rare and self.chance(4):
            (one, _), (other, _) = self.number(scope), self.number(scope)
            lists = dict(self.of_kinds(scope, ("list",)))
            array = self.rng.choice((f"ARRAY[{other}, 1, NULL]", "'{0, 2}'::int[]", *lists))
            return f"{one} {self.rng.choice(('= ANY', '<> ALL', '>= ANY', '< ALL'))} ({array})"
        text, kind = self.value(scope)
        if kind == "bool":
            return self.rng.choice((f"{text}", f"NOT {text}", f"{text} IS NOT TRUE"))
        literals = LITERALS.get(kind, ("0", "1", "2", "3"))
        return self.rng.choice((  # most are true of most rows, or little would be left of nested queries
            f"{text} {self.rng.choice(('=', '<', '>'))} {self.rng.choice(literals)}",
            f"{text} >= {literals[0]}", f"{text} <> {literals[-1]}", f"coalesce({text} <> {literals[0]}, true)",
            f"{text} IS NOT NULL", f"{text} IS NOT NULL", f"{text} IS DISTINCT FROM {literals[0]}",
            f"({text} IS NULL OR {text} IN ({', '.join(literals[:2])}))",
        ))  # fmt: skip

    def row_values(self, scope: Columns) -> str:
        """A comparison of rows with two values each."""
        (a, _), (b, _), (c, _) = self.number(scope), self.number(scope), self.number(scope)
        d = self.rng.choice(("0", "1", "2", "NULL::int"))
        if self.chance(30):
            listed = f"({a}, {b}) IN (({c}, {d}), (1, 0))"
            return f"({self.equal((a, b), (c, d))} OR {self.equal((a, b), ('1', '0'))})" if self.in_duckdb else listed
        operator = self.rng.choice(("=", "<>", "<", "<=", ">", ">="))
        if not self.in_duckdb:  # for which rows are structs, and NULL in them equals NULL
            return f"({a}, {b}) {operator} ({c}, {d})"
        if operator in ("=", "<>"):
            equal = self.equal((a, b), (c, d))
            return equal if operator == "=" else f"NOT {equal}"
        return f"({a} {operator[0]} {c} OR ({a} = {c} AND {b} {operator} {d}))"

    def item(self, alias: str, columns: Columns) -> Columns:
        """The columns of an item of FROM, by their names in a query."""
        self.rows[alias] = columns
        return tuple((f"{alias}.{name}", kind) for name, kind in columns)

    def wholes(self, scope: Columns) -> dict[str, tuple[str, ...]]:
        """The items of FROM whose rows compare as values, with the kinds of their columns."""
        aliases = dict.fromkeys(name.partition(".")[0] for name, _ in scope if "." in name)
        kinds = {alias: tuple(kind for _, kind in self.rows.get(alias, (("", "real"),))) for alias in aliases}
        return {alias: own for alias, own in kinds.items() if {*own} <= {*EXACT} - {"num"}}

    def whole(self, scope: Columns) -> str:
        """A row as a value: of an item of FROM, or written."""
        (one, _), (other, _) = self.value(scope), self.value(scope)
        return self.rng.choice((*self.wholes(scope), f"ROW({one}, {other})", f"({one}, {other})"))

    def of_rows(self, scope: Columns) -> str:
        """A condition on whole rows."""
        wholes = self.wholes(scope)
        pairs = [(one, other) for one, kinds in wholes.items() for other, its in wholes.items()
                 if one < other and kinds == its]  # fmt: skip
        if pairs and self.chance(70):
            operator = self.rng.choice(("=", "<>", "<=", ">", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"))
            return f" {operator} ".join(self.rng.choice(pairs))
        return f"{self.whole(scope)} IS {self.rng.choice(('', 'NOT '))}NULL"

    @staticmethod
    def equal(one: Sequence[str], other: Sequence[str]) -> str:
        """The equality of two rows, without a row value."""
        return f"({' AND '.join(f'{x} = {y}' for x, y in zip(one, other, strict=True))})"

    def equality(self, left: Columns, right: Columns) -> str:
        """An equality of two columns, if some have one kind."""
        pairs = [(one, other) for one, kind in left for other, second in right
                 if kind == second or (kind in WHOLE and second in WHOLE)]  # fmt: skip
        pairs = [(one, other) for one, other in pairs if dict(left)[one] in EXACT]
        if not pairs:
            return "1 = 1"
        one, other = self.rng.choice(pairs)
        return f"{one} = {other}"

    def comparison(self, left: Columns, right: Columns) -> str:
        """A condition on both: at times more than an equality."""
        both = self.equality(left, right)
        if both == "1 = 1" or not self.chance(30):
            return both
        (one, _), (other, _) = self.number(left), self.number(right)
        return self.rng.choice((f"{one} < {other}", f"({both} OR {one} > {other})", f"{one} + {other} > 1",
                                f"{one} IS NOT DISTINCT FROM {other}"))  # fmt: skip

    def exact(self, scope: Columns) -> list[tuple[str, str]]:
        """A few exact columns."""
        found = self.of_kinds(scope, EXACT)
        self.rng.shuffle(found)
        return found[:3] or [("1 + 1", "int")]

    def direction(self) -> str:
        return f"{self.rng.choice(('ASC', 'DESC'))} NULLS {self.rng.choice(('FIRST', 'LAST'))}"

    def order(self, items: Sequence[tuple[str, str]]) -> str:
        return ", ".join(f"{text} {self.direction()}" for text, _ in items)
