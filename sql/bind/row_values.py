"""Rows as values: `ROW(a, b)`, `(a, b)`, and the rows of an item of FROM, `t` or `t.*`.

Where such a row may stand, it is taken apart into its members: in comparisons, IS NULL, IN, CASE, count, and as a key
of GROUP BY, DISTINCT ON, ORDER BY or PARTITION BY.

As in PostgreSQL, two rows that are written are compared member by member, where a NULL makes the result NULL. If one of
them is a row of a table, NULL members are equal, and greater than others. A row of the side of an outer join that may
be missing can be NULL as a whole. A hidden column of this side tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql import functions
from halfjoin.sql.bind.row_order import compared, of_records
from halfjoin.sql.bind.scope import THERE, named
from halfjoin.sql.bind.selected import known
from halfjoin.sql.expr import TRUE, Expr
from halfjoin.sql.functions import record_values
from halfjoin.sql.functions.records import member_test
from halfjoin.sql.parse.locate import name_of, owner_of
from halfjoin.sql.types import UNKNOWN

if TYPE_CHECKING:
    from halfjoin.sql.bind.context import Context
    from halfjoin.sql.bind.scalar import Scalars
    from halfjoin.sql.bind.scope import FromItem, Scope



@dataclass(frozen=True)
class Row:
    """A row as syntax. `record`: a row of an item of FROM. `there`: of one that may be missing, whether it is there."""

    members: tuple[exp.Expr, ...]
    names: tuple[str, ...]
    record: bool = False
    there: exp.Expr | None = None

    @property
    def keys(self) -> tuple[exp.Expr, ...]:
        """What two rows must have in common to be the same."""
        return (*([] if self.there is None else [self.there]), *self.members)


def members_of(node: exp.Expr) -> list[exp.Expr] | None:
    """The members of `(a, b)` or `ROW(a, b)`; None for another expression."""
    if isinstance(node, exp.Tuple) or (isinstance(node, exp.Anonymous) and node.name.lower() == "row"):
        return list(node.expressions)
    return None


def row_of(node: exp.Expr, scalars: Scalars) -> Row | None:
    """The row that a node means; None for another expression."""
    if id(node) in scalars.bound:  # it has a value already
        return None
    if isinstance(node, exp.Paren):
        return row_of(node.this, scalars)
    if (written := members_of(node)) is not None:
        each = [(member, _item(member, scalars) if _is_star(member) else None) for member in written]
        members = [one for member, item in each for one in ([member] if item is None else _columns(item, member))]
        return Row(tuple(members), tuple(f"f{number}" for number in range(1, len(members) + 1)))
    item = _item(node, scalars) if isinstance(node, exp.Column) else None
    if item is None:
        return None
    hidden = any(name == THERE for name, _ in item.hidden)
    there = _column(item, THERE, node) if hidden else None
    return Row(tuple(_columns(item, node)), tuple(name for name, _ in item.columns), True, there)


def _is_star(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column) and isinstance(node.this, exp.Star) and bool(node.args.get("table"))


def _item(node: exp.Expr, scalars: Scalars) -> FromItem | None:
    """The item of FROM whose rows `t.*` means, or `t` if no column has this name."""
    assert isinstance(node, exp.Column)
    if not _is_star(node):
        if node.args.get("table") or isinstance(node.this, exp.Star):
            return None
        for scope in scalars.scopes:
            if _has_column(scope, name_of(node)):
                return None
    table, schema = owner_of(node)
    for _, item in named([scope.rows or scope for scope in scalars.scopes], table or name_of(node), schema):
        return None if item.scalar and not _is_star(node) else item
    return None


def _has_column(scope: Scope, name: str) -> bool:
    """Whether a name means a column; also if it may mean several, which is an error elsewhere."""
    try:
        return any(one is not None and one.column(name) is not None for one in (scope, scope.rows))
    except UnsupportedSQL:
        return True


def _columns(item: FromItem, place: exp.Expr) -> list[exp.Expr]:
    return [_column(item, name, place) for name, _ in item.columns]


def _column(item: FromItem, name: str, place: exp.Expr) -> exp.Expr:
    schema = exp.to_identifier(item.schema, quoted=True) if item.schema else None
    made = exp.column(exp.to_identifier(name, quoted=True), exp.to_identifier(item.name, quoted=True), schema)
    made.parent = place  # for its place in the text
    return made


def expanded(nodes: Iterable[exp.Expr], scalars: Scalars) -> list[exp.Expr]:
    """The nodes, with the members of a row in place of it."""
    rows = ((node, row_of(node, scalars)) for node in nodes)
    return [part for node, row in rows for part in ((node,) if row is None else row.keys)]


def expanded_order(order: Iterable[exp.Ordered], scalars: Scalars) -> list[exp.Ordered]:
    """The keys of an ORDER BY, with the members of a row in place of it: a NULL member is greater than others."""
    keys: list[exp.Ordered] = []
    for key in order:
        if (row := row_of(key.this, scalars)) is None:
            keys.append(key)
            continue
        desc = bool(key.args.get("desc"))
        if row.there is not None:
            keys.append(exp.Ordered(this=row.there, desc=desc, nulls_first=key.args.get("nulls_first")))
        keys += [exp.Ordered(this=member, desc=desc, nulls_first=desc) for member in row.members]
    return keys


def tested(node: exp.Expr, word: str, scalars: Scalars) -> Expr | None:
    """Whether each member of a row is NULL, or is not; None if the node is not a row. `word`: `is` or `is not`."""
    row = row_of(node, scalars)
    if row is None:
        return None
    tests = tuple(member_test(functions.resolve, f"{word} null", value) for value in scalars.values(row.members))
    return functions.resolve("and", tests) if tests else TRUE


def compared_rows(name: str, left: exp.Expr, right: exp.Expr, scalars: Scalars, *,
                  records: bool = False) -> Expr | None:  # fmt: skip
    """The comparison of two rows; None if neither is a row. `records`: written rows compare as records, too."""
    one, other = row_of(left, scalars), row_of(right, scalars)
    if one is None and other is None:
        return None
    if one is None or other is None:
        if (made := _compared_values(name, left, right, scalars)) is not None:
            return made
        raise scalars.context.refuse(left, "a row is compared with a value that is not a row",
                                     "write both as rows: (a, b) = (c, d)")
    if len(one.members) != len(other.members):
        raise scalars.context.wrong(left, f"{len(one.members)} values are compared with {len(other.members)}")
    first, second = scalars.values(one.members), scalars.values(other.members)
    if not first:
        raise scalars.context.wrong(left, "cannot compare rows of zero length")
    records = records or one.record or other.record
    if not records and "distinct" not in name:
        return compared(name, first, second)
    keys = [(scalars.value(row.there), TRUE) for row in (one, other) if row.there is not None]
    if records:
        first, second = tuple(map(known, first)), tuple(map(known, second))
        _check_alike(first, second, left, scalars.context)
    if "distinct" in name:
        told = [scalars.value(row.there) if row.there is not None else TRUE for row in (one, other)]
        pairs = [*([tuple(told)] if keys else []), *zip(first, second, strict=True)]
        return functions.resolve("or" if name == "is distinct from" else "and",
                                 tuple(functions.resolve(name, pair) for pair in pairs))  # fmt: skip
    made = of_records(name, first, second)
    if not keys:
        return made
    there = functions.resolve("and", tuple(functions.resolve("is true", (value,)) for value, _ in keys))
    return functions.resolve("case", (there, made))


def _compared_values(name: str, left: exp.Expr, right: exp.Expr, scalars: Scalars) -> Expr | None:
    """The comparison of a row with an expression whose value is one, or with the text of one."""
    from halfjoin.sql.bind.row_made import as_value  # makes rows of this module's

    values = []
    for node in (left, right):
        found = row_of(node, scalars)
        values.append(scalars.value(node) if found is None else as_value(found, scalars))
    if all(record_values.is_record(value) or value.type == UNKNOWN for value in values):
        return functions.resolve(name, values)
    return None


def _check_alike(left: Sequence[Expr], right: Sequence[Expr], node: exp.Expr, context: Context) -> None:
    for number, (one, other) in enumerate(zip(left, right, strict=True), 1):
        if one.type.kind is not other.type.kind:
            raise context.wrong(node, f"cannot compare dissimilar column types {one.type} and {other.type} at record "
                                      f"column {number}", "cast one to the other's type")
