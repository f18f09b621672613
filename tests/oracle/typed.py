"""Random queries over columns of any types, which are keys of joins, groups, sets, windows and orders.

Columns of one family (numbers, strings, moments) are compared and united across types. halfjoin and PostgreSQL read
the texts alike. A float has no -0, and no order depends on equal values that look different, as those of intervals.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from tests.oracle.choice import Choices, chance

# By type: its family, and values of which some are equal to some of other types of the family.
TYPES: dict[str, tuple[str, tuple[str, ...]]] = {
    "smallint": ("number", ("0", "1", "-1", "300")),
    "integer": ("number", ("0", "1", "2", "70000")),
    "bigint": ("number", ("0", "1", "9007199254740993", "9007199254740992", "16777217")),
    "numeric(24,6)": ("number", ("0", "1.5", "0.1", "9007199254740993", "123456789012345678.123456")),
    "real": ("number", ("0", "1.5", "NaN", "Infinity", "0.1", "16777217")),
    "double precision": ("number", ("1", "1.5", "NaN", "-Infinity", "0.1", "9007199254740992")),
    "text": ("string", ("", "a", "a ", "A", "\u00e9", "e\u0301", "\U0001f600", "\uffff")),
    "varchar(5)": ("string", ("", "a", "a ", "\u00e9", "b")),
    "char(3)": ("string", ("", "a", "A", "\u00e9")),
    "short": ("string", ("", "a", "A")),
    "date": ("moment", ("2020-02-29", "0044-03-15 BC", "2020-03-29", "10000-01-01")),
    "timestamp": ("moment", ("2020-02-29 00:00", "2020-03-29 01:30", "0044-03-15 00:00 BC")),
    "timestamptz": ("moment", ("2020-02-29 00:00+00", "2020-03-29 01:30+00", "2020-10-25 00:30+00")),
    "interval": ("interval", ("1 month", "30 days", "720 hours", "-1 month 30 days", "0")),
    "jsonb": ("jsonb", ("null", "1", "1.0", '"a"', "[]", '{"a": 1}', '{"a": 1, "b": null}', "[1, null]")),
    "bytea": ("bytea", (r"\x", r"\x00", r"\xff", r"\x6100")),
    "uuid": ("uuid", ("00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff")),
    "boolean": ("boolean", ("true", "false")),
    "size": ("size", ("z", "a", "m")),
    "integer[]": ("integers", ("{}", "{1}", "{1,NULL}", "{NULL}")),
    "text[]": ("texts", ("{}", "{a}", '{"",NULL}', '{"a,b"}')),
    "pair": ("pair", ("(1,x)", "(,)", "(1,)", '(,"")')),
}
DDL = ("CREATE TYPE size AS ENUM ('z', 'a', 'm')", "CREATE DOMAIN short AS text CHECK (length(VALUE) < 4)",
       "CREATE TYPE pair AS (a integer, b text)")

Columns: TypeAlias = tuple[tuple[str, str], ...]  # the name and the type of each column


def literal(choices: Choices, type: str) -> str:
    """A value, at times NULL."""
    value = choices.one_of((*TYPES[type][1], *TYPES[type][1], "NULL"))
    return "NULL" if value == "NULL" else f"'{value}'::{type}"


def shown(column: str, type: str) -> str:
    """The value as a text that is one for all that are equal."""
    return f"justify_interval({column})::text" if type == "interval" else f"({column})::text"


@dataclass
class Typed:
    """Makes queries over tables with these columns; each has `id`, an integer."""

    choices: Choices
    tables: dict[str, Columns]
    made: int = field(default=0)

    def query(self) -> tuple[str, Columns]:
        """A query, and the names and types of its columns."""
        form = self.choices.one_of((self._joined, self._grouped, self._distinct, self._united, self._first,
                                    self._window, self._asked))  # fmt: skip
        return form()

    def _table(self) -> tuple[str, Columns]:
        self.made += 1
        name, alias = self.choices.one_of(tuple(self.tables)), f"t{self.made}"
        return f"{name} AS {alias}", tuple((f"{alias}.{column}", type) for column, type in self.tables[name])

    def _source(self) -> tuple[str, Columns]:
        """A table, or two that are joined."""
        (one, left), (other, right) = self._table(), self._table()
        if chance(self.choices, 30):
            return one, left
        way = self.choices.one_of(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
        return f"{one} {way} {other} ON {self._equal(left, right)}", left + right

    def _equal(self, left: Columns, right: Columns) -> str:
        a, b = self.choices.one_of([(a, b) for a, one in left for b, other in right
                                    if TYPES[one][0] == TYPES[other][0]])  # fmt: skip
        return f"{a} = {b}"

    def _some(self, scope: Columns, most: int, *, plain: bool = False) -> Columns:
        """A few columns. `plain`: whose equal values look alike."""
        scope = tuple(column for column in scope if not (plain and column[1] == "interval"))
        return tuple(dict.fromkeys(self.choices.one_of(scope) for _ in range(self.choices.integer(1, most))))

    def _order(self, items: Columns) -> str:
        return ", ".join(f"{column} {self.choices.one_of(('', 'DESC'))} NULLS {self.choices.one_of(('FIRST', 'LAST'))}"
                         for column, _ in items)  # fmt: skip

    @staticmethod
    def _selected(items: Columns, rest: str, head: str = "SELECT") -> tuple[str, Columns]:
        listed = ", ".join(f"{text} AS c{number}" for number, (text, _) in enumerate(items))
        return f"{head} {listed} FROM {rest}", tuple((f"c{number}", type) for number, (_, type) in enumerate(items))

    def _joined(self) -> tuple[str, Columns]:
        source, scope = self._source()
        return self._selected(self._some(scope, 3), source)

    def _grouped(self) -> tuple[str, Columns]:
        source, scope = self._source()
        keys, (value,) = self._some(scope, 2, plain=True), self._some(scope, 1, plain=True)
        calls = [("count(*)", "bigint"), (f"count(DISTINCT {value[0]})", "bigint")]
        if value[1] not in ("jsonb", "uuid", "boolean", "bytea", "pair"):
            calls.append((f"{self.choices.one_of(('min', 'max'))}({value[0]})", "text"))
        if value[1] not in ("pair", "integer[]", "text[]"):
            calls.append((f"mode() WITHIN GROUP (ORDER BY {value[0]})", value[1]))
        by = ", ".join(column for column, _ in keys)
        by = self.choices.one_of((by, by, f"ROLLUP ({by})", f"CUBE ({by})"))
        return self._selected((*keys, *calls), f"{source} GROUP BY {by}")

    def _distinct(self) -> tuple[str, Columns]:
        source, scope = self._source()
        items = self._some(scope, 2, plain=True)
        if chance(self.choices, 50):
            return self._selected(items, source, "SELECT DISTINCT")
        items = (*items, *self._some(scope, 1, plain=True))
        return self._selected(items, f"{source} ORDER BY {self._order(items)}", f"SELECT DISTINCT ON ({items[0][0]})")

    def _united(self) -> tuple[str, Columns]:
        (one, left), (other, right) = self._source(), self._source()
        a, b = self.choices.one_of([(a, b) for a in left for b in right
                                    if TYPES[a[1]][0] == TYPES[b[1]][0] and a[1] != "interval"])  # fmt: skip
        word = self.choices.one_of(("UNION", "UNION ALL", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL"))
        return f"SELECT {a[0]} AS c0 FROM {one} {word} SELECT {b[0]} FROM {other}", (("c0", a[1]),)

    def _first(self) -> tuple[str, Columns]:
        source, scope = self._source()
        items = self._some(scope, 3, plain=True)
        limit = self.choices.one_of(("LIMIT 1", "LIMIT 3", "OFFSET 2"))
        return self._selected(items, f"{source} ORDER BY {self._order(items)} {limit}")

    def _window(self) -> tuple[str, Columns]:
        source, scope = self._source()
        items, (by,), (first,) = self._some(scope, 2), self._some(scope, 1), self._some(scope, 1)
        call = self.choices.one_of(("rank()", "dense_rank()", "count(*)", f"count({items[0][0]})"))
        over = f"{call} OVER (PARTITION BY {by[0]} ORDER BY {self._order((first,))})"
        return self._selected((*items, (over, "bigint")), source)

    def _asked(self) -> tuple[str, Columns]:
        (one, left), (other, right) = self._source(), self._table()
        a, b = self.choices.one_of([(a, b) for a, kind in left for b, its in right if TYPES[kind][0] == TYPES[its][0]])
        also = f" WHERE {self._equal(left, right)}" if chance(self.choices, 40) else ""
        asked = self.choices.one_of((f"{a} IN (SELECT {b} FROM {other}{also})",
                                     f"{a} NOT IN (SELECT {b} FROM {other}{also})",
                                     f"NOT EXISTS (SELECT 1 FROM {other} WHERE {a} = {b})",
                                     f"{a} <> ALL (SELECT {b} FROM {other}{also})"))  # fmt: skip
        return self._selected(self._some(left, 2), f"{one} WHERE {asked}")
