"""The SELECT list as syntax, and what GROUP BY and ORDER BY mean by a position or a name of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from halfjoin.sql.bind.context import Context
from halfjoin.sql.bind.function import fields_of_call
from halfjoin.sql.bind.output_names import output_name
from halfjoin.sql.bind.row_values import row_of
from halfjoin.sql.bind.scalar import Scalars
from halfjoin.sql.bind.scope import Scope, find, find_star
from halfjoin.sql.expr import Expr
from halfjoin.sql.functions.record_values import is_record, members
from halfjoin.sql.parse.locate import name_of, owner_of


@dataclass(frozen=True)
class Output:
    """One output: its name, and the node that computes it."""

    name: str
    node: exp.Expr


def outputs_of(query: exp.Select, scalars: Scalars, bound: dict[int, Expr]) -> list[Output]:
    """The outputs; each column of a `*` becomes a node of its own, which `bound` gets."""
    outputs: list[Output] = []
    for node in query.expressions:
        columns = star(node, scalars.scopes, scalars.context)
        if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Star):
            outputs += _fields(node, scalars, bound)
        elif columns is None:
            outputs.append(Output(output_name(node), node.unalias()))
        for name, column in columns or ():
            made = exp.Column(this=exp.to_identifier(name, quoted=True))
            made.parent = node  # for its place in the text
            bound[id(made)] = column
            outputs.append(Output(name, made))
    return outputs


def _fields(node: exp.Dot, scalars: Scalars, bound: dict[int, Expr]) -> list[Output]:
    """The outputs of `(row).*`; `bound` gets those of a value."""
    if (row := row_of(node.this, scalars)) is not None:
        return [Output(name, member) for name, member in zip(row.names, row.members, strict=True)]
    if names := fields_of_call(node.this.unnest(), scalars):
        return [Output(name, _field(node, name)) for name in names]
    value = scalars.value(node.this)
    if not is_record(value):
        raise scalars.context.wrong(node, f"a {value.type} is no row, so it has no fields").with_(code="42809")
    outputs = []
    for (name, _), one in zip(value.type.fields, members(value), strict=True):
        made = exp.Column(this=exp.to_identifier(name, quoted=True))
        made.parent = node  # for its place in the text
        bound[id(made)] = one
        outputs.append(Output(name, made))
    return outputs


def _field(node: exp.Dot, name: str) -> exp.Dot:
    """`(f(x)).name` of `(f(x)).*`; the call stays the same one, which runs once."""
    made = exp.Dot(expression=exp.to_identifier(name, quoted=True))
    made.args["this"], made.parent = node.this, node
    return made


def star(node: exp.Expr, scopes: tuple[Scope, ...], context: Context) -> list[tuple[str, Expr]] | None:
    """The columns that `*` or `t.*` means, where t may be an item of a query around this one; None for another
    expression."""
    written = node.this if isinstance(node, exp.Column) else node
    if not isinstance(written, exp.Star):
        return None
    if any(written.args.values()):
        raise context.refuse(node, "* takes no EXCEPT or REPLACE", "name the columns")
    if isinstance(node, exp.Column):
        with context.at(node):
            return list(find_star(scopes, name_of(node.args["table"]), owner_of(node)[1]))
    if not scopes[0].sources:
        raise context.wrong(node, "SELECT * needs FROM")
    return [(column.name, column.expr) for column in scopes[0].visible]


def position(node: exp.Expr, count: int, clause: str, context: Context) -> int | None:
    """The output, from 0, that a number in GROUP BY, ORDER BY or DISTINCT ON means; None for an expression."""
    if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
        if not 1 <= int(node.name) <= count:
            raise context.wrong(node, f"{clause} position {node.name} is not in select list")
        return int(node.name) - 1
    if isinstance(node, (exp.Literal, exp.Null, exp.Boolean)):
        raise context.wrong(node, f"non-integer constant in {clause}")
    return None


def named(node: exp.Expr, outputs: Sequence[Output], clause: str, scalars: Scalars) -> int | None:
    """The output whose name the node is; None if there is none. Equal outputs may share a name."""
    if not isinstance(node, exp.Column) or node.args.get("table") or isinstance(node.this, exp.Star):
        return None
    name = name_of(node)
    found = [place for place, output in enumerate(outputs) if output.name == name]
    means = [_meaning(outputs[place].node, scalars) for place in found[: None if len(found) > 1 else 0]]
    if any(meaning != means[0] for meaning in means):
        raise scalars.context.wrong(node, f'{clause} "{name}" is ambiguous', "write the position of the column")
    return found[0] if found else None


def _meaning(node: exp.Expr, scalars: Scalars) -> Expr | exp.Expr:
    """What an output computes: equal for `k` and the k of `*`."""
    value, plain = scalars.bound.get(id(node)), node.unnest()
    if value is None and isinstance(plain, exp.Column) and isinstance(plain.this, exp.Identifier):
        return find(scalars.scopes, name_of(plain), *owner_of(plain))
    return plain if value is None else value
