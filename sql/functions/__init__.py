"""The scalar functions: one table of them, and the rules that give a call its entry, its types and its casts.

The binder calls `resolve(name, args)` with these names. Operators: `= <> < <= > >=`, `is [not] distinct from`, `in`
(value, items), `and`, `or` (any number), `not`, `is [not] null|true|false|unknown`, `+ - * / % ^`, `neg`, `||`,
`like`, `ilike` (text, pattern[, escape]), `~ ~* !~ !~*`, `array` (items), `[]` (array, index), `= any`, `<> all`
(value, array). Forms: `case` (condition, value, ..., default), `coalesce`, `nullif`, `greatest`, `least`,
`extract`, `date_part` (unit, value), `btrim` (also TRIM(BOTH)), `ltrim`, `rtrim`,
`strpos` (also POSITION), `substring`. Every other function has its lower-case PostgreSQL name.

Answers are PostgreSQL's, except where a column's single type matters: a numeric result has the same number of decimals
in every row (see `arithmetic.division_scale`). A numeric has no NaN or infinity, a date no infinity.
"""

from halfjoin.sql.functions.casting import cast, unify
from halfjoin.sql.functions.coercion import common_type
from halfjoin.sql.functions.docs import documentation
from halfjoin.sql.functions.fallible import always_null, fallible
from halfjoin.sql.functions.order import length_of
from halfjoin.sql.functions.render import render
from halfjoin.sql.functions.resolve import exists, resolve, unknown
from halfjoin.sql.functions.signature import Example, Function, Overload
from halfjoin.sql.functions.spreading import spread
from halfjoin.sql.functions.table import TABLE

__all__ = [
    "TABLE", "Example", "Function", "Overload", "always_null", "cast", "common_type", "documentation", "exists",
    "fallible", "length_of", "render", "resolve", "spread", "unify", "unknown",
]  # fmt: skip
