"""`t IN (SELECT u FROM u)`: a row of a table among the rows of a subquery.

Its members are compared with those of the subquery's rows, which then has a column for each. NULLs are equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlglot import exp

from halfjoin.sql.bind.quantified import Quantified
from halfjoin.sql.bind.row_values import row_of
from halfjoin.sql.bind.scalar import Scalars

_INSTEAD = "write EXISTS (SELECT 1 FROM u WHERE t = u)"


def of_records(asked: Quantified, scalars: Scalars) -> Quantified:
    """The same with the members of both sides, if a row of an item of FROM is compared."""
    row = row_of(asked.members[0], scalars) if len(asked.members) == 1 else None
    if row is None or not row.record:
        return asked
    if row.there is not None or asked.operator != ("<>" if asked.every else "="):
        what = "a row of an outer join's side" if row.there is not None else f"{asked.operator} of a row"
        raise scalars.context.refuse(asked.query, f"{what} and a subquery's rows are not compared", _INSTEAD)
    for select in _selects(asked.query):
        if not select.meta.get("records"):
            _show_members(select, scalars)
    return replace(asked, members=list(row.members), records=True)


def _selects(query: exp.Expr) -> Iterator[exp.Expr]:
    """The query, or the parts of a set operation."""
    query = query.unnest()
    if isinstance(query, exp.SetOperation):
        yield from _selects(query.this)
        yield from _selects(query.expression)
    else:
        yield query


def _show_members(select: exp.Expr, scalars: Scalars) -> None:
    """Show `u.*` in place of `u`. The syntax tree keeps it, as others know its nodes by their identity."""
    shown = [node.unalias().unnest() for node in select.expressions] if isinstance(select, exp.Select) else []
    if len(shown) != 1 or not isinstance(shown[0], exp.Column) or shown[0].args.get("table"):
        raise scalars.context.refuse(select, "a row of a table is compared with values that are not rows", _INSTEAD)
    select.set("expressions", [exp.Column(this=exp.Star(), table=shown[0].this)])
    select.meta["records"] = True
