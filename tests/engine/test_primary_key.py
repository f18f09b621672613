"""PRIMARY KEY: which rows are refused, and which rows upserts replace, against a dictionary replayed from the start."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import halfjoin as hj
from halfjoin.engine.kernels import indexing
from tests.support.kernels import both_ways  # noqa: F401
from tests.support.seeds import some

UPDATE = st.tuples(st.integers(0, 3), st.sampled_from(["x", "y"]), st.integers(0, 2), st.sampled_from([1, 1, -1]))
BATCH = st.lists(UPDATE, min_size=1, max_size=4)


def allowed(history):
    """Whether at every time each key has at most one row, and no row has a negative count."""
    for time in {time for _, _, time, _ in history}:
        counts = {}
        for k, v, t, diff in history:
            if t <= time:
                counts[k, v] = counts.get((k, v), 0) + diff
        keys = [k for (k, _), count in counts.items() for _ in range(count)]
        if min(counts.values()) < 0 or len(set(keys)) < len(keys):
            return False
    return True


@settings(max_examples=some(150), deadline=None)
@given(st.lists(BATCH, max_size=8), st.booleans(), st.booleans())
def test_a_batch_is_refused_exactly_when_it_breaks_the_key(batches, collide, one_by_one):
    with hj.Engine() as engine, pytest.MonkeyPatch.context() as patch:
        if not one_by_one:
            patch.setattr("halfjoin.engine.intake.key_pairs._FEW", 0)
        if collide:  # two keys to a code: only the values tell them apart
            for kernel in ("indexed", "unique"):  # they make codes themselves
                patch.setattr(indexing, kernel, lambda *_: None)
            patch.setattr("halfjoin.engine.arrange.index.codes",
                          lambda keys, length: keys[0].to_numpy().astype("int64") // 2)  # fmt: skip
        engine.execute("CREATE TABLE t (k integer PRIMARY KEY, v text)")
        history = []
        for upper, batch in enumerate(batches):
            rows = [{"k": k, "v": v, "__time": upper + later, "__diff": diff} for k, v, later, diff in batch]
            new = [(k, v, upper + later, diff) for k, v, later, diff in batch]
            if allowed(history + new):
                engine.apply({"t": rows}, close=False)
                history += new
            else:
                with pytest.raises(hj.InvalidRow):
                    engine.apply({"t": rows}, close=False)
            engine.advance(upper + 1)


@pytest.mark.parametrize("few", [0, 16])
def test_rows_replaced_repeatedly_are_checked_by_pairs(few, monkeypatch):
    monkeypatch.setattr("halfjoin.engine.intake.key_pairs._FEW", few)
    monkeypatch.setattr("halfjoin.engine.intake.primary_key.PrimaryKey._check", None)  # the long way is not taken
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (k integer PRIMARY KEY, v text, w double precision[])")
        versions = [{"k": k, "v": v, "w": w} for k in (1, 2) for v, w in (("a", [1.0, None]), (None, None))]
        engine.apply({"t": versions[::2]}, time=1)
        for time in range(2, 9):
            old, new = versions[time % 2 :: 2], versions[(time + 1) % 2 :: 2]
            engine.apply({"t": [{**row, "__diff": diff} for rows, diff in ((new, 1), (old, -1)) for row in rows]}, time)
            assert engine.read("t").to_pylist() == new
        engine.apply({"t": hj.deletes(new)}, time=9)
        assert engine.read("t").num_rows == 0


@settings(max_examples=some(100), deadline=None)
@given(st.lists(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5), st.integers(0, 2)), max_size=5), max_size=5))
def test_upserts_replace_the_row_of_their_key_at_their_time(batches):
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (k integer PRIMARY KEY, v integer)")
        contents, upper = {}, 0
        for batch in batches:
            rows = [{"k": k, "v": v, "__time": upper + later} for k, v, later in batch]
            engine.apply({"t": hj.upserts(rows)}, time=None if rows else upper)
            steps = sorted(enumerate(batch), key=lambda item: (item[1][2], item[0]))
            for _, (k, v, _) in steps:
                contents[k] = v
            upper = engine.stats().upper
            assert {row["k"]: row["v"] for row in engine.read("t").to_pylist()} == contents


@pytest.mark.parametrize(
    ("batch", "text"),
    [
        ([{"k": 1, "v": "b"}], "t: row 0: would be a second row with the key (k) = (1); delete the first in the same "
         "batch, or submit hj.upserts(rows)"),
        ([{"k": 2, "v": "a"}, {"k": 2, "v": "b"}], "t: row 1: would be a second row with the key (k) = (2); delete the "
         "first in the same batch, or submit hj.upserts(rows)"),
        (hj.deletes([{"k": 1, "v": "b"}]), "t: row 0: deletes a row that is not there: (k) = (1); in the row with that "
         "key v is 'a', not 'b'"),
        (hj.deletes([{"k": 9, "v": "a"}]), "t: row 0: deletes a row that is not there: (k) = (9)"),
    ],
)  # fmt: skip
def test_what_the_refusal_says(batch, text):
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (k integer PRIMARY KEY, v text)")
        engine.apply({"t": [{"k": 1, "v": "a"}]}, time=1)
        with pytest.raises(hj.InvalidRow) as caught:
            engine.apply({"t": batch}, time=2)
        assert str(caught.value) == text


@pytest.mark.parametrize(("batch", "what"), [
    (hj.upserts([{"k": 1, "v": "b"}]), "would be a second row"), ([{"k": 1, "v": "b"}], "would be a second row"),
    (hj.deletes([{"k": 1}]), "deletes a row that is not there"),
])  # fmt: skip
def test_the_refusal_names_a_later_time_that_is_open(batch, what):
    """It said to submit upserts where upserts were submitted, and that a value of the row is not None."""
    with hj.Engine(clock="own") as engine:
        engine.execute("CREATE TABLE t (k integer PRIMARY KEY, v text)")
        engine.apply({"t": [{"k": 1, "v": "a"}]}, time=10, close=False)
        with pytest.raises(hj.InvalidRow, match=rf"{what}.*comes at time 10, which is still open"):
            engine.apply({"t": batch}, time=7)
        engine.apply({"t": hj.upserts([{"k": 1, "v": "b"}])}, time=10)
        assert engine.read("t").to_pylist() == [{"k": 1, "v": "b"}]
