"""The general linear operator: your own function that returns rows with weights and times."""

import numpy as np
import pyarrow as pa

import halfjoin as hj


def pulse(arguments: pa.RecordBatch) -> pa.RecordBatch:
    """For each x: x copies of 2x, from time 3x until 4x."""
    x = arguments.column(0).to_numpy(zero_copy_only=False)
    row = np.arange(len(x))
    return pa.RecordBatch.from_pydict(
        {
            "y": np.concatenate([2 * x, 2 * x]),
            "__row": np.concatenate([row, row]),  # the argument row that a result comes from
            "__time": np.concatenate([3 * x, 4 * x]),  # the time from which a result holds
            "__diff": np.concatenate([x, -x]),  # the number of copies
        }
    )


engine = hj.Engine()
engine.register_table_function("pulse", pulse, returns={"y": "bigint"})
engine.execute("CREATE TABLE t (x bigint NOT NULL)")
engine.execute("CREATE MATERIALIZED VIEW pulses AS SELECT p.y FROM t, pulse(t.x) AS p(y)")
engine.execute("CREATE MATERIALIZED VIEW steps AS SELECT t.x, g.n FROM t, generate_series(1, t.x) AS g(n)")
engine.execute("CREATE MATERIALIZED VIEW weighted AS SELECT t.x FROM t, repeat_row(t.x - 2)")

engine.apply({"t": [{"x": 1}, {"x": 2}, {"x": 4}]}, time=0)
engine.advance(to=20)

print("from 12 until 16:", engine.read("pulses", as_of=12).to_pylist())
print("steps:", engine.read("steps").to_pylist())
print("weights:", engine.read("weighted", multiplicity=True).to_pylist())

for time in range(20):
    expected = sorted(2 * x for x in (1, 2, 4) if 3 * x <= time < 4 * x for _ in range(x))
    assert sorted(engine.read("pulses", as_of=time).column("y").to_pylist()) == expected
steps = sorted((row["x"], row["n"]) for row in engine.read("steps").to_pylist())
assert steps == [(x, n) for x in (1, 2, 4) for n in range(1, x + 1)]
weights = {row["x"]: row["__diff"] for row in engine.read("weighted", multiplicity=True).to_pylist()}
assert weights == {1: -1, 4: 2}
