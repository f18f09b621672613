"""INSERT, DELETE and UPDATE as relations: the rows to add and the rows to remove."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from halfjoin.sql.bind import select as bind_select  # before from_clause: the two call each other
from halfjoin.sql.bind.apart import at_rest
from halfjoin.sql.bind.context import Context
from halfjoin.sql.bind.first_rows import first_rows
from halfjoin.sql.bind.fleeting import fleeting_in
from halfjoin.sql.bind.from_clause import beside
from halfjoin.sql.bind.quantified import has_subquery
from halfjoin.sql.bind.scalar import Scalars
from halfjoin.sql.bind.scope import FromItem, Scope
from halfjoin.sql.bind.selected import Selected, known
from halfjoin.sql.bind.target import (
    BoundChange,
    Returning,
    Target,
    assigned,
    carried,
    context_of,
    default,
    given,
    items_of,
    named,
    number_of,
    numbering,
    outputs,
    overridden,
    refuse_now,
    target_of,
)
from halfjoin.sql.expr import Column, Expr, Literal
from halfjoin.sql.functions.clock import at_one_moment
from halfjoin.sql.parse.locate import bare_values
from halfjoin.sql.relation import Project, Relation, SortKey, UnionAll, Values
from halfjoin.sql.statements import Delete, Insert, Update
from halfjoin.sql.types import BIGINT

if TYPE_CHECKING:
    from halfjoin.sql.schema import Schema


@at_one_moment
def bind_insert(statement: Insert, schema: Schema, sql: str) -> BoundChange:
    """The new rows: all columns of the table, in order and with exactly its types; missing columns have their defaults.

    If the rows' order matters, since there is RETURNING or ON CONFLICT, they have it.
    """
    context = context_of(statement, schema, sql)
    target = target_of(statement, context)
    targets = _targets(statement, target, context)
    sequences = {column.name: sequence for column in target.columns
                 if (sequence := number_of(target, column.name, context)) is not None}  # fmt: skip
    statement, numbered = _numbered(statement, target, targets, context)
    if statement.overriding == "user":  # whatever the rows say there
        numbered |= {column.name: context.schema.sequence(target.table, column.name)[0] for column in targets
                     if overridden(target, column.name, context)}  # fmt: skip
    own = [column for column in target.columns
           if column.name not in sequences and _nexts(default(target, column.name, context))]  # fmt: skip
    ordered = bool(numbered) or not _filled(statement, targets).issuperset({*sequences, *(one.name for one in own)})
    rows, order = _rows(statement, target, targets, context, ordered=ordered)
    keys = [key.expr for key in order]
    sources = [column for column in rows.columns if column not in keys]
    found = {column.name: source for column, source in zip(targets, sources, strict=False)}
    many = statement.query is not None  # the one row of DEFAULT VALUES has its numbers here, for currval in RETURNING
    numbered |= {name: sequence for name, sequence in sequences.items() if many and name not in found}
    computed = tuple(_computed(target, column, context) for column in own if many and column.name not in found)
    later = {*numbered, *(name for name, *_ in computed)}
    new = named(target.columns, context.aliases.fresh("new"))
    items = [(to, Literal(None, column.type) if column.name in later else found[column.name]
              if column.name in found else _default(target, column, context))
             for to, column in zip(new, target.columns, strict=True)]  # fmt: skip
    carry = carried(column for column in rows.columns if column in keys)
    relation = at_rest(Project(rows, (*items, *carry)), context)
    return BoundChange(target, relation, new=new, order=order, numbered=tuple(numbered.items()), computed=computed,
                       returning=_returning(statement, target, context), fleeting=fleeting_in(context))


def _filled(statement: Insert, targets: tuple[Column, ...]) -> set[str]:
    """The columns that have values in the rows, as far as that can be seen in the text: without a list of columns the
    rows may fill the first ones only."""
    query, count = statement.query, 0
    values = query if isinstance(query, exp.Values) else None if query is None else bare_values(query)
    if statement.columns:
        count = len(targets)
    elif values is not None:
        row = values.expressions[0]
        count = len(row.expressions) if isinstance(row, exp.Tuple) else 1
    elif isinstance(query, exp.Select) and not query.is_star:
        count = len(query.selects)
    return {column.name for column in targets[:count]}


def _nexts(value: exp.Expr) -> list[exp.Anonymous]:
    """The calls of nextval in a DEFAULT."""
    return [one for one in value.find_all(exp.Anonymous, bfs=False) if numbering(one) is not None]


def _computed(target: Target, column: Column, context: Context) -> tuple[str, Expr, tuple[str, ...]]:
    """A column whose DEFAULT computes with numbers, as 'A' || nextval('q'), for `BoundChange.computed`."""
    around = exp.Paren(this=default(target, column.name, context))
    calls = _nexts(around)
    names = [f"number {n}" for n in range(len(calls))]
    for name, call in zip(names, calls, strict=True):
        call.replace(exp.column(name, quoted=True))
    item = FromItem("numbers", tuple((name, Column(name, BIGINT)) for name in names))
    value = Scalars(context, (Scope.of(item),)).value(around)
    return column.name, assigned(value, column.type, context), tuple(numbering(call) or "" for call in calls)


def _numbered(statement: Insert, target: Target, targets: tuple[Column, ...],
              context: Context) -> tuple[Insert, dict[str, str]]:  # fmt: skip
    """INSERT ... SELECT nextval('q'), ... without these outputs, and the sequences that number their columns."""
    query = statement.query
    if not isinstance(query, exp.Select) or query.args.get("from_") is None or query.args.get("distinct"):
        return statement, {}
    query, found = query.copy(), dict[str, str]()
    for column, node in zip(targets, list(query.selects), strict=False):
        call = node.unalias()
        if (name := numbering(call)) is not None:
            given(target, column.name, call, context, statement.overriding)
            found[column.name] = name
            node.replace(exp.alias_(exp.Null(), context.aliases.fresh("number")))
    return replace(statement, query=query), found


@at_one_moment
def bind_delete(statement: Delete, schema: Schema, sql: str) -> BoundChange:
    """The rows to delete."""
    context = context_of(statement, schema, sql)
    target = target_of(statement, context)
    relation, scope, others = _rows_with(statement, target, context)
    where = [] if statement.where is None else [statement.where]
    selected = outputs([], where[0] if where else None, relation, scope, context, "DELETE")
    old = named(target.columns, context.aliases.fresh("old"))
    kept = selected.input.columns if statement.items is not None and statement.returning else ()
    kept = tuple(column for column in kept if column not in target.rows.columns)
    items = (*zip(old, target.rows.columns, strict=True), *carried(kept))
    return BoundChange(target, at_rest(Project(selected.input, items), context), old=old, others=kept,
                       joined=statement.items is not None, returning=_returning(statement, target, context, others),
                       fleeting=fleeting_in(context))  # fmt: skip


@at_one_moment
def bind_update(statement: Update, schema: Schema, sql: str) -> BoundChange:
    """The old and the new versions of the rows to update."""
    context = context_of(statement, schema, sql)
    target = target_of(statement, context)
    relation, scope, others = _rows_with(statement, target, context)
    names = [name for name, _ in statement.assignments]
    nodes = [given(target, name, node, context) for name, node in statement.assignments]
    for name, node in statement.assignments:
        if names.count(name) > 1:
            raise context.wrong(node, f"column {name} is assigned twice")
    numbered = {name: found for name, node in zip(names, nodes, strict=True)
                if (found := numbering(node)) is not None}  # fmt: skip
    nodes = [exp.Null() if name in numbered else node for name, node in zip(names, nodes, strict=True)]
    selected = outputs(nodes, statement.where, relation, scope, context, "UPDATE")
    aliases = context.aliases
    old, new = named(target.columns, aliases.fresh("old")), named(target.columns, aliases.fresh("new"))
    values: dict[str, Expr] = {}
    for name, node, value in zip(names, nodes, selected.values, strict=True):
        with context.at(node):
            column = next(column for column in target.columns if column.name == name)
            values[name] = assigned(value, column.type, context)
    changed = [values.get(column.name, there)
               for column, there in zip(target.columns, target.rows.columns, strict=True)]  # fmt: skip
    kept = selected.input.columns if statement.items is not None and statement.returning else ()
    kept = tuple(column for column in kept if column not in target.rows.columns)
    items = (*zip(old, target.rows.columns, strict=True), *zip(new, changed, strict=True), *carried(kept))
    relation = at_rest(Project(selected.input, items), context)
    return BoundChange(target, relation, old, new, kept, statement.items is not None,
                       numbered=tuple(numbered.items()), returning=_returning(statement, target, context, others),
                       fleeting=fleeting_in(context))  # fmt: skip


def _rows_with(statement: Delete | Update, target: Target, context: Context) -> tuple[Relation, Scope, Scope]:
    """The table's rows beside those of FROM or USING, the scope of both, and the scope of the latter."""
    scope = Scope.of(target.item)
    if statement.items is None:
        return target.rows, scope, Scope()
    relation, others = items_of(statement.items.this, statement.joins, context)
    with context.at(statement.items):
        return beside(relation, target.rows), scope.beside(others), others


def _returning(statement: Insert | Delete | Update, target: Target, context: Context,
               others: Scope | None = None) -> Returning | None:
    if not statement.returning:
        return None
    return Returning(statement.returning, target, context, others or Scope())


def _targets(statement: Insert, target: Target, context: Context) -> tuple[Column, ...]:
    """The columns that INSERT names, or all columns if it names none."""
    by_name = {column.name: column for column in target.columns}
    written = statement.target.expressions if statement.target is not None else []
    places = written or [exp.Null()] * len(statement.columns)
    for number, (name, place) in enumerate(zip(statement.columns, places, strict=True)):
        if name not in by_name or name in context.schema.generated(target.table):
            with context.at(place):
                given(target, name, exp.var("DEFAULT"), context)
        if name in statement.columns[:number]:
            raise context.wrong(place, f"column {name} is named twice")
    return tuple(by_name[name] for name in statement.columns) or target.columns


def _rows(statement: Insert, target: Target, targets: tuple[Column, ...],
          context: Context, *, ordered: bool) -> tuple[Relation, tuple[SortKey, ...]]:
    """The rows to insert, with the target columns first and then the keys of their order; and the order."""
    query, ordered = statement.query, ordered or bool(statement.returning or statement.conflict)
    if query is None:
        return Project(bind_select.one_row(context), ()), ()
    some = not statement.columns  # without a column list, the values may fill the first columns only
    values = query if isinstance(query, exp.Values) else bare_values(query)
    if values is not None and not any(values.args.get(key) for key in ("alias", "with_", "order", "limit", "offset")):
        return _typed_values(values, target, targets, some, ordered, context, statement.overriding)
    return _typed_query(query, target, targets, some, ordered, context, statement.overriding)


def _typed_values(query: exp.Values, target: Target, targets: tuple[Column, ...], some: bool, ordered: bool,
                  context: Context, overriding: str) -> tuple[Relation, tuple[SortKey, ...]]:
    """VALUES, each value cast to its column's type, so that it decides a literal's type."""
    rows: list[tuple[Expr, ...]] = []
    parts: list[Relation] = []
    alias, single, scalars = context.aliases.fresh("values"), bind_select.one_row(context), Scalars(context, ())
    width = 0
    for row in query.expressions:
        nodes = row.expressions if isinstance(row, exp.Tuple) else [row]
        _check_width(len(nodes), len(targets), some, row, context)
        if rows and len(nodes) != width:
            raise context.wrong(row, f"a row of VALUES has {len(nodes)} values, the first one {width}")
        width, targets = len(nodes), targets[:len(nodes)]
        nodes = [exp.Null() if overriding == "user" and overridden(target, column.name, context)
                 else given(target, column.name, node, context, overriding)
                 for column, node in zip(targets, nodes, strict=True)]  # fmt: skip
        selected = Selected(single, ())
        if any(map(has_subquery, nodes)):
            selected = outputs(nodes, None, single, Scope(), context, "VALUES")
            found = selected.values
        else:
            found = list(scalars.values(nodes))
        values = []
        for node, value, column in zip(nodes, found, targets, strict=True):
            with context.at(node):
                values.append(assigned(value, column.type, context))
        rows.append((*values, Literal(len(rows), BIGINT)) if ordered else tuple(values))
        parts.append(selected.input)
    columns = tuple(Column(f"{alias}.{column.name}", column.type) for column in targets)
    number = Column(f"{alias}.=number", BIGINT, nullable=False)
    every = (*columns, number) if ordered else columns
    order = (SortKey(number),) if ordered else ()
    if all(isinstance(part, Values) for part in parts):
        return Values(alias, every, tuple(rows)), order
    made = [Project(part, tuple(zip(every, row, strict=True))) for part, row in zip(parts, rows, strict=True)]
    return (UnionAll(tuple(made), every) if len(made) > 1 else made[0]), order


def _typed_query(query: exp.Expr, target: Target, targets: tuple[Column, ...], some: bool, ordered: bool,
                 context: Context, overriding: str) -> tuple[Relation, tuple[SortKey, ...]]:
    refuse_now([query], context)
    selected = bind_select.select(query, context)
    _check_width(len(selected.items), len(targets), some, query, context)
    targets = targets[:len(selected.items)]
    if generated := [c.name for c in targets if c.name in context.schema.generated(target.table)]:
        raise context.wrong(query, f"column {generated[0]} is GENERATED from other columns", "name the other columns")
    for column in targets:
        _, always = context.schema.sequence(target.table, column.name)
        if always and not overriding:
            given(target, column.name, query, context)
    alias = context.aliases.fresh("query")
    items: list[tuple[Column, Expr]] = []
    with context.at(query):
        for column, value in zip(targets, selected.values, strict=True):
            typed = assigned(value, column.type, context)
            items.append((Column(f"{alias}.{column.name}", column.type), typed))
    order = _sorted(selected, alias) if ordered else ()
    keys = [(key.expr, known(of.expr)) for key, of in zip(order, selected.order, strict=False)]
    made: Relation = Project(selected.input, (*items, *((c, e) for c, e in keys if isinstance(c, Column))))
    return first_rows(made), order


def _sorted(selected: Selected, alias: str) -> tuple[SortKey, ...]:
    """The order of a query over columns of their own."""
    return tuple(SortKey(Column(f"{alias}.={number}", known(key.expr).type), key.descending, key.nulls_first)
                 for number, key in enumerate(selected.order))  # fmt: skip


def _default(target: Target, column: Column, context: Context) -> Expr:
    value = default(target, column.name, context)
    selected = outputs([value], None, bind_select.one_row(context), Scope(), context, "DEFAULT")
    return assigned(selected.values[0], column.type, context)


def _check_width(given: int, wanted: int, some: bool, node: exp.Expr, context: Context) -> None:
    if given > wanted or (given < wanted and not some):
        values, columns = (f"{n} {word}{'s' if n != 1 else ''}" for n, word in ((given, "value"), (wanted, "column")))
        raise context.wrong(node, f"INSERT has {values} for {columns}",
                            "name as many columns: INSERT INTO t (a, b) VALUES ...")
