"""unnest(array) and regexp_split_to_table(text, pattern): they give one result per element."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.linear.tables.exploded import Exploded
from halfjoin.engine.updates.updates import Ints
from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.functions.regex import separator


def unnest(arguments: list[pa.Array], length: int) -> Exploded:
    """Argument: an array. Gives its elements in order, and nothing for NULL or an empty array.

    Several arrays have the same length in each row, and give a column each.
    """
    rows = pc.list_parent_indices(arguments[0]).to_numpy().astype(np.int64)
    return Exploded(rows, tuple(lists.flatten() for lists in arguments))


def regexp_split_to_table(arguments: list[pa.Array], length: int) -> Exploded:
    """Arguments: text and pattern. Gives the parts between matches, and nothing where either is NULL."""
    text, pattern = arguments
    rows: list[Ints] = []
    parts = []
    failed: list[Ints] = []
    message = ""
    for value in pattern.unique().to_pylist():  # almost always a literal pattern: one round
        if value is None:
            continue
        chosen = pc.equal(pattern, value).fill_null(False).to_numpy(zero_copy_only=False)
        positions = np.flatnonzero(chosen & text.is_valid().to_numpy(zero_copy_only=False))
        try:
            lists = _split(text.take(pa.array(positions)), separator(value))
        except UnsupportedSQL as problem:
            failed.append(positions)
            message = problem.reason
            continue
        rows.append(positions[pc.list_parent_indices(lists).to_numpy()])
        parts.append(lists.flatten())
    wrong = np.sort(np.concatenate(failed)) if failed else None
    if not rows:
        return Exploded(np.zeros(0, np.int64), (pa.array([], pa.string()),), failed=wrong, message=message)
    every = np.concatenate(rows)
    order = np.argsort(every, kind="stable")
    made = pa.concat_arrays(parts).take(pa.array(order))
    return Exploded(every[order], (made,), failed=wrong, message=message)


def _split(text: pa.Array, pattern: str) -> pa.Array:
    if pattern == "":  # between all characters
        apart = pc.utf8_rtrim(pc.replace_substring_regex(text, r"(?s)(.)", "\\1\u0000"), "\u0000")
        return pc.split_pattern(apart, "\u0000")
    return pc.split_pattern_regex(text, pattern)
