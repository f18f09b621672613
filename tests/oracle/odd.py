"""Odd statements: known statements with words cut out, doubled, exchanged, or put into each other."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tests.oracle.choice import Choices

_TOKENS = re.compile(r"'[^']*'|\w+|\s+|[^\w\s]")
_PIECES = (
    "NULL", "(", ")", ",", "DISTINCT", "*", "t.*", "OVER ()", "FILTER (WHERE ok)", "LATERAL", "NOT", "::int", "ALL",
    "WITH", "UNION ALL", "LEFT JOIN", "USING (a)", "GROUP BY", "HAVING", "ORDER BY 1", "LIMIT 1", "ARRAY[1, NULL]",
    "-1", "1e300", "2147483647", "''", "'NaN'::float8", "interval '1 month -30 days'", "date '2020-01-31'",
    "ROLLUP (a)", "IN",
    "(SELECT 1)", "(SELECT a FROM t)", "(SELECT max(a) FROM u WHERE u.c = t.b)", "count(*)", "sum(a)", "rank() OVER w",
    "percentile_cont(0.5) WITHIN GROUP (ORDER BY a)", "generate_series(1, 2)", "unnest(arr)", "CASE WHEN ok THEN 1 END",
)


def odd(choices: Choices, known: Sequence[str]) -> str:
    """A statement that may mean something, or nothing."""
    words = _TOKENS.findall(choices.one_of(known))
    for _ in range(choices.integer(1, 4)):
        place = choices.integer(0, max(len(words) - 1, 0))
        match choices.one_of(("drop", "swap", "put", "put", "take", "nest")):
            case "drop":
                words[place:place + 1] = []
            case "swap" if words:
                other = choices.integer(0, len(words) - 1)
                words[place], words[other] = words[other], words[place]
            case "put":
                words.insert(place, f" {choices.one_of(_PIECES)} ")
            case "take":
                words[place:place + 1] = [choices.one_of(_TOKENS.findall(choices.one_of(known)))]
            case "nest":
                words[place:place + 1] = [f"({choices.one_of(known)})"]
    return "".join(words)
