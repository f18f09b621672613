"""Queries: conditions on the keys of groups go below the groups, so that only groups that are asked for are made.

A query over a view with GROUP BY often asks for one group. A view does not profit: it shares the groups with other
views. A group's rows have equal keys, and a comparison with a constant does not tell equal values apart, so a condition
holds for all rows of a group or for none. The same is true of the partitions of window functions and of LIMIT.

Nothing below may fail: an error of another group is an error of the query, as it is one of a view with the same SQL.
Only a value that is too long is no error where nobody asks for its group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from halfjoin.planner.equal_groups import asked_of_all, equals
from halfjoin.planner.implied import implied
from halfjoin.planner.rules.fold_constants import fold
from halfjoin.sql.bind.reading import expressions
from halfjoin.sql.expr import (
    Call,
    Cast,
    Column,
    Expr,
    Literal,
    columns_of,
    conjunction,
    conjuncts,
    is_temporal,
    rewrite,
    substitute,
)
from halfjoin.sql.functions.fallible import fallible
from halfjoin.sql.relation import (
    Aggregate,
    AggregateCall,
    Filter,
    Join,
    Outer,
    Project,
    Relation,
    Scan,
    Semi,
    TopK,
    UnionAll,
    Window,
    WindowCall,
    every_part,
    with_inputs,
)
from halfjoin.sql.types import INTEGERS
from halfjoin.sql.unseen import is_unseen

_COMPARISONS = frozenset(("=", "<>", "<", "<=", ">", ">=", "in", "is null"))
_SAFE = frozenset((  # what fails of these fails above the groups, unless it is too long
    "count", "sum", "avg", "min", "max", "bool_and", "bool_or", "every", "bit_and", "bit_or", "any_value", "array_agg",
    "string_agg", "bit_xor", "var_pop", "var_samp", "variance", "stddev_pop", "stddev_samp", "stddev", "covar_pop",
    "covar_samp", "corr", "regr_count", "regr_avgx", "regr_avgy", "regr_slope", "regr_intercept", "regr_r2", "regr_sxx",
    "regr_syy", "regr_sxy",
))  # fmt: skip
_RANKS = frozenset(("row_number", "rank", "dense_rank"))
_OF_ROWS = frozenset(("lag", "lead", "first_value", "last_value"))
Restrict = Callable[[Relation, Expr], Relation]  # leaves rows with some values of an expression
Checked = Callable[[str], bool]  # whether a table or view has no row fewer than no times, as its key tells


def below_groups(relation: Relation, checked: Checked) -> Relation:
    """The same query with conditions on keys below the groups."""
    relation = with_inputs(relation, lambda one: below_groups(one, checked))
    if not isinstance(relation, Filter):
        return relation
    input, left, told, of_equals = relation.input, list[Expr](), list[Expr](), list[Expr]()
    several = equals(input)
    shared = {column.name for same in several for one in same for column in one.columns}
    for condition in conjuncts(relation.predicate):
        asked = rewrite(fold(condition), _widened)
        made = None
        if compares(asked):
            told.append(asked)
            if columns_of(asked) <= shared:
                of_equals.append(asked)
            else:
                made = _lowered(asked, input, checked)
        if made is None:
            left.append(condition)
        else:
            input = made
    for same in several:
        for conditions in asked_of_all(same, of_equals):
            input = _lowered_all(conditions, input, checked)
    for condition in implied(relation, told):
        if not columns_of(condition) <= shared:
            input = _lowered_beside(condition, input, checked) or input
    if input is relation.input:
        return relation
    return Filter(input, conjunction(tuple(left))) if left else input


def _widened(expr: Expr) -> Expr:
    """A constant integer in a wider type, as a constant of that type."""
    if isinstance(expr, Cast) and isinstance(expr.arg, Literal) and expr.type.kind in INTEGERS:
        known = expr.arg.type.kind in INTEGERS and not is_unseen(expr.arg.value) and not fallible(expr)
        return Literal(expr.arg.value, expr.type) if known else expr
    return expr


def _lowered(condition: Expr, relation: Relation, checked: Checked) -> Relation | None:
    """The relation with a condition on its rows below its groups; None: it does not get there."""
    (name,) = columns_of(condition)
    return lowered(name, lambda input, expr: Filter(input, substitute(condition, {name: expr})), relation, checked,
                   whole=True)  # fmt: skip


def _lowered_all(conditions: Iterable[Expr], relation: Relation, checked: Checked) -> Relation:
    """As `_lowered`, of all conditions or of none."""
    made: Relation = relation
    for condition in conditions:
        found = _lowered(condition, made, checked)
        if found is None:
            return relation
        made = found
    return made


def _lowered_beside(condition: Expr, relation: Relation, checked: Checked) -> Relation | None:
    """As `_lowered`, of a condition that the rows meet anyway: also in a looked-up side, whose rows then have no
    partner that stays."""

    def below(input: Relation) -> Relation | None:
        here = columns_of(condition) <= {column.name for column in input.columns}
        return _lowered_beside(condition, input, checked) if here else None

    match relation:
        case Filter(input):
            made = below(input)
            return None if made is None else replace(relation, input=made)
        case Outer(left, right, full=False):
            made, other = below(left), below(right)
            return None if made is other else replace(relation, left=made or left, right=other or right)
        case Semi(input, other):
            made, asked = below(input), below(other)
            return None if made is asked else replace(relation, input=made or input, other=asked or other)
        case Join(inputs):
            found = [below(one) for one in inputs]
            return None if not any(found) else Join(tuple(
                made or one for made, one in zip(found, inputs, strict=True)))
        case _:
            return _lowered(condition, relation, checked)


def compares(condition: Expr) -> bool:
    """Whether it is a comparison of a column with constants."""
    return (isinstance(condition, Call) and condition.function in _COMPARISONS and len(columns_of(condition)) == 1
            and all(isinstance(arg, Column | Literal) for arg in condition.args))  # fmt: skip


def lowered(name: str, restrict: Restrict, relation: Relation, checked: Checked, *, whole: bool) -> Relation | None:
    """The relation with some of its rows, as a column of them tells, chosen below its groups; None: it does not get
    there. `whole`: the others must go; otherwise they may."""

    def below(name: str, input: Relation) -> Relation | None:
        return lowered(name, restrict, input, checked, whole=whole)

    def chosen(expr: Expr, input: Relation) -> Relation:
        made = below(expr.name, input) if isinstance(expr, Column) else None
        if made is None and isinstance(expr, Column):
            made = in_join(expr.name, lambda one, column: chosen(column, one), input)
        return restrict(input, expr) if made is None else made

    match relation:
        case Filter(input):
            made = below(name, input)
            return None if made is None else replace(relation, input=made)
        case Project(input, items):
            expr = next(expr for column, expr in items if column.name == name)
            made = below(expr.name, input) if isinstance(expr, Column) else None
            return None if made is None else replace(relation, input=made)
        case Aggregate(input, keys):
            key = next((expr for column, expr in keys if column.name == name), None)
            return None if key is None or not is_safe(relation, checked) else replace(
                relation, input=chosen(key, input))  # fmt: skip
        case Window(input, partition) | TopK(input, partition):
            key = next((expr for expr in partition if isinstance(expr, Column) and expr.name == name), None)
            return None if key is None or not is_safe(relation, checked) else replace(
                relation, input=chosen(key, input))  # fmt: skip
        case Join(inputs):
            found = [below(name, one) if any(column.name == name for column in one.columns) else None
                     for one in inputs]
            return None if all(one is None for one in found) else Join(tuple(
                one if made is None else made for made, one in zip(found, inputs, strict=True)))
        case Outer(left, full=False):
            made = below(name, left) if any(column.name == name for column in left.columns) else None
            return None if made is None else replace(relation, left=made)
        case Semi(input):
            made = below(name, input)
            return None if made is None else replace(relation, input=made)
        case UnionAll(inputs, columns):
            place = [column.name for column in columns].index(name)
            found = [below(one.columns[place].name, one) for one in inputs]
            if all(one is None for one in found):
                return None
            return replace(relation, inputs=tuple(
                made if made is not None else restrict(one, one.columns[place]) if whole else one
                for made, one in zip(found, inputs, strict=True)))  # fmt: skip
        case _:
            return None


def in_join(name: str, restrict: Restrict, relation: Relation) -> Relation | None:
    """The relation with some rows of an input of its join, as a column tells; None: it has no join, or the column is
    computed above it."""
    match relation:
        case Filter(input):
            made = in_join(name, restrict, input)
            return None if made is None else replace(relation, input=made)
        case Project(input, items):
            expr = next(expr for column, expr in items if column.name == name)
            made = in_join(expr.name, restrict, input) if isinstance(expr, Column) else None
            return None if made is None else replace(relation, input=made)
        case Join(inputs):
            return Join(tuple(restrict(one, column) if column is not None else one for one, column in (
                (one, next((column for column in one.columns if column.name == name), None)) for one in inputs)))
        case _:
            return None


def may_fail(call: AggregateCall | WindowCall) -> bool:
    """Whether a call may be an error for some rows, other than by a value that is too long."""
    ordered = () if isinstance(call, WindowCall) else tuple(key.expr for key in call.order)
    read = (*call.args, *ordered, *(() if call.condition is None else (call.condition,)))
    return call.function not in _SAFE | _RANKS | _OF_ROWS or any(map(fallible, read))


def is_safe(relation: Relation, checked: Checked) -> bool:
    """Whether no row or group in it can be an error."""
    for part in every_part(relation):
        match part:
            case Scan(collection):
                if not checked(collection):
                    return False
            case Aggregate(_, _, calls):
                if any(call.function not in _SAFE for _, call in calls):
                    return False
            case Window(_, _, _, calls):
                if any(call.function not in _RANKS for _, call in calls):
                    return False
            case Filter() | Join() | Outer() | Project() | Semi() | TopK() | UnionAll():
                pass
            case _:
                return False
        if any(is_temporal(expr) or fallible(expr) for expr in expressions(part)):
            return False
    return True
