"""Functions that halfjoin refuses, and what to write instead: those of PostgreSQL, with the reason, and other ones."""

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

# Functions of other dialects: what to write instead.
FOREIGN: dict[str, str] = {
    **dict.fromkeys(("ifnull", "nvl"), "coalesce(a, b)"),
    "isnull": "a IS NULL, or coalesce(a, b)",
    **dict.fromkeys(("iif", "nvl2"), "CASE WHEN condition THEN a ELSE b END"),
    "len": "length(text)",
    "lcase": "lower(text)",
    "ucase": "upper(text)",
    **dict.fromkeys(("charindex", "instr", "locate"), "strpos(text, part)"),
    "regexp_extract": "regexp_substr(text, pattern)",
    **dict.fromkeys(("rlike", "regexp_contains"), "text ~ 'pattern'"),
    "substring_index": "split_part(text, ',', 1)",
    **{part: f"extract({part} FROM moment)" for part in ("year", "quarter", "month", "week", "day", "hour", "minute",
                                                         "second")},
    **dict.fromkeys(("date_add", "date_sub", "dateadd"), "moment + interval '1 day'"),
    **dict.fromkeys(("date_diff", "datediff"), "a - b, which are days if both are dates"),
    **dict.fromkeys(("date_format", "format_date", "strftime"), "to_char(moment, 'YYYY-MM-DD')"),
    **dict.fromkeys(("getdate", "sysdate"), "now()"),
    "unix_timestamp": "extract(epoch FROM moment)",
    "from_unixtime": "to_timestamp(seconds)",
    **dict.fromkeys(("get_json_object", "json_extract"), "doc ->> 'key', or doc #>> '{a,b}'"),
    **dict.fromkeys(("group_concat", "listagg"), "string_agg(text, ',')"),
    "median": "percentile_cont(0.5) WITHIN GROUP (ORDER BY x)",
    **dict.fromkeys(("count_if", "countif"), "count(*) FILTER (WHERE condition)"),
    **dict.fromkeys(("approx_count_distinct", "approx_distinct"), "count(DISTINCT x)"),
    "collect_list": "array_agg(x)",
    "collect_set": "array_agg(DISTINCT x)",
    **dict.fromkeys(("arg_max", "max_by"), "(array_agg(a ORDER BY b DESC))[1]"),
    **dict.fromkeys(("arg_min", "min_by"), "(array_agg(a ORDER BY b))[1]"),
}  # fmt: skip
