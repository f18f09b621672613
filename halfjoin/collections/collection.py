"""`Collection`: a query that is not run yet, with the operators that make others of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from halfjoin.collections import text
from halfjoin.collections.loops import looped
from halfjoin.collections.nodes import Named, Node, Variable
from halfjoin.collections.parts import Names, items, joined, matched, query, several
from halfjoin.collections.text import Fragment, expression, is_name
from halfjoin.collections.write import written
from halfjoin.errors import HalfjoinError, shown


class Collection:
    """A table, a view, or what operators make of them: an immutable value, and a text of SQL.

    `hj.collection("edges")` makes the first one, an operator the next. Expressions are SQL text. In them `this` is the
    collection, which is needed only where a name alone says too little. Python values go through `hj.lit`.

    Examples:
        >>> import halfjoin as hj
        >>> edges = hj.collection("edges")
        >>> print(edges.filter("src <> dst").map("src", n="dst + 1").sql())
        WITH step AS (
        SELECT * FROM edges AS this
        WHERE src <> dst
        )
        SELECT src, dst + 1 AS n FROM step AS this

        Rows count: a row may be there several times, and with `negate` less than not at all.
    """

    __slots__ = ("_node",)

    def __init__(self, node: Node) -> None:
        self._node = node

    def map(self, *columns: str, **computed: Any) -> Collection:
        """One row for each row, with other columns.

        Args:
            columns: expressions that name themselves, such as a column, `*` or `this.*`.
            computed: expressions by the names of their columns. A value that is not a str stands for itself.
        """
        shown = items(columns, computed)
        if not shown:
            raise HalfjoinError("map needs columns", remedy="name them: map('src', n='dst + 1')")
        return _made("SELECT ", *joined(shown), " FROM ", self._node, " AS this")

    def filter(self, condition: str) -> Collection:
        """The rows for which a condition is true."""
        return _made("SELECT * FROM ", self._node, " AS this\nWHERE ", expression(condition))

    def flat_map(self, call: str, *names: str) -> Collection:
        """Each row with each row that a table function returns for it: built in (`generate_series(1, n)`,
        `unnest(words)`) or registered with `engine.register_table_function`.

        Args:
            call: the function and its arguments, which are expressions.
            names: of the function's columns, which come after the collection's own. Default: their own names.
        """
        if callable(call):
            raise HalfjoinError("a view keeps the name of a function, not its code",
                                remedy="register_table_function(name, function, returns=...), then "
                                       "flat_map('name(column)')")  # fmt: skip
        function = expression(call)
        if not isinstance(function.tree, exp.Anonymous):
            raise HalfjoinError(f"{shown(call)} is not a call of a table function", remedy="write name(arguments)")
        columns = f"({', '.join(map(text.name, names))})" if names else ""
        return _made("SELECT this.*, other.* FROM ", self._node, " AS this, ", function, f" AS other{columns}")

    def join(self, other: Collection, on: Names, *columns: str, **computed: Any) -> Collection:
        """Each pair of rows that fit together.

        Args:
            other: the other collection.
            on: the names of columns that both have, and that must be equal: they come first in the result, then the
                other columns of both. Or one condition over `this` and `other`.
            columns: the columns of the result, as in `map`. Give them where both have columns of one name.
            computed: its computed columns, as in `map`.
        """
        names, condition = matched(on)
        using = f"\nUSING ({', '.join(name.text for name in names)})"
        shown = joined(items(columns, computed)) or ["*"]
        return _made("SELECT ", *shown, " FROM ", self._node, " AS this JOIN ", node_of(other), " AS other",
                     *(("\nON ", condition) if condition else (using,)))  # fmt: skip

    def semijoin(self, other: Collection, on: Names) -> Collection:
        """The rows for which the other collection has a row that fits, as in `join`; each as often as it was there."""
        return self._asking("EXISTS", other, on)

    def antijoin(self, other: Collection, on: Names) -> Collection:
        """The rows for which the other collection has no row that fits, as in `join`."""
        return self._asking("NOT EXISTS", other, on)

    def _asking(self, words: str, other: Collection, on: Names) -> Collection:
        names, condition = matched(on)
        equal = " AND ".join(f"this.{name.text} = other.{name.text}" for name in names)
        return _made("SELECT * FROM ", self._node, f" AS this\nWHERE {words} (SELECT 1 FROM ", node_of(other),
                     " AS other WHERE ", condition or equal, ")")  # fmt: skip

    def concat(self, *others: Collection) -> Collection:
        """The rows of all: their counts add up. Columns are matched by position, and are named as in the first."""
        return _made(*joined([["SELECT * FROM ", node_of(one)] for one in (self, *others)], "\nUNION ALL\n"))

    def negate(self) -> Collection:
        """The same rows with negated counts, so that `a.concat(b.negate())` is a without b's rows."""
        return _made("SELECT this.* FROM ", self._node, " AS this, repeat_row(-1)")

    def distinct(self) -> Collection:
        """Each row once that is there at all."""
        return _made("SELECT DISTINCT * FROM ", self._node)

    def reduce(
        self, function: str | None = None, /, *,
        by: Names | Mapping[str, str] = (), order: Names = (), **aggregates: str,
    ) -> Collection:  # fmt: skip
        """What is made of each group of rows: one row with aggregates, or the rows that a function returns.

        Args:
            function: the name of a function that was registered with `engine.register_reduce`. `by` are then names of
                columns, which come first in the result, and the function's columns follow.
            by: expressions whose values make the groups; with a dict, by the names of their columns. Without any, all
                rows are one group, of which aggregates have a row even if there are no rows.
            order: the order in which the function sees the rows, such as `at` or `at DESC`.
            aggregates: expressions by the names of their columns, such as `n="count(*)"`.
        """
        if function is not None:
            return self._reduced(function, by, order, aggregates)
        if order:
            raise HalfjoinError("order is the order in which a function sees the rows of a group",
                                remedy="write it in an aggregate, as string_agg(a, ',' ORDER BY b); for a column of "
                                       "that name, reduce and then map")  # fmt: skip
        keys = items((), by) if isinstance(by, Mapping) else items(several(by), {})
        shown = keys + items((), aggregates)
        if not shown:
            raise HalfjoinError("reduce needs groups or aggregates", remedy="write reduce(by=['k'], n='count(*)')")
        grouped = ["\nGROUP BY " + ", ".join(str(number) for number in range(1, len(keys) + 1))] if keys else []
        return _made("SELECT ", *joined(shown), " FROM ", self._node, " AS this", *grouped)

    def _reduced(
        self, function: object, by: Names | Mapping[str, str], order: Names, aggregates: Mapping[str, str]
    ) -> Collection:  # fmt: skip
        """The rows that a registered function makes of each group."""
        if callable(function):
            raise HalfjoinError("a view keeps the name of a function, not its code",
                                remedy="register_reduce(name, function, returns=...), then reduce('name', by=...)")
        names = [expression(one) for one in several(by)]
        if aggregates or isinstance(by, Mapping) or not all(map(is_name, names)):
            raise HalfjoinError("reduce with a function takes names of columns in by, and no aggregates",
                                remedy="compute columns with map before it, or after it")  # fmt: skip
        keys = [name.text for name in names]
        columns = ", ".join([*(f"this.{key}" for key in keys), "this.*"])
        groups = f" PARTITION BY {', '.join(keys)}" if keys else ""
        sorts = ", ".join(expression(one, exp.Ordered).text for one in several(order))
        return _made(f"SELECT {columns} FROM {text.name(function)}(TABLE ", self._node, groups,
                     f" ORDER BY {sorts}) AS this" if sorts else ") AS this")  # fmt: skip

    def count(self, *by: str) -> Collection:
        """How many rows each group has, as the column `count`."""
        return self.reduce(by=by, count="count(*)")

    def iterate(
        self, body: Callable[[Collection], Collection], *, rounds: int | None = None, trace: str | None = None
    ) -> Collection:
        """What becomes of the collection when a body is applied to it again and again, until nothing changes.

        x(0) is the collection, x(r + 1) = body(x(r)). It keeps its columns and their types.

        Args:
            body: a function from a collection, which stands for x, to one with the same columns. It is called once.
            rounds: stop after so many: the result is x(rounds). None: a loop that goes on is an error of the view.
            trace: the name of one more column, the round. Then each row comes in the round that brought it, and goes,
                with a negative count, in the round that took it away. So the differences have times (batch time,
                round). Without the column they add up to the result.

        Examples:
            What can be reached from 1:

            >>> import halfjoin as hj
            >>> engine = hj.Engine(clock="own")
            >>> engine.execute("CREATE TABLE edges (src bigint, dst bigint); CREATE TABLE roots (node bigint)")
            >>> edges, roots = hj.collection("edges"), hj.collection("roots")
            >>> reached = roots.iterate(
            ...     lambda inner: inner.join(edges, "this.node = other.src", node="dst").concat(roots).distinct())
            >>> engine.create_view("reached", reached)
            >>> batch = {"roots": [{"node": 1}], "edges": [{"src": 1, "dst": 2}, {"src": 2, "dst": 3}]}
            >>> _ = engine.apply(batch, time=1)
            >>> sorted(engine.read("reached")["node"].to_pylist())
            [1, 2, 3]
        """
        made = looped({"loop": self._node}, lambda now: {"loop": node_of(body(Collection(now["loop"])))}, rounds, trace)
        return Collection(made["loop"])

    def sql(self) -> str:
        """The collection as one SELECT.

        Raises:
            HalfjoinError: it is the inside of a loop.
        """
        return written(self._node)

    def __repr__(self) -> str:
        if isinstance(self._node, Variable):
            return f"<halfjoin.Collection {self._node.name}, inside a loop>"
        try:
            return f"<halfjoin.Collection\n{self.sql()}>"
        except HalfjoinError as problem:
            return f"<halfjoin.Collection: {problem}>"


def collection(name: str) -> Collection:
    """The rows of a table or view, as a `Collection`. `name` is the exact name; it is not folded to lower case."""
    text.name(name)
    return Collection(Named(name))


def _made(*parts: str | Fragment | Node) -> Collection:
    return Collection(query(*parts))


def node_of(value: object) -> Node:
    """What a collection is made of; HalfjoinError for anything else."""
    if not isinstance(value, Collection):
        raise HalfjoinError(f"{shown(value)} is not a collection", remedy="write hj.collection('name of a table')")
    return value._node
