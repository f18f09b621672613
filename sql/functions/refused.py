"""Functions of PostgreSQL that halfjoin refuses on purpose: name to (reason, what to write instead)."""

from __future__ import annotations

_CLOCK = ("its answer changes with the clock, a view's must not", "write mz_now() in a temporal filter (WHERE)")
_CHANCE = ("its answer changes with every call, a view's must not", "store the value in a column")

REFUSED: dict[str, tuple[str, str]] = {
    **dict.fromkeys(
        ("now", "current_timestamp", "current_date", "current_time", "localtimestamp", "localtime",
         "clock_timestamp", "statement_timestamp", "transaction_timestamp", "timeofday"), _CLOCK),
    **dict.fromkeys(
        ("random", "random_normal", "setseed", "gen_random_uuid", "uuid_generate_v4", "nextval", "currval"), _CHANCE),
    **{name: ("the type json is not supported", f"write {name.replace('json', 'jsonb', 1)}") for name in (
        "json_agg", "json_array_elements", "json_array_elements_text", "json_array_length", "json_build_array",
        "json_build_object", "json_each", "json_each_text", "json_extract_path", "json_extract_path_text",
        "json_object", "json_object_agg", "json_object_keys", "json_strip_nulls", "json_typeof", "to_json")},
    **dict.fromkeys(("row_to_json", "array_to_json"), ("the type json is not supported", "write to_jsonb")),
}  # fmt: skip
