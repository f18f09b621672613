"""Lets a view find rows by a value that may fail: rows for which it does not fail are joined by it, the others apart.

`u.a = t.x + s.y` is computed on complete rows, since a sum that overflows is an error only of these. So a change of `t`
would meet every row of `u`. Instead the join is a sum of joins of the same inputs. The first has the rows for which
nothing fails: `u.a = value or null(t.x + s.y)` cannot fail, and is the key of a lookup. Another one has the rows of `t`
and `s` for which the sum fails, which is known before `u` is met, and computes everything on complete rows, as ever.
There are hardly any such rows.

The sum has the rows and the errors of the one join, each once. So each input may be changed by the paths of the parts,
or by a path of the one join, which makes the rows of all parts. A path of the parts is taken only where it looks up by
the value what the other one meets whole. What fails of one input alone is reported in the first part.

Wrong: to look up by the value alone, as daring queries do. A view has no other try: what fails for rows that are not
complete would be an error of the view, or lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from halfjoin.planner.block import Aliases, Block, Equality, inputs_of
from halfjoin.planner.cost import path_cost
from halfjoin.planner.equalities import merged
from halfjoin.planner.estimates import Estimates
from halfjoin.planner.fallibility import explode_fallible, formula_fallible
from halfjoin.planner.linear import Filter, Linear
from halfjoin.planner.paths import branch, in_order, path_maker
from halfjoin.planner.plan import ArrangementKey, Branch, InputKind, Path, Stage
from halfjoin.planner.rules.find_equalities import left_out
from halfjoin.sql.expr import Call, Expr, columns_of, walk
from halfjoin.sql.functions import fallible, resolve
from halfjoin.sql.functions.failing import fails, is_failing, reads_tried, value_or_null
from halfjoin.sql.functions.growth import may_grow


def branches_of(
    block: Block, number: int, estimates: Estimates, chosen: set[ArrangementKey]
) -> tuple[Branch, ...]:
    """As `paths.branch`, in as many branches as make the rows of the block with the fewest lookups."""
    parts = _parts(block)
    apart = () if parts is None else _gaining(block, parts, number, estimates, set(chosen))
    if parts is None or not any(block.inputs[i].kind is InputKind.PLAIN for i in apart):
        return (branch(block, number, estimates, chosen),)
    whole = path_maker(block, number, estimates, chosen)
    first, *others = (path_maker(part, number, estimates, chosen, part_of=block) for part in parts)
    paths = {i: first(i) if i in apart else whole(i) for i in in_order(block)}
    failing = [{i: _unreported(make(i)) for i in apart} for make in others]
    left = frozenset(range(len(block.inputs))).difference(apart)
    return (_branch(paths, left, estimates), *(_branch(each, frozenset(), estimates) for each in failing))


def ordinary(path: Path) -> Iterator[Stage]:
    """The lookups of a path that rows come to for which nothing fails."""
    if not _keeps_failing(path.source):
        for stage in path.stages:
            yield stage
            for order in stage.otherwise:
                yield from ordinary(replace(path, stages=order))
            if _keeps_failing(stage.then):
                return


def _parts(block: Block) -> tuple[Block, ...] | None:
    """The blocks whose rows are those of the block: those for which nothing of several inputs fails, and for each set
    of inputs those for which what reads them is the first to fail. None if there are none, or they cannot be told."""
    equal, _ = left_out(block)
    plain = frozenset(item.alias for item in block.inputs if item.kind is InputKind.PLAIN)
    late = [one for one in block.predicates if fallible(one) and not _is_early(inputs_of(one, block.owners), plain)]
    if not equal or block.dares or not _are_told(block, late, plain):
        return None
    risky = [side for one in late for side in (equal[one].members if one in equal else (one,)) if fallible(side)]
    groups = dict[Aliases, list[Expr]]()
    for expr in dict.fromkeys(risky):
        groups.setdefault(inputs_of(expr, block.owners), []).append(expr)
    rest = [value_or_null(one) if one in late else one for one in block.predicates if one not in equal]
    found = list[Equality]()
    for one in equal.values():
        found.append(Equality(tuple(map(value_or_null, one.members)), one.null_safe))
        if one.null_safe:
            rest.append(_not(fails([side for side in one.members if fallible(side)])))
    first = replace(block, predicates=tuple(rest), equalities=merged([*block.equalities, *found]))
    failing, passed = list[Block](), list[Expr]()
    for group in map(fails, groups.values()):
        failing.append(replace(block, predicates=(*block.predicates, *passed, group)))
        passed.append(_not(group))
    return first, *failing


def _is_early(inputs: Aliases, plain: Aliases) -> bool:
    """Whether what reads these inputs fails for rows of one input alone."""
    return len(inputs) == 1 and inputs <= plain


def _are_told(block: Block, late: Sequence[Expr], plain: Aliases) -> bool:
    """Whether the rows for which something fails can be told before they are complete. What else fails on complete
    rows must not come before, or be left out where an equality is NULL."""
    own = {column.name for item in block.inputs for column in item.columns}
    if not all(inputs_of(one, block.owners) and columns_of(one) <= own for one in late):
        return False
    if any(isinstance(node, Call) and may_grow(node) for one in late for node in walk(one)):  # it may take much memory
        return False
    if any(map(formula_fallible, block.temporal)) or sum(item.rows is not None for item in block.inputs) > 1:
        return False
    return all(_is_early(one.inputs, plain) for one in block.functions if explode_fallible(one.step))


def _not(expr: Expr) -> Expr:
    return resolve("not", (expr,))


def _gaining(
    block: Block, parts: Sequence[Block], number: int, estimates: Estimates, chosen: set[ArrangementKey]
) -> tuple[int, ...]:
    """The inputs whose changes meet fewer rows by the paths of the parts."""
    whole = path_maker(block, number, estimates, chosen)
    first, *others = (path_maker(part, number, estimates, chosen) for part in parts)
    return tuple(i for i in in_order(block) if _gains(whole(i), first(i), (make(i) for make in others)))


def _gains(whole: Path, first: Path, failing: Iterable[Path]) -> bool:
    """Whether a path of rows for which nothing fails looks up what the one of all rows meets whole, and the others meet
    it only with rows for which something fails."""
    spared = set(_met_whole(whole.stages)) & {
        stage.half_join.input for stage in first.every_stage if any(map(_tries, stage.half_join.probe))}  # fmt: skip
    return bool(spared) and all(spared.isdisjoint(_met_whole(ordinary(path))) for path in failing)


def _met_whole(stages: Iterable[Stage]) -> Iterator[int]:
    return (stage.half_join.input for stage in stages
            if stage.half_join.kind is InputKind.PLAIN and not stage.half_join.probe)  # fmt: skip


def _tries(probe: Expr) -> bool:
    return any(map(reads_tried, walk(probe)))


def _keeps_failing(operator: Linear) -> bool:
    """Whether an operator keeps only rows for which something fails."""
    return any(map(is_failing, (one for step in operator.steps if isinstance(step, Filter) for one in step.predicates)))


def _unreported(path: Path) -> Path:
    """A path that reports nothing of its input alone, as another one does."""
    return replace(path, source=Linear(path.source.steps))


def _branch(paths: Mapping[int, Path], whole: frozenset[int], estimates: Estimates) -> Branch:
    numbers = sorted(paths)
    plain = [i for i in numbers if paths[i].kind is InputKind.PLAIN and i not in whole]
    fill = min(plain, key=lambda i: estimates.rows(paths[i].collection) * path_cost(paths[i], estimates).lookups)
    return Branch(tuple(paths[i] for i in numbers), numbers.index(fill), whole)
