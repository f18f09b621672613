"""The operator classes of pg_opclass: by which an index orders the values of a type."""

from __future__ import annotations

from halfjoin.catalog.system.types import TypeRow

# The number and the name of the class, by the number of its type.
CLASSES = {
    16: (10003, "bool_ops"), 17: (10006, "bytea_ops"), 20: (3124, "int8_ops"), 21: (1979, "int2_ops"),
    23: (1978, "int4_ops"), 25: (3126, "text_ops"), 26: (1981, "oid_ops"), 700: (10012, "float4_ops"),
    701: (3123, "float8_ops"), 1042: (10004, "bpchar_ops"), 1082: (3122, "date_ops"), 1083: (10038, "time_ops"),
    1114: (3128, "timestamp_ops"), 1184: (3127, "timestamptz_ops"), 1186: (10022, "interval_ops"),
    1700: (3125, "numeric_ops"), 2249: (10034, "record_ops"), 2277: (10000, "array_ops"), 2950: (10065, "uuid_ops"),
    3500: (10069, "enum_ops"), 3802: (10088, "jsonb_ops"),
}  # fmt: skip
_ANY = {"A": 2277, "C": 2249, "E": 3500, "S": 25}  # types with one class for all, by their category


def class_of(type: TypeRow) -> int:
    """The number of the class of an index over a column of this type."""
    number = type.base or type.oid
    return CLASSES[number if number in CLASSES else _ANY.get(type.category, 25)][0]
