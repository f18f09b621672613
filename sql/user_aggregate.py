"""An aggregate of the user's: what it takes, what it returns, and whether it adds up. The catalog keeps it like this.

An aggregate that adds up is two functions around sums. Its *lift* gives a few numbers for each row; these are added up;
its *result* is a function of the sums. So only the sums are kept for a group. The lift and the result are table
functions that give one row for each row: `lift of f` stands below the reduce, and `result of f` above it.

Any other aggregate is one function of all rows of a group.
"""

from __future__ import annotations

from dataclasses import dataclass

from halfjoin.sql.types import SqlType


@dataclass(frozen=True, slots=True)
class UserAggregate:
    """`sums`: the columns that the lift gives for each row, each a bigint or a double precision. Empty: the aggregate
    does not add up."""

    name: str
    takes: tuple[SqlType, ...]
    returns: SqlType
    sums: tuple[tuple[str, SqlType], ...] = ()


def lift_of(name: str) -> str:
    """The table function that gives the numbers of each row."""
    return f"lift of {name}"


def result_of(name: str) -> str:
    """The table function that gives the result of each row of sums."""
    return f"result of {name}"
