"""Makes a loop of what it starts with and a function for its body."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from halfjoin.collections import text
from halfjoin.collections.nodes import Iteration, Node, Result, Variable
from halfjoin.errors import HalfjoinError


def looped(
    starts: Mapping[str, Node], body: Callable[[dict[str, Node]], Mapping[str, Node]], rounds: int | None,
    trace: str | None,
) -> dict[str, Node]:  # fmt: skip
    """What becomes of nodes when a body is applied to them again and again.

    Raises:
        HalfjoinError: the number of rounds is not positive, or the body does not return all nodes.
    """
    if rounds is not None and (isinstance(rounds, bool) or not isinstance(rounds, int) or rounds < 1):
        raise HalfjoinError(f"rounds={rounds!r} is not a positive number of rounds")
    if trace is not None:
        text.name(trace)
    for name in starts:
        text.name(name)
    variables = {name: Variable(name) for name in starts}
    steps = body(dict(variables))
    if not variables or set(steps) != set(variables):
        raise HalfjoinError(f"a loop starts with {', '.join(starts) or 'nothing'}, and its body returns "
                            f"{', '.join(map(str, steps)) or 'nothing'}", remedy="start with and return the same names")
    loop = Iteration(variables, dict(starts), {name: steps[name] for name in variables}, rounds, trace)
    return {name: Result(loop, name) for name in variables}
