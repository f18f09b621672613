"""Says in a sentence what an engine waits for most."""

from __future__ import annotations

from collections.abc import Sequence

from halfjoin.engine.batch.activity import BatchWork
from halfjoin.engine.statements.stats import Stats

_FULL = 0.9  # of the budget
_MOST = 0.4  # of the time of batches
_SOME = 0.1  # of the time of batches: less is no reason to look
_MULTIPLIED = 20  # rows for each that comes in
_WAITING = 10  # batches; a few are always on their way


def bottleneck(stats: Stats, batches: Sequence[BatchWork]) -> str:
    """What to look at first.

    Args:
        stats: what the engine holds.
        batches: the recent batches.
    """
    if stands := _standing(stats):
        return stands
    if stats.budget and stats.memory > _FULL * stats.budget:
        return (f"State takes {_size(stats.memory)} of a budget of {_size(stats.budget)}; what exceeds it is looked up "
                "in files, which is slower. A larger memory= helps.")  # fmt: skip
    late = max((one for one in stats.sinks if one.waiting >= _WAITING), key=lambda one: one.waiting, default=None)
    if late is not None:
        return f"The sink {late.name} is {late.waiting:,} batches behind: it writes more slowly than batches come."
    slow = max((one for one in stats.sources if one.lag), key=lambda one: one.lag or 0, default=None)
    said = "" if slow is None else f"The source {slow.name} is {slow.lag:,} {slow.unit} behind. "
    return said + (_of_batches(stats, batches) if batches else "Nothing has come in during the last minute.")


def _standing(stats: Stats) -> str | None:
    """What does not go on without help."""
    failing = next((one for one in stats.collections if one.errors), None)
    if failing is not None:
        views = ", ".join(failing.users) if failing.kind == "node" else failing.name
        return f"{views} cannot be read: an expression fails for {counted(failing.errors, 'row')}."
    stuck = [f"The sink {one.name} does not get on: {one.error}" for one in stats.sinks if one.error]
    stuck += [f"The source {one.name} does not get on: {one.error}" for one in stats.sources if one.error]
    return stuck[0] if stuck else None


def _of_batches(stats: Stats, batches: Sequence[BatchWork]) -> str:
    """Which node the batches wait for."""
    spent, rows = dict[str, float](), dict[str, int]()
    for batch in batches:
        for name, work in batch.nodes.items():
            spent[name] = spent.get(name, 0.0) + work.seconds
            rows[name] = rows.get(name, 0) + max(work.rows, work.found)
    total = sum(batch.seconds for batch in batches)
    came = sum(sum(batch.tables.values()) for batch in batches)
    if not spent:
        return "No view has work: what comes in changes none of them."
    most = max(rows, key=lambda name: rows[name])
    if came and rows[most] > _MULTIPLIED * came and spent[most] >= _SOME * total:
        return (f"{_named(most, stats)} makes or looks up {counted(rows[most] // came, 'row')} for each row that comes "
                "in: look whether one of its joins multiplies rows.")  # fmt: skip
    name, seconds = max(spent.items(), key=lambda one: one[1])
    if total and seconds >= _MOST * total:
        return (f"{_named(name, stats)} takes {seconds / total:.0%} of the time of batches, "
                f"{1000 * seconds / len(batches):.2f} ms of each.")  # fmt: skip
    if sum(spent.values()) < (1 - _MOST) * total:
        return "Most of the time of batches is spent on checking rows and writing the journal, not on views."
    return "No view or table stands out."


def _named(name: str, stats: Stats) -> str:
    """A view's name; of a node, with the views that share it, and the name of the recursive query that it is."""
    node = next((one for one in stats.collections if one.name == name and one.kind == "node" and one.users), None)
    if node is None:
        return name
    binding = f"the recursive query {node.binding} " if node.binding else ""
    return f"{name} ({binding}of {', '.join(node.users)})"


def counted(number: int, word: str, words: str | None = None) -> str:
    """A number of things: `1 row`, `2 rows`."""
    return f"{number:,} {word if number == 1 else words or word + 's'}"


def _size(number: int) -> str:
    return f"{number / 2**30:.1f} GiB" if number >= 2**30 else f"{number / 2**20:.0f} MiB"
