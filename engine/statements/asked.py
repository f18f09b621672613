"""Questions: what tells a query that may be remembered apart from others, and the shape that it shares with some.

A question without parameters has a shape, too: its constants are the parameters of a text (`sql.parse.lifting`).
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, partial
from typing import TypeAlias

from halfjoin.engine.statements.shapes import Shape, shape_of
from halfjoin.sql.expr import Literal
from halfjoin.sql.parse.lifting import lifted, without_time
from halfjoin.sql.parse.parameters import Params
from halfjoin.sql.parse.parse import Tree, trees_of
from halfjoin.sql.types import BIGINT

LONGEST = 20_000  # characters of a text, and of its parameters
_PLAIN = (type(None), bool, int, float, str, bytes, Decimal, dt.date, dt.datetime, dt.time, dt.timedelta, uuid.UUID)
Trees: TypeAlias = Callable[[Params], Sequence[Tree]]  # the statements of a text as syntax trees, with parameters


@dataclass(frozen=True)
class Asked:
    """A question. `key`: what tells it apart from others. `sql`: its text, without the number of its AS OF, which is
    `as_of`. `told`: all else that is said. `trees`: its statements; None for those of its text."""

    key: Hashable
    sql: str
    as_of: Literal | None
    params: Params
    told: tuple[Hashable, ...]
    trees: Trees | None = None

    @cached_property
    def shape(self) -> Shape | None:
        """The question without values; None if it has none that can be left out."""
        if self.params:
            return shape_of(self.params, self.sql, self.trees or partial(trees_of, self.sql), *self.told)
        found = lifted(self.sql)
        return None if found is None else shape_of(found.values, found.text, partial(trees_of, found.text), *self.told)


def asked_of(
    sql: str, params: Params, settings: Mapping[str, str], path: Sequence[str], trees: Trees | None = None,
    types: Sequence[str] = (),
) -> Asked | None:  # fmt: skip
    """A question that may be remembered; None if it is too long, or has a parameter of an unknown type. `trees`: its
    statements; None for those of its text. `types`: those of the parameters that a client has told."""
    if not isinstance(sql, str) or len(sql) > LONGEST:
        return None
    given = list(params.items()) if isinstance(params, Mapping) else params
    if given is not None and not (isinstance(given, list | tuple) and _is_plain(given)):
        return None
    said = f"{isinstance(params, Mapping)} {given!r}" if given else ""
    if len(said) > LONGEST:
        return None
    text, time = without_time(sql)
    told = (tuple(types), tuple(sorted(settings.items())), time is not None, *path)
    return Asked((said, text, *told), text, None if time is None else Literal(time, BIGINT), params, told, trees)


def _is_plain(value: object) -> bool:
    """Whether the text of a value tells it apart: 1, 1.0, '1', True, Decimal('1') and Decimal('1.0') are different."""
    return all(map(_is_plain, value)) if isinstance(value, list | tuple) else type(value) in _PLAIN
