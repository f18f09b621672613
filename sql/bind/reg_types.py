"""Types whose values are numbers that show as names, such as regclass: their casts, and what clients see of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from halfjoin.errors import UnknownName
from halfjoin.sql import functions
from halfjoin.sql.expr import Call, Expr, Literal
from halfjoin.sql.system import REG, VECTORS, System, is_reg
from halfjoin.sql.types import BIGINT, INTEGER, INTEGERS, STRINGS, TEXT, Kind, SqlType, array

if TYPE_CHECKING:
    from halfjoin.sql.bind.context import Context


def text_of(value: Expr, type: SqlType, system: System) -> Expr:
    """What a number of a type such as regclass shows as: the name, or else the number; 0 is `-`."""
    bare = functions.cast(value, BIGINT)
    name = name_of(bare, system.texts(type.named))
    number = functions.cast(bare, TEXT, explicit=True)
    zero = functions.resolve("=", (bare, Literal(0, BIGINT)))
    return functions.resolve("case", (zero, Literal("-", TEXT), functions.resolve("coalesce", (name, number))))


def number_of(value: Expr, type: str, system: System, strict: bool = True) -> Expr:
    """The number of what a text names, for a type such as regclass. `strict`: a constant must name something."""
    to = REG[type]
    if value.type.kind in INTEGERS:
        return functions.cast(value, to)
    if not isinstance(value, Literal) or str(value.value).startswith("\0"):  # the place of a parameter
        written = _as_written(system.numbers(type), system.asker.database)
        texts = Literal(list(written), array(TEXT))
        made = Call("number of text", (functions.cast(value, TEXT, explicit=True), texts,
                                       Literal(list(written.values()), array(BIGINT))), BIGINT)
        return functions.cast(made, to)
    if value.value is None:
        return Literal(None, to)
    text = str(value.value)
    if text.isdigit() and strict:
        return Literal(int(text), to)
    if text == "-":
        return Literal(0, to)
    known, folded = system.numbers(type), _signature(text, system) if type == "regprocedure" else _folded(text)
    found = known.get(_type_name(text), known.get(folded)) if type == "regtype" else known.get(
        folded, known.get(folded.removeprefix(f"{system.asker.database}.")))
    if found is None and strict:
        kind = {"regclass": "relation", "regtype": "type", "regnamespace": "schema", "regrole": "role"}.get(
            type, "function")  # fmt: skip
        code = {"relation": "42P01", "type": "42704", "schema": "3F000", "role": "42704"}.get(kind, "42883")
        raise UnknownName(kind, text, (), code=code)
    return Literal(found, to)


def cast_system(value: Expr, type: SqlType, system: System) -> Expr | None:
    """A cast to or from a type that shows as a name; None for other casts."""
    if is_reg(type):
        return number_of(value, type.named, system) if not is_reg(value.type) else functions.cast(value, type)
    if type.element is not None and is_reg(type.element) and (value.type.element or value.type).kind not in INTEGERS:
        texts = functions.cast(value, array(TEXT), explicit=True)
        if isinstance(texts, Literal) and isinstance(texts.value, list):  # Drizzle: '{int,int8}'::regtype[]
            found = (number_of(Literal(text, TEXT), type.element.named, system) for text in texts.value)
            return Literal([one.value for one in found if isinstance(one, Literal)], type)
    if is_reg(value.type) and type.kind in STRINGS:
        return functions.cast(text_of(value, value.type, system), type, explicit=True)
    if value.type.named in VECTORS and type.kind in STRINGS:
        parts = functions.cast(value, array(TEXT), explicit=True)
        return functions.cast(functions.resolve("array_to_string", (parts, Literal(" ", TEXT))), type)
    return None


def from_one(vector: Expr, index: Expr) -> Expr:
    """An index into a vector, which begins at 0, as one into an array, which begins at 1."""
    if vector.type.named not in VECTORS:
        return index
    match index:
        case Call("-", (place, Literal(value=1))):  # v[n - 1]: no step that could fail, as clients join by it
            return functions.cast(place, INTEGER, explicit=True)
    return functions.resolve("+", (functions.cast(index, INTEGER, explicit=True), Literal(1, INTEGER)))


def shown(value: Expr, system: System) -> Expr:
    """An output of a query as clients see it: a regclass as a name, a vector as its elements with blanks."""
    if is_reg(value.type):
        return text_of(value, value.type, system)
    if value.type.named in VECTORS:
        return cast_system(value, SqlType(Kind.TEXT, named=value.type.named), system) or value
    return value


def named(args: Sequence[Expr], context: Context) -> tuple[Expr, ...]:
    """The arguments of a function that makes a text: a regclass as the name that it shows."""
    system = context.system
    if system is None or not any(is_reg(arg.type) for arg in args):
        return tuple(args)
    return tuple(text_of(arg, arg.type, system) if is_reg(arg.type) else arg for arg in args)


_PART = re.compile(r'"(?:[^"]|"")*"|[^".\s]+')  # of a name
_NAME = re.compile(rf"\s*(?:{_PART.pattern})\s*(?:\.\s*(?:{_PART.pattern})\s*)*")


def _folded(text: str) -> str:
    """A name as SQL text, without quotes and in lower case where it had none. Blanks may surround its parts."""
    if not _NAME.fullmatch(text):
        return ""  # which names nothing
    return ".".join(part[1:-1].replace('""', '"') if part.startswith('"') else part.lower()
                    for part in _PART.findall(text))


def _signature(text: str, system: System) -> str:
    """A function's name as SQL text, with the numbers of its arguments' types: `lower(25)` for `lower(text)`."""
    name, given, arguments = text.partition("(")
    if not given:
        return _folded(name)
    types = system.numbers("regtype")
    takes = [types.get(_type_name(part)) for part in arguments.strip().removesuffix(")").split(",") if part.strip()]
    return f"{_folded(name)}({','.join(map(str, takes))})"


def _as_written(known: Mapping[str, int], database: str) -> dict[str, int]:
    """Names with a schema, also with quotes around their parts and with the database, as programs put them together."""
    made = dict(known)
    for name, number in known.items():
        schema, dot, rest = name.partition(".")
        if dot and '"' not in name:
            for written in (f'"{schema}"."{rest}"', f'{schema}."{rest}"', f'"{schema}".{rest}'):
                made[written] = made[f"{database}.{written}"] = made[f'"{database}".{written}'] = number
            made[f"{database}.{name}"] = number
    return made


def _type_name(text: str) -> str:
    bare = text.partition("(")[0].strip() if "(" in text and not text.endswith("]") else text.strip()
    return bare if '"' in bare else bare.lower().removeprefix("pg_catalog.") or bare


def name_of(value: Expr, known: Mapping[int, str]) -> Expr:
    """The text of a number, of those that are known; NULL for another number."""
    keys, texts = Literal(list(known), array(BIGINT)), Literal(list(known.values()), array(TEXT))
    return Call("text of number", (value, keys, texts), TEXT)


def number_given(value: Expr, type: str, system: System) -> Expr:
    """An argument that is a number, or the name of what has it."""
    if value.type.kind in (*STRINGS, Kind.UNKNOWN):
        return functions.cast(number_of(value, type, system), BIGINT)
    return functions.cast(value, BIGINT)
