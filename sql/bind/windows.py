"""Binds window functions: `sum(x) OVER (PARTITION BY a ORDER BY b ROWS 3 PRECEDING)`, named windows and QUALIFY.

They are computed over the rows, or over the groups if there are any. Calls over one partition and order share a Window;
several Windows are a chain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from halfjoin.errors import UnknownName, UnsupportedSQL
from halfjoin.sql.bind.aggregates import arguments, called, is_star, sort_keys
from halfjoin.sql.bind.constant import constant
from halfjoin.sql.bind.context import Context
from halfjoin.sql.bind.outputs import Output, named
from halfjoin.sql.bind.row_made import arguments as made_arguments
from halfjoin.sql.bind.row_sequence import NUMBERS
from halfjoin.sql.bind.row_values import expanded, row_of
from halfjoin.sql.bind.scalar import Scalars
from halfjoin.sql.bind.selected import known, qualified
from halfjoin.sql.expr import Column, Expr, columns_of
from halfjoin.sql.functions.frames import resolve_frame
from halfjoin.sql.functions.jsonb_aggregates import finished
from halfjoin.sql.functions.order import check_equality, result_of
from halfjoin.sql.functions.window_functions import resolve_window
from halfjoin.sql.parse.locate import name_of, only, written
from halfjoin.sql.relation import Bound, Frame, Project, Relation, SortKey, Window, WindowCall

Over = tuple[tuple[Expr, ...], tuple[SortKey, ...]]  # a partition and an order
_UNITS: dict[str, Literal["rows", "range", "groups"]] = {"ROWS": "rows", "RANGE": "range", "GROUPS": "groups"}
_EXCLUDED: dict[str, Literal["no others", "current row", "group", "ties"]] = {
    "": "no others", "NO OTHERS": "no others", "CURRENT ROW": "current row", "GROUP": "group", "TIES": "ties",
}  # fmt: skip
_NEVER_NULL = ("count", "cume_dist", "dense_rank", "percent_rank", "rank", "regr_count", "row_number")


def windows_in(nodes: Sequence[exp.Expr], bound: Mapping[int, Expr]) -> list[exp.Window]:
    """The window functions in the nodes, outside subqueries."""
    return [call for node in nodes for call in _windows(node, bound)]


def _windows(node: exp.Expr, bound: Mapping[int, Expr]) -> Iterator[exp.Window]:
    for part in node.walk(prune=lambda part: isinstance(part, (exp.Query, exp.Window)) or id(part) in bound):
        if isinstance(part, exp.Window) and id(part) not in bound:
            yield part


def with_windows(query: exp.Select, nodes: Sequence[exp.Expr], relation: Relation,
                 scalars: Scalars) -> tuple[Relation, Scalars]:
    """The rows with the window functions of the nodes, and the binder that knows the functions' columns.

    Only the columns that the query reads go in, so rows that tie are ordered by these.
    """
    calls = windows_in(nodes, scalars.bound)
    defined = _defined(query, scalars.context)
    named = {name_of(call.args["alias"]) for call in calls if call.args.get("alias")}
    for name, window in defined.items():
        if name not in named:  # a definition that nobody uses is checked, too
            _over(window, scalars)
    if not calls:
        return relation, scalars
    namer = qualified(scalars.context.aliases.fresh("window"))
    spread: dict[Over, dict[WindowCall, Column]] = {}
    bound: dict[int, Expr] = {}
    for node in calls:
        over, call = _call(node, defined, scalars)
        columns = spread.setdefault(over, {})
        if call not in columns:
            columns[call] = Column(namer(call.function), call.type, call.function not in _NEVER_NULL)
        bound[id(node)] = finished(called(node.this).name.lower(), result_of(call, columns[call]), call.args)
    after = scalars.binding(bound)
    if not any(node.find(exp.Query) for node in nodes):
        read = frozenset().union(*(_read(node, after) for node in nodes), *map(_read_by, spread, spread.values()))
        if any(column.name not in read for column in relation.columns):
            items = tuple((column, column) for column in relation.columns if column.name in read)
            relation = Project(relation, items)
    for (partition, order), columns in spread.items():
        relation = Window(relation, partition, order, tuple((column, call) for call, column in columns.items()))
    return relation, after


def _read(node: exp.Expr, scalars: Scalars) -> frozenset[str]:
    """The columns that a node reads. A node that is not a value, such as a function that returns rows, has parts."""
    try:
        return columns_of(scalars.value(node))
    except (UnknownName, UnsupportedSQL):  # raised again where the node is bound
        return frozenset().union(*(_read(part, scalars) for part in node.iter_expressions()))


def _read_by(over: Over, calls: Mapping[WindowCall, Column]) -> frozenset[str]:
    """The columns that window functions over one partition and order read."""
    partition, order = over
    values = [*partition, *(key.expr for key in order)]
    for call in calls:
        values += [*call.args, *([call.condition] if call.condition else ())]
    return frozenset().union(*map(columns_of, values))


@dataclass(frozen=True)
class _Definition:
    """A window as syntax."""

    partition: list[exp.Expr]
    order: list[exp.Ordered]
    frame: exp.WindowSpec | None


def defined_by(query: exp.Select) -> list[exp.Expr]:
    """The values by which the windows of a WINDOW clause part and order, which may have subqueries and aggregates."""
    return [value for node in query.args.get("windows") or () for value in (
        *(node.args.get("partition_by") or ()),
        *(key.this for key in (node.args["order"].expressions if node.args.get("order") else ())))]  # fmt: skip


def _defined(query: exp.Select, context: Context) -> dict[str, _Definition]:
    """The windows of a query's WINDOW clause; each may build on those before it."""
    defined: dict[str, _Definition] = {}
    for node in query.args.get("windows") or ():
        name = name_of(node.this)
        if name in defined:
            raise context.wrong(node, f'window "{name}" is already defined').with_(code="42P20")
        defined[name] = _definition(node, defined, context)
    return defined


def _definition(node: exp.Window, defined: Mapping[str, _Definition], context: Context) -> _Definition:
    """The window of an OVER or of a definition, with what it takes over from the window that it names."""
    only(node, context.sql, "OVER", ("this", "partition_by", "order", "spec", "alias", "over"))
    order = node.args.get("order")
    own = _Definition(node.args.get("partition_by") or [], order.expressions if order else [], node.args.get("spec"))
    if not node.args.get("alias"):
        return own
    name = name_of(node.args["alias"])
    if name not in defined:
        raise context.wrong(node, f'window "{name}" does not exist', "define it: WINDOW w AS (...)").with_(
            code="42704")
    base = defined[name]
    if own.partition:
        raise context.wrong(node, f'cannot override PARTITION BY clause of window "{name}"').with_(code="42P20")
    if own.order and base.order:
        raise context.wrong(node, f'cannot override ORDER BY clause of window "{name}"').with_(code="42P20")
    if base.frame is not None and (own.order or own.frame):
        raise context.wrong(node, f'cannot copy window "{name}" because it has a frame clause').with_(code="42P20")
    return _Definition(base.partition, own.order or base.order, own.frame or base.frame)


def _call(node: exp.Window, defined: Mapping[str, _Definition], scalars: Scalars) -> tuple[Over, WindowCall]:
    """A window function: its window, and the call with arguments and condition bound."""
    context, call = scalars.context, node.this
    window = _definition(node, defined, context)
    condition, ignore_nulls = None, False
    while isinstance(call, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)):
        if isinstance(call, exp.Filter):
            condition = scalars.value(call.expression.this)
        ignore_nulls = ignore_nulls or isinstance(call, exp.IgnoreNulls)
        call = call.this
    if isinstance(call, exp.WithinGroup):
        raise context.wrong(node, f"OVER is not supported for ordered-set aggregate {call.this.name.lower()}")
    if not isinstance(call, exp.Anonymous):
        raise context.wrong(node, f"{written(call)} is not a window function")
    name = call.name.lower()
    nodes, sort, distinct = arguments(call)
    if distinct or sort:
        what = "DISTINCT" if distinct else "aggregate ORDER BY"
        raise context.wrong(call, f"{what} is not implemented for window functions",
                            "compute it in a subquery with GROUP BY, and join with it")
    if nodes and isinstance(nodes[-1], (exp.IgnoreNulls, exp.RespectNulls)):  # DuckDB's, after the last argument
        ignore_nulls = isinstance(nodes[-1], exp.IgnoreNulls)
        nodes[-1] = nodes[-1].this
    row = row_of(nodes[0], scalars) if name == "count" and len(nodes) == 1 else None
    if row is not None and row.there is not None:  # count(t) counts the rows that are there
        nodes = [row.there]
    counts = row is not None and row.there is None
    counts = counts or (name == "count" and is_star(name, nodes, False, call, scalars))
    args = () if counts else made_arguments(name, nodes, scalars)
    with context.at(node):
        partition, order, frame = _over(window, scalars)
    if name in NUMBERS and not partition and not order and window.frame is None:
        order = scalars.scopes[0].order
    with context.at(call):
        made = resolve_window(name, args, frame=frame, condition=condition, ignore_nulls=ignore_nulls,
                              defined=context.schema.aggregate(name),
                              ordered=bool(order))
    return (partition, order), made


def _over(window: _Definition, scalars: Scalars) -> tuple[tuple[Expr, ...], tuple[SortKey, ...], Frame]:
    """The partition, the order and the frame of a window."""
    partition = tuple(dict.fromkeys(known(value) for value in scalars.values(expanded(window.partition, scalars))))
    check_equality(*(value.type for value in partition))
    order = sort_keys(window.order, scalars)
    frame = _frame(window.frame, scalars)
    if window.frame is None:
        return partition, order, resolve_frame(frame, order)
    with scalars.context.at(window.frame):
        return partition, order, resolve_frame(frame, order)


def _frame(spec: exp.WindowSpec | None, scalars: Scalars) -> Frame:
    """The frame as written; without an end it ends at the current row."""
    if spec is None:
        return Frame()
    unit, exclude = spec.text("kind").upper(), spec.text("exclude").upper()
    if unit not in _UNITS or exclude not in _EXCLUDED:
        raise scalars.context.refuse(spec, "this frame is not supported", "write ROWS BETWEEN ... AND ...")
    end = _bound("end", spec, scalars) if spec.args.get("end") else Bound("current row")
    return Frame(_UNITS[unit], _bound("start", spec, scalars), end, _EXCLUDED[exclude])


def _bound(which: str, spec: exp.WindowSpec, scalars: Scalars) -> Bound:
    value, side = spec.args.get(which), spec.text(f"{which}_side").upper()
    if isinstance(value, str):
        if value.upper() == "CURRENT ROW":
            return Bound("current row")
        return Bound("preceding" if side == "PRECEDING" else "following")
    assert value is not None
    return Bound("preceding" if side == "PRECEDING" else "following", constant(scalars.value(value)))


def alias_columns(condition: exp.Expr, outputs: Sequence[Output], scalars: Scalars) -> Scalars:
    """The binder of QUALIFY, which may name outputs; a column of FROM wins."""
    bound: dict[int, Expr] = {}
    for node in condition.find_all(exp.Column):
        if not node.table and scalars.scopes[0].column(name_of(node)) is None:
            place = named(node, outputs, "QUALIFY", scalars)
            if place is not None:
                bound[id(node)] = scalars.value(outputs[place].node)
    return scalars.binding(bound)
