"""The meaning of aggregates, windows and top-k over lists of rows: plain Python, exact, one row at a time.

Rows that tie are ordered by all their columns, NULLs last. Values that an aggregate sees are in the order of its ORDER
BY, then of its arguments.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from functools import reduce
from operator import and_, or_, xor
from typing import Any

from halfjoin.sql.expr import Expr
from halfjoin.sql.relation import AggregateCall, Bound, Frame, SortKey, WindowCall
from halfjoin.sql.types import FLOATS, INTEGERS, Kind, SqlType

Row = dict[str, Any]
Scalar = Callable[[Expr, Row], Any]
_DIGITS = Context(prec=200)


def order_key(value: Any) -> Any:
    """A key that sorts values ascending, with NULLs last and NaN above other numbers."""
    if isinstance(value, list | tuple):
        return (0, tuple(map(order_key, value)))
    if isinstance(value, float) and math.isnan(value):
        return (0, math.inf, 1)
    return (1,) if value is None else (0, value, 0) if isinstance(value, float) else (0, value)


def sorted_rows(rows: Sequence[Row], order: Sequence[SortKey], names: Sequence[str], scalar: Scalar) -> list[Row]:
    """The rows in an order; rows that tie, by the columns `names`."""
    found = sorted(rows, key=lambda row: [order_key(row[name]) for name in names])
    for key in reversed(order):
        values = {id(row): scalar(key.expr, row) for row in found}
        found.sort(key=lambda row, values=values: order_key(values[id(row)]), reverse=key.descending)
        found.sort(key=lambda row, values=values, key=key: (values[id(row)] is None) is not key.nulls_first)
    return found


def places(rows: Sequence[Row], order: Sequence[SortKey], scalar: Scalar) -> list[Any]:
    """What tells peers apart: equal for rows that tie in the order."""
    return [tuple(order_key(scalar(key.expr, row)) for key in order) for row in rows]


def group_key(values: Sequence[Any]) -> Any:
    """What tells groups apart: NULL equals NULL."""
    return tuple(map(order_key, values))


def top(rows: Sequence[Row], order: Sequence[SortKey], names: Sequence[str], scalar: Scalar, limit: int | None,
        offset: int, with_ties: bool) -> list[Row]:
    """The first rows of one partition."""
    found = sorted_rows(rows, order, names, scalar)
    end = len(found) if limit is None else min(offset + limit, len(found))
    if with_ties and limit and end > offset:
        peers = places(found, order, scalar)
        while end < len(found) and peers[end] == peers[end - 1]:
            end += 1
    return found[offset:end]


# Aggregates.


def aggregate(call: AggregateCall, rows: Sequence[Row], scalar: Scalar) -> Any:
    """The result of a call over the rows of a group."""
    rows = [row for row in rows if call.condition is None or scalar(call.condition, row) is True]
    made = [{str(place): scalar(arg, row) for place, arg in enumerate(call.args)} | row for row in rows]
    names = [str(place) for place in range(len(call.args))]
    made = sorted_rows(made, call.order, names, scalar)
    values = [tuple(row[name] for name in names) for row in made]
    if call.distinct:
        values = list({group_key(value): value for value in values}.values())
    if call.function in ("mode", "percentile_cont", "percentile_disc"):
        key = call.order[0]
        inner = [scalar(key.expr, row) for row in made]
        fraction = scalar(call.args[0], {}) if call.args else None
        return _ordered_set(call.function, fraction, [value for value in inner if value is not None])
    if not call.args:
        return len(values)
    return typed(_result(call.function, values), call.type)


def typed(value: Any, type: SqlType) -> Any:
    """An exact number as a value of the type, rounded once."""
    if value is None or not isinstance(value, int | Fraction | Decimal) or isinstance(value, bool):
        return value
    if type.kind is Kind.NUMERIC and type.scale is not None:
        exact = Fraction(value)
        scaled = abs(exact) * 10**type.scale
        number = math.floor(scaled + Fraction(1, 2))
        return Decimal(number if exact >= 0 else -number).scaleb(-type.scale)
    if type.kind in FLOATS:
        return float(value)
    return int(value) if type.kind in INTEGERS else value


def _result(name: str, values: list[tuple[Any, ...]]) -> Any:
    if name == "array_agg":
        return [value for value, in values] or None
    if name == "string_agg":
        text = None
        for value, delimiter in values:
            if value is not None:
                text = value if text is None else text + (delimiter or "") + value
        return text
    given = [value for value in values if None not in value]
    if name in ("count", "regr_count"):
        return len(given)
    if not given:
        return None
    if len(given[0]) == 2:
        return _of_pairs(name, given)
    column = [value for value, in given]
    match name:
        case "min" | "any_value":
            return min(column, key=order_key)
        case "max":
            return max(column, key=order_key)
        case "bool_and" | "every":
            return all(column)
        case "bool_or":
            return any(column)
        case "bit_and":
            return reduce(and_, column)
        case "bit_or":
            return reduce(or_, column)
        case "bit_xor":
            return reduce(xor, column)
    if any(isinstance(value, float) and not math.isfinite(value) for value in column):
        return sum(column) if name == "sum" else sum(column) / len(column) if name == "avg" else math.nan
    exact = [Fraction(value) for value in column]
    match name:
        case "sum":
            return sum(exact)
        case "avg":
            return sum(exact) / len(exact)
    sample = name in ("var_samp", "variance", "stddev_samp", "stddev")
    if sample and len(exact) == 1:
        return None
    spread = _moment(exact, exact) / (len(exact) - sample)
    return _root(spread) if name.startswith("stddev") else spread


def _moment(a: Sequence[Fraction], b: Sequence[Fraction]) -> Fraction:
    """The sum of products, each less its average."""
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0)) - sum(a) * sum(b) / len(a)


def _root(value: Fraction) -> Fraction:
    return Fraction(_DIGITS.sqrt(_DIGITS.divide(Decimal(value.numerator), Decimal(value.denominator))))


def _of_pairs(name: str, values: list[tuple[Any, ...]]) -> Any:
    y, x = ([Fraction(value[side]) for value in values] for side in (0, 1))
    count, sxx, syy, sxy = len(x), _moment(x, x), _moment(y, y), _moment(x, y)
    match name:
        case "covar_pop":
            return sxy / count
        case "covar_samp":
            return sxy / (count - 1) if count > 1 else None
        case "corr":
            return sxy / _root(sxx * syy) if sxx and syy else None
        case "regr_avgx":
            return sum(x) / count
        case "regr_avgy":
            return sum(y) / count
        case "regr_sxx":
            return sxx
        case "regr_syy":
            return syy
        case "regr_sxy":
            return sxy
        case "regr_slope":
            return sxy / sxx if sxx else None
        case "regr_intercept":
            return (sum(y) - sum(x) * sxy / sxx) / count if sxx else None
        case "regr_r2":
            return None if not sxx else sxy**2 / (sxx * syy) if syy else Fraction(1)
    raise AssertionError(name)


def _ordered_set(name: str, fraction: Any, values: list[Any]) -> Any:
    if not values:
        return None
    if name == "mode":
        return Counter(values).most_common(1)[0][0]
    if isinstance(fraction, list):
        return [None if one is None else _ordered_set(name, one, values) for one in fraction]
    if fraction is None:
        return None
    if name == "percentile_disc":
        return values[max(math.ceil(fraction * len(values)) - 1, 0)]
    place = fraction * (len(values) - 1)
    low, high = values[math.floor(place)], values[math.ceil(place)]
    return low + (high - low) * (place - math.floor(place)) if low != high else low


# Windows.


def window(calls: Sequence[tuple[str, WindowCall]], rows: Sequence[Row], order: Sequence[SortKey],
           names: Sequence[str], scalar: Scalar) -> list[Row]:
    """The rows of one partition, in order, with the results of the calls under their names."""
    found = sorted_rows(rows, order, names, scalar)
    peers = places(found, order, scalar)
    results = {name: _over(call, found, order, peers, scalar) for name, call in calls}
    return [row | {name: values[place] for name, values in results.items()} for place, row in enumerate(found)]


def _over(call: WindowCall, rows: list[Row], order: Sequence[SortKey], peers: list[Any], scalar: Scalar) -> list[Any]:
    count = len(rows)
    groups = [0] * count
    for place in range(1, count):
        groups[place] = groups[place - 1] + (peers[place] != peers[place - 1])
    firsts = {group: groups.index(group) for group in groups}
    sizes = Counter(groups)
    args = [[scalar(arg, row) for arg in call.args] for row in rows]
    match call.function:
        case "row_number":
            return list(range(1, count + 1))
        case "rank":
            return [firsts[group] + 1 for group in groups]
        case "dense_rank":
            return [group + 1 for group in groups]
        case "percent_rank":
            return [firsts[group] / (count - 1) if count > 1 else 0.0 for group in groups]
        case "cume_dist":
            return [(firsts[group] + sizes[group]) / count for group in groups]
        case "ntile":
            return [_bucket(place, count, arg[0]) for place, arg in enumerate(args)]
        case "lag" | "lead" as name:
            return [_moved(place, args, -1 if name == "lag" else 1, call.ignore_nulls) for place in range(count)]
    frames = [_frame(place, call.frame, rows, order, groups, scalar) for place in range(count)]
    if call.function in ("first_value", "last_value", "nth_value"):
        return [_valued(call, args, place, frame) for place, frame in enumerate(frames)]
    whole = AggregateCall(call.function, call.args, call.type, condition=call.condition)
    return [aggregate(whole, [rows[place] for place in frame], scalar) for frame in frames]


def _bucket(place: int, count: int, buckets: int | None) -> int | None:
    if buckets is None:
        return None
    small, more = divmod(count, buckets)
    return place // (small + 1) + 1 if place < more * (small + 1) else more + (place - more * (small + 1)) // small + 1


def _moved(place: int, args: list[list[Any]], sign: int, ignore_nulls: bool) -> Any:
    own = args[place]
    distance = own[1] if len(own) > 1 else 1
    if distance is None:
        return None
    if ignore_nulls and distance:
        step = sign if distance > 0 else -sign
        others = range(place + step, len(args) if step > 0 else -1, step)
        found = [args[other][0] for other in others if args[other][0] is not None]
        if len(found) >= abs(distance):
            return found[abs(distance) - 1]
    elif 0 <= place + sign * distance < len(args):
        return args[place + sign * distance][0]
    return own[2] if len(own) > 2 else None


def _valued(call: WindowCall, args: list[list[Any]], place: int, frame: list[int]) -> Any:
    values = [args[other][0] for other in frame if args[other][0] is not None or not call.ignore_nulls]
    if call.function != "nth_value":
        return (values[0] if call.function == "first_value" else values[-1]) if values else None
    number = args[place][1]
    return values[number - 1] if number is not None and number <= len(values) else None


def _frame(place: int, frame: Frame, rows: list[Row], order: Sequence[SortKey], groups: list[int],
           scalar: Scalar) -> list[int]:
    """The places of the rows in the frame of the row at `place`."""
    ends = {"rows": _rows_end, "groups": _groups_end, "range": _range_end}[frame.unit]
    start = 0 if frame.start == Bound("preceding") else ends(place, frame.start, False, rows, order, groups, scalar)
    stop = len(rows)
    if frame.end != Bound("following"):
        stop = ends(place, frame.end, True, rows, order, groups, scalar)
    peers = {other for other, group in enumerate(groups) if group == groups[place]}
    out = {"no others": set(), "current row": {place}, "group": peers, "ties": peers - {place}}[frame.exclude]
    return [other for other in range(max(start, 0), min(stop, len(rows))) if other not in out]


def _moved_by(bound: Bound, scalar: Scalar) -> Any:
    """The offset, negative if it is PRECEDING."""
    if bound.offset is None:
        return 0
    return scalar(bound.offset, {}) * (-1 if bound.kind == "preceding" else 1)


def _rows_end(place: int, bound: Bound, stop: bool, rows: Any, order: Any, groups: Any, scalar: Scalar) -> int:
    return int(place + _moved_by(bound, scalar) + stop)


def _groups_end(place: int, bound: Bound, stop: bool, rows: Any, order: Any, groups: list[int], scalar: Scalar) -> int:
    wanted = groups[place] + _moved_by(bound, scalar)
    return sum(group < wanted + stop for group in groups)


def _range_end(place: int, bound: Bound, stop: bool, rows: list[Row], order: Sequence[SortKey], groups: list[int],
               scalar: Scalar) -> int:
    if bound.offset is None or (own := scalar(order[0].expr, rows[place])) is None:
        return _groups_end(place, Bound("current row"), stop, rows, order, groups, scalar)
    sign = -1 if order[0].descending else 1
    limit = own * sign + _moved_by(bound, scalar)
    values = [scalar(order[0].expr, row) for row in rows]
    return sum(order[0].nulls_first if value is None else value * sign < limit or (stop and value * sign == limit)
               for value in values)
