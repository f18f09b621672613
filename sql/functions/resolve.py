"""Resolves calls: finds a call's overload by PostgreSQL's rules, and casts the arguments to exactly its types."""

from __future__ import annotations

from collections.abc import Sequence

from halfjoin.errors import UnknownName, UnsupportedSQL
from halfjoin.sql.expr import Call, Expr, Literal
from halfjoin.sql.functions.aggregate_table import AGGREGATES
from halfjoin.sql.functions.casting import coerce
from halfjoin.sql.functions.coercion import PREFERRED, category, common_type, comparison_type, implicit
from halfjoin.sql.functions.constants import folded
from halfjoin.sql.functions.jsonb import of_jsonb
from halfjoin.sql.functions.nested_arrays import in_shape, of_nested
from halfjoin.sql.functions.order import ORDERING, check_equality, compared
from halfjoin.sql.functions.padding import padded
from halfjoin.sql.functions.parameters import is_parameter
from halfjoin.sql.functions.patterns import of_bytes
from halfjoin.sql.functions.record_values import is_record, open_type
from halfjoin.sql.functions.records import of_rows, refuse_rows
from halfjoin.sql.functions.refused import FOREIGN, REFUSED
from halfjoin.sql.functions.signature import ANY, ANY_ARRAY, Function, Overload, type_named
from halfjoin.sql.functions.sum_results import INTERNAL
from halfjoin.sql.functions.table import ALIASES, ENTRIES
from halfjoin.sql.types import STRINGS, Kind, SqlType, array

_OF_EQUAL_ELEMENTS = frozenset(("array_position", "array_positions", "array_remove", "array_replace", "@>", "<@", "&&"))
_NAMES = [name for name in (*ENTRIES, *ALIASES, *AGGREGATES) if name[0].isalpha() and " " not in name]


def unknown(name: str) -> UnknownName:
    """The error for a function that does not exist."""
    instead = FOREIGN.get(name)
    return UnknownName("function", name, _NAMES, remedy=instead and f"PostgreSQL has no such function; write {instead}")


def exists(name: str) -> bool:
    """Whether a function of values, or an operator, has the name, be it one that halfjoin refuses."""
    return name in REFUSED or ALIASES.get(name, name) in ENTRIES


def resolve(name: str, args: Sequence[Expr]) -> Expr:
    """The typed call of the function or operator `name`.

    Raises:
        UnknownName: the table has no function of that name.
        UnsupportedSQL: no overload takes the arguments, several fit equally, or the function is refused on purpose.
    """
    name = name.lower()
    if name in REFUSED:
        reason, instead = REFUSED[name]
        raise UnsupportedSQL(f"{name}: {reason}", remedy=instead)
    name = of_jsonb(name, args)
    if (shaped := in_shape(resolve, name, args)) is not None:
        return shaped
    args = of_bytes(name, of_nested(name, args))
    function = ENTRIES.get(ALIASES.get(name, name))
    if function is None or function.category == INTERNAL:
        raise unknown(name)
    if any(map(is_record, args)) and (made := of_rows(resolve, function.name, args)) is not None:
        return made
    if function.special is not None:
        return function.special(resolve, args)
    if function.blanks and args:
        args = (padded(args[0]), *args[1:])
    overload = choose(function, args)
    if function.check is not None and not any(isinstance(arg, Literal) and is_parameter(arg) for arg in args):
        function.check(args)
    return folded(call(function, overload, args))


def call(function: Function, overload: Overload, args: Sequence[Expr]) -> Call:
    """The call of one overload, with its arguments cast."""
    refuse_rows(function.name, args)
    typed = cast_all(function, overload, args)
    if function.name in _OF_EQUAL_ELEMENTS:
        check_equality(*(arg.type for arg in typed))
    if function.category == "comparison":
        typed = tuple(compared(arg, equality=function.name not in ORDERING) for arg in typed)
    type = _wanted(overload.result, _element(function, overload, args))
    if type.kind is Kind.NUMERIC and type.precision is None:
        assert function.numeric is not None
        type = function.numeric(typed)
    return Call(function.name, typed, type)


def cast_all(function: Function, overload: Overload, args: Sequence[Expr]) -> tuple[Expr, ...]:
    """The arguments of one overload, cast to exactly its types."""
    element = _element(function, overload, args)
    return tuple(coerce(arg, _wanted(overload.param(i), element)) for i, arg in enumerate(args))


def overload_of(expr: Call) -> Overload | None:
    """The overload of a resolved call; None for special forms."""
    function = ENTRIES[expr.function]
    fitting = [o for o in function.overloads if o.takes(len(expr.args)) and _exact(o, expr.args) == len(expr.args)]
    return fitting[0] if fitting else None


def choose(function: Function, args: Sequence[Expr]) -> Overload:
    """The overload by PostgreSQL's steps: most exact arguments, then preferred types, then text for literals."""
    fitting = [o for o in function.overloads if o.takes(len(args)) and _accepts(function, o, args)]
    if not fitting:
        raise _no_overload(function, args)
    unknown = [arg.type.kind is Kind.UNKNOWN for arg in args]
    if len(args) == 2 and any(unknown) and not all(unknown):  # a literal takes the type of the other side
        known = args[0] if unknown[1] else args[1]
        same = [o for o in fitting if _exact(o, (known, known)) == 2]
        if same:
            return same[0]
    fitting = _best(fitting, [_exact(o, args) for o in fitting])
    fitting = _best(fitting, [_preferred(o, args) for o in fitting])
    for position in (i for i, is_unknown in enumerate(unknown) if is_unknown):
        fitting = _best(fitting, [_type(o.param(position)).kind is Kind.TEXT for o in fitting])
        fitting = _best(fitting, [_type(o.param(position)).kind in PREFERRED for o in fitting])
    if len(fitting) > 1:
        types = ", ".join(str(arg.type) for arg in args)
        raise UnsupportedSQL(f"{function.name}({types}) is not unique", remedy="cast the arguments", code="42725")
    return fitting[0]


def _best(items: list[Overload], scores: Sequence[int]) -> list[Overload]:
    top = max(scores)
    return [item for item, score in zip(items, scores, strict=True) if score == top]


def _accepts(function: Function, overload: Overload, args: Sequence[Expr]) -> bool:
    for i, arg in enumerate(args):
        param = overload.param(i)
        if param == ANY:
            continue
        if param == ANY_ARRAY:
            if arg.type.kind not in (Kind.ARRAY, Kind.UNKNOWN):
                return False
        elif not _implicit(arg, _type(param)):
            return False
    if ANY not in overload.params and ANY_ARRAY not in overload.params:
        return True
    try:
        _element(function, overload, args)
    except UnsupportedSQL:
        return False
    return True


def _implicit(arg: Expr, wanted: SqlType) -> bool:
    """Implicit casts except to real, which would lose digits of other numbers: those go to double precision."""
    if wanted.kind is Kind.REAL:
        return arg.type.kind in (Kind.REAL, Kind.UNKNOWN)
    return implicit(arg.type, wanted)


def _exact(overload: Overload, args: Sequence[Expr]) -> int:
    return sum(_is(arg.type, overload.param(i)) for i, arg in enumerate(args))


def _is(type: SqlType, param: str) -> bool:
    if param in (ANY, ANY_ARRAY):
        return param == ANY or type.kind is Kind.ARRAY
    wanted = _type(param)
    if wanted.kind is Kind.ARRAY:
        return type.kind is Kind.ARRAY and type.element is not None and _is(type.element, str(wanted.element))
    return type.kind is wanted.kind or (type.kind in STRINGS and wanted.kind is Kind.TEXT)


def _preferred(overload: Overload, args: Sequence[Expr]) -> int:
    wanted = [_type(overload.param(i)) for i in range(len(args))]
    return sum(
        w.kind in PREFERRED and not _is(arg.type, str(w)) and category(arg.type) == category(w)
        for arg, w in zip(args, wanted, strict=True)
    )


def _type(param: str) -> SqlType:
    return SqlType(Kind.UNKNOWN) if param in (ANY, ANY_ARRAY) else type_named(param)


def _element(function: Function, overload: Overload, args: Sequence[Expr]) -> SqlType | None:
    """The common type of all ANY arguments and of the elements of all ANY_ARRAY arguments; None if there are none."""
    types: list[SqlType] = []
    for i, arg in enumerate(args):
        if overload.param(i) == ANY:
            types.append(open_type(arg))
        elif overload.param(i) == ANY_ARRAY and arg.type.element is not None:
            types.append(arg.type.element)
    if not types:
        return None
    if function.category != "comparison":
        return common_type(types)
    chosen = comparison_type(types)  # numerics compare without a change of precision or scale
    return SqlType(Kind.NUMERIC) if chosen.kind is Kind.NUMERIC else chosen


def _wanted(param: str, element: SqlType | None) -> SqlType:
    if param not in (ANY, ANY_ARRAY):
        return type_named(param)
    if element is None:
        raise UnsupportedSQL("the type of an argument is not known", remedy="cast it: NULL::integer[]", wrong=True)
    return element if param == ANY else array(element)


def _no_overload(function: Function, args: Sequence[Expr]) -> UnsupportedSQL:
    types = ["NULL" if isinstance(a, Literal) and a.value is None else _shown(a.type) for a in args]
    name = function.name
    if name[0].isalpha():
        made = f"no function {name}({', '.join(types)})"
    else:
        made = f"no operator {types[0]} {name} {types[1]}" if len(types) == 2 else f"no operator {name} {types[0]}"
    if len(args) == 2 and all(overload.params == (ANY, ANY) for overload in function.overloads):
        return UnsupportedSQL(made, remedy="cast one to the other's type", wrong=True)
    takes = "; ".join(f"({', '.join(o.params)}{', ...' if o.variadic else ''})" for o in function.overloads)
    return UnsupportedSQL(made, remedy=f"{name} takes {takes}", wrong=True)


def _shown(type: SqlType) -> str:
    return "unknown literal" if type.kind is Kind.UNKNOWN else str(type)
