"""A few rows of an answer are the same bytes as the same rows among many, in text and in binary."""

from __future__ import annotations

import random
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.server import rows
from halfjoin.sql.parse.prepared import prepared

SQL = """SELECT g, g % 7 = 3 AS b, nullif(g, 5) AS n, g * 1.25 AS d, g / 3::float8 AS f, 'é' || g AS x, ''::text AS e,
    date '2024-01-01' + g AS day, g * interval '1 hour' AS i, ARRAY[g, NULL] AS a, ROW(g, 'x') AS r,
    ('00000000-0000-0000-0000-00000000000' || g % 9)::uuid AS u, NULL::integer AS nothing, ('\\x0' || g % 8)::bytea AS y
    FROM generate_series(1, 40) AS s (g)"""


@pytest.mark.parametrize("format", [0, 1, None])
def test_few_rows_are_framed_as_many(format: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = hj.Engine().connect().run(prepared(SQL))
    assert answer.rows is not None and answer.columns is not None
    types, chosen = [column.type for column in answer.columns], random.Random(1)
    formats = [chosen.randrange(2) if format is None else format for _ in types]
    for size in (0, 1, 3, 40):
        framed: list[Any] = []
        for few in (0, rows.FEW):
            with monkeypatch.context() as patch:
                patch.setattr(rows, "FEW", few)
                framed.append(b"".join(map(bytes, rows.data_rows(answer.rows.slice(2, size), types, formats))))
        assert framed[0] == framed[1]
        assert framed[0].count(b"D") >= min(size, 38)
