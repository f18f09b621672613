"""Functions of rows: each becomes functions of their members. `r = s` compares these, `to_jsonb(r)` has a key for each.

As in PostgreSQL, two rows are equal if their members are, where NULL equals NULL; else the first member that differs
decides, where NULL is greater than others.
"""

from __future__ import annotations

from collections.abc import Sequence

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import FALSE, TRUE, Expr, Literal
from halfjoin.sql.functions.casting import cast
from halfjoin.sql.functions.record_values import INSTEAD, is_record, is_there, members
from halfjoin.sql.functions.signature import Resolve
from halfjoin.sql.relation import SortKey
from halfjoin.sql.types import JSONB, TEXT, Kind

_MIRRORED = {">": "<", ">=": "<="}
_COMPARED = ("=", "<>", "<", "<=", ">", ">=")
_DISTINCT = ("is distinct from", "is not distinct from")
# Functions of values of any type that read rows themselves.
TAKE_ROWS = frozenset(("to_json", "row_to_json", "json_build_array", "json_build_object"))
_PASSED = frozenset((
    "case", "single row", "lag", "lead", "first_value", "last_value", "nth_value",
    # These take rows as values.
    "array", "array_agg", "count", "array_append", "array_prepend", "array_position", "array_positions", "array_remove",
    "array_replace", "= any", "<> any", "= all", "<> all", "||", "with element",
))  # fmt: skip


def if_there(resolve: Resolve, value: Expr, made: Expr) -> Expr:
    """What is made of a row's members, or NULL if the row is not there."""
    there = is_there(value)
    return made if there == TRUE else resolve("case", (there, made))


def of_rows(resolve: Resolve, name: str, args: Sequence[Expr]) -> Expr | None:
    """The call of a function some of whose arguments are rows; None if it takes them as any other value.

    Raises:
        UnsupportedSQL: the function takes no rows.
    """
    first = next(arg for arg in args if is_record(arg))
    if name in TAKE_ROWS:
        return None
    match name:
        case "is null" | "is not null":
            tests = [member_test(resolve, name, one) for one in members(first)] or [TRUE]
            there = resolve("is true", (is_there(first),))
            if is_there(first) == TRUE:
                return resolve("and", tests)
            alone = resolve("and", tests)
            return resolve("or", (resolve("not", (there,)), alone)) if name == "is null" else resolve(
                "and", (there, alone))
        case "in":
            return resolve("or", [resolve("=", (args[0], item)) for item in args[1:]])
        case "nullif" if len(args) == 2:
            return resolve("case", (resolve("=", args), Literal(None, args[0].type), args[0]))
        case "coalesce":
            if len(args) == 1:
                return first
            return resolve("case", (*(part for arg in args[:-1] for part in (_given(resolve, arg), arg)), args[-1]))
        case "greatest" | "least":
            return _extreme(resolve, ">" if name == "greatest" else "<", args)
        case "to_jsonb":
            return to_jsonb(resolve, first)
        case "concat" | "concat_ws" | "format":
            return resolve(name, [cast(arg, TEXT, explicit=True) if is_record(arg) else arg for arg in args])
        case "num_nulls" | "num_nonnulls":  # a row is NULL as a whole, or not
            return resolve(name, [if_there(resolve, arg, TRUE) if is_record(arg) else arg for arg in args])
        case _ if name in _COMPARED or name in _DISTINCT:
            return _compared(resolve, name, *args)
    refuse_rows(name, args)
    return None


def member_test(resolve: Resolve, name: str, value: Expr) -> Expr:
    """IS NULL or IS NOT NULL of a row's member. One that is a row is NULL only as a whole."""
    if not is_record(value):
        return resolve(name, (value,))
    there = resolve("is true", (is_there(value),))
    return there if name == "is not null" else resolve("not", (there,))


def refuse_rows(name: str, args: Sequence[Expr]) -> None:
    """Refuse rows as arguments of a function that does not take them."""
    if any(map(is_record, args)) and name not in _PASSED:
        raise UnsupportedSQL(f"a row is not a value that {name} takes", remedy=INSTEAD)


def _given(resolve: Resolve, value: Expr) -> Expr:
    """Whether a value is there as a whole: ROW(NULL) is."""
    return is_there(value) if is_record(value) else resolve("is not null", (value,))


def _extreme(resolve: Resolve, name: str, args: Sequence[Expr]) -> Expr:
    best, *others = args
    for other in others:
        better = resolve("or", (resolve("not", (resolve("is true", (_given(resolve, best),)),)),
                                resolve(name, (other, best))))
        best = resolve("case", (resolve("and", (_given(resolve, other), better)), other, best))
    return best


def _compared(resolve: Resolve, name: str, left: Expr, right: Expr) -> Expr:
    left, right = (_row(one, other) for one, other in ((left, right), (right, left)))
    if len(left.type.fields) != len(right.type.fields):
        raise UnsupportedSQL("cannot compare record types with different numbers of columns", code="42804")
    pairs = list(zip(members(left), members(right), strict=True))
    for number, (one, other) in enumerate(pairs, 1):
        if one.type.kind is not other.type.kind and not (is_record(one) and is_record(other)):
            raise UnsupportedSQL(f"cannot compare dissimilar column types {one.type} and {other.type} at record column "
                                 f"{number}", remedy="cast one to the other's type", code="42804")  # fmt: skip
    there = [is_there(left), is_there(right)]
    if name in _DISTINCT:
        if there != [TRUE, TRUE]:
            pairs.insert(0, (resolve("is true", (there[0],)), resolve("is true", (there[1],))))
        tests = [resolve(name, pair) for pair in pairs]
        return resolve("or" if name == "is distinct from" else "and", tests)
    made = of_records(resolve, name, [one for one, _ in pairs], [other for _, other in pairs])
    both = [resolve("is true", (one,)) for one in there if one != TRUE]
    return resolve("case", (resolve("and", both), made)) if both else made


def _row(value: Expr, beside: Expr) -> Expr:
    """A NULL, or a text, that is compared with a row is one of its type."""
    if is_record(value):
        return value
    if value.type.kind is not Kind.UNKNOWN:
        raise UnsupportedSQL("a row is compared with a value that is not a row", remedy="write both as rows")
    return cast(value, beside.type)


def of_records(resolve: Resolve, name: str, left: Sequence[Expr], right: Sequence[Expr]) -> Expr:
    """A comparison of two records by their members: NULLs are equal, and greater than other values."""
    if name in ("=", "<>"):
        word, joined = ("is not distinct from", "and") if name == "=" else ("is distinct from", "or")
        return resolve(joined, [resolve(word, pair) for pair in zip(left, right, strict=True)])
    if name in _MIRRORED:
        return of_records(resolve, _MIRRORED[name], right, left)
    ahead = before(resolve, [(SortKey(one), other) for one, other in zip(left, right, strict=True)])
    return ahead if name == "<" else resolve("or", (ahead, of_records(resolve, "=", left, right)))


def before(resolve: Resolve, keys: Sequence[tuple[SortKey, Expr]]) -> Expr:
    """Whether a row comes before another in an order, whose keys are over the one beside values of the other."""
    (key, value), *rest = keys
    strict = resolve("case", (
        resolve("is null", (key.expr,)),
        resolve("is not null", (value,)) if key.nulls_first else FALSE,
        resolve("is null", (value,)), FALSE if key.nulls_first else TRUE,
        resolve(">" if key.descending else "<", (key.expr, value))))  # fmt: skip
    if not rest:
        return strict
    same = resolve("is not distinct from", (key.expr, value))
    return resolve("or", (strict, resolve("and", (same, before(resolve, rest)))))


def to_jsonb(resolve: Resolve, value: Expr) -> Expr:
    """A row as a jsonb object."""
    names = (name for name, _ in value.type.fields)
    parts = [part for name, one in zip(names, members(value), strict=True)
             for part in (Literal(name, TEXT), to_jsonb(resolve, one) if is_record(one) else one)]  # fmt: skip
    made = resolve("jsonb_build_object", parts) if parts else Literal("{}", JSONB)
    return if_there(resolve, value, made)
