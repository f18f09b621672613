"""The steps of SQL/JSON paths: what each gives for one value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any, Protocol, TypeAlias

from halfjoin.engine.scalar.each import Bad
from halfjoin.engine.scalar.json_parts import kind_of
from halfjoin.engine.scalar.json_path_numbers import PathError, arithmetic, double
from halfjoin.engine.scalar.json_places import places
from halfjoin.sql.functions.json_path_tree import Step
from halfjoin.sql.functions.json_text import Json


@dataclass(frozen=True, slots=True)
class Scope:
    """What surrounds a step: `@`, the length of the array that a subscript is of, whether structural errors are
    forgiven, and the value in which `.keyvalue()` counts places, with its number."""

    current: Json
    size: int
    forgiving: bool
    base: tuple[int, Json]


@dataclass(frozen=True, slots=True)
class Moved:
    """An item with the scope of the steps after it."""

    value: Json
    scope: Scope


class Run(Protocol):
    """The evaluation that a step is part of. `left`: how many items it may still look at; `made`: the objects that
    have numbers for the ids of `.keyvalue()`."""

    lax: bool
    root: Json
    variables: dict[str, Json] | None
    left: int
    made: int

    def holds(self, step: Step, value: Json, scope: Scope) -> bool | None:
        """Whether a condition holds."""

    def subscript(self, step: Step, value: Json, scope: Scope) -> int:
        """The subscript that a chain gives."""

    def unwrapped(self, step: Step, value: Json, scope: Scope) -> list[Json]:
        """All items of a chain; in lax mode the elements of arrays among them."""


def _error(scope: Scope, reason: str) -> list[Json]:
    """No items if structural errors are forgiven, else the error."""
    if scope.forgiving:
        return []
    raise PathError(reason)


def _root(run: Run, step: Step, value: Json, scope: Scope) -> list[Moved]:
    return [Moved(run.root, replace(scope, base=(0, run.root)))]


def _key(run: Run, step: Step, value: Json, scope: Scope) -> list[Json]:
    if not isinstance(value, dict):
        return _error(scope, "jsonpath member accessor can only be applied to an object")
    if step.value in value:
        return [value[str(step.value)]]
    return _error(scope, f'JSON object does not contain key "{step.value}"')


def _members(run: Run, step: Step, value: Json, scope: Scope) -> list[Json]:
    if isinstance(value, dict):
        return list(value.values())
    return _error(scope, "jsonpath wildcard member accessor can only be applied to an object")


def _elements(run: Run, step: Step, value: Json, scope: Scope) -> list[Json]:
    if isinstance(value, list) or run.lax:
        return value if isinstance(value, list) else [value]
    return _error(scope, "jsonpath wildcard array accessor can only be applied to an array")


def _subscripts(run: Run, step: Step, value: Json, scope: Scope) -> Iterator[Json | Moved]:
    if not isinstance(value, list) and not run.lax:
        yield from _error(scope, "jsonpath array accessor can only be applied to an array")
        return
    array = value if isinstance(value, list) else [value]
    inner = replace(scope, size=len(array))
    for first, last in step.parts:
        begin = run.subscript(first, value, inner)
        end = begin if last is None else run.subscript(last, value, inner)
        if not scope.forgiving and (begin < 0 or begin > end or end >= len(array)):
            raise PathError("jsonpath array subscript is out of bounds")
        for item in array[max(begin, 0) : max(end + 1, 0)]:
            yield Moved(item, inner)


def _levels(run: Run, step: Step, value: Json, scope: Scope) -> Iterator[Moved]:
    """`**`: the value and what is in it, from the outside to the inside."""
    first: int
    last: int | None
    first, last = step.value
    inner = replace(scope, forgiving=True)
    if first == 0:
        yield Moved(value, inner)
    waiting = [(1, item) for item in reversed(_inside(value))]
    while waiting:
        run.left -= 1
        level, item = waiting.pop()
        if last is not None and level > last:
            continue
        nested = isinstance(item, (dict, list))
        if level >= first >= 0 or (first < 0 and last is None and not nested):
            yield Moved(item, inner)
        if nested:
            waiting += [(level + 1, one) for one in reversed(_inside(item))]


def _inside(value: Json) -> list[Json]:
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []


def _filter(run: Run, step: Step, value: Json, scope: Scope) -> list[Json]:
    assert step.first is not None
    return [value] if run.holds(step.first, value, replace(scope, current=value)) else []


def _variable(run: Run, step: Step, value: Json, scope: Scope) -> list[Moved]:
    if run.variables is None:
        return [Moved(None, scope)]
    if step.value not in run.variables:
        raise Bad(f'could not find jsonpath variable "{step.value}"')
    return [Moved(run.variables[str(step.value)], replace(scope, base=(1, run.variables)))]


def _size(run: Run, step: Step, value: Json, scope: Scope) -> list[Json]:
    if isinstance(value, list) or run.lax:
        return [Decimal(len(value) if isinstance(value, list) else 1)]
    return _error(scope, "jsonpath item method .size() can only be applied to an array")


def _rounded(run: Run, step: Step, value: Json, scope: Scope) -> list[Json]:
    if not isinstance(value, Decimal):
        raise PathError(f"jsonpath item method .{step.kind}() can only be applied to a numeric value")
    if step.kind == "abs":
        return [value.copy_abs()]
    return [value.to_integral_value(ROUND_FLOOR if step.kind == "floor" else ROUND_CEILING)]


def _binary(run: Run, step: Step, value: Json, scope: Scope) -> list[Json]:
    assert step.first is not None and step.second is not None
    sides = [run.unwrapped(one, value, scope) for one in (step.first, step.second)]
    return [arithmetic(step.kind, *sides)]


def _pairs(run: Run, step: Step, value: Json, scope: Scope) -> Iterator[Moved]:
    """`.keyvalue()`. An id says where in its base PostgreSQL keeps the object."""
    if not isinstance(value, dict):
        raise PathError("jsonpath item method .keyvalue() can only be applied to an object")
    number, base = scope.base
    place = places(base).get(id(value)) if value else 0
    if place is None:
        raise Bad("the id of an object of .keyvalue() is not known here")
    for key, item in value.items():
        pair: dict[str, Json] = {"id": Decimal(place + number * 10_000_000_000), "key": key, "value": item}
        run.made += 1
        yield Moved(pair, replace(scope, base=(run.made - 1, pair)))


OF_ELEMENTS = ("key", ".*", "filter", "abs", "floor", "ceiling", "double", "keyvalue")
Found: TypeAlias = Iterable[Any]  # items, some of them `Moved`
STEPS: dict[str, Callable[[Run, Step, Json, Scope], Found]] = {
    "root": _root,
    "current": lambda run, step, value, scope: [scope.current],
    "constant": lambda run, step, value, scope: [step.value],
    "variable": _variable,
    "last": lambda run, step, value, scope: [Decimal(scope.size - 1)],
    "key": _key,
    ".*": _members,
    "[*]": _elements,
    "[]": _subscripts,
    "**": _levels,
    "filter": _filter,
    "type": lambda run, step, value, scope: [kind_of(value)],
    "size": _size,
    "double": lambda run, step, value, scope: [double(value)],
    "keyvalue": _pairs,
    **dict.fromkeys(("abs", "floor", "ceiling"), _rounded),
    **dict.fromkeys(("+", "-", "*", "/", "%"), _binary),
}
