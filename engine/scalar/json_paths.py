"""Evaluates SQL/JSON paths over jsonb values, as PostgreSQL 15 does; a constant path is read once.

A step gives its items one after the other, so what asks only whether there is one stops at the first. A condition is
True, False or None (unknown). An error in it is unknown; one elsewhere is an error of the path that `silent` forgives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any, TypeAlias

from halfjoin.engine.scalar.each import Bad
from halfjoin.engine.scalar.json_path_numbers import PathError, whole
from halfjoin.engine.scalar.json_path_steps import OF_ELEMENTS, STEPS, Moved, Scope
from halfjoin.engine.scalar.regexps import matches
from halfjoin.sql.functions.json_path_tree import CONDITIONS, Path, Step
from halfjoin.sql.functions.json_text import Json

Items: TypeAlias = Iterator[Json]
MOST_ITEMS = 10_000_000  # that the steps of a path look at, for one value


class Evaluation:
    """One path over one value. `variables`: what `$name` stands for; None: for null."""

    def __init__(self, path: Path, root: Json, variables: dict[str, Json] | None) -> None:
        self.path, self.lax, self.root, self.variables = path, path.lax, root, variables
        self.left, self.made = MOST_ITEMS, 2 if variables else 1

    def all(self) -> Items:
        """The items of the path; raises PathError."""
        return self.items(self.path.steps, self.root, Scope(self.root, -1, self.lax, (0, self.root)))

    def any(self) -> bool:
        """Whether there is an item. Strict mode looks at all of them, for their errors."""
        if not self.lax:
            return bool(list(self.all()))
        scope = Scope(self.root, -1, True, (0, self.root))
        return any(True for _ in self.items(self.path.steps, self.root, scope, asked=True))

    def items(self, step: Step, value: Json, scope: Scope, unwrap: bool | None = None, asked: bool = False) -> Items:
        """The items that a step and those after it give for a value. `unwrap`: whether a step that needs no array goes
        to the elements of one; `asked`: whether only their existence is asked for."""
        self.left -= 1
        if self.left < 0:
            raise Bad(f"a SQL/JSON path looks at most at {MOST_ITEMS:,} items")
        unwrap = self.lax if unwrap is None else unwrap
        if unwrap and isinstance(value, list) and step.kind in OF_ELEMENTS:
            for item in value:
                yield from self.items(step, item, scope, False, asked)
            return
        if step.kind in CONDITIONS:
            yield from self.after(step, self.holds(step, value, scope), scope, asked)
            return
        signed = step.kind.startswith("unary")
        found: Iterable[Any] = (
            self.unary(step, value, scope, asked) if signed else STEPS[step.kind](self, step, value, scope))
        for item in found:
            inner = item if isinstance(item, Moved) else Moved(item, scope)
            yield from self.after(step, inner.value, inner.scope, asked)

    def after(self, step: Step, value: Json, scope: Scope, asked: bool) -> Items:
        """What the steps after one give for its item."""
        if step.next is None:
            yield value
        else:
            yield from self.items(step.next, value, scope, None, asked)

    def holds(self, step: Step, value: Json, scope: Scope) -> bool | None:
        """Whether a condition holds."""
        first, second = step.first, step.second
        assert first is not None
        match step.kind:
            case "and" | "or":
                assert second is not None
                left, final = self.holds(first, value, scope), step.kind == "or"
                if left is final:
                    return final
                right = self.holds(second, value, scope)
                return left if right is not final and right is not None else right
            case "not":
                inner = self.holds(first, value, scope)
                return None if inner is None else not inner
            case "unknown":
                return self.holds(first, value, scope) is None
            case "exists":
                return self.exists(first, value, scope)
        try:
            left_items = self.unwrapped(first, value, scope)
            right_items: list[Json] = [None] if second is None else self.unwrapped(
                second, value, scope, step.kind != "starts with")  # fmt: skip
        except PathError:
            return None
        return self.some(step, left_items, right_items)

    def exists(self, step: Step, value: Json, scope: Scope) -> bool | None:
        """Whether a chain has an item."""
        try:
            found = self.items(step, value, scope, None, self.lax)
            return any(True for _ in found) if self.lax else bool(list(found))
        except PathError:
            return None

    def some(self, step: Step, left: list[Json], right: list[Json]) -> bool | None:
        """Whether a comparison holds for some pair. Strict mode looks at all pairs; unknown wins there."""
        found = unknown = False
        for a in left:
            for b in right:
                answer = _compared(step, a, b)
                if answer is None:
                    if not self.lax:
                        return None
                    unknown = True
                elif answer:
                    if self.lax:
                        return True
                    found = True
        return True if found else None if unknown else False

    def unwrapped(self, step: Step, value: Json, scope: Scope, unwrap: bool = True) -> list[Json]:
        """All items of a chain; in lax mode the elements of arrays among them."""
        found = list(self.items(step, value, scope))
        if not (unwrap and self.lax):
            return found
        return [part for item in found for part in (item if isinstance(item, list) else [item])]

    def unary(self, step: Step, value: Json, scope: Scope, asked: bool) -> Iterator[Moved]:
        """The signs of numbers. Where only existence is asked for, PostgreSQL skips what is no number."""
        assert step.first is not None
        for item in self.unwrapped(step.first, value, scope):
            if isinstance(item, Decimal):
                yield Moved(-item if step.kind == "unary -" else item, scope)
            elif not asked or step.next is not None:
                raise PathError(f"operand of unary jsonpath operator {step.kind[-1]} is not a numeric value")

    def subscript(self, step: Step, value: Json, scope: Scope) -> int:
        """The subscript that a chain gives."""
        return whole(list(self.items(step, value, scope)))


def _compared(step: Step, a: Json, b: Json) -> bool | None:
    """Whether a comparison holds for two items; None: it is unknown."""
    if step.kind == "like_regex":
        pattern, flags = step.value
        return matches(a, pattern, flags) if isinstance(a, str) else None
    if step.kind == "starts with":
        return a.startswith(b) if isinstance(a, str) and isinstance(b, str) else None
    if (a is None) != (b is None):
        return step.kind == "!="
    if type(a) is not type(b) or isinstance(a, (dict, list)):
        return None
    sign = 0 if a == b else -1 if a < b else 1  # type: ignore[operator]
    return {"==": sign == 0, "!=": sign != 0, "<": sign < 0, ">": sign > 0, "<=": sign <= 0, ">=": sign >= 0}[step.kind]
