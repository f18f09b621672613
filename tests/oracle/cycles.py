"""Random cyclic joins, and streams for them: hubs, duplicates, NULLs, negative weights, times out of order."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import pyarrow as pa

TABLES = {
    "e": {"a": "bigint", "b": "bigint"},
    "f": {"a": "bigint", "b": "integer", "c": "bigint"},
    "g": {"a": "text", "b": "bigint", "c": "text"},
}
ARROW = {"bigint": pa.int64(), "integer": pa.int32(), "text": pa.string()}

# The shapes: for each input its table and the variables of its first columns.
SHAPES = {
    "triangle of one table": [("e", "xy"), ("e", "yz"), ("e", "xz")],
    "triangle of three tables": [("e", "xy"), ("f", "yz"), ("g", "wxz")],
    "four-cycle": [("e", "xy"), ("e", "yz"), ("f", "zw"), ("e", "wx")],
    "clique of four": [("e", "xy"), ("e", "xz"), ("e", "xw"), ("e", "yz"), ("f", "yw"), ("e", "zw")],
    "two triangles": [("e", "xy"), ("e", "yz"), ("e", "xz"), ("f", "zu"), ("e", "uv"), ("e", "zv")],
    "triangle with a tail": [("e", "xy"), ("e", "yz"), ("e", "zx"), ("f", "zw"), ("g", "vw")],
    "three columns": [("f", "xyz"), ("f", "yzw"), ("e", "wx")],
}


class Cyclic(NamedTuple):
    """A join in SQL, and as a query of the oracle whose `__w` is the weight of each row."""

    sql: str
    weighted: str
    columns: tuple[str, ...]


def join_of(shape: str, choices: random.Random) -> Cyclic:
    """A join of a shape, with inputs in any order. It may have a predicate, and NULLs may be equal."""
    inputs = list(SHAPES[shape])
    choices.shuffle(inputs)
    places: dict[str, list[tuple[str, str]]] = {}
    for number, (table, variables) in enumerate(inputs):
        for name, variable in zip(TABLES[table], variables, strict=False):
            places.setdefault(variable, []).append((f"i{number}.{name}", TABLES[table][name]))
    where = []
    for found in places.values():
        shown = [f"{column}::text" if len({kind == "text" for _, kind in found}) > 1 and kind != "text" else column
                 for column, kind in found]  # fmt: skip
        for one, other in pairwise(shown):
            where.append(f"{one} IS NOT DISTINCT FROM {other}" if choices.random() < 0.1 else f"{one} = {other}")
    numbers = [column for found in places.values() for column, kind in found if kind != "text"]
    if choices.random() < 0.4:
        where.append(f"{choices.choice(numbers)} {choices.choice(['<', '<>', '>='])} {choices.choice(numbers)}")
    choices.shuffle(where)
    outputs = [choices.choice(found)[0] for found in places.values()]
    listed = ", ".join(f"{column} AS o{number}" for number, column in enumerate(outputs))
    joined = f"FROM {', '.join(f'{table} AS i{n}' for n, (table, _) in enumerate(inputs))} WHERE {' AND '.join(where)}"
    weight = " * ".join(f"i{number}.__w" for number in range(len(inputs)))
    names = tuple(f"o{number}" for number in range(len(outputs)))
    return Cyclic(f"SELECT {listed} {joined}", f"SELECT {listed}, {weight} AS __w {joined}", names)


def batches(choices: random.Random, count: int, rows: int) -> Iterator[tuple[int, dict[str, pa.Table]]]:
    """Batches with their times, from 0 on. Some rows have later times than the batch, and some weights are negative.
    Only times below that of the next batch may be closed."""
    upper = 0
    for _ in range(count):
        batch = {}
        for name in choices.sample(sorted(TABLES), choices.randint(1, 3)):
            found = [[_value(choices, kind) for kind in TABLES[name].values()] for _ in range(choices.randint(1, rows))]
            columns = {column: pa.array([row[i] for row in found], ARROW[kind])
                       for i, (column, kind) in enumerate(TABLES[name].items())}  # fmt: skip
            times = [upper + choices.choice([0, 0, 0, 1, 3]) for _ in found]
            diffs = [choices.choice([1, 1, 1, 2, -1]) for _ in found]
            batch[name] = pa.table({**columns, "__time": times, "__diff": diffs})
        yield upper, batch
        upper += choices.randint(1, 2)


def _value(choices: random.Random, kind: str) -> int | str | None:
    number = choices.choice([0, 0, 0, 0, 1, 2, 3, 4, None])
    return str(number) if kind == "text" and number is not None else number
