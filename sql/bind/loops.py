"""Binds the recursive queries of views, as loops: WITH RECURSIVE, and WITH MUTUALLY RECURSIVE."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from halfjoin.sql import functions
from halfjoin.sql.bind import select as bind_select  # for its parts: the two modules call each other
from halfjoin.sql.bind.context import CommonTable, Context, Looped
from halfjoin.sql.bind.first_rows import first_rows
from halfjoin.sql.bind.named_types import resolved
from halfjoin.sql.bind.recursion import fitted, reads, shaped, wider
from halfjoin.sql.bind.scope import Scope
from halfjoin.sql.bind.selected import Selected, known
from halfjoin.sql.expr import Column, conjunction
from halfjoin.sql.parse.locate import name_of, only
from halfjoin.sql.parse.syntax import MutualWith
from halfjoin.sql.parse.type_names import stored_type
from halfjoin.sql.relation import (
    READS_ITSELF,
    Aggregate,
    Binding,
    Fed,
    Filter,
    Join,
    Loop,
    Once,
    Outer,
    Project,
    Relation,
    Semi,
    TableFunction,
    UnionAll,
    fed_by,
)

MOST_ROUNDS = 5_000  # of a loop whose author gives no limit


def mutual(
    clause: MutualWith, items: Sequence[exp.CTE], context: Context, outer: tuple[Scope, ...]
) -> Context:  # fmt: skip
    """The context plus the bindings of WITH MUTUALLY RECURSIVE, as they are after the loop."""
    loop = context.aliases.fresh("WITH MUTUALLY RECURSIVE")
    heads = [_head(item, context) for item in items]

    def feeding(number: int, *, before: bool) -> Looped:
        name, columns, names = heads[number]

        def at(alias: str, own: tuple[Column, ...]) -> Relation:
            return Fed(loop, number, before, alias, own)

        return Looped(name, columns, names, at)

    bindings: list[Binding] = []
    for number, item in enumerate(items):
        inside = {head[0]: CommonTable(feeding(other, before=other >= number), (), context)
                  for other, head in enumerate(heads)}  # fmt: skip
        found = bind_select.select(item.this, body_of(context, inside), None, outer)
        name, columns, names = heads[number]
        if len(found.items) != len(columns):
            raise context.wrong(item, f"{name} has {len(columns)} columns, and its query {len(found.items)}")
        values = [functions.cast(value, column.type) for value, column in zip(found.values, columns, strict=True)]
        made = Project(found.input, tuple(zip(columns, values, strict=True)))
        bindings.append(Binding(name, names, first_rows(made)))
    limit = clause.args.get("limit")
    strict = limit is None or bool(clause.args.get("error"))
    whole = tuple(bindings)

    def shown(number: int) -> Callable[[str, tuple[Column, ...]], Relation]:
        rounds = MOST_ROUNDS if limit is None else int(limit.name)
        return lambda alias, own: Loop(loop, whole, rounds, strict, number, own)

    after = {name: CommonTable(Looped(name, columns, names, shown(number)), (), context)
             for number, (name, columns, names) in enumerate(heads)}  # fmt: skip
    return replace(context, common={**context.common, **after})


def body_of(context: Context, names: Mapping[str, CommonTable]) -> Context:
    """The context of what a loop computes, which sees these names."""
    return replace(context, common={**context.common, **names})


def _head(item: exp.CTE, context: Context) -> tuple[str, tuple[Column, ...], tuple[str, ...]]:
    """A binding's name, its columns as they are kept, and their names."""
    alias = item.args["alias"]
    given = alias.args.get("columns") or ()
    if not given or not all(isinstance(column, exp.ColumnDef) and column.args.get("kind") for column in given):
        raise context.refuse(item, "WITH MUTUALLY RECURSIVE needs the types of all columns",
                             "write name (column type, ...) AS (query)")
    types = [resolved(stored_type(column.args["kind"], context.sql), context.schema) for column in given]
    columns = tuple(Column(f"c{number}", type) for number, type in enumerate(types, 1))
    return name_of(alias.this), columns, tuple(name_of(column) for column in given)


def _kept(first: Project) -> tuple[Column, ...]:
    return tuple(replace(column, nullable=True) for column in first.columns)


def looped(
    query: exp.Expr, name: str, columns: tuple[exp.Identifier, ...], context: Context, outer: tuple[Scope, ...]
) -> Looped:
    """The rows of a view's query that reads itself under a name: PostgreSQL's working table, as a loop.

    A round computes the second part over the rows that the round before has found. If that part reads each row on its
    own, the rows found so far may stand for the last ones: then a round adds up, and there is one binding. Otherwise
    the working table is a binding of its own. It holds the rows of one round; the result adds them up.
    """
    if not isinstance(query, exp.Union) or reads(query.this, name):
        raise context.wrong(query, f"{name} reads itself, so it must be: a query that does not, UNION [ALL], one that "
                                   "does")
    only(query, context.sql, "WITH RECURSIVE", ("this", "expression", "distinct", "with_"))
    if query.args.get("with_") and reads(query.args["with_"], name):
        raise context.refuse(query, f"a WITH around both parts of {name} reads it", "write the WITH in the second part")
    context = bind_select.with_queries(query, context, outer)
    selected = bind_select.select(query.this, context, None, outer)
    values = [known(value) for value in selected.values]
    loop = context.aliases.fresh(name + READS_ITSELF)

    def before(alias: str, own: tuple[Column, ...]) -> Relation:
        return Fed(loop, 0, True, alias, own)

    def over(first: Project) -> Selected:
        """The second part over rows as of the first one."""
        itself = CommonTable(Looped(name, _kept(first), tuple(selected.names), before), columns, context)
        return bind_select.select(query.expression, body_of(context, {name: itself}), None, outer)

    first = shaped(selected, values)
    found = over(first)
    if (types := wider(query.expression, found, first, context)) is not None:
        wide = shaped(selected, [functions.cast(value, type) for value, type in zip(values, types, strict=True)])
        again = over(wide)
        if wider(query.expression, again, wide, context) is None:  # else each round has more digits than the one before
            first, found = wide, again
    kept = _kept(first)
    second = shaped(found, fitted(query.expression, name, found, first, context))
    made, step, distinct = first_rows(first), first_rows(second), bool(query.args.get("distinct"))
    names = (*map(name_of, columns), *selected.names[len(columns):])
    if is_linear(step, loop):
        whole: Relation = UnionAll((made, step), kept)
        bindings = [Binding(name, names, _distinct(whole) if distinct else whole)]
    else:
        bindings = _working(name, names, made, step, loop, kept, context, distinct=distinct)
    shown = len(bindings) - 1

    def after(alias: str, own: tuple[Column, ...]) -> Relation:
        return Loop(loop, tuple(bindings), MOST_ROUNDS, True, shown, own)

    return Looped(name, kept, tuple(selected.names), after)


def _working(
    name: str, names: tuple[str, ...], first: Relation, step: Relation, loop: str, columns: tuple[Column, ...],
    context: Context, *, distinct: bool,
) -> list[Binding]:  # fmt: skip
    """The working table, and the result, which adds up what the working table has held."""

    def fed(number: int, *, before: bool) -> Fed:
        alias = context.aliases.fresh(name)
        return Fed(loop, number, before, alias, tuple(replace(c, name=f"{alias}.{c.name}") for c in columns))

    if distinct:
        first, known = _distinct(first), fed(1, before=True)
        alias = context.aliases.fresh("new")
        new = Aggregate(step, tuple((replace(c, name=f"{alias}.{c.name}"), c) for c in step.columns))
        pairs = zip(new.columns, known.columns, strict=True)
        same = conjunction(tuple(functions.resolve("is not distinct from", pair) for pair in pairs))
        step = Semi(new, known, same, anti=True)
    working = UnionAll((Once(first), step), columns)
    result = UnionAll((fed(1, before=True), fed(0, before=False)), columns)
    return [Binding(name, names, working), Binding(name, names, result)]


def _distinct(relation: Relation) -> Aggregate:
    return Aggregate(relation, tuple((column, column) for column in relation.columns))


def is_linear(relation: Relation, loop: str) -> bool:
    """Whether a relation reads the bindings of a loop, and makes of a sum of rows the sum of what it makes of each."""
    match relation:
        case Fed(name):
            return name == loop
        case Filter(input) | Project(input) | TableFunction(input):
            return is_linear(input, loop)
        case Join(inputs):
            feds = [item for item in inputs if fed_by(item, loop)]
            return len(feds) == 1 and is_linear(feds[0], loop)
        case UnionAll(inputs):
            return all(is_linear(item, loop) for item in inputs)
        case Outer(left, right, full=False):
            return is_linear(left, loop) and not fed_by(right, loop)
        case Semi(input, other):
            return is_linear(input, loop) and not fed_by(other, loop)
        case _:
            return False
