"""Keep a view's contents in a plain Delta table, for tools that do not know halfjoin: one commit for each batch."""

import tempfile

from deltalake import DeltaTable

import halfjoin as hj

folder = tempfile.mkdtemp()
table = f"{folder}/sinks/open_orders"
with hj.Engine(folder) as engine:
    engine.execute("""
        CREATE TABLE orders (id bigint PRIMARY KEY, customer text, shipped boolean);
        CREATE MATERIALIZED VIEW unshipped AS SELECT id, customer FROM orders WHERE NOT shipped;
        CREATE SINK open_orders FROM unshipped INTO DELTA 'open_orders';
    """)
    engine.apply({"orders": [{"id": 1, "customer": "Ada", "shipped": False}]}, time=1)
    engine.apply({"orders": [{"id": 2, "customer": "Bob", "shipped": False}]}, time=2)
    engine.apply({"orders": hj.upserts([{"id": 1, "customer": "Ada", "shipped": True}])}, time=3)
    engine.flush()  # the sink follows the batches by itself; this line waits for it
    print(engine.execute("SHOW SINKS"))

    # Every Delta reader sees the view. Each version is the view after a batch.
    print(DeltaTable(table).to_pyarrow_table().to_pylist())
    for commit in reversed(DeltaTable(table).history()):
        if upper := int(commit.get("halfjoin.upper", 0)):
            found = DeltaTable(table, version=commit["version"]).to_pyarrow_table().sort_by("id")
            assert found.to_pylist() == engine.read("unshipped", as_of=upper - 1).sort_by("id").to_pylist()
            print(f"version {commit['version']} is the view as of {upper - 1}: {found['id'].to_pylist()}")
