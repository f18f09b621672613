"""Aggregates and window functions of queries: PostgreSQL's result types, and the DuckDB text that computes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from sqlglot import exp

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql import functions
from halfjoin.sql.adhoc.script import wrong
from halfjoin.sql.bind.scalar import Scalars
from halfjoin.sql.expr import Expr, Literal
from halfjoin.sql.functions.aggregates import AGGREGATES
from halfjoin.sql.functions.window_functions import WINDOW_FUNCTIONS
from halfjoin.sql.parse.locate import written
from halfjoin.sql.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    FLOATS,
    INTEGER,
    INTEGERS,
    STORED_DIGITS,
    STRINGS,
    TEXT,
    UNKNOWN,
    Kind,
    SqlType,
    array,
    numeric,
)

_SPREAD = ("stddev", "stddev_pop", "stddev_samp", "var_pop", "var_samp", "variance")
_FROM_ONE = ("ntile", "nth_value")
_ORDERED_SETS = ("mode", "percentile_cont", "percentile_disc")


@dataclass
class Inputs:
    """The values that a step passes to DuckDB, one column each."""

    values: list[Expr] = field(default_factory=list)

    def column(self, value: Expr) -> str:
        """The name of a value's column, which is added if it is missing."""
        value = functions.cast(value, TEXT) if value.type == UNKNOWN else value
        if value not in self.values:
            self.values.append(value)
        return f"c{self.values.index(value) + 1}"


@dataclass(frozen=True)
class Computed:
    """A call as DuckDB expressions with their types, and a function from their results to the call's value."""

    parts: tuple[tuple[str, SqlType], ...]
    value: Callable[[Sequence[Expr]], Expr] = lambda parts: parts[0]


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node is a call of an aggregate, possibly with FILTER or WITHIN GROUP."""
    while isinstance(node, (exp.Filter, exp.WithinGroup)):
        node = node.this
    return isinstance(node, exp.Anonymous) and node.name.lower() in AGGREGATES


def aggregate(node: exp.Expr, scalars: Scalars, inputs: Inputs, over: str = "") -> Computed:
    """A call of an aggregate; `over`, the text of an OVER clause, makes it a window function."""
    suffix, within = over, None
    if isinstance(node, exp.Filter):
        suffix = f" FILTER (WHERE {inputs.column(scalars.condition(node.expression.this))}){over}"
        node = node.this
    if isinstance(node, exp.WithinGroup):
        node, within = node.this, node.expression
    name, nodes = node.name.lower(), list(node.expressions)
    order, distinct = "", ""
    if nodes and isinstance(nodes[-1], exp.Order):
        order = f" ORDER BY {sort_keys(nodes[-1].expressions, scalars, inputs)}"
        last = nodes.pop().this
        nodes += [last] if last is not None else []
    if len(nodes) == 1 and isinstance(nodes[0], exp.Distinct):
        distinct, nodes = "DISTINCT ", list(nodes[0].expressions)
    if over and (order or distinct or within is not None):
        raise wrong(node, scalars.context, "a window function takes no DISTINCT, ORDER BY or WITHIN GROUP",
                    "compute it in a subquery in FROM")
    if within is not None or name in _ORDERED_SETS:
        return _ordered_set(node, name, nodes, within, scalars, inputs, suffix)
    if len(nodes) == 1 and isinstance(nodes[0], exp.Star):
        if name != "count" or distinct:
            raise scalars.context.refuse(node, f"{name}(*) is not supported", "name the column")
        return Computed(((f"count(*){suffix}", BIGINT),))
    with scalars.context.at(node):
        args = scalars.values(nodes)
        made = _made(name, args)
        rest = [Literal("", TEXT) if arg == Literal(None, UNKNOWN) else arg for arg in args[1:]]  # NULL: none
        columns = ", ".join([inputs.column(args[0] if made.arg is None else functions.cast(args[0], made.arg)),
                             *map(_constant, rest)])
    if distinct and not order:
        order = f" ORDER BY {columns.partition(', ')[0]} NULLS LAST"  # PostgreSQL finds distinct values by sorting
    parts = tuple((f"{word}({distinct}{columns}{order}){suffix}", type) for word, type in made.parts)
    return Computed(parts, made.value)


@dataclass(frozen=True)
class _Made:
    """DuckDB's functions over one argument, cast to `arg`, and a function from their results to the call's value."""

    parts: tuple[tuple[str, SqlType], ...]
    arg: SqlType | None = None
    value: Callable[[Sequence[Expr]], Expr] = lambda parts: parts[0]


def _made(name: str, args: Sequence[Expr]) -> _Made:
    type = args[0].type if args else UNKNOWN
    if len(args) != (2 if name == "string_agg" else 1):
        raise UnsupportedSQL(f"no aggregate {name} of {len(args)} arguments")
    number = type.kind in (*INTEGERS, *FLOATS, Kind.NUMERIC)
    match name:
        case "count":
            return _Made((("count", BIGINT),))
        case "sum" if number:
            return _Made((("sum", _sum(type)),))
        case "avg" if type.kind in FLOATS:
            return _Made((("avg", DOUBLE),), DOUBLE)
        case "avg" if number:
            exact = numeric(STORED_DIGITS, type.scale or 0)
            return _Made((("sum", exact), ("count", BIGINT)), value=_mean)
        case "min" | "max":
            result = TEXT if type.kind in (Kind.UNKNOWN, Kind.VARCHAR) else type
            return _Made(((name, result),))
        case "bool_and" | "bool_or" | "every" if type.kind in (Kind.BOOLEAN, Kind.UNKNOWN):
            return _Made((("bool_and" if name == "every" else name, BOOLEAN),), BOOLEAN)
        case "bit_and" | "bit_or" if type.kind in INTEGERS:
            return _Made(((name, type),))
        case "array_agg" if type.kind is not Kind.ARRAY:
            return _Made((("array_agg", array(TEXT if type == UNKNOWN else type)),))
        case "string_agg" if type.kind in (*STRINGS, Kind.UNKNOWN):
            return _Made((("string_agg", TEXT),), TEXT)
        case _ if name in _SPREAD and number:
            return _Made(((name, DOUBLE),), DOUBLE)
    raise UnsupportedSQL(f"no aggregate {name}({type})", remedy="cast the argument", wrong=True)


def _sum(type: SqlType) -> SqlType:
    match type.kind:
        case Kind.SMALLINT | Kind.INTEGER:
            return BIGINT
        case Kind.BIGINT:
            return numeric(STORED_DIGITS, 0)
        case Kind.NUMERIC:
            return numeric(STORED_DIGITS, type.scale or 0)
    return type


def _mean(parts: Sequence[Expr]) -> Expr:
    """A sum divided by a count, as numeric; NULL if the count is 0."""
    return functions.resolve("/", (parts[0], functions.resolve("nullif", (parts[1], Literal(0, BIGINT)))))


def _constant(value: Expr) -> str:
    if isinstance(value, Literal) and isinstance(value.value, str | int | None) and not isinstance(value.value, bool):
        return functions.render(value)
    raise UnsupportedSQL("arguments of aggregates and window functions after the first must be constants")


def _ordered_set(node: exp.Expr, name: str, nodes: list[exp.Expr], within: exp.Order | None, scalars: Scalars,
                 inputs: Inputs, suffix: str) -> Computed:
    """`percentile_cont(0.5) WITHIN GROUP (ORDER BY x)`."""
    if name not in _ORDERED_SETS or within is None or len(within.expressions) != 1:
        raise scalars.context.refuse(node, f"{name} is not supported in this form",
                                     "write mode() or percentile_cont(0.5) WITHIN GROUP (ORDER BY x)")
    key = within.expressions[0]
    value = scalars.value(key.this)
    fractions = scalars.values(nodes)
    if len(fractions) != (name != "mode") or not all(map(_is_fraction, fractions)):
        raise scalars.context.refuse(node, f"{name} takes {'nothing' if name == 'mode' else 'a number from 0 to 1'}")
    if name == "percentile_cont":
        value = functions.cast(value, DOUBLE)
    direction = " DESC" if key.args.get("desc") else ""
    fraction = "".join(map(functions.render, fractions))
    text = f"{name}({fraction}) WITHIN GROUP (ORDER BY {inputs.column(value)}{direction}){suffix}"
    return Computed(((text, TEXT if value.type == UNKNOWN else value.type),))


def _is_fraction(value: Expr) -> bool:
    return isinstance(value, Literal) and isinstance(value.value, int | float | Decimal) and 0 <= value.value <= 1


def window(node: exp.Window, scalars: Scalars, inputs: Inputs, tags: Sequence[Expr] = ()) -> Computed:
    """A call with OVER (...); it also partitions by `tags`."""
    if node.alias:
        raise scalars.context.refuse(node, f"there is no window {node.alias}", "define it: WINDOW w AS (...)")
    over = f" OVER ({_over(node, scalars, inputs, tags)})"
    call = node.this
    if is_aggregate(call):
        return aggregate(call, scalars, inputs, over)
    if isinstance(call, (exp.IgnoreNulls, exp.RespectNulls)):
        raise wrong(node, scalars.context, "PostgreSQL has no IGNORE NULLS", "filter them in a subquery in FROM")
    name = call.name.lower() if isinstance(call, exp.Anonymous) else ""
    if name not in WINDOW_FUNCTIONS:
        raise scalars.context.refuse(node, f"{name or written(call)} is not a window function")
    with scalars.context.at(node):
        args = scalars.values(call.expressions)
        result = _window_type(name, args)
        distance = args[:1] if name == "ntile" else args[1:2] if name in ("nth_value", "lag", "lead") else ()
        if not _is_distance(name, distance):
            number = "a number above 0" if name in _FROM_ONE else "a number"
            raise scalars.context.refuse(node, f"{name} takes {number}, a constant")
        values = (functions.cast(arg, result) for arg in args[::2])  # without the second argument, a distance
        texts = [inputs.column(value) for value in values] if name != "ntile" else [_constant(args[0])]
        texts[1:1] = map(_constant, args[1:2])
    return Computed(((f"{name}({', '.join(texts)}){over}", result),))


def _is_distance(name: str, given: Sequence[Expr]) -> bool:
    """Whether the distances are constant 32-bit integers, and at least 1 for functions that count from 1."""
    least = 1 if name in _FROM_ONE else -(2**31)
    return all(isinstance(value, Literal) and isinstance(value.value, int) and not isinstance(value.value, bool)
               and least <= value.value < 2**31 for value in given)


def _window_type(name: str, args: Sequence[Expr]) -> SqlType:
    kinds = [arg.type for arg in args]
    match name, len(args):
        case "row_number" | "rank" | "dense_rank", 0:
            return BIGINT
        case "percent_rank" | "cume_dist", 0:
            return DOUBLE
        case "ntile", 1:
            return INTEGER
        case ("first_value" | "last_value", 1) | ("nth_value", 2) | ("lag" | "lead", 1 | 2):
            return TEXT if kinds[0] == UNKNOWN else kinds[0]
        case "lag" | "lead", 3:
            return functions.common_type([kind for kind in (kinds[0], kinds[2]) if kind != UNKNOWN] or [TEXT])
    raise UnsupportedSQL(f"no window function {name}({', '.join(map(str, kinds))})")


def _over(node: exp.Window, scalars: Scalars, inputs: Inputs, tags: Sequence[Expr]) -> str:
    parts = []
    keys = [*tags, *scalars.values(node.args.get("partition_by") or [])]
    if keys:
        parts.append("PARTITION BY " + ", ".join(map(inputs.column, keys)))
    if order := node.args.get("order"):
        parts.append("ORDER BY " + sort_keys(order.expressions, scalars, inputs))
    if spec := node.args.get("spec"):
        parts.append(_frame(spec, scalars))
    return " ".join(parts)


def _frame(spec: exp.WindowSpec, scalars: Scalars) -> str:
    """ROWS, RANGE or GROUPS: which rows around the current row the window function reads."""
    def bound(end: str) -> str:
        value, side = spec.args.get(end), spec.text(f"{end}_side").upper()
        if isinstance(value, exp.Literal) and not value.is_string and value.name.isdigit() and side:
            if kind == "RANGE":
                raise scalars.context.refuse(spec, "RANGE with a distance is not supported", "write ROWS or GROUPS")
            return f"{int(value.name)} {side}"
        word = str(value).upper()
        if word == "CURRENT ROW" or (word == "UNBOUNDED" and side):
            return f"{word} {side}".strip()
        raise scalars.context.refuse(spec, "bounds of a window must be numbers")

    kind, exclude = spec.text("kind").upper(), spec.text("exclude").upper()
    if kind not in ("ROWS", "RANGE", "GROUPS") or exclude not in ("", "NO OTHERS", "CURRENT ROW", "GROUP", "TIES"):
        raise scalars.context.refuse(spec, "this frame is not supported", "write ROWS BETWEEN ... AND ...")
    start, end = bound("start"), bound("end") if spec.args.get("end") else "CURRENT ROW"
    return f"{kind} BETWEEN {start} AND {end}" + (f" EXCLUDE {exclude}" if exclude else "")


def sort_keys(keys: Sequence[exp.Ordered], scalars: Scalars, inputs: Inputs) -> str:
    """The text of ORDER BY over columns, with PostgreSQL's order of NULLs."""
    return ", ".join(f"{inputs.column(scalars.value(key.this))}{direction(key)}" for key in keys)


def direction(key: exp.Ordered) -> str:
    """The text of ASC or DESC, with NULLS FIRST or LAST."""
    down, first = bool(key.args.get("desc")), bool(key.args.get("nulls_first"))
    return f"{' DESC' if down else ' ASC'} NULLS {'FIRST' if first else 'LAST'}"
