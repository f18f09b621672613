"""Says in a sentence what an engine waits for most."""

from __future__ import annotations

from collections.abc import Sequence

from halfjoin.engine.batch.activity import BatchWork
from halfjoin.engine.statements.stats import Stats

_FULL = 0.9  # of the budget
_MOST = 0.4  # of the time of batches


def bottleneck(stats: Stats, batches: Sequence[BatchWork]) -> str:
    """What to look at first.

    Args:
        stats: what the engine holds.
        batches: the recent batches.
    """
    failing = [one for one in stats.collections if one.errors and one.kind != "table"]
    if failing:
        return f"{failing[0].name} cannot be read: an expression fails for {_count(failing[0].errors, 'row')}."
    behind = [one for one in stats.sinks if one.error]
    if behind:
        return f"The sink {behind[0].name} does not get on: {behind[0].error}"
    stopped = [one for one in stats.sources if one.error]
    if stopped:
        return f"The source {stopped[0].name} does not get on: {stopped[0].error}"
    if stats.budget and stats.memory > _FULL * stats.budget:
        return (f"State takes {_size(stats.memory)} of a budget of {_size(stats.budget)}; what exceeds it is looked up "
                "in files, which is slower. A larger memory= helps.")  # fmt: skip
    if not batches:
        return "Nothing has come in during the last minute."
    spent: dict[str, float] = {}
    rows: dict[str, int] = {}
    for batch in batches:
        for name, work in batch.nodes.items():
            spent[name] = spent.get(name, 0.0) + work.seconds
            rows[name] = rows.get(name, 0) + work.rows
    total = sum(batch.seconds for batch in batches)
    came = sum(sum(batch.tables.values()) for batch in batches)
    if spent:
        name, seconds = max(spent.items(), key=lambda one: one[1])
        called = short(name)
        share = seconds / total if total else 0
        if came and rows[name] > 20 * came:
            return (f"{called} makes {_count(rows[name] // came, 'row')} of each row that comes in: look whether one "
                    "of its joins multiplies rows.")  # fmt: skip
        if share >= _MOST:
            return f"{called} takes {share:.0%} of the time of batches, {1000 * seconds / len(batches):.2f} ms of each."
        if sum(spent.values()) < (1 - _MOST) * total:
            return "Most of the time of batches is spent on checking rows and writing the journal, not on views."
    return "No view or table stands out."


def short(name: str) -> str:
    """A node's name as the page shows it: with the first six letters of its fingerprint."""
    kind, mark, letters = name.partition("#")
    return f"{kind}{mark}{letters[:6]}"


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def _size(number: int) -> str:
    return f"{number / 2**30:.1f} GiB" if number >= 2**30 else f"{number / 2**20:.0f} MiB"
