"""`iterate`: loops of several collections."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from halfjoin.collections.collection import Collection, node_of
from halfjoin.collections.loops import looped
from halfjoin.collections.nodes import Node
from halfjoin.errors import HalfjoinError


def iterate(
    starts: Mapping[str, Collection], body: Callable[[dict[str, Collection]], Mapping[str, Collection]], *,
    rounds: int | None = None, trace: str | None = None,
) -> dict[str, Collection]:  # fmt: skip
    """Several collections that become others together, as in `Collection.iterate`.

    Args:
        starts: what each is in round 0, by name.
        body: a function from all of them in a round to all of them in the next one.
        rounds: stop after so many, as in `Collection.iterate`.
        trace: the name of a column for the round, as in `Collection.iterate`.

    Returns:
        All of them after the last round, by name.

    Examples:
        A loop in which differences come at all times (batch time, round). A word waits for its round, and each round
        asks for the distinct words by length. The word bee comes at (0, 1) and at (1, 0), so at (1, 1) it is there
        twice. There distinct takes one away, although no bee comes at that time:

        >>> import halfjoin as hj
        >>> engine = hj.Engine(clock="own")
        >>> engine.execute("CREATE TABLE source (word text, round bigint)")
        >>> def later(words):
        ...     return words.map("word", round="greatest(round - 1, 0)")
        >>> def by_length(words):
        ...     return words.filter("round = 0").map("word", length="length(word)").distinct()
        >>> source = hj.collection("source")
        >>> loop = hj.iterate(
        ...     {"words": source, "lengths": by_length(source)},
        ...     lambda now: {"words": later(now["words"]), "lengths": by_length(later(now["words"]))},
        ...     trace="round")
        >>> engine.create_view("lengths", loop["lengths"])
        >>> def differences(time, rows):
        ...     made = engine.apply({"source": [{"word": word, "round": round} for word, round in rows]}, time=time)
        ...     for row in made.diffs["lengths"].sort_by("round").to_pylist():
        ...         print((row["length"], row["word"]), (row["__time"], row["round"]), row["__diff"])
        >>> differences(0, [("ant", 0), ("bee", 1)])
        (3, 'ant') (0, 0) 1
        (3, 'bee') (0, 1) 1
        >>> differences(1, [("bee", 0), ("ant", 1)])
        (3, 'bee') (1, 0) 1
        (3, 'bee') (1, 1) -1
    """
    def step(now: dict[str, Node]) -> dict[str, Node]:
        made = body({name: Collection(node) for name, node in now.items()})
        if not isinstance(made, Mapping):
            raise HalfjoinError("the body of a loop returns a dict of collections by name")
        return {name: node_of(one) for name, one in made.items()}

    made = looped({name: node_of(start) for name, start in starts.items()}, step, rounds, trace)
    return {name: Collection(node) for name, node in made.items()}
