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
}  # fmt: skip
