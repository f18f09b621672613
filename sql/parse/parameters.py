"""Parameters of statements: `$1`, `$2`, ... and `:name` become constants before a statement is bound.

A str becomes a quoted literal, whose type the place decides, as PostgreSQL decides the type of a parameter. Values of
other Python types become constants of the SQL type that they stand for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, TypeAlias
from uuid import UUID

from sqlglot import exp

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.parse.locate import refuse
from halfjoin.sql.parse.syntax import Given
from halfjoin.sql.prepared import Prepare
from halfjoin.sql.unseen import Unseen

Params: TypeAlias = Sequence[Any] | Mapping[str, Any] | None
_MISSING = ("NAType", "NaTType")  # types of pandas
_MOMENTS = ("M", "m")  # kinds of NumPy's moments and durations
CHANGES_AND_QUERIES = (exp.Query, exp.Insert, exp.Update, exp.Delete, exp.Merge)


def with_values(trees: Sequence[exp.Expr], params: Sequence[Any] | Mapping[str, Any], text: str) -> list[exp.Expr]:
    """The statements of a text with values for their parameters.

    A sequence gives the values of `$1`, `$2`, ...; a mapping those of `:name`.

    Raises:
        UnsupportedSQL: a parameter has no value, a value has no parameter, or has a type that SQL does not have.
    """
    if isinstance(params, str | bytes) or not isinstance(params, Sequence | Mapping):
        raise UnsupportedSQL("parameters are a list or tuple for $1, $2, ..., or a dict for :name")
    named = isinstance(params, Mapping)
    values = dict(params) if isinstance(params, Mapping) else {str(n): value for n, value in enumerate(params, 1)}
    used: set[str] = set()

    def changed(node: exp.Expr) -> exp.Expr | None:
        name = _name(node, named=named)
        if name is None:
            return None
        if name not in values:
            raise refuse(node, text, f"there is no parameter {':' if named else '$'}{name}").with_(code="42P02")
        used.add(name)
        return placed_as(constant(values[name]), node)

    made = [exchanged(tree, changed) if takes_parameters(tree) else tree for tree in trees]
    if unused := [name for name in values if name not in used]:
        raise UnsupportedSQL(f"no parameter of the statement takes the value {'of' if named else 'number'} {unused[0]}",
                             remedy=f"write {':' if named else '$'}{unused[0]} where it goes, or leave it out"
                             if any(map(takes_parameters, trees)) else "write the values into the statement")
    return made


def with_arguments(statement: Prepare, values: tuple[exp.Expr, ...]) -> exp.Expr:
    """A prepared statement with the arguments of EXECUTE.

    Raises:
        UnsupportedSQL: there are too few or too many, or one is not a constant expression.
    """
    for value in values:
        if value.find(exp.Column, exp.Query) is not None:
            raise refuse(value, statement.text, "an argument of EXECUTE is a constant expression")
    numbers = {int(name) for node in statement.statement.walk() if (name := _name(node, named=False)) is not None}
    wanted = max([len(statement.types), *numbers])
    if len(values) != wanted:
        raise UnsupportedSQL(f"wrong number of parameters for prepared statement {statement.name!r}: "
                             f"expected {wanted}, but got {len(values)}", code="42601")

    def changed(node: exp.Expr) -> exp.Expr | None:
        name = _name(node, named=False)
        if name is None:
            return None
        value = exp.Paren(this=values[int(name) - 1].copy())
        if int(name) > len(statement.types):
            return placed_as(value, node)
        return placed_as(exp.Cast(this=value, to=statement.types[int(name) - 1].copy()), node)

    return exchanged(statement.statement.copy(), changed)


@dataclass(frozen=True)
class Hidden:
    """A parameter whose value cannot be looked at. `like`: a value of its shape; `constants`: those in its place."""

    like: object
    constants: tuple[Unseen, ...]

    def tree(self) -> exp.Expr:
        """The constant, with nothing to look at."""
        waiting = iter(self.constants)

        def hidden(node: exp.Expr) -> exp.Expr:
            if not isinstance(node, exp.Literal | exp.Neg):
                return node
            return Given.of(next(waiting), is_string=bool(node.args.get("is_string")))

        return constant(self.like).transform(hidden)


def constant(value: object) -> exp.Expr:
    """A Python value as a constant."""
    if isinstance(value, Hidden):
        return value.tree()
    if type(value).__name__ in _MISSING:
        return exp.Null()
    if (plain := _plain(value)) is not value:
        return constant(plain)
    if (text := typed_text(value)) is not None:
        return exp.Cast(this=exp.Literal.string(text[0]), to=exp.DataType.build(text[1]))
    match value:
        case None:
            return exp.Null()
        case bool():
            return exp.Boolean(this=value)
        case int():
            number = exp.Literal.number(abs(value))
            return exp.Paren(this=exp.Neg(this=number)) if value < 0 else number
        case str():
            check_unicode(value, "a parameter")
            check_nul(value, "a parameter")
            return exp.Literal.string(value)
        case dict():
            try:
                return exp.Literal.string(json.dumps(value))
            except (TypeError, ValueError, RecursionError) as problem:
                raise UnsupportedSQL(f"a dict that is a parameter is not JSON: {problem}",
                                     remedy="give a text of JSON") from None  # fmt: skip
        case list() | tuple():
            return exp.Array(expressions=[constant(one) for one in value]) if value else exp.Literal.string("{}")
        case time():
            raise UnsupportedSQL("a parameter cannot be a time of day with a time zone",
                                 remedy="leave the zone out with .replace(tzinfo=None), or give a datetime")
    raise UnsupportedSQL(f"a parameter cannot be a {type(value).__name__}",
                         remedy="give a number, text, bytes, a date or time, a UUID, a list or None")


def _plain(value: Any) -> Any:
    """What a value of NumPy, pandas, Polars or Arrow is in Python: one value, or a list. Others are as they are.

    Raises:
        UnsupportedSQL: Python has no such value, such as a day after the year 9999.
    """
    typed = hasattr(value, "dtype")
    moment = typed and getattr(value.dtype, "kind", "") in _MOMENTS
    if moment and hasattr(value, "__len__") and value.ndim:
        return list(value)  # tolist() would count nanoseconds
    names = [name for name in ("as_py", "to_pylist", *(("tolist", "to_list") if typed else ())) if hasattr(value, name)]
    if not names:
        return value
    try:
        plain = getattr(value, names[0])()
    except (ValueError, OverflowError) as problem:
        raise UnsupportedSQL(f"a parameter cannot be this {type(value).__name__}: {problem}",
                             remedy="give a text") from None  # fmt: skip
    if moment and isinstance(plain, int):  # of what Python's moments and durations do not hold
        return f"{Decimal(plain) / 1000:f} microseconds" if (text := str(value)).endswith("nanoseconds") else text
    return value if type(plain) is type(value) else plain  # as of a longdouble


def typed_text(value: object) -> tuple[str, str] | None:
    """The text and the SQL type of a value that is written as a cast; None for others, among them a time of day with a
    time zone, which the cast would drop."""
    match value:
        case float():
            return repr(value).replace("inf", "Infinity"), "DOUBLE"
        case Decimal():
            return format(value, "f"), "DECIMAL"
        case datetime():
            return value.isoformat(" "), "TIMESTAMP" if value.tzinfo is None else "TIMESTAMPTZ"
        case date():
            return value.isoformat(), "DATE"
        case time() if value.tzinfo is None:
            return value.isoformat(), "TIME"
        case timedelta():
            micros = value.seconds * 1_000_000 + value.microseconds
            nanos = getattr(value, "nanoseconds", 0)  # of pandas; the cast rounds
            return f"{value.days} days {micros}.{nanos:03} microseconds", "INTERVAL"
        case (int(months), int(days), int(nanos)) if hasattr(value, "nanoseconds") and nanos % 1000 == 0:
            return f"{months} months {days} days {nanos // 1000} microseconds", "INTERVAL"  # as Arrow has it
        case bytes():
            return "\\x" + value.hex(), "VARBINARY"
        case UUID():
            return str(value), "UUID"
    return None


def check_unicode(text: str, words: str) -> None:
    """Check that a text has no half of a surrogate pair, which no database text can hold.

    Raises:
        UnsupportedSQL: it has one.
    """
    try:
        text.encode()
    except UnicodeEncodeError as problem:
        raise UnsupportedSQL(f"{words} has half of a surrogate pair at character {problem.start + 1}",
                             remedy="write whole Unicode characters", code="22021") from None  # fmt: skip


def check_nul(text: str, words: str) -> None:
    """Check that a text of a user's has no NUL. The engine's own texts have some: no user can write their names.

    Raises:
        UnsupportedSQL: it has one.
    """
    if isinstance(text, str) and "\0" in text:
        raise UnsupportedSQL(f"{words} has a NUL character at character {text.index(chr(0)) + 1}",
                             remedy="leave it out; a bytea holds any bytes", code="22021")


def takes_parameters(tree: exp.Expr) -> bool:
    """Whether a statement takes parameters; one whose text is kept does not."""
    return isinstance(tree, CHANGES_AND_QUERIES) or type(tree).__name__ in ("AsOf", "Explain", "Execute", "Subscribe")


def name_of_parameter(node: exp.Expr) -> str | None:
    """The number of `$1`; None for another node."""
    return _name(node, named=False)


def _name(node: exp.Expr, *, named: bool) -> str | None:
    """The number of `$1`, or the name of `:name`; None for another node."""
    if named and isinstance(node, exp.Placeholder) and not node.args.get("jdbc"):
        return str(node.name)
    if not named and isinstance(node, exp.Parameter) and isinstance(node.this, exp.Literal):
        return str(node.this.this)
    return None


def placed_as(made: exp.Expr, node: exp.Expr) -> exp.Expr:
    """A node with the place that another has in the text."""
    starts = [part.meta for part in node.walk() if "start" in part.meta]
    if starts:
        made.meta.update(starts[0])
    return made


def exchanged(tree: exp.Expr, made: Callable[[exp.Expr], exp.Expr | None]) -> exp.Expr:
    """A tree with the nodes that `made` gives in place of its own, in the time of one walk: `transform` of sqlglot goes
    through the whole list around each node, such as the thousands of values of an IN."""
    lists: dict[tuple[int, str], exp.Expr] = {}
    for node in list(tree.dfs()):
        new, parent, key, index = made(node), node.parent, node.arg_key, node.index
        if new is None:
            continue
        if parent is None or key is None:
            return new
        if index is None:
            parent.set(key, new)
        else:
            parent.args[key][index] = new
            lists[id(parent), key] = parent
    for (_, key), parent in lists.items():
        parent.set(key, parent.args[key])
    return tree
