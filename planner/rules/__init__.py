"""The rules that bring a view into normal form, in the order in which they run."""

from __future__ import annotations

from collections.abc import Callable

from halfjoin.planner.block import Blocks
from halfjoin.planner.rules.attach_functions import attach_functions
from halfjoin.planner.rules.drop_empty import drop_empty
from halfjoin.planner.rules.find_equalities import find_equalities
from halfjoin.planner.rules.find_temporal import find_temporal
from halfjoin.planner.rules.fit_outputs import fit_outputs
from halfjoin.planner.rules.flatten import flatten
from halfjoin.planner.rules.fold_constants import fold_constants
from halfjoin.planner.rules.fold_merged import fold_merged
from halfjoin.planner.rules.imply_filters import imply_filters
from halfjoin.planner.rules.make_inner import make_inner
from halfjoin.planner.rules.split_conjuncts import split_conjuncts
from halfjoin.sql.relation import Relation

RULES: tuple[Callable[[Blocks], Blocks], ...] = (
    fit_outputs,
    fold_constants,
    split_conjuncts,
    drop_empty,
    fold_merged,
    make_inner,
    attach_functions,
    imply_filters,
    find_temporal,
    find_equalities,
)



def normal_form(relation: Relation) -> tuple[tuple[str, Blocks], ...]:
    """The blocks of a relation after each rule, by the rule's name; the last ones are its normal form.

    Raises:
        UnsupportedSQL: the relation cannot be maintained.
    """
    blocks = flatten(relation)
    steps = [(flatten.__name__, blocks)]
    for rule in RULES:
        blocks = rule(blocks)
        steps.append((rule.__name__, blocks))
    return tuple(steps)
