"""Decimals of few digits are rounded and cast as all others are."""

from __future__ import annotations

from decimal import Decimal

import pytest

import halfjoin as hj
from halfjoin.engine.scalar import short_decimals

_TEXTS = ["0", "0.005", "-0.005", "0.015", "1.995", "-1.995", "2.5", "-2.5", "3.5", "0.5", "-0.5", "99.499", "99.5",
          "-99.999", "32767.499", "32767.5", "-32768.5", "-32768.49", "2147483647.4", "-2147483648.499", "123456.789",
          "45", "-50", "50", "-149.999", "150"]  # fmt: skip
_ROUNDED = ["x::numeric(20, 2)", "x::numeric(14, 1)", "x::numeric(12, 0)", "x::bigint", "x::integer", "round(x)",
            "round(x, 1)", "round(x, -2)", "round(x, -9)", "trunc(x)", "trunc(x, 2)", "trunc(x, -1)", "ceil(x)",
            "floor(x)", "round(x * x, 3)", "(x * 1000000000000000)::numeric(38, 0)", "round(x * 1.19, 2)"]  # fmt: skip
_FAILING = ["x::smallint", "(x * 2)::integer", "x::numeric(6, 2)", "round(x, 1)::numeric(3, 0)"]


def test_few_digits_are_rounded_as_many(monkeypatch: pytest.MonkeyPatch) -> None:
    def answers(shown: list[str]) -> list[object]:
        found = list[object]()
        for one in shown:
            try:
                found.append(engine.query(f"SELECT i, {one} AS y FROM t ORDER BY i").to_pylist())
            except hj.DataError as problem:
                found.append(str(problem))
        return found

    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (i integer, x numeric(18, 3))")
        values = [*map(Decimal, _TEXTS), None, *(Decimal(n) / 8 for n in range(-40, 40))]
        engine.apply({"t": [{"i": i, "x": value} for i, value in enumerate(values)]})
        short = answers([*_ROUNDED, *_FAILING])
        monkeypatch.setattr(short_decimals, "rounded", lambda *_: None)
        assert short == answers([*_ROUNDED, *_FAILING])
        assert [isinstance(one, str) for one in short] == [False] * len(_ROUNDED) + [True] * len(_FAILING)
