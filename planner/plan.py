"""The dataflow of a view: what the planner hands to a runner. Immutable, and complete without the SQL.

Delta law. Number a join's inputs. A result tuple is produced once, by the path of the component that arrived last; if
several arrived in the same batch, by the one with the highest number. So path `i` looks input `j < i` up after the
batch's updates went in, and `j > i` before. With "after" everywhere, rows that arrive together would be joined twice;
with "before" everywhere, never. Its time is the maximum of its components' times, its diff their product.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from halfjoin.planner.linear import Linear
from halfjoin.sql.expr import Column, Expr, Literal
from halfjoin.sql.functions import render


class Version(Enum):
    """Which contents a half-join looks up: those without the batch that is under way, or those with it."""

    BEFORE = "before"
    AFTER = "after"


class InputKind(Enum):
    """What an input of a join is, and how it is looked up.

    PLAIN: its rows. PRESENT: one empty row where its key is there. ABSENT: one where its key is not there. PADDED: its
    rows, or one default row where its key is not there.
    """

    PLAIN = "plain"
    PRESENT = "present"
    ABSENT = "absent"
    PADDED = "padded"


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
    version: Version  # AFTER where input < the path's
    fetch: tuple[tuple[str, str], ...]  # (collection column, its name in the stream), only those still needed
    kind: InputKind = InputKind.PLAIN
    default: tuple[Literal, ...] = ()  # of a padded input: what a row has for `fetch` where its key is not there


@dataclass(frozen=True, slots=True)
class Stage:
    """One half-join and the fused linear operator of all that its columns bind."""

    half_join: HalfJoin
    then: Linear


@dataclass(frozen=True, slots=True)
class Appearing:
    """What begins the path of a present, absent or padded input besides its rows: keys that come to be there, and go.

    Reduce law. Whether a key is there at a time is a function of the rows at or below it. It is asked anew for each key
    with an update whose time closes now, whichever batch brought it: not for the keys of the batch's rows alone, and
    never as the difference between "after" and "before", in both of which rows are that arrived open. Where a key comes
    to be there, the change is +1 row of a present input, -1 of an absent one, -1 default row of a padded one.
    """

    half_join: HalfJoin  # asks whether keys are there after the batch, by the columns that the stream has for them
    default: tuple[tuple[str, Literal], ...]  # the other columns of the row, by their names in the stream
    then: Linear  # what these rows, and those that `Path.source` gives, go through next


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
    kind: InputKind = InputKind.PLAIN  # of the path's own input
    appearing: Appearing | None = None  # where that is not plain


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
    def asked(self) -> tuple[str, ...]:
        """The collections of which it asks whether keys are there: what closes in them matters, whenever it arrived."""
        paths = (path for branch in self.branches for path in branch.paths if path.appearing is not None)
        return tuple(dict.fromkeys(path.collection for path in paths))

    @property
    def arrangements(self) -> tuple[ArrangementKey, ...]:
        """The arrangements that its half-joins look up, each once."""
        stages = (stage for branch in self.branches for path in branch.paths for stage in path.stages)
        return tuple(dict.fromkeys(stage.half_join.arrangement for stage in stages))
