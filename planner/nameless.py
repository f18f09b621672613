"""Takes the names out of a relation, so that loops that differ only in names are equal.

Each alias, column and loop gets a number in the order in which they come first. A column of a scan keeps the name that
it has in the collection.

>>> from halfjoin.sql.expr import Column
>>> from halfjoin.sql.relation import Project, Scan
>>> from halfjoin.sql.types import BIGINT
>>> def query(alias, shown):
...     column = Column(f"{alias}.x", BIGINT)
...     return Project(Scan("t", alias, (column,)), ((Column(shown, BIGINT), column),))
>>> nameless(query("a", "one")) == nameless(query("b", "two"))
True
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from halfjoin.sql.expr import Column
from halfjoin.sql.relation import Binding, Loop, Scan
from halfjoin.sql.unseen import is_unseen

_NAMES = {"alias", "loop"}  # fields with names that the query gives


def nameless(value: object, first: Sequence[str] = ()) -> object:
    """The same parts, with numbers instead of names, as nested tuples. `first`: names with the first numbers."""
    return _Numbers({name: f"#{number}" for number, name in enumerate(first)}).of(value)


@dataclass
class _Numbers:
    given: dict[str, str]

    def of(self, value: Any) -> object:
        match value:
            case _ if is_unseen(value):
                return value
            case Column(name):
                return ("Column", self.number(name), *(self.of(getattr(value, one.name)) for one in fields(value)
                                                       if one.name != "name"))  # fmt: skip
            case Scan(_, alias, columns):
                for column in columns:
                    self.given.setdefault(column.name, f"{self.number(alias)}.{column.name[len(alias) + 1:]}")
            case tuple() | list():
                return tuple(map(self.of, value))
            case _ if not is_dataclass(value):
                return value
        hidden = {"name", "names"} if isinstance(value, Binding) else set()
        own = {"name"} if isinstance(value, Loop) else set()
        return (type(value).__name__, *(
            self.number(part) if one.name in _NAMES | own and isinstance(part, str) else self.of(part)
            for one in fields(value) if one.name not in hidden for part in [getattr(value, one.name)]
        ))  # fmt: skip

    def number(self, name: str) -> str:
        """The number of a name; a new one if it is new."""
        return self.given.setdefault(name, f"#{len(self.given)}")
