"""The executable form of a plan's node."""

from __future__ import annotations

from typing import TypeAlias

from halfjoin.engine.join.dataflow import Dataflow
from halfjoin.engine.linear.tables import Registry
from halfjoin.engine.reduce.flow import ReduceFlow
from halfjoin.errors import UnsupportedSQL
from halfjoin.planner.plan import Join, Node, Reduce

Flow: TypeAlias = Dataflow | ReduceFlow


def flow_of(node: Node, registry: Registry, name: str) -> Flow:
    """Make a node executable. `name` is for errors.

    Raises:
        UnsupportedSQL: it is a loop.
    """
    match node:
        case Join():
            return Dataflow(node, registry, name)
        case Reduce():
            return ReduceFlow(node, registry, name)
    raise UnsupportedSQL("the plan has a loop, which is not maintained yet", remedy="write the view without recursion")


def is_passing(flow: Flow) -> bool:
    """Whether the node's collection holds only its open updates (`planner.plan.Join`)."""
    return isinstance(flow.plan, Join) and flow.plan.passing
