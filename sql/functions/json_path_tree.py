"""The tree of a SQL/JSON path: chains of steps, as the parser makes and the engine evaluates them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from halfjoin.sql.functions.json_path_words import failure
from halfjoin.sql.functions.regex_parse import parsed

COMPARISONS = ("==", "!=", "<", ">", "<=", ">=")
CONDITIONS = (*COMPARISONS, "and", "or", "not", "unknown", "exists", "starts with", "like_regex")


@dataclass(frozen=True, slots=True)
class Step:
    """One step. `value`: a key, a constant, the name of a variable, levels, or a pattern with its flags. `parts`: the
    subscripts, each a pair of its ends. `next`: the step that gets its items."""

    kind: str
    value: Any = None
    first: Step | None = None
    second: Step | None = None
    parts: tuple[tuple[Step, Step | None], ...] = ()
    next: Step | None = None


@dataclass(frozen=True, slots=True)
class Path:
    """A path. `lax`: structural errors are forgiven, arrays are unwrapped and other values wrapped as a step needs it.
    """

    lax: bool
    steps: Step


def chain(steps: list[Step]) -> Step:
    """One chain of several, each after the one before."""
    made = steps[-1]
    for step in reversed(steps[:-1]):
        made = _followed(step, made)
    return made


def _followed(step: Step, last: Step) -> Step:
    return replace(step, next=last if step.next is None else _followed(step.next, last))


def regex(pattern: str, flags: str) -> tuple[str, str]:
    """A pattern of like_regex with the flags that it has elsewhere in PostgreSQL."""
    for flag in flags:
        if flag not in "ismxq":
            raise failure(f'unrecognized flag character "{flag}" in LIKE_REGEX predicate')
    if "q" in flags:
        made = pattern, "qi" if "i" in flags else "q"
    elif "x" in flags:
        raise failure('XQuery "x" flag (expanded regular expressions) is not implemented', "0A000")
    else:
        lines = ("w" if "m" in flags else "") if "s" in flags else "n" if "m" in flags else "p"
        made = pattern, ("i" if "i" in flags else "") + lines
    parsed(*made)
    return made
