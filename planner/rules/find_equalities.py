"""Find the equivalence classes: expressions that equalities make equal, directly or through others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from halfjoin.planner.block import Aliases, Block, Blocks, Daring, Equality, Match, inputs_of
from halfjoin.planner.equalities import merged
from halfjoin.planner.plan import InputKind
from halfjoin.sql.expr import Call, Cast, Expr, Literal
from halfjoin.sql.functions import fallible
from halfjoin.sql.types import INTEGERS, STRINGS, Kind, looks_vary


def find_equalities(blocks: Blocks) -> Blocks:
    """The same blocks with equalities taken out of the predicates and merged: `a = b`, `b = c` is one class of three.

    An equality between two inputs that may fail stays a predicate unless each side reads one input only: it must be
    computed on complete rows, where every path computes it alike. An equality that reads a padded input stays, too: it
    tests the row that the lookup gives, and does not say which rows to look up.
    """
    return tuple(_found(block) for block in blocks)


def dare(block: Block) -> Block:
    """The block, with all equalities between inputs taken out of the predicates: those that may fail find rows, too.
    The same block if there are none.

    It may fail for rows that are not complete. So it is for a query, which is asked again if it does.
    """
    found, rest = left_out(block)
    if not found:
        return block
    return Daring(block.inputs, block.functions, rest, block.outputs, block.temporal,
                  merged([*block.equalities, *found.values()]))  # fmt: skip


def left_out(block: Block) -> tuple[dict[Expr, Equality], tuple[Expr, ...]]:
    """The predicates of a block that are equalities between inputs, and are no classes since they may fail; and the
    other predicates."""
    found, rest = dict[Expr, Equality](), list[Expr]()
    outer = {item.alias for item in block.inputs if item.kind is not InputKind.PLAIN}
    for predicate in block.predicates:
        sides = _sides(predicate, block.owners, daring=True)
        if sides is None or outer & inputs_of(predicate, block.owners):
            rest.append(predicate)
        else:
            found[predicate] = _equality(predicate, sides)
    return found, tuple(rest)


def _equality(predicate: Expr, sides: tuple[Expr, Expr]) -> Equality:
    return Equality(sides, not (isinstance(predicate, Call) and predicate.function == "="))


def _found(block: Block) -> Block:
    owners, outer = block.owners, {item.alias for item in block.inputs if item.kind is not InputKind.PLAIN}
    found: list[Equality] = []
    rest: list[Expr] = []
    for predicate in block.predicates:
        sides = _sides(predicate, owners)
        if sides is None or outer & inputs_of(predicate, owners):
            rest.append(predicate)
        else:
            found.append(_equality(predicate, sides))
    inputs = tuple(replace(item, on=tuple(map(_stripped, item.on))) if item.on else item for item in block.inputs)
    return replace(block, inputs=inputs, predicates=tuple(rest), equalities=merged(found))


def _stripped(match: Match) -> Match:
    return Match(comparable(match.key), comparable(match.probe), match.null_safe)


def _sides(predicate: Expr, owners: Mapping[str, Aliases], *, daring: bool = False) -> tuple[Expr, Expr] | None:
    """The two sides of an equality that may take part in a class or a key. `daring`: even if one fails too early."""
    if not (isinstance(predicate, Call) and predicate.function in ("=", "is not distinct from")):
        return None
    left, right = (comparable(side) for side in predicate.args)
    inputs = inputs_of(left, owners), inputs_of(right, owners)
    constants = [side for side in (left, right) if isinstance(side, Literal)]
    risky = [needed for side, needed in zip((left, right), inputs, strict=True) if fallible(side)]
    if left == right or looks_vary(left.type):
        return None
    if constants:
        usable = predicate.function == "=" and any(inputs) and not risky
    elif risky and not daring:
        usable = all(inputs) and inputs[0] != inputs[1] and all(len(needed) == 1 for needed in risky)
    else:
        usable = all(inputs) and (predicate.function == "=" or len(inputs[0] | inputs[1]) > 1)
    return (left, right) if usable else None


def comparable(expr: Expr) -> Expr:
    """The expression without outer casts that keep the value: to a wider integer, or from another text type to text.

    So `a.k = b.k` and `b.k = c.k` are one class even if the columns' integer types differ.
    """
    while isinstance(expr, Cast):
        source, target = expr.arg.type.kind, expr.type.kind
        widened = source in INTEGERS and target in INTEGERS and INTEGERS.index(source) <= INTEGERS.index(target)
        same_text = source in STRINGS and target is Kind.TEXT
        if not (widened or same_text):
            break
        expr = expr.arg
    return expr
