"""n changes of a key leave O(n) updates, whatever the form of the change, and however far ahead it takes effect."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import halfjoin as hj

_CHANGES = 12


def _debezium(number: int) -> Any:
    before = {"k": 1, "v": number - 1} if number else None
    after = {"k": 1, "v": number}
    return hj.debezium([json.dumps({"before": before, "after": after, "source": {}, "op": "u" if number else "c"})])


def _rows(number: int) -> list[dict[str, int]]:
    gone = [{"k": 1, "v": number - 1, "__diff": -1}] if number else []
    return [*gone, {"k": 1, "v": number, "__diff": 1}]


FORMS: dict[str, Callable[[int], Any]] = {
    "upserts": lambda number: hj.upserts([{"k": 1, "v": number}]),
    "upserts of the same row": lambda number: hj.upserts([{"k": 1, "v": 7}]),
    "upserts to and fro": lambda number: hj.upserts([{"k": 1, "v": number % 2}]),
    "debezium": _debezium,
    "rows": _rows,
}


def _updates(engine: hj.Engine) -> int:
    return sum(found.updates for found in engine.stats().collections if found.name == "t")


def _engine(**options: Any) -> hj.Engine:
    engine = hj.Engine(retain=1_000, **options)
    engine.execute("CREATE TABLE t (k bigint PRIMARY KEY, v bigint)")
    return engine


@pytest.mark.parametrize("close", [True, False])
@pytest.mark.parametrize("ahead", [0, 50])
@pytest.mark.parametrize("form", FORMS)
def test_n_changes_of_a_key_leave_2n_updates(form: str, ahead: int, close: bool) -> None:
    with _engine() as engine:
        for number in range(_CHANGES):
            engine.apply({"t": FORMS[form](number)}, time=number + ahead, close=close)
        assert _updates(engine) <= 2 * _CHANGES
        engine.advance(_CHANGES + ahead + 1)
        assert len(engine.read("t")) == 1


def test_n_statements_on_a_key_leave_2n_updates() -> None:
    with _engine() as engine:
        for number in range(_CHANGES):
            engine.execute(f"INSERT INTO t VALUES (1, {number})" if not number else f"UPDATE t SET v = {number}")
        assert _updates(engine) <= 2 * _CHANGES
        for number in range(_CHANGES):
            engine.execute("DELETE FROM t")
            engine.execute(f"INSERT INTO t VALUES (1, {number})")
        assert _updates(engine) <= 4 * _CHANGES


def test_deleted_and_upserted_again_leaves_2n_updates() -> None:
    with _engine() as engine:
        for number in range(_CHANGES):
            engine.apply({"t": hj.upserts([{"k": 1, "v": 7}])}, time=2 * number)
            engine.apply({"t": hj.deletes([{"k": 1, "v": 7}])}, time=2 * number + 1)
        assert _updates(engine) == 2 * _CHANGES


def test_n_upserts_of_a_key_in_dataframes_leave_2n_updates(spark: Any, tmp_path: Any) -> None:
    with _engine(warehouse=tmp_path / "w", spark=spark, runner="spark") as engine:
        for number in range(6):
            engine.apply({"t": hj.upserts(spark.sql(f"SELECT 1L AS k, {number}L AS v"))}, time=number)
        assert engine.read("t", multiplicity=True).to_pylist() == [{"k": 1, "v": 5, "__diff": 1}]
        assert _updates(engine) <= 2 * 6
