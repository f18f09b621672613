"""Random scalar expressions of one kind over the columns in scope, in SQL that PostgreSQL and DuckDB read alike.

`ms(t)`, the milliseconds of a timestamp, stands where halfjoin compares with the timestamp itself: the oracle defines
it as a macro, and
`for_halfjoin` drops it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.oracle.choice import Choices, chance

KINDS = ("int", "int", "text", "numeric", "date", "timestamp")
LITERALS = {
    "int": ("1", "0", "2", "3", "-1"),
    "text": ("'a'", "''", "'ab'", "'B'"),
    "numeric": ("1.00", "2.5", "-0.75"),
    "date": ("date '2020-03-01'", "date '1970-01-01'"),
    "timestamp": ("timestamp '1970-01-01 00:00:00.007'",),
}


@dataclass(frozen=True)
class Bound:
    """A column in scope: how it is written, and its kind."""

    text: str
    kind: str


Scope = tuple[Bound, ...]


def for_halfjoin(sql: str) -> str:
    """The text as halfjoin and PostgreSQL read it."""
    return re.sub(r"\bms\(([^()]*)\)", r"\1", sql)


def scalar(choices: Choices, scope: Scope, kind: str, depth: int = 1) -> str:
    """An expression of the kind; columns are likelier than literals."""
    columns = [bound.text for bound in scope if bound.kind == kind]
    if columns and (depth == 0 or not chance(choices, 35)):
        return choices.one_of(columns)
    if depth == 0 or (not columns and chance(choices, 70)):
        return choices.one_of(LITERALS[kind])
    first = scalar(choices, scope, kind, depth - 1)
    forms = ("coalesce", "case", "nullif", "greatest", *{
        "int": ("plus", "minus", "double", "abs", "length", "negate"),
        "text": ("concat", "upper"),
        "numeric": ("plus", "minus", "negate", "abs"),
        "date": ("days",),
        "timestamp": (),
    }[kind])  # fmt: skip
    form = choices.one_of(forms)
    if form in ("double", "abs", "negate", "upper", "days"):
        return {"double": f"({first} * 2)", "abs": f"abs({first})", "negate": f"(- ({first}))",
                "upper": f"upper({first})", "days": f"({first} + 1)"}[form]
    if form == "length":
        return f"length({scalar(choices, scope, 'text', depth - 1)})"
    second = scalar(choices, scope, kind, depth - 1)
    if form == "case":
        return f"CASE WHEN {predicate(choices, scope, 0)} THEN {first} ELSE {second} END"
    operator = {"plus": "+", "minus": "-", "concat": "||"}.get(form)
    return f"({first} {operator} {second})" if operator else f"{form}({first}, {second})"


def predicate(choices: Choices, scope: Scope, depth: int = 1) -> str:
    """A boolean expression that does not depend on the time of the read."""
    if depth and chance(choices, 30):
        form = choices.one_of(("and", "or", "or", "not"))
        first = predicate(choices, scope, depth - 1)
        if form == "not":
            return f"(NOT {first})"
        return f"({first} {form.upper()} {predicate(choices, scope, depth - 1)})"
    kind = choices.one_of([bound.kind for bound in scope if bound.kind != "array"] or ["int"])
    left = scalar(choices, scope, kind, depth)
    form = choices.one_of(("compare", "compare", "compare", "null", "in", "between", "distinct", "like", "truth"))
    if form == "null":
        return f"({left} IS {choices.one_of(('NOT ', 'NOT ', ''))}NULL)"
    if form == "in":
        negated = choices.one_of(("", "NOT ", "NOT "))
        return f"({left} {negated}IN ({', '.join(LITERALS[kind][:2])}))"
    if form == "between":
        low, high = scalar(choices, scope, kind, 0), scalar(choices, scope, kind, 0)
        return f"({left} BETWEEN {low} AND {high})"
    if form == "like" and kind == "text":
        pattern = choices.one_of(("'a%'", "'%b'", "'_'"))
        return f"({left} LIKE {pattern})"
    right = scalar(choices, scope, kind, depth)
    if form == "distinct":
        return f"({left} IS {choices.one_of(('NOT ', '', ''))}DISTINCT FROM {right})"
    compared = f"({left} {choices.one_of(('<=', '>=', '<>', '<=', '>=', '<>', '=', '<', '>'))} {right})"
    if form == "truth":
        return f"({compared} IS {choices.one_of(('NOT FALSE', 'TRUE', 'NOT TRUE', 'UNKNOWN'))})"
    return compared


def equality(choices: Choices, left: Scope, right: Scope) -> str:
    """An equality (mostly of columns) between two sides, as joins are written."""
    shared = [k for k in ("int", "int", "int", "int", "text", "text", "numeric", "date", "timestamp")
              if any(b.kind == k for b in left) and any(b.kind == k for b in right)]
    if not shared:
        return predicate(choices, left + right, 0)
    kind = choices.one_of(shared)
    depth = 1 if chance(choices, 25) else 0
    one, two = scalar(choices, left, kind, depth), scalar(choices, right, kind, depth)
    operator = choices.one_of(("=", "=", "=", "=", "=", "IS NOT DISTINCT FROM"))
    return f"{one} {operator} {two}" if chance(choices, 70) else f"{two} {operator} {one}"


def temporal(choices: Choices, scope: Scope, depth: int = 1) -> str:
    """A temporal filter: mz_now() compared, either side, AND-ed and OR-ed with anything."""
    if depth and chance(choices, 35):
        form = choices.one_of(("or null", "or", "or", "and", "not"))
        first = temporal(choices, scope, depth - 1)
        if form == "not":
            return f"(NOT {first})"
        if form == "or null":
            bound = _moment(choices, scope)
            return f"({_column_of(bound)} IS NULL OR mz_now() {choices.one_of(('<', '<=', '>='))} {bound})"
        other = temporal(choices, scope, 0) if chance(choices, 50) else predicate(choices, scope, 0)
        return f"({first} {form.upper()} {other})"
    bound = _moment(choices, scope)
    if chance(choices, 20):
        return f"mz_now() {choices.one_of(('', 'NOT '))}BETWEEN {bound} AND {_moment(choices, scope)}"
    operator = choices.one_of((">=", "<", "<=", ">", ">=", "<", "<=", ">", "=", "<>"))
    return f"mz_now() {operator} {bound}" if chance(choices, 70) else f"{bound} {operator} mz_now()"


def _moment(choices: Choices, scope: Scope) -> str:
    """What mz_now() is compared with: an integer, numeric or timestamp."""
    bounds = [b for b in scope if b.kind == "int" and b.text.endswith(("lo", "hi"))] * 3
    bounds += [b for b in scope if b.kind in ("int", "numeric", "timestamp")]
    if not bounds or chance(choices, 8):
        return choices.one_of(("6", "2.5", "11"))
    bound = choices.one_of(bounds)
    if bound.kind == "timestamp":
        return f"ms({bound.text})"
    return f"{bound.text} + {choices.one_of(('1', '4'))}" if chance(choices, 20) else bound.text


def _column_of(moment: str) -> str:
    return moment.removeprefix("ms(").removesuffix(")").split(" ")[0]
