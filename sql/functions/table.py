"""The function table: every function and operator that is supported, by category."""

from __future__ import annotations

from halfjoin.sql.functions.arithmetic import ARITHMETIC
from halfjoin.sql.functions.casts import CASTS
from halfjoin.sql.functions.comparison import COMPARISON
from halfjoin.sql.functions.logic import LOGIC
from halfjoin.sql.functions.signature import Function

TABLE: tuple[Function, ...] = (*COMPARISON, *LOGIC, *ARITHMETIC, *CASTS)

ENTRIES: dict[str, Function] = {entry.name: entry for entry in TABLE}
