"""A table function makes many rows from one with a long text: it does not repeat columns that are not needed later."""

import pytest

import halfjoin as hj

PIECES = 60_000
LONG = {"id": 1, "s": "a," * (PIECES - 1) + "a", "n": PIECES}


@pytest.fixture
def engine():
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (id bigint, s text, n bigint)")
        engine.execute("CREATE MATERIALIZED VIEW other AS SELECT id FROM t")
        yield engine


@pytest.mark.parametrize("piece", ["p", "upper(p)"])
def test_a_long_text_is_split_in_memory_of_its_size(engine, piece):
    engine.execute(f"CREATE MATERIALIZED VIEW v AS SELECT id, {piece} AS p FROM t, regexp_split_to_table(s, ',') AS p")
    engine.apply({"t": [LONG]}, time=1)
    assert engine.read("v").num_rows == PIECES
    engine.apply({"t": hj.deletes([LONG])}, time=2)
    assert engine.read("v").num_rows == 0


@pytest.mark.parametrize("call", ["regexp_split_to_table(s, ',')", "generate_series(1, n)"])
def test_a_text_repeated_past_an_array_fails_its_view_alone(engine, call):
    engine.execute(f"CREATE MATERIALIZED VIEW v AS SELECT s, p FROM t, {call} AS p")
    engine.apply({"t": [LONG]}, time=1)
    assert engine.read("other").to_pylist() == [{"id": 1}]
    with pytest.raises(hj.DataError, match=r"more than 2,147,483,647 bytes.* once for each result, in "):
        engine.read("v")


def test_a_long_constant_is_not_repeated_past_an_array(engine):
    with pytest.raises(hj.DataError, match="more than 2,147,483,647 bytes"):
        engine.query("SELECT max(lpad('x', 10000000)) AS m FROM generate_series(1, 230)")
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT lpad('x', 10000000) AS s FROM t, generate_series(1, n)")
    engine.apply({"t": [{"id": 1, "s": "", "n": 230}]}, time=1)
    assert engine.read("other").num_rows == 1
    with pytest.raises(hj.DataError, match="more than 2,147,483,647 bytes"):
        engine.read("v")
