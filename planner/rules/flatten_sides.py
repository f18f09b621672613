"""Makes the looked-up side of an outer or semi-join an input of the join: padded, present or absent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from halfjoin.errors import UnsupportedSQL
from halfjoin.planner.block import Block, Input
from halfjoin.planner.plan import InputKind
from halfjoin.planner.rules.sides import On, Side, alternatives, asked, guarded, shown, side_of
from halfjoin.sql.expr import FALSE, Expr, Literal, conjunction
from halfjoin.sql.functions import fallible, render, resolve
from halfjoin.sql.relation import Outer, Relation, Scan, Semi


def with_padded(block: Block, relation: Outer) -> list[Block]:
    """The left side's join with the right side as a padded input.

    Where only some left rows may match at all, they are a join of their own, unless a NULL in the key says so.
    """
    side = _side(relation.right)
    on = _asked(block, relation.on, side)
    names = [column for column in relation.columns if column.name in side.meanings]
    missing = tuple((column, Literal(None, column.type)) for column in names)
    if FALSE in on.own:
        return [replace(block, outputs=block.outputs + missing)]
    columns = shown(side, on)
    if columns is None:
        raise ValueError(f"no column tells default rows of {side.source.alias} apart")  # such a side is cut out
    made = []
    for part, rest in _parts(block, on):
        if rest is None:
            made.append(replace(part, outputs=part.outputs + missing))
        else:
            found = tuple((column, columns[column.name]) for column in names)
            made.append(replace(_with(part, side, rest, InputKind.PADDED), outputs=part.outputs + found))
    return made


def with_present(block: Block, relation: Semi) -> list[Block]:
    """The input's join with the other side as a present input, or as absent inputs, one for each condition of which
    none may hold."""
    side = _side(relation.other)
    if not relation.anti:
        on = _asked(block, relation.on, side)
        given = replace(block, predicates=(*block.predicates, *on.own))
        return [_with(given, side, replace(on, own=()), InputKind.PRESENT)]
    decided: list[tuple[Block, Mapping[Expr, bool]]] = [(block, {})]
    for number, choice in enumerate(alternatives(relation.on) or [relation.on], 1):
        named = side if number == 1 else side.renamed(f"{side.source.alias}#or{number}")  # no alias of a relation
        on = _asked(block, choice, named)
        if FALSE not in on.own:
            decided = [
                (one if rest is None else _with(one, named, rest, InputKind.ABSENT), known)
                for part, before in decided for one, rest, known in _undecided_parts(part, on, before)
            ]  # fmt: skip
    return [one for one, _ in decided]


def _side(relation: Relation) -> Side:
    side = side_of(relation)
    if side is None:
        raise ValueError(f"not one collection: {relation}")  # such a side is cut out
    return side


def _asked(block: Block, on: Expr, side: Side) -> On:
    found = asked(on, side, {column.name: expr for column, expr in block.outputs})
    if found.rest:
        raise UnsupportedSQL(
            f"an outer or semi-join on {render(conjunction(found.rest))} is not maintained",
            remedy="compute it in a materialized view below, and join by its columns",
        )
    return found


def _parts(block: Block, on: On) -> list[tuple[Block, On | None]]:
    """The block, and what is asked of the side; with None, a block of rows that match nothing."""
    if not on.own:
        return [(block, on)]
    condition = conjunction(on.own)
    known = (match for match in on.matches if not match.null_safe and not fallible(match.probe))
    if not fallible(condition) and (first := next(known, None)) is not None:
        matches = tuple(guarded(match, condition) if match is first else match for match in on.matches)
        return [(block, replace(on, matches=matches, own=()))]
    may, cannot = (replace(block, predicates=(*block.predicates, resolve(test, (condition,))))
                   for test in ("is true", "is not true"))  # fmt: skip
    return [(may, replace(on, own=())), (cannot, None)]


def _undecided_parts(
    block: Block, on: On, decided: Mapping[Expr, bool]
) -> list[tuple[Block, On | None, Mapping[Expr, bool]]]:
    """As `_parts` of a block whose rows all give the same answer to some conditions; with the answers in each part.

    The alternatives of a NOT IN ask the same few conditions. Wrong: to split a block at each of them, which makes 512
    joins of the NOT IN of two columns.
    """
    left = tuple(condition for condition in on.own if not decided.get(condition, False))
    if any(condition in decided for condition in left):
        return [(block, None, decided)]
    found: list[tuple[Block, On | None, Mapping[Expr, bool]]] = []
    for part, rest in _parts(block, replace(on, own=left)):
        told: dict[Expr, bool] = {}
        if part is not block and rest is not None:
            told = dict.fromkeys(left, True)
        elif part is not block and len(left) == 1:
            told = {left[0]: False}
        found.append((part, rest, {**decided, **told}))
    return found


def _with(block: Block, side: Side, on: On, kind: InputKind) -> Block:
    source = side.source
    collection, rows = (source.collection, None) if isinstance(source, Scan) else (f"={source.alias}", source.rows)
    item = Input(source.alias, collection, source.columns, rows, kind, on.matches, (*side.conditions, *on.conditions))
    return replace(block, inputs=(*block.inputs, item))
