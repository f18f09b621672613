"""Functions of information_schema that tell a type's length and digits from its number and modifier, and those of a
column, which may be a domain's. jOOQ asks them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp

from halfjoin.sql import functions
from halfjoin.sql.expr import Expr, Literal
from halfjoin.sql.types import BIGINT, INTEGER

_NULL = Literal(None, INTEGER)
_HEAD, _DIGITS = 4, 1 << 16  # a modifier has 4 added; that of a numeric is its precision times 65536, and its scale
_NUMERIC, _TEXTS, _INTEGERS, _FLOATS = 1700, (1042, 1043), {21: 16, 23: 32, 20: 64}, {700: 24, 701: 53}
_DATE, _INTERVAL, _TIMES = 1082, 1186, (1083, 1114, 1184, 1266)
_SIX = 6  # digits of a second, if the type does not say how many


def _number(value: int) -> Expr:
    return Literal(value, INTEGER)


def _case(type: Expr, *choices: tuple[Sequence[int], Expr]) -> Expr:
    """A value for each of some types; NULL for the others."""
    made: list[Expr] = []
    for oids, value in choices:
        for oid in oids:
            made += [functions.resolve("=", (type, Literal(oid, BIGINT))), value]
    return functions.resolve("case", (*made, _NULL))


def _set(modifier: Expr, value: Expr, otherwise: Expr = _NULL) -> Expr:
    """The value where there is a modifier."""
    none = functions.resolve("<", (modifier, _number(0)))
    return functions.resolve("case", (none, otherwise, value))


def _length(type: Expr, modifier: Expr) -> Expr:
    bare = functions.resolve("-", (modifier, _number(_HEAD)))
    return _case(type, (_TEXTS, _set(modifier, bare)))


def _precision(type: Expr, modifier: Expr) -> Expr:
    bare = functions.resolve("-", (modifier, _number(_HEAD)))
    known = [((oid,), _number(digits)) for oid, digits in (_INTEGERS | _FLOATS).items()]
    return _case(type, *known, ((_NUMERIC,), _set(modifier, functions.resolve("/", (bare, _number(_DIGITS))))))


def _scale(type: Expr, modifier: Expr) -> Expr:
    bare = functions.resolve("-", (modifier, _number(_HEAD)))
    after = _set(modifier, functions.resolve("%", (bare, _number(_DIGITS))))
    return _case(type, (tuple(_INTEGERS), _number(0)), ((_NUMERIC,), after))


def _seconds(type: Expr, modifier: Expr) -> Expr:
    digits = _set(modifier, functions.resolve("%", (modifier, _number(_DIGITS))), _number(_SIX))
    return _case(type, ((_DATE,), _number(0)), ((*_TIMES, _INTERVAL), digits))


OF_MODIFIER: Mapping[str, Callable[[Expr, Expr], Expr]] = {
    "_pg_char_max_length": _length, "_pg_numeric_precision": _precision, "_pg_numeric_scale": _scale,
    "_pg_datetime_precision": _seconds,
}  # fmt: skip


def of_modifier(name: str, args: Sequence[Expr]) -> Expr | None:
    """The value of one of these functions; None for other names and arguments."""
    if name not in OF_MODIFIER or len(args) != 2:
        return None
    return OF_MODIFIER[name](functions.cast(args[0], BIGINT), functions.cast(args[1], INTEGER))


# Functions of a row of pg_attribute and one of pg_type: the columns of a domain, and of another type.
_OF_ROWS = {"_pg_truetypid": ("typbasetype", "atttypid"), "_pg_truetypmod": ("typtypmod", "atttypmod")}


def of_rows(name: str, node: exp.Anonymous) -> exp.Expr | None:
    """What `_pg_truetypid(a.*, t.*)` and its like say, over columns of the two rows; None for other calls."""
    rows = [part.table if isinstance(part, exp.Column) and isinstance(part.this, exp.Star) else part.name
            for part in node.expressions]  # fmt: skip
    if name not in _OF_ROWS or len(rows) != 2 or not all(rows):
        return None
    of_domain, own = _OF_ROWS[name]
    is_domain = exp.EQ(this=exp.column("typtype", rows[1]), expression=exp.Literal.string("d"))
    chosen = exp.If(this=is_domain, true=exp.column(of_domain, rows[1]))
    return exp.Case(ifs=[chosen], default=exp.column(own, rows[0]))
