"""The kernel builders by function name. A builder makes a kernel from a call, and may read the call's types."""

from __future__ import annotations

from collections.abc import Callable

from halfjoin.engine.scalar.any_all import ANY_ALL
from halfjoin.engine.scalar.arithmetic import ARITHMETIC
from halfjoin.engine.scalar.array_assignment import ARRAY_ASSIGNMENT
from halfjoin.engine.scalar.array_parts import ARRAY_PARTS
from halfjoin.engine.scalar.arrays import ARRAYS
from halfjoin.engine.scalar.bits import BITS
from halfjoin.engine.scalar.casts_text import FIT
from halfjoin.engine.scalar.char_encodings import CHAR_ENCODINGS
from halfjoin.engine.scalar.characters import CHARACTERS
from halfjoin.engine.scalar.comparison import COMPARISON
from halfjoin.engine.scalar.dates import DATES
from halfjoin.engine.scalar.encodings import ENCODINGS
from halfjoin.engine.scalar.enums import ENUMS
from halfjoin.engine.scalar.formats import FORMATS
from halfjoin.engine.scalar.json_assignment import JSON_ASSIGNMENT
from halfjoin.engine.scalar.json_changes import JSON_CHANGES
from halfjoin.engine.scalar.json_made import JSON_MADE
from halfjoin.engine.scalar.json_order import JSON_ORDER
from halfjoin.engine.scalar.json_parts import JSON_PARTS
from halfjoin.engine.scalar.json_path_kernels import JSON_PATHS
from halfjoin.engine.scalar.logic import LOGIC
from halfjoin.engine.scalar.lookups import LOOKUPS
from halfjoin.engine.scalar.mathematics import MATHEMATICS
from halfjoin.engine.scalar.moment_parts import MOMENT_PARTS
from halfjoin.engine.scalar.nested_arrays import NESTED_ARRAYS
from halfjoin.engine.scalar.numerics import NUMERICS
from halfjoin.engine.scalar.patterns import PATTERNS
from halfjoin.engine.scalar.precision import PRECISION
from halfjoin.engine.scalar.quoting import QUOTING
from halfjoin.engine.scalar.regexps import REGEXPS
from halfjoin.engine.scalar.row_text import ROW_TEXT
from halfjoin.engine.scalar.rows import ROWS
from halfjoin.engine.scalar.strings import STRINGS
from halfjoin.engine.scalar.sums import SUMS
from halfjoin.engine.scalar.text_arrays import TEXT_ARRAYS
from halfjoin.engine.scalar.trigonometry import TRIGONOMETRY
from halfjoin.engine.scalar.values import Kernel
from halfjoin.sql.expr import Call

KERNELS: dict[str, Callable[[Call], Kernel]] = {
    **COMPARISON, **LOGIC, **ARITHMETIC, **MATHEMATICS, **STRINGS, **PATTERNS, **REGEXPS,
    **DATES, **FORMATS, **MOMENT_PARTS, **ARRAYS, **ARRAY_PARTS, **FIT, **SUMS, **BITS, **NUMERICS, **TRIGONOMETRY,
    **ANY_ALL, **CHARACTERS, **JSON_PATHS, **CHAR_ENCODINGS,
    **ENCODINGS, **QUOTING, **TEXT_ARRAYS, **JSON_PARTS, **JSON_CHANGES, **JSON_MADE, **JSON_ORDER, **ENUMS,
    **PRECISION, **ROW_TEXT, **ROWS, **NESTED_ARRAYS, **LOOKUPS, **ARRAY_ASSIGNMENT, **JSON_ASSIGNMENT,
}  # fmt: skip


def kernel_of(call: Call) -> Kernel:
    """The kernel of a resolved call."""
    return KERNELS[call.function](call)
