"""Random JSON documents and expressions over them, with few values, so that they are often equal."""

from __future__ import annotations

import json
from typing import Any

from tests.oracle.choice import Choices, chance

KEYS = ("a", "b", "aa", "é", "", "0")
SCALARS: tuple[Any, ...] = (None, True, False, 0, 1, 2, -1, 0.5, -2.25, 10**25, "a", "b", "", "1", "é\n\"\\", "😀")


def document(choices: Choices, depth: int = 3) -> Any:
    """A document, as Python's values."""
    kind = choices.integer(0, 5) if depth else 0
    if kind <= 2:
        return choices.one_of(SCALARS)
    size = choices.integer(0, 3)
    if kind == 3:
        return [document(choices, depth - 1) for _ in range(size)]
    return {choices.one_of(KEYS): document(choices, depth - 1) for _ in range(size)}


def text_of(choices: Choices, value: Any) -> str:
    """A text of the document: the keys in any order, at times with blanks and escapes."""
    return json.dumps(value, ensure_ascii=chance(choices, 50), indent=choices.one_of((None, None, 1)))


class Expressions:
    """Makes expressions over the columns `j`, `k` and `l` of type jsonb.

    There are no constants of that type: PostgreSQL computes what reads constants only before all else, and where that
    is NULL, it does not look for errors in other operands.
    """

    def __init__(self, choices: Choices) -> None:
        self.choices = choices

    def jsonb(self, depth: int) -> str:
        """An expression of type jsonb."""
        if not depth:
            return self.choices.one_of("jkl")
        a, b = self.jsonb(depth - 1), self.jsonb(depth - 1)
        return self.choices.one_of((
            f"({a} -> {self.key()})", f"({a} -> {self.key()})", f"({a} -> {self.index()})", f"({a} #> {self.path()})",
            f"({a})[{self.key()}]", f"({a})[{self.index()}]", f"({a} || {b})", f"({a} - {self.key()})",
            f"({a} - {self.index()})", f"({a} - {self.keys()})", f"({a} #- {self.path()})",
            f"jsonb_set({a}, {self.path()}, {b})", f"jsonb_set({a}, {self.path()}, {b}, false)",
            f"jsonb_insert({a}, {self.path()}, {b})", f"jsonb_insert({a}, {self.path()}, {b}, true)",
            f"jsonb_strip_nulls({a})", f"jsonb_build_array({a}, {self.text(0)}, 1, NULL)",
            f"jsonb_build_object({self.text(0)}, {a}, 'x', {b})", f"to_jsonb({self.text(depth - 1)})",
            f"to_jsonb({self.boolean(depth - 1)})", f"CASE WHEN {self.boolean(depth - 1)} THEN {a} ELSE {b} END",
            f"coalesce({a}, {b})", f"nullif({a}, {b})",
            f"jsonb_extract_path({a}, {self.key()}, '0')", f"({a})::text::jsonb",
        ))  # fmt: skip

    def text(self, depth: int) -> str:
        """An expression of type text."""
        a = self.jsonb(depth)
        return self.choices.one_of((
            f"({a} ->> {self.key()})", f"({a} ->> {self.index()})", f"({a} #>> {self.path()})", f"({a})::text",
            f"jsonb_typeof({a})", f"jsonb_pretty({a})"))  # fmt: skip

    def boolean(self, depth: int) -> str:
        """An expression of type boolean."""
        a, b = self.jsonb(depth), self.jsonb(depth)
        compared = self.choices.one_of(("=", "<>", "<", "<=", ">", ">=", "@>", "<@", "IS NOT DISTINCT FROM"))
        return self.choices.one_of((
            f"({a} {compared} {b})", f"({a} {compared} {b})", f"({a} {compared} {b})", f"({a} ? {self.key()})",
            f"({a} ?| {self.keys()})", f"({a} ?& {self.keys()})", f"({a} IN ({b}, '1', '[]'))", f"({a})::boolean",
        ))  # fmt: skip

    def number(self, depth: int) -> str:
        """An expression of a type of numbers."""
        a = self.jsonb(depth)
        return self.choices.one_of((f"jsonb_array_length({a})", f"({a})::integer", f"({a})::bigint",
                                    f"({a})::float8", f"({a})::numeric(30,2)"))  # fmt: skip

    def any(self, depth: int) -> str:
        """An expression of any type."""
        return self.choices.one_of((self.jsonb, self.jsonb, self.text, self.boolean, self.number))(depth)

    def key(self) -> str:
        return self.choices.one_of(("'a'", "'b'", "'aa'", "'é'", "''", "'0'", "'-1'", "'1'"))

    def index(self) -> str:
        return self.choices.one_of(("0", "1", "-1", "2", "-3"))

    def keys(self) -> str:
        return f"ARRAY[{self.key()}, {self.choices.one_of((self.key(), 'NULL'))}]"

    def path(self) -> str:
        steps = [self.key() for _ in range(self.choices.integer(0, 3))]
        return f"ARRAY[{', '.join(steps)}]::text[]"
