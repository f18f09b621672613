"""Binds WITH ITERATIVE, as a loop: queries that start with some rows, and are computed again from what they were.

Loop law. `name AS (start ITERATE step)` is x(0) = start; x(r + 1) = step(x(r)); the result is x when nothing changes.
So the start is replaced, not added to, as in the `iterate` of differential dataflow (McSherry, Murray, Isaacs, Isard,
2013). All names of one clause go on together: each step reads all of them as they are in the same round.

Two bindings per name say so: first `x`, the start in round 0 and what the step made in the round before; then the step,
which reads the `x`s of its round. So no step reads the nothing that is there before round 0. With a limit of n rounds
the result is what the step made in round n - 1, which is x(n).

The form is that of SQLoop (Floratos and others, 2018).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlglot import exp

from halfjoin.sql.bind import select as bind_select  # for its parts: the two modules call each other
from halfjoin.sql.bind.context import CommonTable, Context, Looped
from halfjoin.sql.bind.first_rows import first_rows
from halfjoin.sql.bind.loops import MOST_ROUNDS, body_of
from halfjoin.sql.bind.recursion import fitted, reads, shaped
from halfjoin.sql.bind.scope import Scope
from halfjoin.sql.bind.selected import known
from halfjoin.sql.expr import Column
from halfjoin.sql.parse.locate import name_of
from halfjoin.sql.parse.syntax import IterativeWith
from halfjoin.sql.relation import Binding, Fed, Loop, Once, Project, Relation, UnionAll
from halfjoin.sql.types import BIGINT


def iterative(
    clause: IterativeWith, items: Sequence[exp.CTE], context: Context, outer: tuple[Scope, ...]
) -> Context:  # fmt: skip
    """The context plus the names of WITH ITERATIVE, as they are after the loop."""
    loop = context.aliases.fresh("WITH ITERATIVE")
    names = [name_of(item.args["alias"].this) for item in items]
    columns = [tuple(item.args["alias"].args.get("columns") or ()) for item in items]
    starts = [_start(item, names, context, outer) for item in items]

    def fed(number: int, *, before: bool) -> Callable[[str, tuple[Column, ...]], Relation]:
        return lambda alias, own: Fed(loop, number, before, alias, own)

    inside: dict[str, CommonTable] = {}
    for number, (name, (start, outputs)) in enumerate(zip(names, starts, strict=True)):
        itself = Looped(name, _kept(start), outputs, fed(number, before=False))
        inside[name] = CommonTable(itself, columns[number], context)
    body = body_of(context, inside)
    told = [(*map(name_of, own), *outputs[len(own):]) for own, (_, outputs) in zip(columns, starts, strict=True)]
    steps = []
    for number, (item, name, (start, _)) in enumerate(zip(items, names, starts, strict=True)):
        step = item.this.expression
        found = bind_select.select(step, body, None, outer)
        made = shaped(found, fitted(step, name, found, start, context))
        steps.append(Binding(name, told[number], first_rows(made)))
    variables = []
    for number, (name, (start, _)) in enumerate(zip(names, starts, strict=True)):
        alias, kept = context.aliases.fresh(name), _kept(start)
        own = tuple(replace(column, name=f"{alias}.{column.name}") for column in kept)
        later = fed(len(items) + number, before=True)(alias, own)
        variables.append(Binding(name, told[number], UnionAll((Once(first_rows(start)), later), kept)))
    bindings = (*variables, *steps)
    limit, rounds = clause.args.get("limit"), clause.args.get("rounds")
    most, strict = int(limit.name) if limit else MOST_ROUNDS, limit is None or bool(clause.args.get("error"))
    after = {}
    for number, (name, (start, outputs)) in enumerate(zip(names, starts, strict=True)):
        shown = _kept(start)
        if rounds is None:
            at = _shown(loop, bindings, most, strict, len(items) + number)
        else:  # the rounds of x, of which the last is what the last step made
            at = _shown(loop, bindings, most + (limit is not None), strict, number)
            shown = (*shown, Column(f"c{len(shown) + 1}", BIGINT, nullable=False))
            outputs = (*outputs, name_of(rounds))
        after[name] = CommonTable(Looped(name, shown, outputs, at), columns[number], context)
    return replace(context, common={**context.common, **after})


def _start(
    item: exp.CTE, names: Sequence[str], context: Context, outer: tuple[Scope, ...]
) -> tuple[Project, tuple[str, ...]]:  # fmt: skip
    """The rows that a name starts with, and the names of their columns in the query."""
    start = item.this.this
    for name in names:
        if reads(start, name):
            raise context.wrong(start, f"the start of {name_of(item.args['alias'].this)} reads {name}",
                                "only what comes after ITERATE reads the names of WITH ITERATIVE")
    selected = bind_select.select(start, context, None, outer)
    return shaped(selected, [known(value) for value in selected.values]), tuple(selected.names)


def _kept(start: Project) -> tuple[Column, ...]:
    return tuple(replace(column, nullable=True) for column in start.columns)


def _shown(
    loop: str, bindings: tuple[Binding, ...], limit: int, strict: bool, number: int
) -> Callable[[str, tuple[Column, ...]], Relation]:
    return lambda alias, own: Loop(loop, bindings, limit, strict, number, own)
