"""Let a table follow a Delta table through its Change Data Feed: each version once, and readable as of each."""

import tempfile

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

import halfjoin as hj

folder = tempfile.mkdtemp()
source = f"{folder}/orders"
write_deltalake(source, pa.table({"id": [1, 2, 3], "amount": [50, 150, 250]}),
                configuration={"delta.enableChangeDataFeed": "true"})  # fmt: skip

with hj.Engine(f"{folder}/warehouse") as engine:
    engine.execute("CREATE TABLE orders (id bigint PRIMARY KEY, amount bigint)")
    engine.execute("CREATE MATERIALIZED VIEW big AS SELECT id FROM orders WHERE amount >= 100")
    (snapshot,) = engine.follow("orders", source)
    print(snapshot.diffs["big"].to_pylist())

DeltaTable(source).update(updates={"amount": "amount + 60"}, predicate="id = 1")
DeltaTable(source).delete("id = 2")

with hj.Engine(f"{folder}/warehouse") as engine:  # a new process: the warehouse knows which versions it has
    found = []
    for applied in engine.follow("orders", source):
        print(applied.time, applied.diffs["big"].to_pylist())
        found.append(sorted(row["id"] for row in engine.read("big", as_of=applied.time).to_pylist()))
    assert found == [[1, 2, 3], [1, 3]]
    assert engine.follow("orders", source) == []
