"""The plan of a view, which the planner hands to a runner. It is immutable, and complete without the SQL.

A plan is a graph of nodes: joins, reduces and loops. Each node has an output collection: the view itself, or a node
collection that other nodes look up.

Delta law. Number a join's inputs. A result tuple is produced once, by the path of the component that arrived last; if
several arrived in the same batch, by the one with the highest number. So path `i` looks input `j < i` up after the
batch's updates went in, and `j > i` before. With "after" everywhere, rows that arrive together would be joined twice;
with "before" everywhere, never. Its time is the maximum of its components' times, its diff their product.

Two empty inputs, and a batch that brings the key `k` to both:

>>> before, after = [[], []], [["k"], ["k"]]
>>> def joined(version):  # path i looks up the other input, j, in a version of it
...     return [key for i, j in ((0, 1), (1, 0)) for key in after[i] if key in version(i, j)[j]]
>>> joined(lambda i, j: after if j < i else before)
['k']
>>> joined(lambda i, j: after)  # wrong: what arrives together is joined twice
['k', 'k']
>>> joined(lambda i, j: before)  # wrong: it is never joined
[]

It is wrong, too, to choose the version by the updates' times instead of their arrival. A row may arrive after another
with an earlier time. Then both paths would make the pair, or neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import chain
from typing import TypeAlias

from halfjoin.planner.group_functions import Aggregates, OfGroups, Own, Top, Windows
from halfjoin.planner.linear import Explode, Linear
from halfjoin.planner.reach import Reach
from halfjoin.sql.expr import Column, Expr, Literal
from halfjoin.sql.functions import render

ROUND = "__round"


def round_names(loops: int) -> tuple[str, ...]:
    """The last columns of a collection inside so many loops: the rounds, that of the outermost loop first.

    >>> round_names(2)
    ('__round', '__round2')
    """
    return tuple(ROUND if number == 1 else f"{ROUND}{number}" for number in range(1, loops + 1))


class Version(Enum):
    """Which contents a half-join looks up: those without the batch that is under way, or those with it."""

    BEFORE = "before"
    AFTER = "after"


class InputKind(Enum):
    """How a join looks an input up.

    PLAIN: its rows. PRESENT: one empty row if its key is there. ABSENT: one empty row if its key is not there. PADDED:
    its rows, or one default row if its key is not there.
    """

    PLAIN = "plain"
    PRESENT = "present"
    ABSENT = "absent"
    PADDED = "padded"


@dataclass(frozen=True, slots=True)
class ArrangementKey:
    """Names an arrangement: a collection indexed by key expressions over its columns (by their bare names).

    No keys: the whole collection, which a cross product reads. `through`: the key reads columns that this operator
    computes from the collection's row (a table function's); it may give several index entries per row. `constant`: the
    alias of the constant rows that it reads; None if it reads a collection of the engine.
    """

    collection: str
    keys: tuple[Expr, ...] = ()
    through: Linear | None = None
    constant: str | None = None
    _hash: int = field(init=False, repr=False, compare=False)  # of all the rest, once: each lookup asks for it

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.collection, self.keys, self.through, self.constant)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[object, ...]:
        return ArrangementKey, (self.collection, self.keys, self.through, self.constant)  # hashes differ by process

    def __str__(self) -> str:
        """`orders(o_custkey)`."""
        return f"{self.collection}({', '.join(map(render, self.keys))})"


@dataclass(frozen=True, slots=True)
class HalfJoin:
    """Look the stream's rows up in one arrangement; each match adds the looked-up row's columns to the stream."""

    input: int  # which of the join's inputs is looked up
    alias: str
    arrangement: ArrangementKey
    probe: tuple[Expr, ...]  # over the stream's columns, one per key, of the key's type (integers may differ in width)
    null_safe: tuple[bool, ...]  # IS NOT DISTINCT FROM: NULL matches NULL
    version: Version  # AFTER where input < the path's
    fetch: tuple[tuple[str, str], ...]  # (collection column, its name in the stream), only those still needed
    kind: InputKind = InputKind.PLAIN
    default: tuple[Expr, ...] = ()  # of a padded input: the values for `fetch` if its key is not there
    within: ArrangementKey | Known | KnownAny | None = None  # of a query: finds rows among which all partners are

    @property
    def arrangements(self) -> tuple[ArrangementKey, ...]:
        """Those that it looks up."""
        match self.within:
            case None:
                return (self.arrangement,)
            case ArrangementKey():
                return self.arrangement, self.within
            case found:
                return self.arrangement, *found.arrangements


@dataclass(frozen=True, slots=True)
class Stage:
    """One half-join, and the fused linear operator of all steps whose columns it completes.

    `otherwise`: other orders of the same inputs. Each has as many stages as it stands for: this one and those after it.
    A row takes the order whose first half-join finds the fewest partners for it. All orders give the same results, so a
    runner may let all rows take the stages as they are (`planner.choices`).
    """

    half_join: HalfJoin
    then: Linear
    otherwise: tuple[tuple[Stage, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Appearing:
    """How the path of an input that is not plain begins, besides with its rows: with keys that come to be there or go.

    Reduce law. Whether a key is there at a time is a function of the rows at or below it. The path asks this anew for
    each key with an update whose time closes now, whichever batch brought it. Wrong: to ask for the keys of the batch's
    rows alone. Wrong, too: to take the difference between "after" and "before", since rows that arrived open are in
    both. Where a key comes to be there, the change is +1 row of a present input, -1 of an absent one, -1 default row of
    a padded one.
    """

    half_join: HalfJoin  # asks whether keys are there after the batch, by the stream's columns for them
    default: tuple[tuple[str, Expr], ...]  # the other columns of the row, by their names in the stream
    then: Linear  # the next steps of these rows and of those that `Path.source` gives


@dataclass(frozen=True, slots=True)
class Known:
    """The keys that every row of a path's input has which its operator lets through, and an arrangement that finds the
    rows with these keys. `values`: for each key of the arrangement, what it may be; each combination is a key."""

    arrangement: ArrangementKey
    values: tuple[tuple[Literal, ...], ...]

    @property
    def arrangements(self) -> tuple[ArrangementKey, ...]:
        """Those that it looks up."""
        return (self.arrangement,)


@dataclass(frozen=True, slots=True)
class KnownAny:
    """As `Known`, where every row has the keys of at least one of these: `WHERE buyer = 5 OR seller = 5`."""

    ways: tuple[Known, ...]

    @property
    def arrangements(self) -> tuple[ArrangementKey, ...]:
        """Those that it looks up."""
        return tuple(dict.fromkeys(way.arrangement for way in self.ways))


@dataclass(frozen=True, slots=True)
class KnownIn:
    """As `Known`, where the keys are those of the rows of a present input, of which there are few. `source`: computes
    them from its rows, in the order of the arrangement's keys. `null_safe`: a NULL among them finds rows, too."""

    arrangement: ArrangementKey
    source: ArrangementKey
    null_safe: bool = False

    @property
    def arrangements(self) -> tuple[ArrangementKey, ...]:
        """Those that find its rows."""
        return (self.arrangement,)


KnownKeys: TypeAlias = Known | KnownAny | KnownIn


@dataclass(frozen=True, slots=True)
class Path:
    """How a change of one input becomes changes of the view."""

    input: int
    alias: str
    collection: str
    fetch: tuple[tuple[str, str], ...]  # as in HalfJoin, for the changed rows
    source: Linear
    stages: tuple[Stage, ...]
    final: Linear  # ends with exactly the view's columns, by the names of `ViewPlan.columns`
    kind: InputKind = InputKind.PLAIN  # of the path's own input
    appearing: Appearing | None = None  # set if that input is not plain
    constant: bool = False  # whether its input never changes, so the path can only fill
    known: KnownKeys | None = None  # of a query: rows without these keys need not be read to fill

    @property
    def fixed(self) -> tuple[Stage, ...]:
        """The stages without choices: the order that all rows may take."""
        return tuple(replace(stage, otherwise=()) for stage in self.stages)

    @property
    def every_stage(self) -> tuple[Stage, ...]:
        """The stages of all orders that rows may take."""
        return tuple(_every(self.stages))


def _every(stages: Iterable[Stage]) -> Iterator[Stage]:
    for stage in stages:
        yield stage
        for order in stage.otherwise:
            yield from _every(order)


@dataclass(frozen=True, slots=True)
class Branch:
    """One join of a sum of joins. One path per input, in input order; of a query only those that it needs.

    `whole`: the places of paths that also make the rows of the branches after this one (`planner.failing_rows`). None
    of them fills, and those branches have no paths of their inputs.
    """

    paths: tuple[Path, ...]
    fill: int  # which path fills a new collection: that input's whole history as the change, all others "after"
    whole: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Constant:
    """An input that never changes: the rows of VALUES, or one row without columns. No collection has its name.

    `made`: the table function whose rows they are, with the `columns` in its order; it runs on the one row.
    """

    name: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Expr, ...], ...]
    made: Explode | None = None


@dataclass(frozen=True, slots=True)
class Join:
    """Linear operators and delta paths: the output is the sum of the branches. A join keeps nothing.

    `output` is the name of the view, or the fingerprint of the node. `passing`: only reduces read the output, and only
    its changes. So the output collection holds no more than the updates whose times are open: it is the *pending*
    collection of the reduces above. `loops`: the names of the loops that the node is in, the outermost first. `last`:
    the last round that a binding may have; a row that differs in it is an error. `named`: the names of a binding and of
    its columns, for people.
    """

    output: str
    columns: tuple[Column, ...]
    branches: tuple[Branch, ...]
    constants: tuple[Constant, ...] = ()
    passing: bool = False
    loops: tuple[str, ...] = ()
    last: int | None = None
    named: tuple[str, ...] = field(default=(), compare=False)

    @property
    def loop(self) -> str:
        """The outermost loop that the node is in, or nothing."""
        return self.loops[0] if self.loops else ""

    @property
    def collections(self) -> tuple[str, ...]:
        """The collections that it reads, without constants, in order of first use."""
        paths = (path for branch in self.branches for path in branch.paths if not path.constant)
        looked_up = (key.collection for key in self.arrangements if key.constant is None)
        return tuple(dict.fromkeys((*(path.collection for path in paths), *looked_up)))

    @property
    def asked(self) -> tuple[str, ...]:
        """The collections of which it asks whether keys are there. What closes in them matters, whenever it arrived."""
        paths = (path for branch in self.branches for path in branch.paths if not path.constant)
        return tuple(dict.fromkeys(path.collection for path in paths if path.appearing is not None))

    @property
    def arrangements(self) -> tuple[ArrangementKey, ...]:
        """The arrangements that its half-joins look up, each once."""
        stages = (stage for branch in self.branches for path in branch.paths for stage in path.every_stage)
        return tuple(dict.fromkeys(key for stage in stages for key in stage.half_join.arrangements))


@dataclass(frozen=True, slots=True)
class Reduce:
    """A function of each group of `input`, by the columns `keys`: aggregates, DISTINCT, set operations, top-k, windows,
    the user's own.

    Reduce law. A reduce acts when times close. For each closing time `t`, and each group with an update at `t`,
    whichever batch brought it: `output diff at t = f(input at or below t) - output at or below t`. `f` is not called on
    an empty group; an aggregate without keys has one group, which is always there. The output arrives before the nodes
    that read it run.

    Wrong: "after minus before of the batch", since rows that arrived while their time was open are in both. Wrong, too:
    to look only at the groups that this batch touched, since what closes now may have come earlier.

    `loops`, `last`, `named`: as in `Join`. Inside a loop the last columns are the rounds, and the reduce acts in each
    round. A binding that shows no more than such a reduce is that reduce. `words`: what columns of a node that it reads
    mean in the words of the user.
    `checked`: the input is a table with a PRIMARY KEY, the output of an aggregate, or made of these. So batches take
    only rows that are there, and none has a negative count.
    """

    output: str
    columns: tuple[Column, ...]
    input: str
    keys: tuple[Column, ...]  # of the input; NULL is a key like any other
    function: OfGroups
    loops: tuple[str, ...] = ()
    checked: bool = field(default=False, compare=False)  # as the incarnation of the input says
    last: int | None = field(default=None, compare=False)  # as the name of the binding says
    named: tuple[str, ...] = field(default=(), compare=False)
    words: tuple[tuple[str, str], ...] = field(default=(), compare=False)

    @property
    def loop(self) -> str:
        """The outermost loop that the node is in, or nothing."""
        return self.loops[0] if self.loops else ""

    @property
    def identifying(self) -> frozenset[str] | None:
        """The columns that identify a row of the output, if there are such columns."""
        return frozenset(key.name for key in self.keys) if isinstance(self.function, Aggregates) else None

    @property
    def collections(self) -> tuple[str, ...]:
        """The collection that it reads."""
        return (self.input,)

    @property
    def asked(self) -> tuple[str, ...]:
        """The collections of which what closes matters, whenever it arrived."""
        return self.collections

    @property
    def state(self) -> ArrangementKey | None:
        """The arrangement of the output in which it finds what a group was: an aggregate its row, LIMIT the first rows,
        a window the rows that a change reaches, the user's reduce its rows. None if it does not ask."""
        match self.function:
            case _ if self.loop:
                return ArrangementKey(self.output, self.keys)
            case Aggregates() | Top(limit=int(), offset=0) | Own():
                return ArrangementKey(self.output, self.keys)
            case Windows(reach=Reach()):
                return ArrangementKey(self.output, self.keys)
            case _:
                return None

    @property
    def groups(self) -> ArrangementKey | None:
        """The arrangement of the input in which it finds a group's rows; None if the sums that it keeps suffice."""
        additive = isinstance(self.function, Aggregates) and not self.function.ordered
        return None if additive else ArrangementKey(self.input, self.keys)

    @property
    def arrangements(self) -> tuple[ArrangementKey, ...]:
        """The arrangements that it looks up."""
        return tuple(key for key in (self.state, self.groups) if key is not None)


Node: TypeAlias = Join | Reduce


@dataclass(frozen=True, slots=True)
class ViewPlan:
    """The graph of one view or query: its nodes in order of dependency. The output of the last one is the view."""

    nodes: tuple[Node, ...]
    warnings: tuple[str, ...] = ()
    dares: bool = False  # it may fail for rows that the query leaves out (`planner.reduces.key_first`)

    @property
    def output(self) -> Node:
        """The node whose output is the view."""
        return self.nodes[-1]

    @property
    def below(self) -> tuple[Node, ...]:
        """The nodes whose outputs are node collections."""
        return self.nodes[:-1]

    @property
    def columns(self) -> tuple[Column, ...]:
        """The view's columns."""
        return self.nodes[-1].columns

    @property
    def joins(self) -> tuple[Join, ...]:
        """The nodes that are joins."""
        return tuple(node for node in self.nodes if isinstance(node, Join))

    @property
    def arrangements(self) -> tuple[ArrangementKey, ...]:
        """The arrangements that its nodes look up, each once."""
        return tuple(dict.fromkeys(chain.from_iterable(node.arrangements for node in self.nodes)))

    @property
    def branches(self) -> tuple[Branch, ...]:
        """The branches of the view's own join; empty if the view is the output of another kind of node."""
        return self.output.branches if isinstance(self.output, Join) else ()

    @property
    def collections(self) -> tuple[str, ...]:
        """The tables and views that it reads, in order of first use."""
        own = {node.output for node in self.below}
        read = chain.from_iterable(node.collections for node in self.nodes)
        return tuple(name for name in dict.fromkeys(read) if name not in own)
