"""The options of CREATE SEQUENCE and of GENERATED AS IDENTITY."""

from __future__ import annotations

from sqlglot import exp

from halfjoin.sql.parse.locate import refuse


def sequence_options(node: exp.Expr, text: str) -> tuple[int, int]:
    """START WITH and INCREMENT BY of a sequence or an identity."""
    for key, value in node.args.items():
        if value and key not in ("this", "start", "increment", "cache", "minvalue"):
            raise refuse(node, text, f"the option {key.upper()} of a sequence is not supported",
                         "options: START WITH n, INCREMENT BY n")  # fmt: skip
    step = _number(node.args.get("increment"), node, text, 1)
    least = _number(node.args.get("minvalue"), node, text, 1)
    if step < 1 or least != 1:
        raise refuse(node, text, "a sequence goes up from 1", "INCREMENT BY a number above 0, without MINVALUE")
    start = _number(node.args.get("start"), node, text, 1)
    if start < 1:
        error = refuse(node, text, f"START value ({start}) cannot be less than MINVALUE (1)")
        raise error.with_(code="22023")
    return start, step


def _number(given: exp.Expr | None, node: exp.Expr, text: str, default: int) -> int:
    if given is None:
        return default
    sign = -1 if isinstance(given, exp.Neg) else 1
    value = given.this if sign < 0 else given
    if not isinstance(value, exp.Literal) or value.is_string or not value.name.isdigit():
        raise refuse(node, text, "an option of a sequence is a whole number")
    return sign * int(value.name)
