"""Binds scalar expressions: from syntax trees to typed expressions over the columns in scope."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from sqlglot import exp

from halfjoin.errors import UnknownName, UnsupportedSQL
from halfjoin.sql import functions
from halfjoin.sql.bind import temporal as bind_temporal
from halfjoin.sql.bind.context import ON_TOP, Context
from halfjoin.sql.bind.field_changes import changed_fields
from halfjoin.sql.bind.forms import FORMS
from halfjoin.sql.bind.modifiers import of_rows
from halfjoin.sql.bind.named_arguments import positional
from halfjoin.sql.bind.operators import OPERATORS as NAMED_OPERATORS
from halfjoin.sql.bind.reg_types import named
from halfjoin.sql.bind.row_made import arguments, as_value
from halfjoin.sql.bind.row_values import compared_rows, row_of, tested
from halfjoin.sql.bind.scope import Scope, find
from halfjoin.sql.bind.sequences import CALLS, sequence_value
from halfjoin.sql.bind.system_functions import system_call
from halfjoin.sql.bind.unmaintained import refuse_expression, refuse_function
from halfjoin.sql.expr import Call, Expr, Literal
from halfjoin.sql.functions import record_values
from halfjoin.sql.functions.chance import CALLED, CHANCE
from halfjoin.sql.functions.jsonb_records import POPULATED_ONE, populated
from halfjoin.sql.functions.table_functions import returns_rows
from halfjoin.sql.parse.locate import name_of, owner_of
from halfjoin.sql.parse.syntax import FieldChange, OrderText, Variadic
from halfjoin.sql.parse.type_names import FUNCTIONS as TYPE_FUNCTIONS
from halfjoin.sql.types import (
    BOOLEAN,
    DATE,
    SECOND_DIGITS,
    STRINGS,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    Kind,
)


@dataclass(frozen=True)
class Scalars:
    """Binds expressions at one place of a query.

    `scopes` is innermost first. `bound` maps the identity of nodes that are already bound to their expressions, such
    as the set-returning call of a SELECT list.
    """

    context: Context
    scopes: tuple[Scope, ...]
    bound: Mapping[int, Expr] = field(default_factory=dict)

    def value(self, node: exp.Expr) -> Expr:
        """The expression as a value; UnsupportedSQL if it contains mz_now()."""
        if id(node) in self.bound:
            return self.bound[id(node)]
        handler = HANDLERS.get(type(node))
        if handler is None:
            raise refuse_expression(node, self.context)
        with self.context.at(node):
            return handler(self, node)

    def binding(self, more: Mapping[int, Expr]) -> Self:
        """The binder that knows the expressions of more nodes, by the nodes' identity."""
        return replace(self, bound={**self.bound, **more})

    def values(self, nodes: Sequence[exp.Expr]) -> tuple[Expr, ...]:
        """Several expressions as values."""
        return tuple(self.value(node) for node in nodes)

    def condition(self, node: exp.Expr) -> Expr:
        """The expression as a condition of WHERE or ON: it is boolean, and may compare mz_now()."""
        with self.context.at(node):
            bound = self._formula(node)
            if bound.type not in (BOOLEAN, UNKNOWN):
                raise UnsupportedSQL(f"a condition must be boolean, not {bound.type}", wrong=True)
            return functions.cast(bound, BOOLEAN)

    def _formula(self, node: exp.Expr) -> Expr:
        """AND, OR and NOT over conditions, and comparisons with mz_now()."""
        if not bind_temporal.mentions_now(node):
            return self.value(node)
        if isinstance(node, exp.Paren):
            return self._formula(node.this)
        if isinstance(node, exp.Not):
            return functions.resolve("not", (self.condition(node.this),))
        if isinstance(node, (exp.And, exp.Or)):
            return functions.resolve(node.key, tuple(self.condition(part) for part in _flat(node)))
        return bind_temporal.comparison(node, self.value, self.context)


def _flat(node: exp.Expr) -> list[exp.Expr]:
    """The operands of a chain of one connector, found in a loop: recursion would run out of stack on long chains."""
    parts: list[exp.Expr] = []
    stack: list[exp.Expr] = [node]
    while stack:
        part = stack.pop()
        if type(part) is type(node):
            stack += [part.expression, part.this]
        else:
            parts.append(part)
    return parts


def _operator(name: str) -> Callable[[Scalars, Any], Expr]:
    def bind(scalars: Scalars, node: exp.Binary) -> Expr:
        return functions.resolve(name, (scalars.value(node.this), scalars.value(node.expression)))
    return bind


def _joined(scalars: Scalars, node: exp.Binary) -> Expr:
    args = [scalars.value(node.this), scalars.value(node.expression)]
    texts = any(arg.type.kind in (*STRINGS, Kind.UNKNOWN) for arg in args)
    return functions.resolve("||", named(args, scalars.context) if texts else args)


def _comparison(name: str) -> Callable[[Scalars, Any], Expr]:
    def bind(scalars: Scalars, node: exp.Binary) -> Expr:
        left, right = node.this, node.expression
        if isinstance(right, exp.Any):
            return _quantified(scalars, node, f"{name} any", right.this)
        if isinstance(right, exp.Anonymous) and right.name.lower() in ("all", "some"):
            word = "all" if right.name.lower() == "all" else "any"
            return _quantified(scalars, node, f"{name} {word}", right.expressions[0])
        rows = compared_rows(name, left, right, scalars)
        return functions.resolve(name, (scalars.value(left), scalars.value(right))) if rows is None else rows
    return bind


def _quantified(scalars: Scalars, node: exp.Binary, name: str, array: exp.Expr) -> Expr:
    if isinstance(array.unnest(), exp.Query):
        raise scalars.context.unmaintained(array, f"{name.upper()} (subquery) is", ON_TOP)
    return functions.resolve(name, (scalars.value(node.this), scalars.value(array)))


def _connector(scalars: Scalars, node: exp.Connector) -> Expr:
    return functions.resolve(node.key, [_truth(scalars, part, node.key) for part in _flat(node)])


def _truth(scalars: Scalars, node: exp.Expr, word: str) -> Expr:
    """A value that AND, OR, NOT or IS TRUE asks; UnsupportedSQL at its own place if it is not boolean."""
    value = scalars.value(node)
    if value.type.kind not in (BOOLEAN.kind, UNKNOWN.kind):
        error = scalars.context.wrong(node, f"argument of {word.upper()} must be boolean, not {value.type}")
        raise error.with_(code="42804")
    return value


def _not(scalars: Scalars, node: exp.Not) -> Expr:
    asked = node.this
    if isinstance(asked, exp.Is) and (node.meta.get("is_not") or not isinstance(asked.expression, exp.Null)):
        return _is(scalars, asked, "is not")
    if isinstance(asked, exp.Is):  # NOT r IS NULL; of a row it is not r IS NOT NULL
        null = _is(scalars, asked)
        if isinstance(null, Call) and null.function == "is null":
            return functions.resolve("is not null", null.args)
        return functions.resolve("not", (null,))
    return functions.resolve("not", (_truth(scalars, node.this, "not"),))


def _is(scalars: Scalars, node: exp.Is, word: str = "is") -> Expr:
    if isinstance(node.expression, exp.Null):
        if (rows := tested(node.this, word, scalars)) is not None:
            return rows
        return functions.resolve(f"{word} null", (scalars.value(node.this),))
    if isinstance(node.expression, exp.Boolean):
        name = f"{word} {str(node.expression.this).lower()}"
        return functions.resolve(name, (_truth(scalars, node.this, name),))
    raise refuse_expression(node, scalars.context)


def _column(scalars: Scalars, node: exp.Column) -> Expr:
    if isinstance(node.this, exp.Star):
        return _row(scalars, node)
    if node.meta.get("asker"):
        return _session(name_of(node))(scalars, node)
    try:
        return find(scalars.scopes, name_of(node), *owner_of(node))
    except UnsupportedSQL:
        if (row := row_of(node, scalars)) is None:
            raise
        return as_value(row, scalars)


def _field(scalars: Scalars, node: exp.Dot) -> Expr:
    """`(t).a`, `(ROW(1, 2)).f1`."""
    value = scalars.value(node.this)
    if not record_values.is_record(value) or not isinstance(node.expression, exp.Identifier):
        raise scalars.context.wrong(node, f"a {value.type} is no row, so it has no fields").with_(code="42809")
    name, names = name_of(node.expression), [name for name, _ in value.type.fields]
    if name not in names:
        raise UnknownName("column", name, names)
    return record_values.member(value, names.index(name))


def _row(scalars: Scalars, node: exp.Expr) -> Expr:
    row = row_of(node, scalars)
    if row is None:
        raise UnknownName("table or alias", name_of(node.args["table"]))
    return as_value(row, scalars)


def _function(scalars: Scalars, node: exp.Anonymous) -> Expr:
    name, context = node.name.lower(), scalars.context
    if name == "row":
        return _row(scalars, node)
    refuse_function(name, node, context)
    if name == "array" and any(isinstance(item, exp.Query) for item in node.expressions):
        raise context.unmaintained(node, "ARRAY(subquery) is", ON_TOP)
    if name in NOT_CALLED or not name.replace("_", "").isalnum():
        raise UnknownName("function", name)
    if name == "mz_now":
        raise bind_temporal.misplaced(node, context)
    if name in POPULATED_ONE and len(node.expressions) == 2:
        base, given = scalars.values(node.expressions)
        if record_values.is_record(base):
            context.records.append(name)
            return populated(name, base, given)
    if returns_rows(name, context.schema):
        raise context.refuse(node, f"{name} returns rows, which is not allowed here",
                             f"write it in FROM: FROM ..., {name}(...)")
    if any(isinstance(arg, (exp.Distinct, exp.Star, exp.Order)) for arg in node.expressions):
        if not functions.exists(name):
            raise functions.unknown(name)
        raise context.wrong(node, f"{name} takes plain arguments only").with_(code="42809")
    if context.system is not None and (columns := of_rows(name, node)) is not None:
        return scalars.value(columns)
    if name in CALLS and context.now is not None:
        context.fleeting.append(name)
        return sequence_value(node, not any(scope.sources for scope in scalars.scopes), context, scalars.value)
    if node.expressions and isinstance(node.expressions[-1], Variadic):
        return functions.spread(name, scalars.values([*node.expressions[:-1], node.expressions[-1].this]))
    args = arguments(name, positional(name, node, context), scalars)
    if not args and (value := _moment(scalars, name) or _chance(scalars, name)) is not None:
        return value
    if name in SHORTENED and (digits := _digits(args)) is not None and (value := _moment(scalars, name)) is not None:
        return functions.cast(value, replace(value.type, precision=digits), explicit=True)
    if name == "age" and len(args) == 1 and (today := _moment(scalars, "current_date")) is not None:
        return functions.resolve("age", (today, *args))
    if (known := system_call(name, args, context)) is not None:
        return known
    if name in TYPE_FUNCTIONS and len(args) == 1:
        return functions.cast(args[0], TYPE_FUNCTIONS[name], explicit=True)
    return functions.resolve(name, named(args, context) if name in ("concat", "concat_ws", "format") else args)


def _clock(scalars: Scalars, node: exp.Expr) -> Expr:
    name = node.key if node.key.startswith("local") else node.sql("postgres").lower().removesuffix("()")
    return _moment(scalars, name) or functions.resolve(name, ())


def _session(name: str) -> Callable[[Scalars, Any], Expr]:
    def bind(scalars: Scalars, node: exp.Expr) -> Expr:
        return system_call(name, (), scalars.context) or functions.resolve(name, ())
    return bind


def _chance(scalars: Scalars, name: str) -> Expr | None:
    """The call of a function of chance, in a query. Each row gets a value of its own."""
    if scalars.context.now is None or name not in CHANCE:
        return None
    scalars.context.fleeting.append(name)
    return Call(CALLED.get(name, name), (), CHANCE[name])


def _digits(args: Sequence[Expr]) -> int | None:
    """The digits of the second in `current_timestamp(3)`."""
    if len(args) != 1 or not isinstance(args[0], Literal) or not isinstance(args[0].value, int) or args[0].value < 0:
        return None
    return min(args[0].value, SECOND_DIGITS)


def _moment(scalars: Scalars, name: str) -> Expr | None:
    """The value of a clock function, in a query that may read the clock."""
    if scalars.context.now is not None and name == "current_time":
        raise UnsupportedSQL("current_time is a time with time zone, a type that is not supported",
                             remedy="write localtime, or current_timestamp")
    if scalars.context.now is None or name not in CLOCKS:
        return None
    scalars.context.fleeting.append(name)
    return functions.cast(Literal(scalars.context.now, UNKNOWN), CLOCKS[name], explicit=True)


SHORTENED = ("current_timestamp", "localtimestamp", "localtime", "current_time")  # these may have digits of the second
CLOCKS = {
    **dict.fromkeys(("now", "current_timestamp", "clock_timestamp", "statement_timestamp", "transaction_timestamp"),
                    TIMESTAMPTZ),
    "current_date": DATE, "localtimestamp": TIMESTAMP, "localtime": TIME,
}  # fmt: skip


# Entries of the function table for operators, forms and the binder, which SQL text cannot call by name.
NOT_CALLED = frozenset((
    "and", "array", "case", "fit", "ilike", "in", "like", "neg", "not", "or", "order text", "single row", "slice",
))  # fmt: skip
OPERATORS: dict[type[exp.Expr], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.Pow: "^",
}
HANDLERS: dict[type, Callable[[Scalars, Any], Expr]] = {
    **FORMS,
    **NAMED_OPERATORS,
    **{kind: _operator(name) for kind, name in OPERATORS.items()},
    **{kind: _comparison(name) for kind, name in bind_temporal.COMPARISONS.items()},
    exp.DPipe: _joined,
    exp.NullSafeEQ: _comparison("is not distinct from"),
    exp.NullSafeNEQ: _comparison("is distinct from"),
    exp.And: _connector,
    exp.Or: _connector,
    exp.Not: _not,
    exp.Is: _is,
    exp.Paren: lambda scalars, node: scalars.value(node.this),
    exp.Column: _column,
    exp.Dot: _field,
    exp.Tuple: _row,
    exp.Anonymous: _function,
    FieldChange: changed_fields,
    OrderText: lambda scalars, node: functions.resolve("order text", (scalars.value(node.this),)),
    **{kind: _session(name) for kind, name in (
        (exp.CurrentUser, "current_user"), (exp.SessionUser, "session_user"), (exp.CurrentRole, "current_role"),
        (exp.CurrentCatalog, "current_catalog"), (exp.CurrentSchema, "current_schema"))},
    exp.CurrentDate: _clock,
    exp.CurrentTime: _clock,
    exp.CurrentTimestamp: _clock,
    exp.Localtime: _clock,
    exp.Localtimestamp: _clock,
}
