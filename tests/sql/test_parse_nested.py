"""What stands in n calls is parsed once, and not 2^n times."""

from __future__ import annotations

from typing import Any

import pytest

from halfjoin.sql.parse.dialect import HalfjoinParser
from halfjoin.sql.parse.parse import trees_of

FORMS = {
    "call": "abs({})", "call with texts": "replace({}, 'a', 'b')", "second argument": "date_trunc('day', {})",
    "constant of a type": "f(date '2024-01-01', {})", "coalesce": "coalesce({}, 0)", "row": "ROW({}, 1)",
    "members": "(1, {})", "parentheses": "({})", "array": "ARRAY[{}]", "cast": "CAST({} AS text)",
    "typed": "({})::text",
    "substring": "substring({} FROM 1 FOR 2)", "substring similar": "substring({} SIMILAR 'a' ESCAPE '#')",
    "case": "CASE WHEN a THEN {} END", "operand": "CASE {} WHEN 1 THEN 2 END", "extract": "extract(year FROM {})",
    "position": "position({} IN 'b')", "overlay": "overlay({} PLACING 'b' FROM 1)", "trim": "trim({})",
    "scalar": "(SELECT {})", "in": "1 IN (SELECT {})", "array of a query": "ARRAY(SELECT {})", "sign": "-({})",
    "named argument": "make_interval(days => {})", "zone": "({} AT TIME ZONE 'UTC')", "element": "x[{}]",
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_depth_costs_what_length_costs(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    steps, advance = [0], HalfjoinParser._advance

    def counted(self: HalfjoinParser, *args: Any) -> None:
        steps[0] += 1
        advance(self, *args)

    monkeypatch.setattr(HalfjoinParser, "_advance", counted)
    taken = []
    for depth in (6, 12):
        text = "y"
        for _ in range(depth):
            text = FORMS[form].format(text)
        steps[0] = 0
        trees_of(f"SELECT {text} AS x FROM t")
        taken.append(steps[0])
    assert taken[1] < 5 * taken[0]
