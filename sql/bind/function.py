"""Binds table functions, in FROM and in the SELECT list: each call becomes a function of the rows to its left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from halfjoin.sql import functions
from halfjoin.sql.bind.context import Context
from halfjoin.sql.bind.named_arguments import positional
from halfjoin.sql.bind.named_types import rowless_type
from halfjoin.sql.bind.output_names import output_name
from halfjoin.sql.bind.scalar import CLOCKS, Scalars
from halfjoin.sql.bind.scope import FromItem
from halfjoin.sql.bind.selected import column_for, known, qualified
from halfjoin.sql.bind.system_functions import is_system
from halfjoin.sql.expr import Column, Expr, Literal
from halfjoin.sql.functions.aggregates import is_aggregate_name
from halfjoin.sql.functions.chance import CHANCE
from halfjoin.sql.functions.jsonb_records import (
    POPULATED,
    POPULATED_ONE,
    RECORDS,
    one_record,
    populated,
    record_columns,
)
from halfjoin.sql.functions.record_values import is_record, member, members, record
from halfjoin.sql.functions.table import ALIASES, ENTRIES
from halfjoin.sql.functions.table_functions import EMPTY, LISTENING, WEIGHTS, returns_rows, signature
from halfjoin.sql.parse.locate import name_of, only, written
from halfjoin.sql.parse.type_names import stored_type
from halfjoin.sql.relation import ROWS_FROM, LockstepCall, Project, Relation, TableFunction
from halfjoin.sql.types import BIGINT, INTEGER, TEXT, Kind, SqlType, array


def bind_calls(calls: Sequence[exp.Anonymous], alias: exp.TableAlias | None, ordinality: bool, relation: Relation,
               scalars: Scalars, *, spread: bool = True) -> tuple[Relation, FromItem]:
    """A call in FROM on top of the relation to its left, and the name and columns that it adds to the scope. Several
    calls are those of ROWS FROM. `spread`: rows that it gives have a column for each field."""
    context, calls = scalars.context, [_of_record(call) for call in calls]
    records = len(calls) == 1 and calls[0].name.lower() in RECORDS
    made = [_record(calls[0], alias, scalars)] if records else [
        (_populated if call.name.lower() in POPULATED else _call)(call, scalars) for call in calls]
    if len(made) > 1:
        for call, one in zip(calls, made, strict=True):
            if not one.outputs:
                raise context.refuse(call, f"{one.function} gives no columns, so it has no rows beside others",
                                     "write it in FROM by itself")
    name = name_of(alias.this) if alias is not None and alias.this else made[0].function
    outputs = [(column or (name if len(made) == 1 else one.function), type) for one in made for column, type in
               one.outputs]  # fmt: skip
    context.note_rows(Column(output, type) for output, type in outputs)
    rows = any(type.fields for _, type in outputs) and spread
    names = [one for output, type in outputs for one in ((field for field, _ in type.fields) if rows and type.fields
                                                         else (output,))]  # fmt: skip
    if not records:
        names = renamed(names + ["ordinality"] * ordinality, alias, name, context)
    elif ordinality:
        raise context.refuse(calls[0], "WITH ORDINALITY with a list of column types is not supported",
                             "take jsonb_array_elements(j) WITH ORDINALITY, and -> of its values")
    unique = context.aliases.fresh(name)
    namer = qualified(unique)
    given, columns, shown = iter(names), list[Column](), list[tuple[Column, Expr]]()
    for number, (_, type) in enumerate(outputs):
        columns.append(Column(namer(f"row {number}" if rows and type.fields else next(given)), type))
        shown += [(Column(namer(next(given)), field), member(columns[-1], place))
                  for place, (_, field) in enumerate(type.fields)] if rows and type.fields else [(columns[-1],) * 2]
    ordinal = Column(namer(names[-1]), BIGINT, nullable=False) if ordinality else None
    args = tuple(arg for one in made for arg in one.args)
    if len(made) == 1:
        bound = TableFunction(relation, made[0].runs, unique, args, tuple(columns), ordinal)
    else:
        parts = tuple(LockstepCall(one.runs, len(one.args), len(one.outputs)) for one in made)
        bound = TableFunction(relation, ROWS_FROM, unique, args, tuple(columns), ordinal, parts)
    shown += [(ordinal, ordinal)] if ordinal else []
    visible = tuple(zip(names, (column for column, _ in shown), strict=True))
    made_of = Project(bound, (*((one, one) for one in relation.columns), *shown)) if rows else bound
    return made_of, FromItem(name, visible, scalar=len(visible) == 1 and not rows)


@dataclass(frozen=True, slots=True)
class _Call:
    """A call with the function that runs, its arguments, cast, and its columns."""

    function: str
    runs: str
    args: tuple[Expr, ...]
    outputs: tuple[tuple[str | None, SqlType], ...]


def _call(call: exp.Anonymous, scalars: Scalars) -> _Call:
    context, function = scalars.context, call.name.lower()
    if is_aggregate_name(function, context.schema):
        raise context.refuse(call, f"{function} is an aggregate, which is not allowed in FROM",
                             f"write SELECT {function}(x) FROM t GROUP BY k")
    if is_scalar(call, context):  # in ROWS FROM
        value = known(scalars.value(call))
        return _Call(function, "unnest", (functions.resolve("array", (value,)),), ((None, value.type),))
    if not returns_rows(function, context.schema):
        with context.at(call):
            signature(function, (), context.schema)
    if function in EMPTY and context.system is None:
        raise context.refuse(call, f"a view cannot call {function}, which reads the catalog", "call it in a query")
    if function == LISTENING and context.system is not None:
        listened = Literal(list(context.system.asker.listening()), array(TEXT))
        return _Call(function, "unnest", (listened,), EMPTY[function])
    args = scalars.values(positional(function, call, context))
    with context.at(call):
        return _Call(function, *signature(function, args, context.schema))


def fields_of_call(call: exp.Expr, scalars: Scalars) -> list[str]:
    """The members of the rows that a call returns; empty for another expression, and for values that are no rows."""
    if not isinstance(call, exp.Anonymous) or not returns_rows(call.name.lower(), scalars.context.schema):
        return []
    outputs = (_populated if call.name.lower() in POPULATED else _call)(call, scalars).outputs
    if len(outputs) == 1:
        return [name for name, _ in outputs[0][1].fields]
    return [name for name, _ in outputs if name is not None]


def is_scalar(call: exp.Expr, context: Context) -> bool:
    """Whether a call in FROM is that of a function which returns one value: `FROM upper(t.x) AS u`."""
    if not isinstance(call, exp.Anonymous):
        return isinstance(call, (exp.Cast, exp.Extract, exp.StrPosition, exp.Substring, exp.Trim))
    name = call.name.lower()
    known = name in ENTRIES or name in ALIASES or name in CLOCKS or name in CHANCE or is_system(name)
    return known and not returns_rows(name, context.schema) and not is_aggregate_name(name, context.schema)


def bind_scalar(call: exp.Expr, alias: exp.TableAlias | None, ordinality: bool, relation: Relation,
                scalars: Scalars) -> tuple[Relation, FromItem]:  # fmt: skip
    """The call of a function that returns one value: each row to its left with this value as one more column."""
    value, context = known(scalars.value(call)), scalars.context
    name = name_of(alias.this) if alias is not None and alias.this else output_name(call)
    names = renamed([name, "ordinality"][: 1 + ordinality], alias, name, context)
    namer = qualified(context.aliases.fresh(name))
    items = [(column_for(namer(column), one), one)
             for column, one in zip(names, (value, Literal(1, BIGINT)), strict=False)]
    made = Project(relation, (*((column, column) for column in relation.columns), *items))
    columns = tuple(zip(names, (column for column, _ in items), strict=True))
    return made, FromItem(name, columns, scalar=len(columns) == 1)


def _of_record(call: exp.Anonymous) -> exp.Anonymous:
    """`jsonb_populate_record(NULL::record, j)`, whose columns a list after AS gives, as `jsonb_to_record(j)`."""
    base = call.expressions[0] if call.name.lower() in POPULATED and len(call.expressions) == 2 else None
    if not isinstance(base, exp.Cast) or not isinstance(base.this, exp.Null) or base.to.sql().lower() != "record":
        return call
    return _with_one(call, call.expressions[1], POPULATED[call.name.lower()])


def _record(call: exp.Anonymous, alias: exp.TableAlias | None, scalars: Scalars) -> _Call:
    """`jsonb_to_recordset(j) AS x (a integer, b text)`."""
    context, function = scalars.context, call.name.lower()
    listed = alias.args.get("columns") or [] if alias is not None else []
    if not listed or not all(isinstance(item, exp.ColumnDef) and item.args.get("kind") for item in listed):
        raise context.refuse(call, "a column definition list is required for functions returning \"record\"",
                             f"write {function}(...) AS x (a integer, b text)")
    with context.at(call):
        columns = tuple((name_of(item), _listed_type(item.args["kind"], context)) for item in listed)
        if function.endswith("_record") and any(type.kind is Kind.ARRAY for _, type in columns):
            base, (given,) = Literal(None, SqlType(Kind.RECORD, fields=columns)), scalars.values(call.expressions)
            return _one_row(function, populated(function, base, given), context)
        return _Call(function, "unnest", record_columns(function, scalars.values(call.expressions), columns), columns)


def _populated(call: exp.Anonymous, scalars: Scalars) -> _Call:
    """`jsonb_populate_recordset(NULL::t, j)`: rows of the columns of a table."""
    context, function = scalars.context, call.name.lower()
    instead = f"write {POPULATED[function]}(j) AS x (a integer, b text)"
    if len(call.expressions) != 2:
        raise context.refuse(call, f"{function} takes a row, such as NULL::table, and objects", instead)
    base = scalars.value(call.expressions[0])
    if not is_record(base):
        raise context.refuse(call, f"{function} takes a row, such as NULL::table, and objects", instead)
    with context.at(call):
        outputs = base.type.fields
        if function in POPULATED_ONE and any(type.kind is Kind.ARRAY for _, type in outputs):
            return _one_row(function, populated(function, base, scalars.value(call.expressions[1])), context)
        if function in POPULATED_ONE:
            args = one_record(function, base, scalars.value(call.expressions[1]))
        else:
            args = record_columns(POPULATED[function], scalars.values(call.expressions[1:]), outputs,
                                  () if isinstance(base, Literal) else members(base))
        return _Call(function, "unnest", args, outputs)


def _one_row(function: str, row: Expr, context: Context) -> _Call:
    """One row, whose members may be arrays: unnesting these would take the arrays apart as well."""
    context.records.append(function)
    return _Call(function, "unnest", (functions.resolve("array", (row,)),), ((None, row.type),))


def _listed_type(node: exp.DataType, context: Context) -> SqlType:
    type = stored_type(node, context.sql)
    if type.kind is Kind.NAMED and context.schema.domain(type.named) is not None:
        raise context.refuse(node, "a domain in a list of columns is not supported", "name its base type, and cast")
    return rowless_type(type, context.schema, "a column in a list of columns")


def rows_from(node: exp.Table | exp.Lateral, context: Context) -> list[exp.Anonymous]:
    """The calls of ROWS FROM, or of a call in FROM: `unnest(a, b)` is short for ROWS FROM (unnest(a), unnest(b))."""
    calls = []
    for item in node.args.get("rows_from") or [node]:
        if item is not node:
            only(item, context.sql, "ROWS FROM", ("this",))
        call = item.this
        if not isinstance(call, exp.Anonymous):
            raise context.wrong(item, f"ROWS FROM takes calls of functions, not {written(item)}")
        calls.append(call)
    if len(calls) == 1 and calls[0].name.lower() == "unnest":
        return [_with_one(calls[0], array) for array in calls[0].expressions] or calls
    return calls


def _with_one(call: exp.Anonymous, given: exp.Expr, name: str = "unnest") -> exp.Anonymous:
    one = exp.Anonymous(this=name)
    one.parent = call  # for its place in the text
    one.args["expressions"] = [given]
    return one


def renamed(names: Sequence[str], alias: exp.TableAlias | None, what: str, context: Context) -> list[str]:
    """The column names after `AS alias (x, y)`, which may rename only the first few."""
    given = alias.args.get("columns") or [] if alias is not None else []
    for column in given:
        if not isinstance(column, exp.Identifier):
            raise context.refuse(column, "a list of column types is not supported here", "name the columns only")
    if len(given) > len(names):
        reason = f"{what} has {len(names)} columns, but {len(given)} names are given"
        raise context.wrong(given[len(names)], reason).with_(code="42P10")
    return [name_of(column) for column in given] + list(names[len(given):])


def list_calls(items: Sequence[exp.Expr], relation: Relation,
               scalars: Scalars) -> tuple[Relation, dict[int, Expr]]:
    """The relation with the set-returning calls of a SELECT list, and the calls' columns by the ids of their nodes.

    As in PostgreSQL, the calls run in lockstep. A call in an argument of another runs before, in lockstep with all
    calls that have none in their arguments; and so on.
    """
    levels: dict[int, list[exp.Anonymous]] = {}
    for item in items:
        for call in _calls(item, scalars):
            levels.setdefault(_level(call, scalars), []).append(call)
    bound: dict[int, Expr] = {}
    for _, calls in sorted(levels.items()):
        for call in calls:
            _check_value(call, scalars)
        once = {_meaning(call): call for call in calls}
        made, source = bind_calls(list(once.values()), None, False, relation, scalars.binding(bound), spread=False)
        relation, values = made, list[Expr](column for _, column in source.columns)
        if len(values) != len(once):
            if len(once) > 1:
                raise scalars.context.refuse(calls[0], "a function with several columns beside another in the SELECT "
                                             "list", "write it in FROM: FROM ..., f(...) AS x, and select x.*")
            scalars.context.records.append("row")
            values = [record([name for name, _ in source.columns], values)]
        columns = dict(zip(once, values, strict=True))
        bound.update((id(call), columns[_meaning(call)]) for call in calls)
    return relation, bound


def _meaning(call: exp.Anonymous) -> exp.Expr | int:
    """Equal calls mean the same rows, unless their arguments depend on chance."""
    chance = any(one.name.lower() in CHANCE for one in call.find_all(exp.Anonymous))
    return id(call) if chance else call


def key_calls(keys: Sequence[exp.Expr], others: Sequence[exp.Expr], relation: Relation,
              scalars: Scalars) -> tuple[Relation, dict[int, Expr]]:  # fmt: skip
    """The relation with the set-returning calls in keys of GROUP BY, which run before the rows are grouped. Equal calls
    in the other nodes are the same."""
    relation, bound = list_calls(keys, relation, scalars)
    made = {call: bound[id(call)] for key in keys for call in _calls(key, scalars)}
    same = ((call, made.get(call)) for node in others for call in _calls(node, scalars)) if made else ()
    return relation, {**bound, **{id(call): column for call, column in same if column is not None}}


def _level(call: exp.Anonymous, scalars: Scalars) -> int:
    """1 for a call without set-returning calls in its arguments."""
    inner = [_level(one, scalars) for arg in call.expressions for one in _calls(arg, scalars)]
    return 1 + max(inner, default=0)


def _check_value(call: exp.Anonymous, scalars: Scalars) -> None:
    """Refuse a set-returning call of a SELECT list that is not a value, or stands where it might not be evaluated."""
    context, name = scalars.context, call.name.lower()
    parent = call.parent
    while parent is not None and not isinstance(parent, exp.Query):
        if isinstance(parent, exp.Case) or (isinstance(parent, exp.Anonymous) and parent.name.lower() == "coalesce"):
            raise context.refuse(call, f"{name} returns rows, which is not allowed in a conditional expression",
                                 "write it in FROM")
        parent = parent.parent
    if name in WEIGHTS or context.schema.table_function(name) == ():
        raise context.refuse(call, f"{name} has no columns, so it is not a value",
                             f"write it in FROM: FROM ..., {name}(...)")


def _calls(item: exp.Expr, scalars: Scalars) -> list[exp.Anonymous]:
    """Calls of functions that return rows, outside subqueries and what is bound already."""
    nodes = item.walk(prune=lambda node: isinstance(node, exp.Query) or id(node) in scalars.bound)
    calls = (node for node in nodes if isinstance(node, exp.Anonymous) and id(node) not in scalars.bound)
    return [call for call in calls if returns_rows(call.name.lower(), scalars.context.schema)]


def numbered(relation: Relation, count: int, context: Context) -> tuple[Relation, Column]:
    """Each row `count` times, with the number of the copy, from 1."""
    alias = context.aliases.fresh("number")
    number = Column(f"{alias}.number", INTEGER, nullable=False)
    bounds = (Literal(1, INTEGER), Literal(count, INTEGER))
    return TableFunction(relation, "generate_series", alias, bounds, (number,)), number
