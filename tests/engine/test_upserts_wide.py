"""Upserts of wide tables that name few columns: the others are filled in together, not one after the other."""

import pytest

import halfjoin as hj
from halfjoin.engine.intake import unnamed, upserts

COLUMNS = 60


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    found, search = list[int](), upserts.last_named
    for module in (unnamed, upserts):
        monkeypatch.setattr(module, "last_named", lambda *given: found.append(1) or search(*given))
    return found


def wide() -> hj.Engine:
    engine = hj.Engine(clock="own")
    engine.execute(f"CREATE TABLE w (id integer PRIMARY KEY, {', '.join(f'c{i} integer' for i in range(COLUMNS))})")
    engine.apply({"w": [{"id": key, **{f"c{i}": i for i in range(COLUMNS)}} for key in (1, 2)]}, time=1)
    return engine


@pytest.mark.parametrize(("rows", "most"), [
    ([{"id": 1, "c3": 7}], 1),
    ([{"id": 1, "c3": 7}, {"id": 2, "c3": 9}], 2),
    ([{"id": 1, "c3": 7}, {"id": 1, "c4": 8}, {"id": 2, "c3": 9, "c4": None}], 6),
])  # fmt: skip
def test_columns_that_no_row_names_cost_one_search(searches: list[int], rows: list[dict], most: int) -> None:
    engine = wide()
    searches.clear()
    engine.apply({"w": hj.upserts(rows)}, time=2)
    assert len(searches) <= most
    expected = {key: {"id": key, **{f"c{i}": i for i in range(COLUMNS)}} for key in (1, 2)}
    for row in rows:
        expected[row["id"]].update(row)
    assert sorted(engine.read("w").to_pylist(), key=lambda row: row["id"]) == list(expected.values())


def test_a_deletion_that_names_its_key_costs_one_search(searches: list[int]) -> None:
    engine = wide()
    searches.clear()
    engine.apply({"w": hj.deletes([{"id": 1}])}, time=2)
    assert len(searches) <= 1
    assert engine.read("w").column("id").to_pylist() == [2]
