"""Keep a view over two tables up to date: `apply` returns what a batch changes in it."""

import halfjoin as hj

BIG_ORDERS = """
    SELECT c.name, o.id, o.amount * 2 AS points
    FROM customers AS c JOIN orders AS o ON o.customer = c.id
    WHERE o.amount > 10
"""

engine = hj.Engine()
engine.execute("""
    CREATE TABLE customers (id bigint PRIMARY KEY, name text NOT NULL);
    CREATE TABLE orders (id bigint PRIMARY KEY, customer bigint, amount integer);
""")
engine.execute(f"CREATE MATERIALIZED VIEW big_orders AS {BIG_ORDERS}")

engine.apply({"customers": [{"id": 1, "name": "Ann"}, {"id": 2, "name": "Bob"}]}, time=1)
applied = engine.apply(
    {"orders": [{"id": 7, "customer": 1, "amount": 30}, {"id": 8, "customer": 2, "amount": 5}]}, time=2
)
print(applied.diffs["big_orders"].to_pylist())

# In one batch over two tables: a row changes its key, one is deleted, and one replaces another.
applied = engine.apply(
    {
        "customers": hj.upserts([{"id": 1, "name": "Anna"}]),
        "orders": hj.deletes([{"id": 8, "customer": 2, "amount": 5}]),
    },
    time=3,
)
print(applied.diffs["big_orders"].to_pylist())
print("as of 2:", engine.read("big_orders", as_of=2).to_pylist())
print("now:    ", engine.read("big_orders").to_pylist())

for time in (1, 2, 3):
    maintained, recomputed = engine.read("big_orders", as_of=time), engine.query(BIG_ORDERS, as_of=time)
    assert maintained.to_pylist() == recomputed.to_pylist()
