"""An engine that nobody has any more cannot be closed, so it does not keep others from its warehouse."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from deltalake import DeltaTable

import halfjoin as hj
from halfjoin.engine.sinks.table import SinkTable
from halfjoin.engine.storage.delta import DeltaFolder

DDL = "CREATE TABLE t (k bigint PRIMARY KEY); CREATE MATERIALIZED VIEW v AS SELECT count(*) AS c FROM t"


def _forgotten(folder: Path, number: int, ddl: str = "") -> None:
    """Apply a batch, and leave the engine open."""
    engine = hj.Engine(folder)
    engine.execute(ddl)
    changes = engine.subscribe("v", snapshot=False)
    engine.apply({"t": [{"k": number}]}, time=number)
    assert next(changes).num_rows


def test_a_warehouse_is_open_to_others_once_its_engine_is_forgotten(tmp_path: Path) -> None:
    for number in range(1, 4):
        _forgotten(tmp_path / "w", number, DDL if number == 1 else "")
    with hj.Engine(tmp_path / "w") as engine:
        assert engine.read("v").to_pylist() == [{"c": 3}]


@pytest.mark.parametrize("where", ["engine", "storage.warehouse"])
def test_an_interrupt_when_all_is_open_gives_the_warehouse_up(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is left to be undone then, and the caller does not have the engine."""

    class Interrupted(ExitStack):
        def __exit__(self, *_: object) -> None:  # type: ignore[override]
            raise KeyboardInterrupt

    for _ in range(2):
        with monkeypatch.context() as patch:
            patch.setattr(f"halfjoin.engine.{where}.ExitStack", Interrupted)
            try:
                hj.Engine(tmp_path / "w")
            except KeyboardInterrupt:  # `pytest.raises` would keep what the frames have
                pass
            else:
                pytest.fail("it was not interrupted")
        with hj.Engine(tmp_path / "w") as engine:
            engine.execute("CREATE TABLE IF NOT EXISTS t (k bigint)")


@pytest.mark.parametrize(("kind", "name"), [(DeltaFolder, "append"), (SinkTable, "_carry_out")])
def test_what_a_thread_of_a_forgotten_engine_writes_is_done_first(
    kind: type, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go = Event(), Event()
    write: Callable[..., Any] = getattr(kind, name)

    def slow(*arguments: Any, **options: Any) -> Any:
        begun.set()
        assert go.wait(60)
        return write(*arguments, **options)

    with hj.Engine(tmp_path / "w") as engine:
        engine.execute(f"{DDL}; CREATE SINK s FROM v INTO DELTA 's'")
        engine.flush()
    monkeypatch.setattr("halfjoin.engine.storage.upkeep.FLUSH_BYTES", 1)
    monkeypatch.setattr(kind, name, slow)
    _forgotten(tmp_path / "w", 1)
    assert begun.wait(60)
    for _ in range(2):
        with pytest.raises(hj.Conflict, match="very process"):
            hj.Engine(tmp_path / "w")
    go.set()
    with _opened(tmp_path / "w") as engine:
        assert engine.read("v").to_pylist() == [{"c": 1}]
        engine.flush()
    assert DeltaTable(tmp_path / "w" / "sinks" / "s").to_pyarrow_table().to_pylist() == [{"c": 1}]


def _opened(folder: Path) -> hj.Engine:
    """The engine, once nobody else writes."""
    for _ in range(600):
        try:
            return hj.Engine(folder)
        except hj.Conflict:
            time.sleep(0.1)
    raise AssertionError("the warehouse is not given up")
