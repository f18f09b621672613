"""The executable form of a plan's node."""

from __future__ import annotations

from typing import TypeAlias

from halfjoin.engine.join.dataflow import Dataflow
from halfjoin.engine.linear.tables import Registry
from halfjoin.engine.loop.reduce import RoundReduce
from halfjoin.engine.reduce.flow import ReduceFlow
from halfjoin.planner.plan import Join, Node, Reduce

Flow: TypeAlias = Dataflow | ReduceFlow  # of a node that runs by itself
Inner: TypeAlias = Dataflow | RoundReduce  # of a node of a loop


def flow_of(node: Node, registry: Registry, name: str, like: Flow | Inner | None = None) -> Flow | Inner:
    """Make a node executable. `name` is for errors. `like`: that of a node which differs in constants only; what has
    none is the same object in both nodes."""
    if like is not None and like.plan is node:
        return like
    match node:
        case Join() if isinstance(like, Dataflow):
            return like.with_constants(node)
        case Join():
            return Dataflow(node, registry, name)
        case Reduce(loops=()):
            return ReduceFlow(node, registry, name)
        case Reduce():
            return RoundReduce(node, registry, name)


def alone(flow: Flow | Inner) -> Flow:
    """The flow of a node that is not in a loop."""
    assert not isinstance(flow, RoundReduce) and not flow.loop
    return flow


def is_passing(flow: Flow | Inner) -> bool:
    """Whether the node's collection holds only its open updates (`planner.plan.Join`)."""
    return isinstance(flow.plan, Join) and flow.plan.passing
