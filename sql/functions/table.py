"""The function table: all supported functions and operators, by category."""

from __future__ import annotations

from halfjoin.sql.functions.arithmetic import ARITHMETIC
from halfjoin.sql.functions.array_parts import ARRAY_PARTS
from halfjoin.sql.functions.arrays import ARRAYS
from halfjoin.sql.functions.bits import BITS
from halfjoin.sql.functions.casts import CASTS
from halfjoin.sql.functions.characters import CHARACTERS
from halfjoin.sql.functions.comparison import COMPARISON
from halfjoin.sql.functions.dates import DATES
from halfjoin.sql.functions.encodings import ENCODINGS
from halfjoin.sql.functions.enums import ENUMS
from halfjoin.sql.functions.formatting import FORMATTING
from halfjoin.sql.functions.internal import SET_RETURNING
from halfjoin.sql.functions.json import JSON_TABLE
from halfjoin.sql.functions.json_made import JSON_INTERNAL, JSON_MADE
from halfjoin.sql.functions.jsonb import JSONB_INTERNAL, JSONB_TABLE
from halfjoin.sql.functions.jsonb_made import JSONB_MADE
from halfjoin.sql.functions.jsonb_paths import JSONB_PATHS, JSONB_PATHS_INTERNAL
from halfjoin.sql.functions.logic import LOGIC
from halfjoin.sql.functions.mathematics import MATHEMATICS
from halfjoin.sql.functions.moments import MOMENTS_TABLE
from halfjoin.sql.functions.nested_arrays import NESTED_ARRAYS
from halfjoin.sql.functions.numerics import NUMERICS
from halfjoin.sql.functions.patterns import PATTERNS
from halfjoin.sql.functions.quoting import QUOTING
from halfjoin.sql.functions.regexps import REGEXPS
from halfjoin.sql.functions.signature import Function
from halfjoin.sql.functions.strings import STRINGS_TABLE
from halfjoin.sql.functions.sum_results import SUM_RESULTS
from halfjoin.sql.functions.text_arrays import TEXT_ARRAYS
from halfjoin.sql.functions.trigonometry import TRIGONOMETRY

TABLE: tuple[Function, ...] = (
    *COMPARISON, *LOGIC, *ARITHMETIC, *BITS, *MATHEMATICS, *NUMERICS, *TRIGONOMETRY, *STRINGS_TABLE, *CHARACTERS,
    *ENCODINGS, *QUOTING, *PATTERNS, *REGEXPS, *DATES, *FORMATTING, *MOMENTS_TABLE, *ARRAYS, *ARRAY_PARTS, *TEXT_ARRAYS,
    *JSONB_TABLE, *JSONB_PATHS, *JSONB_MADE, *JSON_TABLE, *JSON_MADE, *CASTS, *ENUMS,
)  # fmt: skip

# Also the internal functions, which only the engine calls.
ENTRIES: dict[str, Function] = {entry.name: entry for entry in (
    *TABLE, *SUM_RESULTS, *SET_RETURNING, *JSONB_INTERNAL, *JSONB_PATHS_INTERNAL, *JSON_INTERNAL, *NESTED_ARRAYS)}

# Other names of the same functions.
ALIASES = {
    "!=": "<>", "mod": "%", "pow": "power", "ceiling": "ceil", "char_length": "length", "character_length": "length",
    "substr": "substring", "trim": "btrim", "log10": "log", "^@": "starts_with",
    "jsonb_concat": "jsonb ||", "jsonb_contains": "jsonb @>", "jsonb_contained": "jsonb <@", "jsonb_delete": "jsonb -",
    **{f"{name}_tz": name for name in (
        "jsonb_path_exists", "jsonb_path_match", "jsonb_path_query_array", "jsonb_path_query_first")},
    "jsonb_path_exists_opr": "@?", "jsonb_path_match_opr": "@@",
    "jsonb_delete_path": "#-", "jsonb_exists": "?", "jsonb_exists_all": "?&", "jsonb_exists_any": "?|",
}  # fmt: skip
