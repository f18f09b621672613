"""The options of CREATE SEQUENCE and of GENERATED AS IDENTITY."""

from __future__ import annotations

from sqlglot import exp

from halfjoin.sql.named import SequenceOptions
from halfjoin.sql.parse.locate import catalog_name, name_of, refuse


def number(given: exp.Expr | None, node: exp.Expr, text: str, default: int = 0) -> int:
    """A whole number of an option."""
    if given is None:
        return default
    sign = -1 if isinstance(given, exp.Neg) else 1
    value = given.this if sign < 0 else given
    if not isinstance(value, exp.Literal) or value.is_string or not value.name.isdigit():
        raise refuse(node, text, "an option of a sequence is a whole number")
    return sign * int(value.name)


def options(node: exp.Expr, text: str) -> SequenceOptions:
    """The options of CREATE SEQUENCE or ALTER SEQUENCE, as `SequenceParser` reads them. CACHE changes nothing here."""
    args = node.args
    if args.get("cache") is not None and (size := number(args["cache"], node, text)) < 1:
        raise refuse(node, text, f"CACHE ({size}) must be greater than zero").with_(code="22023")
    type = args["type"].sql("postgres").lower() if args.get("type") else None
    if type not in (None, *_TYPES):
        error = refuse(node, text, "sequence type must be smallint, integer, or bigint")
        raise error.with_(code="22023")
    owner = args.get("owned")
    return SequenceOptions(
        start=_given(args.get("start"), node, text), step=_given(args.get("increment"), node, text),
        least=_given(args.get("minvalue"), node, text), most=_given(args.get("maxvalue"), node, text),
        cycle=args.get("cycle"), type=type and _TYPES[type],
        owner=None if owner is None else _owner(owner, text),
    )  # fmt: skip


_TYPES = {"smallint": "smallint", "int": "integer", "integer": "integer", "bigint": "bigint"}


def _given(value: exp.Expr | bool | None, node: exp.Expr, text: str) -> int | None:
    return value if isinstance(value, bool | None) else number(value, node, text)


def _owner(owner: exp.Expr, text: str) -> tuple[str, str]:
    """The table and column of OWNED BY."""
    if isinstance(owner, exp.Var):
        return "", ""
    parts = owner.parts if isinstance(owner, exp.Column) else []
    if len(parts) < 2:
        raise refuse(owner, text, "invalid OWNED BY option", "specify OWNED BY table.column or OWNED BY NONE").with_(
            code="42601")  # fmt: skip
    table = exp.Table(**dict(zip(("this", "db", "catalog"), reversed(parts[:-1]), strict=False)))
    return catalog_name(table, text), name_of(parts[-1])
