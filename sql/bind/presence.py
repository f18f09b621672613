"""The side of an outer join that may be missing: whether it is there.

A row of it that is not there is NULL as a whole, so `count(t)` does not count it. A row of NULLs is counted. Only a
query that reads rows as values needs to know.
"""

from __future__ import annotations

from sqlglot import exp

from halfjoin.sql.bind.context import Context
from halfjoin.sql.bind.scope import THERE, Scope
from halfjoin.sql.expr import TRUE, Column
from halfjoin.sql.parse.locate import name_of
from halfjoin.sql.relation import Project, Relation
from halfjoin.sql.types import BOOLEAN


def with_presence(relation: Relation, scope: Scope, join: exp.Join, context: Context) -> tuple[Relation, Scope]:
    """The side of an outer join that may be missing, with a hidden column for each item whose rows the query reads."""
    query = join.find_ancestor(exp.Select)
    items = [source for source in scope.sources if all(name != THERE for name, _ in source.hidden)]
    columns = () if query is None else query.find_all(exp.Column)
    read = {name for node in columns if node.parent is not query or not isinstance(node.this, exp.Star)
            for name in [_may_mean(node)] if name}
    made = {source: Column(f"{context.aliases.fresh(source.name)}.there", BOOLEAN, nullable=False)
            for source in items if source.name in read}  # fmt: skip
    if not made:
        return relation, scope
    kept = ((column, column) for column in relation.columns)
    return (Project(relation, (*kept, *((column, TRUE) for column in made.values()))),
            scope.with_hidden({source: (THERE, column) for source, column in made.items()}))  # fmt: skip


def _may_mean(node: exp.Column) -> str:
    """The item of FROM whose rows a node may mean: `t` or `t.*`; nothing for other columns."""
    table = node.args.get("table")
    if isinstance(node.this, exp.Star):
        return name_of(table) if table else ""
    return "" if table else name_of(node)
