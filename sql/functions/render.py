"""Prints expressions as SQL text, for EXPLAIN and for error messages."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from functools import partial

from halfjoin.sql.expr import TRUE, Call, Cast, Column, Expr, Literal, Now
from halfjoin.sql.functions.calendar import Far, shown
from halfjoin.sql.functions.coercion import implicit, same_values
from halfjoin.sql.functions.record_values import FIELD, GIVEN, VALUE, place_of
from halfjoin.sql.functions.sum_results import SUM_RESULTS
from halfjoin.sql.types import FLOATS, INTEGERS, STRINGS, Kind, SqlType
from halfjoin.sql.unseen import is_unseen

_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
# The precedence of operators, loosest first; functions that are not listed are written as calls.
_LEVELS = {
    "or": 1, "and": 2, "not": 3,
    "is null": 4, "is not null": 4, "is true": 4, "is not true": 4, "is false": 4, "is not false": 4,
    "is unknown": 4, "is not unknown": 4, "is distinct from": 4, "is not distinct from": 4,
    "with element": 5, "with slice": 5, "with part": 5,
    "=": 5, "<>": 5, "<": 5, "<=": 5, ">": 5, ">=": 5,
    **{f"{name} {word}": 5 for name in _COMPARISONS for word in ("any", "all")},
    "in": 6, "like": 6, "ilike": 6, "||": 7,
    **dict.fromkeys(("->", "->>", "#>", "#>>", "#-", "?", "?|", "?&", "jsonb ||", "jsonb @>", "jsonb <@"), 7),
    "jsonb -": 8,
    "~": 7, "~*": 7, "!~": 7, "!~*": 7,
    "+": 8, "-": 8, "*": 9, "/": 9, "%": 9, "^": 10, "neg": 11,
}  # fmt: skip
_CAST, _ATOM = 12, 13
_ASSOCIATIVE = ("and", "or", "+", "*", "||")
_RESULTS = frozenset(entry.name for entry in SUM_RESULTS)
_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_$]*(#\d+)?")


def render(expr: Expr) -> str:
    """The SQL text, with only the needed parentheses, and without casts that PostgreSQL would add by itself."""
    return _text(expr)[0]


def _text(expr: Expr) -> tuple[str, int]:
    """The text, and the precedence of its outermost operator."""
    match expr:
        case Column(name=name):
            return column_text(name), _ATOM
        case Literal():
            text = _literal(expr)
            return text, 11 if text.startswith("-") else _ATOM
        case Now():
            return "mz_now()", _ATOM
        case Cast(arg=arg, type=type):
            if _hidden(arg.type, type):
                return _text(arg)
            return f"{_at_least(arg, _CAST)}::{type}", _CAST
        case Call(function="length of interval", args=(arg,)):
            return _text(arg)
        case Call(function="cut interval", args=(arg, Literal(value=last))):
            return f"{_at_least(arg, _CAST)}::interval {last}", _CAST
        case Call(function=name, args=args):
            write = _FORMS.get(name)
            if write is not None:
                return write(args), _LEVELS.get(name, _ATOM)
            if name in _LEVELS:
                return _operator(name, args), _LEVELS[name]
            if name in _RESULTS and name != "next round":
                return _result(name, args), _ATOM
            return f"{name}({', '.join(render(arg) for arg in args)})", _ATOM


def column_text(name: str) -> str:
    """A column's name for people. What a reduce keeps of `v`, such as its maximum, is named `#max:v`; several
    arguments are divided by `&`.

    >>> column_text("orders.id"), column_text("=groups.#max:id"), column_text("=groups.##sum:#max:id")
    ('orders.id', 'max(id)', 'sum(max(id))')
    """
    alias, _, own = name.rpartition(".")
    if own.startswith("#") and ":" in own:
        word, _, args = own.lstrip("#").partition(":")
        return f"{word}({_kept(args)})"
    parts = [own] if alias.startswith("=") else name.split(".")
    return ".".join(map(_identifier, parts))


def _kept(args: str) -> str:
    """The arguments of what a reduce keeps."""
    return ", ".join(column_text(arg) if arg.startswith("#") else arg for arg in args.split("&"))


def _result(name: str, args: tuple[Expr, ...]) -> str:
    """The aggregate that is computed from a count and sums: `avg(v)`."""
    kept = (arg.name.rpartition(".")[2].partition(":")[2] for arg in args[:2] if isinstance(arg, Column))
    return f"{name.partition(' ')[0]}({_kept(next((text for text in kept if text != '*'), '*'))})"


def _hidden(source: SqlType, target: SqlType) -> bool:
    """Whether to omit a cast, since it keeps the value: to a wider integer or numeric, or to text of any length."""
    if target.kind is Kind.NUMERIC:
        return source.kind in INTEGERS
    return same_values(source, target) or (source.kind in INTEGERS and implicit(source, target) and
                                           target.kind in INTEGERS)


def _operator(name: str, args: tuple[Expr, ...]) -> str:
    level, spelled = _LEVELS[name], name.removeprefix("jsonb ").upper()
    if len(args) == 1:
        if name == "not":
            return f"NOT {_at_least(args[0], level)}"
        return f"{_at_least(args[0], 6)} {spelled}"  # parentheses around a comparison are for readability
    first = _at_least(args[0], level if name in _ASSOCIATIVE or level >= 7 else level + 1)
    rest = [_at_least(arg, level if name in ("and", "or") else level + 1) for arg in args[1:]]
    return f" {spelled} ".join((first, *rest))


def _at_least(expr: Expr, level: int) -> str:
    text, own = _text(expr)
    return text if own >= level else f"({text})"


def _case(args: tuple[Expr, ...]) -> str:
    parts = [
        f"WHEN {render(condition)} THEN {render(value)}"
        for condition, value in zip(args[:-1:2], args[1::2], strict=True)
    ]
    default = args[-1]
    if not (isinstance(default, Literal) and default.value is None):
        parts.append(f"ELSE {render(default)}")
    return f"CASE {' '.join(parts)} END"


def _like(word: str, args: tuple[Expr, ...]) -> str:
    text, pattern, *escape = (_at_least(arg, 7) for arg in args)
    return f"{text} {word} {pattern}" + "".join(f" ESCAPE {char}" for char in escape)


def _quantified(operator: str, args: tuple[Expr, ...]) -> str:
    return f"{_at_least(args[0], 6)} {operator}({render(args[1])})"


def _row_value(args: tuple[Expr, ...]) -> str:
    """A row that is there if the first argument is true."""
    made = f"ROW({', '.join(map(render, args[1:]))})"
    return made if args[0] == TRUE else f"CASE WHEN {render(args[0])} THEN {made} END"


def _with_element(args: tuple[Expr, ...]) -> str:
    array, value, *subscripts = args
    return f"{_at_least(array, _ATOM)}{''.join(f'[{render(one)}]' for one in subscripts)} = {_at_least(value, 6)}"


def _with_slice(args: tuple[Expr, ...]) -> str:
    array, source, written, *bounds = args
    marks = zip(bounds, str(written.value) if isinstance(written, Literal) else "", strict=False)
    texts = [render(bound) if mark == "1" else "" for bound, mark in marks]
    slices = (f"[{first}:{last}]" for first, last in zip(texts[::2], texts[1::2], strict=True))
    return f"{_at_least(array, _ATOM)}{''.join(slices)} = {_at_least(source, 6)}"


def _with_part(args: tuple[Expr, ...]) -> str:
    value, new, _, path = args
    steps = path.args if isinstance(path, Call) else (path,)
    return f"{_at_least(value, _ATOM)}{''.join(f'[{render(one)}]' for one in steps)} = {_at_least(new, 6)}"


def _field(args: tuple[Expr, ...]) -> str:
    return f"({render(args[0])}).{_identifier(args[0].type.fields[place_of(args[1])][0])}"


_FORMS: dict[str, Callable[[tuple[Expr, ...]], str]] = {
    **{f"{name} {word}": partial(_quantified, f"{name} {word.upper()}") for name in _COMPARISONS
       for word in ("any", "all")},
    "neg": lambda args: f"-{_at_least(args[0], _CAST)}",
    "case": _case,
    "in": lambda args: f"{_at_least(args[0], 7)} IN ({', '.join(render(arg) for arg in args[1:])})",
    "like": lambda args: _like("LIKE", args),
    "ilike": lambda args: _like("ILIKE", args),
    "extract": lambda args: f"extract({plain(args[0].value, args[0].type)} FROM {render(args[1])})"
    if isinstance(args[0], Literal) else f"extract({', '.join(map(render, args))})",
    "array": lambda args: f"ARRAY[{', '.join(render(arg) for arg in args)}]",
    "[]": lambda args: f"{_at_least(args[0], _ATOM)}[{render(args[1])}]",
    "checked": lambda args: f"checked({render(args[0])})",
    "fit": lambda args: render(args[0]),
    "array shape": lambda args: render(args[0]),
    "append part": lambda args: f"{_at_least(args[0], 7)} || {_at_least(args[1], 7)}",
    "prepend part": lambda args: f"{_at_least(args[1], 7)} || {_at_least(args[0], 7)}",
    "jsonb order": lambda args: render(args[0]),
    "letters of bytes": lambda args: render(args[0]),
    "code of byte": lambda args: f"{_at_least(args[0], _ATOM)}::integer",
    "one byte": lambda args: f'{_at_least(args[0], _ATOM)}::"char"',
    "json in line": lambda args: render(args[0]),
    "json object": lambda args: f"json_build_object({', '.join(map(render, args[2:]))})",
    "to_json": lambda args: f"to_json({render(args[0])})",
    "enum position": lambda args: f"enum_position({render(args[0])})",
    "enum label": lambda args: f"enum_label({render(args[0])})",
    "single row": lambda args: render(args[0]),
    VALUE: _row_value,
    GIVEN: lambda args: f"is_given({render(args[0])})",
    FIELD: _field,
    "with element": _with_element,
    "with slice": _with_slice,
    "with part": _with_part,
}


def _identifier(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else '"' + name.replace('"', '""') + '"'


def _literal(literal: Literal) -> str:
    value, type = literal.value, literal.type
    if is_unseen(value):  # planning may order by it; no message has it
        return repr(value)
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case Decimal():
            return f"{value:f}"
        case float() if type.kind in FLOATS:
            text = repr(value)
            return text if re.fullmatch(r"-?[\d.]+", text) else f"'{text}'::{type}"
        case str() if type.kind in (*STRINGS, Kind.UNKNOWN):
            return _quoted(value)
        case list():
            element = type.element or type
            return f"ARRAY[{', '.join(_literal(Literal(item, element)) for item in value)}]"
        case tuple() if type.fields:
            members = (_literal(Literal(item, field)) for item, (_, field) in zip(value, type.fields, strict=True))
            return f"ROW({', '.join(members)})" + (f"::{type}" if type.named else "")
        case _:
            return f"{type} {_quoted(plain(value, type))}"


def plain(value: object, type: SqlType) -> str:
    """The text of a constant without quotes, as PostgreSQL prints it."""
    match value:
        case bytes():
            return "\\x" + value.hex()
        case datetime():
            text = value.replace(tzinfo=None).isoformat(" ")
            return text + ("+00" if value.tzinfo else "")
        case date() | time():
            return value.isoformat()
        case Far():
            return shown(value, type.kind)
        case (int(months), int(days), int(micros)):
            return _interval(months, days, micros)
        case _:
            return str(value)


def _interval(months: int, days: int, micros: int) -> str:
    """An interval's years, months and days, then its time; a positive field after a negative one shows its sign."""
    years, months = int(months / 12), months - 12 * int(months / 12)
    parts: list[str] = []
    below = False
    for count, unit in ((years, "year"), (months, "mon"), (days, "day")):
        if count:
            parts.append(f"{'+' if below and count > 0 else ''}{count} {unit}{'s' if count != 1 else ''}")
            below = count < 0
    if micros or not parts:
        seconds, fraction = divmod(abs(micros), 1_000_000)
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        if fraction:
            clock += f".{fraction:06}".rstrip("0")
        parts.append(("-" if micros < 0 else "+" if below else "") + clock)
    return " ".join(parts)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
