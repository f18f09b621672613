"""Window functions: the table of them, and the rules that give a call over a frame its type and casts."""

from __future__ import annotations

from collections.abc import Sequence

from halfjoin.errors import UnknownName, UnsupportedSQL
from halfjoin.sql.expr import Expr, Literal
from halfjoin.sql.functions.aggregates import AGGREGATES, ORDERED_SETS, resolve_aggregate
from halfjoin.sql.functions.resolve import call, choose
from halfjoin.sql.functions.signature import Function, function
from halfjoin.sql.functions.table import ALIASES, ENTRIES
from halfjoin.sql.relation import Frame, WindowCall
from halfjoin.sql.user_aggregate import UserAggregate

_TABLE = (
    function("row_number", "windows", "The row's number in its partition, from 1", "-> bigint"),
    function("rank", "windows", "The number of the first of the row's peers", "-> bigint"),
    function("dense_rank", "windows", "The number of the row's group of peers, from 1", "-> bigint"),
    function("percent_rank", "windows", "(rank - 1) / (rows - 1); 0 for a single row", "-> double precision"),
    function("cume_dist", "windows", "The rows up to the row's last peer, divided by all rows", "-> double precision"),
    function("ntile", "windows", "The number of the row's bucket, of n buckets of nearly equal size",
             "integer -> integer or error"),
    function("lag", "windows", "The value n rows before (1), or a default (NULL)",
             "any -> any", "any, integer -> any", "any, integer, any -> any"),
    function("lead", "windows", "The value n rows after (1), or a default (NULL)",
             "any -> any", "any, integer -> any", "any, integer, any -> any"),
    function("first_value", "windows", "The value in the first row of the frame", "any -> any"),
    function("last_value", "windows", "The value in the last row of the frame", "any -> any"),
    function("nth_value", "windows", "The value in the n-th row of the frame, from 1", "any, integer -> any or error"),
)  # fmt: skip

WINDOW_FUNCTIONS: dict[str, Function] = {entry.name: entry for entry in _TABLE}

# The functions that can skip rows where their first argument is NULL.
OF_VALUES = ("lag", "lead", "first_value", "last_value", "nth_value")
_COUNTS = {"ntile": 0, "nth_value": 1}  # the argument that must be above zero


def resolve_window(
    name: str,
    args: Sequence[Expr],
    *,
    frame: Frame,
    condition: Expr | None = None,
    ignore_nulls: bool = False,
    ordered: bool,
    defined: UserAggregate | None = None,
) -> WindowCall:
    """The call of a window function, or of an aggregate over a frame, with its type; the arguments are cast.

    `frame` is one that `resolve_frame` made; `ordered`: the window has an ORDER BY. `condition`: FILTER's. `defined`:
    the aggregate of that name, if it is the user's.

    Raises:
        UnknownName: there is no window function or aggregate of that name.
        UnsupportedSQL: the function does not take these arguments, this clause or this frame.
    """
    name = name.lower()
    if frame.unit == "groups" and not ordered:
        raise UnsupportedSQL("GROUPS mode requires an ORDER BY clause", wrong=True)
    if ignore_nulls and name not in OF_VALUES:
        raise UnsupportedSQL(f"function {name} does not take IGNORE NULLS",
                             remedy=f"only {', '.join(OF_VALUES)} do", wrong=True)  # fmt: skip
    entry = WINDOW_FUNCTIONS.get(name)
    if entry is None:
        return _aggregate(name, args, frame, condition, defined)
    if condition is not None:
        raise UnsupportedSQL("FILTER is not implemented for non-aggregate window functions",
                             remedy=f"write {name} of a CASE expression", wrong=True)  # fmt: skip
    if name in _COUNTS and len(args) > _COUNTS[name]:
        _above_zero(name, args[_COUNTS[name]])
    typed = call(entry, choose(entry, args), args)
    return WindowCall(name, typed.args, typed.type, frame, None, ignore_nulls)


def _aggregate(
    name: str, args: Sequence[Expr], frame: Frame, condition: Expr | None, defined: UserAggregate | None
) -> WindowCall:
    """An aggregate over a frame."""
    if defined is None and name not in AGGREGATES:
        if name in (*ENTRIES, *ALIASES):
            raise UnsupportedSQL(f"OVER specified, but {name} is not a window function nor an aggregate function",
                                 code="42809")  # fmt: skip
        raise UnknownName("window function", name, sorted({*WINDOW_FUNCTIONS, *AGGREGATES}))
    if name in ORDERED_SETS:
        raise UnsupportedSQL(f"OVER is not supported for ordered-set aggregate {name}", wrong=True)
    found = resolve_aggregate(name, args, condition=condition, defined=defined)
    return WindowCall(found.function, found.args, found.type, frame, found.condition)


def _above_zero(name: str, arg: Expr) -> None:
    if isinstance(arg, Literal) and isinstance(arg.value, int) and arg.value <= 0:
        raise UnsupportedSQL(f"argument of {name} must be greater than zero", wrong=True)
