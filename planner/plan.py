"""The dataflow of a view: what the planner hands to a runner. Immutable, and complete without the SQL.

Delta law. Number a join's inputs. A result tuple is produced once, by the path of the component that arrived last; if
several arrived in the same batch, by the one with the highest number. So path `i` looks input `j < i` up after the
batch's updates went in, and `j > i` before. With "after" everywhere, rows that arrive together would be joined twice;
with "before" everywhere, never. Its time is the maximum of its components' times, its diff their product.

Two inputs in which nothing is yet, and a batch that brings the key `k` to both:

>>> before, after = [[], []], [["k"], ["k"]]
>>> def joined(version):  # path i looks up the other input, j, in a version of it
...     return [key for i, j in ((0, 1), (1, 0)) for key in after[i] if key in version(i, j)[j]]
>>> joined(lambda i, j: after if j < i else before)
['k']
>>> joined(lambda i, j: after)  # wrong: what arrives together is joined twice
['k', 'k']
>>> joined(lambda i, j: before)  # wrong: and here never
[]

It is wrong, too, to choose the version by the updates' times instead of their arrival: a row may arrive after another
with an earlier time, and then each path would take the other's row for its own to find, or neither.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from halfjoin.planner.linear import Linear
from halfjoin.sql.expr import Column, Expr
from halfjoin.sql.functions import render


@dataclass(frozen=True, slots=True)
class ArrangementKey:
    """Which arrangement: a collection indexed by key expressions over its columns (by their bare names).

    No keys: the collection as a whole (a cross product reads it all). `through`: the key reads columns that this
    operator computes from the collection's row (a table function's); it may give several index entries per row.
    """

    collection: str
    keys: tuple[Expr, ...] = ()
    through: Linear | None = None

    def __str__(self) -> str:
        """`orders(o_custkey)`."""
        return f"{self.collection}({', '.join(map(render, self.keys))})"


@dataclass(frozen=True, slots=True)
class HalfJoin:
    """Look the stream's rows up in one arrangement; each match adds the looked-up row's columns to the stream."""

    input: int  # which of the join's inputs is looked up
    alias: str
    arrangement: ArrangementKey
    probe: tuple[Expr, ...]  # over the stream's columns, one for each key, of its type (integers may differ in width)
    null_safe: tuple[bool, ...]  # IS NOT DISTINCT FROM: NULL matches NULL
    after: bool  # with this batch's updates of the collection (input < the path's), or before them
    fetch: tuple[tuple[str, str], ...]  # (collection column, its name in the stream), only those still needed


@dataclass(frozen=True, slots=True)
class Stage:
    """One half-join and the fused linear operator of all that its columns bind."""

    half_join: HalfJoin
    then: Linear


@dataclass(frozen=True, slots=True)
class Path:
    """How a change of one input becomes changes of the view."""

    input: int
    alias: str
    collection: str
    fetch: tuple[tuple[str, str], ...]  # as in HalfJoin, of the changed rows themselves
    source: Linear
    stages: tuple[Stage, ...]
    final: Linear  # ends with exactly the view's columns, by the names of `ViewPlan.columns`


@dataclass(frozen=True, slots=True)
class Branch:
    """One join: the view is the sum of its branches. One path per input, in input order."""

    paths: tuple[Path, ...]
    fill: int  # which path fills a new view: that input's whole history as the change, all others "after"


@dataclass(frozen=True, slots=True)
class Constant:
    """A collection that never changes: the rows of VALUES, or one row without columns. Its name starts with `=`."""

    name: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Expr, ...], ...]


@dataclass(frozen=True, slots=True)
class ViewPlan:
    """The whole dataflow of one view or query."""

    columns: tuple[Column, ...]
    branches: tuple[Branch, ...]
    constants: tuple[Constant, ...] = ()
    warnings: tuple[str, ...] = field(default=())

    @property
    def collections(self) -> tuple[str, ...]:
        """The collections it reads, constants aside, in order of first use."""
        seen = dict.fromkeys(path.collection for branch in self.branches for path in branch.paths)
        return tuple(name for name in seen if not name.startswith("="))

    @property
    def arrangements(self) -> tuple[ArrangementKey, ...]:
        """The arrangements that its half-joins look up, each once."""
        stages = (stage for branch in self.branches for path in branch.paths for stage in path.stages)
        return tuple(dict.fromkeys(stage.half_join.arrangement for stage in stages))
