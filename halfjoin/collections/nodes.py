"""What a collection is made of: names, queries that read others, and loops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Named:
    """A table or view."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """A SELECT: texts, and between them the collections whose names belong there. `mentions`: the tables that the
    user's expressions read in subqueries."""

    parts: tuple[str | Node, ...]
    mentions: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """Inside a loop, what the loop computes. `name`: a hint."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Iteration:
    """A loop: for each variable what it starts with, and what it becomes. `rounds`: at most so many; `shown`: the name
    of a column with the round of each change."""

    variables: Mapping[str, Variable]
    starts: Mapping[str, Node]
    steps: Mapping[str, Node]
    rounds: int | None
    shown: str | None


@dataclass(frozen=True, slots=True)
class Result:
    """A variable of a loop, as it is in the end."""

    loop: Iteration
    name: str


Node: TypeAlias = Named | Query | Variable | Result


def inputs(node: Node) -> tuple[Node, ...]:
    """The nodes that a node reads directly."""
    match node:
        case Query(parts):
            return tuple(part for part in parts if not isinstance(part, str))
        case Result(loop):
            return (*loop.starts.values(), *loop.steps.values())
        case _:
            return ()
