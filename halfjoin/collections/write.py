"""Writes a collection as one SELECT.

What an operator reads is a query of WITH, named once and written before its readers. A loop is a WITH ITERATIVE, and
what may read it a query in FROM behind it. What does not read the variables of a loop is written outside that loop.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import chain, count

from halfjoin.collections.nodes import Iteration, Named, Node, Query, Result, Variable, inputs
from halfjoin.collections.text import name
from halfjoin.errors import HalfjoinError
from halfjoin.nesting import bounded


@dataclass(frozen=True)
class _Item:
    """Queries with names, as WITH writes them. `loop`: what stands before them, if they are a WITH ITERATIVE."""

    text: str
    loop: str = ""


@dataclass(eq=False)
class _Scope:
    """A place where queries can be named: the whole text, or a step of a loop, which reads the loop's variables."""

    parent: _Scope | None = None
    variables: frozenset[Variable] = frozenset()
    names: dict[Node, str] = field(default_factory=dict)
    items: list[_Item] = field(default_factory=list)

    def name_of(self, node: Node) -> str | None:
        """The name that a node has here or further out."""
        found = self.names.get(node)
        return self.parent.name_of(node) if found is None and self.parent is not None else found


@bounded()
def written(node: Node) -> str:
    """The text of a collection.

    Raises:
        HalfjoinError: it is the inside of a loop, which has no meaning outside.
        UnsupportedSQL: it is nested too deep.
    """
    return _Writer(node).query(node, _Scope())


class _Writer:
    """Writes one text. `taken`: the names that it must not give to queries, since the user's text reads tables so."""

    def __init__(self, root: Node) -> None:
        self.free: dict[Node, frozenset[Variable]] = {}
        self.readers = Counter[Node]()
        self.taken: set[str] = set()
        self._look_through(root)

    def _look_through(self, node: Node) -> frozenset[Variable]:
        """Note for a node and all below it which variables of loops around it it reads, and which tables."""
        self.readers[node] += 1
        if node in self.free:
            return self.free[node]
        below = frozenset[Variable]().union(*map(self._look_through, inputs(node)))
        match node:
            case Named(table):
                self.taken.add(table)
            case Query(mentions=mentions):
                self.taken |= mentions
            case Variable():
                below = frozenset([node])
            case Result(loop):
                below -= frozenset(loop.variables.values())
        self.free[node] = below
        return below

    def query(self, node: Node, scope: _Scope) -> str:
        """A whole query: what it reads, in WITH, and the node itself."""
        text, last = self.bare(node, scope), ""
        for item in reversed(scope.items):
            if last == "WITH" and not item.loop:
                text = f"WITH {item.text},\n{text.removeprefix('WITH ')}"
            else:
                text = f"SELECT * FROM (\n{text}\n) AS {self.fresh('rest')}" if last else text
                text = f"{item.loop or 'WITH'} {item.text}\n{text}"
            last = item.loop or "WITH"
        return text

    def bare(self, node: Node, scope: _Scope) -> str:
        """A query without the WITH that it needs: that is left to the scope."""
        if isinstance(node, Query) and self.readers[node] < 2 and self.home(node, scope) is scope:
            return self.text(node, scope)
        return f"SELECT * FROM {self.name(node, scope)}"

    def text(self, query: Query, scope: _Scope) -> str:
        """A query's text with the names of what it reads."""
        return "".join(part if isinstance(part, str) else self.name(part, scope) for part in query.parts)

    def home(self, node: Node, scope: _Scope) -> _Scope:
        """The outermost place from which a node can read what it reads."""
        while scope.parent is not None and not self.free[node] & scope.variables:
            scope = scope.parent
        return scope

    def name(self, node: Node, scope: _Scope) -> str:
        """The name of a node, which is written first if it has none yet."""
        if (known := scope.name_of(node)) is not None:
            return known
        home = self.home(node, scope)
        match node:
            case Named(table):
                return name(table)
            case Variable(inner):
                raise HalfjoinError(f"{inner} stands for what a loop computes, and is read outside of the loop",
                                    remedy="read what iterate returns")  # fmt: skip
            case Query():
                text = self.text(node, home)
                home.names[node] = self.fresh("step")
                home.items.append(_Item(f"{home.names[node]} AS (\n{text}\n)"))
            case Result():
                self.iteration(node, home)
        return home.names[node]

    def iteration(self, result: Result, home: _Scope) -> None:
        """Write a loop; all of its variables get names."""
        loop = result.loop
        starts = {key: self.bare(start, home) for key, start in loop.starts.items()}
        names = {key: self.fresh(variable.name) for key, variable in loop.variables.items()}
        items = []
        for key, step in loop.steps.items():
            inside = _Scope(home, frozenset(loop.variables.values()))
            inside.names = {variable: names[one] for one, variable in loop.variables.items()}
            items.append(f"{names[key]} AS (\n{starts[key]}\nITERATE\n{self.query(step, inside)}\n)")
        home.items.append(_Item(",\n".join(items), f"WITH ITERATIVE{_options(loop)}"))
        home.names |= {Result(loop, key): names[key] for key in loop.variables}

    def fresh(self, hint: str) -> str:
        """A name that is not taken."""
        numbered = (f"{hint}_{number}" for number in count(2))
        found = next(one for one in chain([hint], numbered) if one not in self.taken)
        self.taken.add(found)
        return name(found)


def _options(loop: Iteration) -> str:
    parts = [] if loop.shown is None else [f"ROUNDS AS {name(loop.shown)}"]
    parts += [] if loop.rounds is None else [f"AT RECURSION LIMIT {loop.rounds}"]
    return f" (RETURN {' '.join(parts)})" if parts else ""
