"""Keys that are replaced again and again, in files past the memory budget: a batch looks at what is left of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.engine.intake.primary_key import PrimaryKey

KEYS, TIMES = 100, 40


@pytest.mark.parametrize("constraint", ["", ", UNIQUE (x)"], ids=["primary", "unique"])
def test_a_batch_looks_at_what_is_left_of_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, constraint: str
) -> None:
    held, in_files, plain, candidates = list[int](), list[bool](), PrimaryKey._held, PrimaryKey.candidates

    def looked_up(key: PrimaryKey, there: Any, *given: Any, **named: Any) -> Any:
        in_files.append(any(not part.in_memory for part in there))
        return candidates(key, there, *given, **named)

    def counted(key: PrimaryKey, *given: Any) -> Any:
        found = plain(key, *given)
        held.append(sum(len(place.rows) for place in found))
        return found

    with hj.Engine(tmp_path / "w", memory=1, clock="own") as engine:
        engine.execute(f"CREATE TABLE t (k bigint PRIMARY KEY, x bigint, s text{constraint})")
        for time in range(TIMES):
            engine.apply({"t": hj.upserts([{"k": k, "x": k + time % 2 * KEYS, "s": str(time)} for k in range(KEYS)])},
                         time=time)  # fmt: skip
            if time % 10 == 9:
                engine.flush()
        monkeypatch.setattr(PrimaryKey, "_held", counted)
        monkeypatch.setattr(PrimaryKey, "candidates", looked_up)
        engine.apply({"t": hj.upserts([{"k": k, "x": k, "s": "last"} for k in range(KEYS)])}, time=TIMES)
        assert all(in_files) and 0 < max(held) <= KEYS * 12  # of 79 updates of each key
        assert engine.execute("SELECT count(*), sum(x), min(s), max(s) FROM t").to_pylist() == [
            {"count": KEYS, "sum": sum(range(KEYS)), "min": "last", "max": "last"}]  # fmt: skip
        with pytest.raises(hj.InvalidRow):
            engine.apply({"t": [{"k": 1, "x": -1, "s": ""}]}, time=TIMES + 1)
        for time in range(TIMES):
            assert engine.read("t", as_of=time)["s"].unique().to_pylist() == [str(time)]
