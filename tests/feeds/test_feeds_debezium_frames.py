"""Debezium's messages in Spark DataFrames mean the same as in a list, and no message enters this process."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import halfjoin as hj
from halfjoin.engine.feeds.debezium import Messages
from halfjoin.engine.spark import messages as in_tasks
from halfjoin.engine.spark import runner, runners
from halfjoin.engine.spark.intake import Intake
from halfjoin.engine.spark.layout import Layout
from halfjoin.engine.storage.fetch import Disk
from halfjoin.engine.storage.parquet_reader import OpenFile
from halfjoin.engine.storage.stored_run import StoredRun
from tests.feeds.test_feeds_debezium import _history, _rows, message
from tests.oracle.rows import bag, updates
from tests.support.seeds import some

KEYED = "CREATE TABLE t (k bigint PRIMARY KEY, v text)"
KEYLESS = "CREATE TABLE t (k bigint, v text)"
VIEW = "CREATE MATERIALIZED VIEW w AS SELECT k, v FROM t WHERE v IS NOT NULL"
STEP = st.tuples(st.sampled_from("cccuuuddn"), st.integers(0, 3), st.integers(0, 3), st.sampled_from(["a", "b", None]))


@pytest.fixture(scope="module")
def session(spark: Any) -> Iterator[Any]:
    """A session with several partitions. No row of a frame may enter this process."""
    with pytest.MonkeyPatch.context() as patch:
        spark.conf.set("spark.sql.shuffle.partitions", "3")
        patch.setattr(type(spark.range(1)), "toArrow", _forbidden)
        yield spark
        spark.conf.set("spark.sql.shuffle.partitions", "1")


def _forbidden(*args: Any, **kinds: Any) -> Any:
    raise AssertionError("rows of a frame were brought into this process")


def _collected(frame: Any) -> pa.Table:
    return pa.Table.from_pylist([row.asDict() for row in frame.collect()])


def _frame(session: Any, messages: list[str | None], *, order: bool = True, seed: int = 0) -> Any:
    """Messages as Kafka's source gives them, in random order."""
    rows = [(None if m is None else m.encode(), 0, offset) for offset, m in enumerate(messages)]
    Random(seed).shuffle(rows)
    frame = session.createDataFrame(rows, "value binary, partition int, offset bigint").repartition(3)
    return frame if order else frame.select("value")


def _engine(where: Path | None = None, ddl: str = KEYED, **more: Any) -> hj.Engine:
    engine = hj.Engine(where, **more)
    engine.execute(f"{ddl}; {VIEW}")
    return engine


@settings(max_examples=some(4))
@given(st.lists(STEP, min_size=1, max_size=14), st.data())
def test_any_split_and_any_redelivery_gives_the_table(session: Any, steps: Any, data: st.DataObject) -> None:
    messages, states = _history(steps)
    setting = data.draw(st.sampled_from(["spark", "auto"]))
    done = 0
    with _engine(spark=session, runner=setting) as engine, _engine(runner="local") as local:
        while done < len(messages):
            again = data.draw(st.integers(0, done))
            done = data.draw(st.integers(done + 1, len(messages)))
            some = messages[again:done] * data.draw(st.integers(1, 2))
            offsets = [*range(again, done)] * (len(some) // (done - again))
            frame = session.createDataFrame([*zip(some, offsets, strict=True)], "value string, offset bigint")
            applied = engine.apply({"t": hj.debezium(frame.repartition(data.draw(st.integers(1, 3))))}, time=done)
            ours = local.apply({"t": hj.debezium(messages[again:done])}, time=done)
            assert bag(engine.read("t")) == _rows(states[done - 1])
            assert Counter(updates(applied.diffs["w"])) == Counter(updates(ours.diffs["w"]))


@settings(max_examples=some(4))
@given(st.lists(STEP, min_size=1, max_size=10), st.integers(0, 9))
def test_without_a_key_images_go_and_come_in_any_order(session: Any, steps: Any, seed: int) -> None:
    messages, states = _history(steps)
    with _engine(ddl=KEYLESS, spark=session, runner="spark") as engine:
        engine.apply({"t": hj.debezium(_frame(session, messages, order=seed % 2 == 0, seed=seed))}, time=1)
        assert bag(engine.read("t")) == _rows(states[-1])


@pytest.mark.parametrize("rows", [1, 2, 7, 100])
def test_a_task_that_settles_keys_holds_no_more_than_a_lot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    """The rows of a key are processed together, in whatever lots they come, and written once."""
    with hj.Engine() as engine:
        engine.execute(KEYED)
        table = engine._state.catalog.table("t")
    intake = Intake(table, 5, tmp_path, marked=True)
    layout = Layout((("k", pa.int64()), ("v", pa.string())), (pa.int64(),) * 3)
    read = in_tasks._Read(table, ("value", "offset"), Messages(None, "messages"), 5, layout)
    messages = [message("u", None, {"k": i * i % 7 % 5, "v": str(i)}) for i in range(60)]
    given = pa.RecordBatch.from_pydict({"value": messages, "offset": list(range(60))})
    monkeypatch.setattr(in_tasks, "WRITTEN_ROWS", rows)
    read_in = [batch for one in range(0, 60, 9) for batch in read(iter([given.slice(one, 9)]))]
    said = pa.Table.from_batches(read_in).sort_by("k0")
    answers = pa.Table.from_batches(in_tasks._Settle(layout, intake, True, False)(iter(said.to_batches(3))))
    names = [name for name in answers.column("name").to_pylist() if name is not None]
    found = pa.concat_tables([pq.read_table(tmp_path / name) for name in names])
    last = {i * i % 7 % 5: str(i) for i in range(60)}
    assert Counter(zip(*(found.column(name).to_pylist() for name in "kv"), strict=True)) == Counter(last.items())
    assert said.num_rows > len(last)


def test_many_messages_about_few_keys(session: Any) -> None:
    messages: list[str | None] = [message("u", None, {"k": i % 3, "v": str(i)}) for i in range(200)]
    messages += [message("d", {"k": 1}), None]
    with _engine(spark=session, runner="spark") as engine:
        engine.apply({"t": hj.debezium(_frame(session, messages))}, time=1)
        assert bag(engine.read("t")) == {(0, "198"): 1, (2, "197"): 1}


def test_each_partition_has_offsets_of_its_own(session: Any) -> None:
    rows = [(message("c", None, {"k": k, "v": str(offset)}), k % 2, offset) for offset in range(5) for k in range(4)]
    frame = session.createDataFrame(rows[::-1], "value string, partition int, offset bigint").repartition(4)
    with _engine(spark=session, runner="spark") as engine:
        engine.apply({"t": hj.debezium(frame)}, time=1)
        assert bag(engine.read("t")) == {(k, "4"): 1 for k in range(4)}


def test_no_message_comes_to_this_process(session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "FEW", 0)
    for holder, name in ((StoredRun, "narrowed"), (OpenFile, "columns"), (Disk, "fetch")):
        monkeypatch.setattr(holder, name, _forbidden)
    messages: list[str | None] = [message("c", None, {"k": k, "v": "a"}) for k in range(20)]
    with _engine(tmp_path / "w", spark=session) as engine:
        first = engine.apply({"t": hj.debezium(_frame(session, messages))}, time=1)
        gone = [message("d", {"k": k}) for k in range(15)] + [message("u", None, {"k": 15, "v": "b"})]
        frame = _frame(session, [*gone])
        applied = engine.apply({"t": hj.debezium(frame)}, time=2, batch_id="one")
        assert first.runner == applied.runner == "spark"
        assert engine.dataframe("w").count() == 5
        assert applied.dataframe("w").count() == 17
        assert engine.apply({"t": hj.debezium(frame)}, time=2, batch_id="one").time == 2


@pytest.mark.parametrize("ddl", [KEYED, KEYLESS])
def test_a_replayed_batch_is_known_in_either_form(session: Any, ddl: str) -> None:
    messages, states = _history([("c", 1, 1, "a"), ("c", 2, 2, "b"), ("u", 1, 3, "c"), ("d", 2, 2, "b")])
    other = [*messages, message("c", None, {"k": 5, "v": "a"})]
    with _engine(ddl=ddl, spark=session) as engine:
        for form in (messages, _frame(session, messages), _frame(session, messages, seed=1)):
            engine.apply({"t": hj.debezium(form)}, time=1, batch_id="one")
        with pytest.raises(hj.Conflict, match="'one' was used for another batch"):
            engine.apply({"t": hj.debezium(_frame(session, other))}, time=1, batch_id="one")
        engine.apply({"t": hj.debezium(_frame(session, other[4:], order=False))}, time=2, batch_id="two")
        engine.apply({"t": hj.debezium(other[4:])}, time=2, batch_id="two")
        assert bag(engine.read("t")) == _rows({**states[-1], 5: "a"})


def test_frames_without_a_message_or_with_tombstones_alone(session: Any) -> None:
    with _engine(spark=session, runner="spark") as engine:
        for number, messages in enumerate(([], [None, None])):
            for _ in range(2):
                engine.apply({"t": hj.debezium(_frame(session, messages))}, time=number, batch_id=str(number))
                assert engine.read("t").num_rows == 0


def test_a_key_of_several_columns_of_all_sorts(session: Any) -> None:
    ddl = "CREATE TABLE t (k numeric(20,2), v text, f double precision, c time, PRIMARY KEY (f, k, c))"
    with _engine(ddl=ddl, spark=session, runner="spark") as engine:
        keys = [{"k": 1.5, "f": f, "c": 60_000} for f in (0.0, -0.0, 1.0)]
        messages = [message("u", None, {**keys[i % 3], "v": str(i)}) for i in range(30)]
        frame = _frame(session, [*messages])
        engine.apply({"t": hj.debezium(frame, encodings={"c": "Time"})}, time=1)
        assert sorted(row["v"] for row in engine.read("t").to_pylist()) == ["28", "29"]


@pytest.mark.parametrize(("ddl", "setting"), [(KEYED, "spark"), (KEYLESS, "auto")])
def test_a_truncation_takes_all_away(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ddl: str, setting: str
) -> None:
    monkeypatch.setattr(runners, "NEAR", 0 if setting == "spark" else 100)
    steps = [("c", 9, 9, "y"), ("t", 0, 0, ""), ("c", 1, 1, "a"), ("t", 0, 0, ""), ("c", 2, 2, "b"), ("u", 2, 3, "c")]
    messages, states = _history(steps)
    with _engine(tmp_path / "w", ddl=ddl, spark=session, runner=setting) as engine:
        engine.apply({"t": [{"k": 9, "v": "z"}, {"k": 2, "v": "b"}]}, time=1)
        for form in (_frame(session, messages), _frame(session, messages, seed=2), messages):
            applied = engine.apply({"t": hj.debezium(form)}, time=2, batch_id="one")
            assert bag(engine.read("t")) == _rows(states[-1])
        assert Counter(updates(applied.diffs["w"])) == {((3, "c"), 2, 1): 1, ((9, "z"), 2, -1): 1, ((2, "b"), 2, -1): 1}
        with pytest.raises(hj.Conflict, match="another batch"):
            engine.apply({"t": hj.debezium(_frame(session, [*messages, message("t")]))}, time=2, batch_id="one")
        alone = session.createDataFrame([(message("t"),)], "value string")
        engine.apply({"t": hj.debezium(alone)}, time=3)
        assert engine.read("t").num_rows == engine.read("w").num_rows == 0
        assert bag(engine.read("t", as_of=2)) == _rows(states[-1])


@settings(max_examples=some(3))
@given(st.lists(STEP | st.just(("t", 0, 0, None)), min_size=2, max_size=12), st.booleans(), st.integers(0, 9))
def test_truncations_anywhere(session: Any, steps: Any, keyed: bool, seed: int) -> None:
    messages, states = _history(steps)
    with _engine(ddl=KEYED if keyed else KEYLESS, spark=session, runner="spark") as engine:
        engine.apply({"t": hj.debezium(_frame(session, messages, seed=seed))}, time=1)
        assert bag(engine.read("t")) == _rows(states[-1])


def test_a_truncation_that_has_no_place_among_the_others(session: Any) -> None:
    with _engine(ddl=KEYLESS, spark=session, runner="spark") as engine:
        unplaced = _frame(session, [GOOD, message("t")], order=False)
        parts = session.createDataFrame([(GOOD, 0, 5), (message("t"), 1, 0)],
                                        "value string, partition int, offset bigint")  # fmt: skip
        for frame in (unplaced, parts):
            with pytest.raises(hj.InvalidRow, match="t: a message truncates the table before some messages"):
                engine.apply({"t": hj.debezium(frame)}, time=1)


GOOD = message("c", None, {"k": 1, "v": "a"})


@pytest.mark.parametrize(("bad", "error", "text"), [
    ("{bad", hj.InvalidRow, r"t: the message of partition 0, offset 1: is not JSON: '\{bad'"),
    (message("m"), hj.InvalidRow, "t: the message of partition 0, offset 1: has the op 'm'"),
    (message("c", None, {"k": None}), hj.InvalidRow, "t.k: the message of partition 0, offset 1: is NULL, and"),
    (message("c", None, {"k": "1"}), hj.InvalidRow, "t.k: the message of partition 0, offset 1: '1' is not a valid"),
    (message("c", None, {"k": 2, "w": 1}), hj.UnknownName, "unknown column 'w' of t"),
])  # fmt: skip
def test_what_is_wrong_with_a_message(session: Any, bad: str, error: type[Exception], text: str) -> None:
    for setting in ("spark", "local"):
        with _engine(spark=session, runner=setting) as engine, pytest.MonkeyPatch.context() as patch:
            if setting == "local":
                patch.setattr(type(session.range(1)), "toArrow", _collected)
            with pytest.raises(error, match=text):
                engine.apply({"t": hj.debezium(_frame(session, [GOOD, bad, GOOD]))}, time=1)
            assert engine.read("t").num_rows == 0


def test_without_places_a_message_is_named_by_how_it_begins(session: Any) -> None:
    with _engine(spark=session, runner="spark") as engine:
        with pytest.raises(hj.InvalidRow, match=r"t.k: the message '\{\"op\": \"c\".*: '7x' is not a valid bigint"):
            bad = json.dumps({"op": "c", "after": {"k": "7x"}})
            engine.apply({"t": hj.debezium(_frame(session, [GOOD, bad], order=False))}, time=1)
        frame = session.createDataFrame([(b"\xff",)], "value binary")
        with pytest.raises(hj.InvalidRow, match="t: a message: is not a JSON text"):
            engine.apply({"t": hj.debezium(frame)}, time=1)


def test_messages_whose_order_counts_and_is_not_known(session: Any) -> None:
    several = r"t: several messages are about one key, \(k\) = \(1\), .* keep the columns partition"
    with _engine(spark=session, runner="spark") as engine:
        other = [message("c", None, {"k": k, "v": "a"}) for k in (2, 3, 4)]
        for messages in ([GOOD, *other, message("d", {"k": 1})], [GOOD, GOOD, *other]):
            with pytest.raises(hj.InvalidRow, match=several):
                engine.apply({"t": hj.debezium(_frame(session, messages, order=False))}, time=1)
        same = [message("u", {"k": 1, "v": "b"}, {"k": 1, "v": "a"}), None, *other]  # one message, twice the key
        engine.apply({"t": hj.debezium(_frame(session, same, order=False))}, time=1)
        assert len(bag(engine.read("t"))) == 4
        rows = [(GOOD, 0), (message("d", {"k": 1}), 0), (GOOD, 0), (other[0], 0)]
        frame = session.createDataFrame(rows, "value string, offset bigint").repartition(3)
        with pytest.raises(hj.InvalidRow, match=r"two messages about one key, \(k\) = \(1\), have the same place, "):
            engine.apply({"t": hj.debezium(frame)}, time=2)
        for bad in ("CAST(NULL AS bigint)", "CAST(offset AS string)"):
            with pytest.raises(hj.InvalidRow, match="t: the column offset gives the order of the messages"):
                engine.apply({"t": hj.debezium(frame.selectExpr("value", f"{bad} AS offset"))}, time=2)


def test_what_is_wrong_with_the_frame(session: Any) -> None:
    with _engine(spark=session, runner="spark") as engine:
        frame = session.createDataFrame([(GOOD, 1)], "a string, b bigint")
        with pytest.raises(hj.InvalidRow, match="one called value among others; the columns are a, b"):
            engine.apply({"t": hj.debezium(frame)}, time=1)
        with pytest.raises(hj.InvalidRow, match="t: messages must be JSON texts, not int64"):
            engine.apply({"t": hj.debezium(frame.select("b"))}, time=1)
        with pytest.raises(hj.UnknownName, match="'nope'"):
            engine.apply({"t": hj.debezium(frame.select("a"), columns=["nope"])}, time=1)
        engine.apply({"t": hj.debezium(frame.select("a"))}, time=1)
        assert bag(engine.read("t")) == {(1, "a"): 1}


def test_few_messages_come_near_once_they_are_checked(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runners, "NEAR", 100)
    messages, states = _history([("c", 1, 1, "a"), ("u", 1, 1, "b"), ("c", 2, 2, "c"), ("d", 2, 2, "c")])
    with _engine(spark=session) as engine:
        applied = engine.apply({"t": hj.debezium(_frame(session, messages))}, time=1)
        assert applied.runner == "local"
        assert bag(engine.read("t")) == _rows(states[-1])


def test_a_sink_replays_an_epoch_of_messages(session: Any) -> None:
    messages, states = _history([("c", 1, 1, "a"), ("u", 1, 1, "b"), ("c", 2, 2, "c")])
    with _engine(spark=session, runner="spark") as engine:
        sink = engine.sink("t", format="debezium")
        sink(_frame(session, messages), 0)
        sink(_frame(session, messages, seed=3), 0)
        assert bag(engine.read("t")) == _rows(states[-1])
        with pytest.raises(hj.Conflict, match="has taken epoch 0 before, with other rows"):
            sink(_frame(session, messages[:1]), 0)
