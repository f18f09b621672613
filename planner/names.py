"""Names arrangements, inputs and steps for explanations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from halfjoin.planner.linear import Explode
from halfjoin.planner.plan import ArrangementKey, Node, Reduce
from halfjoin.sql.expr import Column, Expr, columns_of, substitute
from halfjoin.sql.functions import render
from halfjoin.sql.relation import Project, Relation
from halfjoin.sql.types import TEXT

_COLUMN = re.compile(r"""'(?:[^']|'')*'|"[^"]*"|(?<![\w.])(?P<column>c(?:olumn)?\d+|\w+_\d+)(?![\w."(])""")
_BINDING = re.compile(r'(?P<quote>"?)(?P<node>loop#[0-9a-f]+)(?:#\d+)?(?P=quote)(?:\.c(?P<column>\d+))?')


def collection_name(name: str, constant: str | None) -> str:
    """The name of a collection, or for constant rows of VALUES their alias in parentheses."""
    return name if constant is None else f"({constant})"


def input_name(alias: str, collection: str) -> str:
    """The name of an input of a join: its alias, if the user gave it or may have given it, else the collection's name.
    """
    return collection if alias.startswith("=") else alias


def with_names(text: str, nodes: Iterable[Node]) -> str:
    """A text about nodes with the user's names of recursive queries, and of their columns, for the nodes' own."""
    named = {node.output: node.named for node in nodes if node.named}

    def user(found: re.Match[str]) -> str:
        name, *columns = named.get(found["node"], ("",))
        if not name:
            return found[0]
        column = found["column"]
        return name if column is None else f"{name}.{columns[int(column) - 1]}"

    return _BINDING.sub(user, text) if named else text


def meanings(relation: Project, columns: Sequence[Column], binding: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """The columns of a node, in the user's words: what a relation computes for them.

    `binding`: the names of the columns of the binding that it is in, if any, which are `c1`, `c2` there.
    """
    own = {f"c{number}": name for number, name in enumerate(binding, 1)}
    return tuple((column.name, _in_words(expr, relation.input, own)) for column, (_, expr)
                 in zip(columns, relation.items, strict=False))  # fmt: skip


def _in_words(expr: Expr, below: Relation, own: Mapping[str, str]) -> str:
    """An expression over a relation without the planner's and the binder's own names."""
    while isinstance(below, Project) and any(name.startswith(("=", "rows.", "rows#")) for name in columns_of(expr)):
        expr, below = substitute(expr, {column.name: inner for column, inner in below.items}), below.input
    plain = {name: Column(own.get(name) or re.sub(r"#\d+(?=\.|$)", "", name), TEXT) for name in columns_of(expr)}
    return render(substitute(expr, plain))


def with_columns(text: str, failing: Node, nodes: Iterable[Node]) -> str:
    """A text about a node with the user's words for columns that a reduce reads: the node, or one that it reads."""
    read = (failing.output, *failing.collections)
    reduces = {node.output: node for node in nodes if isinstance(node, Reduce) and node.output in read}
    found: dict[str, set[str]] = {}
    for node in reduces.values():
        for column, words in node.words:
            found.setdefault(column, set()).add(words)

    def user(match: re.Match[str]) -> str:
        words = found.get(match["column"] or "", set())
        return next(iter(words)) if len(words) == 1 else match[0]

    return _COLUMN.sub(user, text) if found else text


def arrangement_name(key: ArrangementKey) -> str:
    """`orders(o_custkey)`, or `orders` alone if all of it is read.

    A key on a table function's column is shown as the call: `t(generate_series(1, n))`.
    """
    collection = collection_name(key.collection, key.constant)
    if not key.keys:
        return collection
    calls: dict[str, Expr] = {}
    for step in key.through.steps if key.through else ():
        if isinstance(step, Explode):
            text = render(substitute(step.call, calls))
            made = (*step.outputs, step.ordinality) if step.ordinality else step.outputs
            for position, column in enumerate(made):
                suffix = "" if len(made) == 1 else f".{'ordinality' if column is step.ordinality else position + 1}"
                calls[column.name] = Column(f"{text}{suffix}", column.type)
    keys = [substitute(expr, calls) for expr in key.keys]
    return f"{collection}({', '.join(_plain(render(expr)) for expr in keys)})"


def _plain(text: str) -> str:
    """Remove the quotes of an identifier from a call that is shown in place of a column's name."""
    return text.replace('"', "") if "(" in text else text
