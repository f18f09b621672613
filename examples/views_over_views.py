"""Views over views: a plain view is a name for its SQL, a materialized one is a collection that others share."""

import halfjoin as hj

engine = hj.Engine()
engine.execute("""
    CREATE TABLE parts (id bigint PRIMARY KEY, name text, weight numeric(8,2));
    CREATE TABLE uses (whole bigint, part bigint, count integer);
    CREATE VIEW heavy AS SELECT id, name FROM parts WHERE weight >= 10;
    CREATE MATERIALIZED VIEW named_uses AS
        SELECT w.name AS whole, u.part, u.count FROM uses AS u JOIN parts AS w ON w.id = u.whole;
    CREATE MATERIALIZED VIEW heavy_uses AS
        SELECT n.whole, h.name AS part, n.count FROM named_uses AS n JOIN heavy AS h ON h.id = n.part;
""")
FROM_TABLES = """
    SELECT w.name AS whole, p.name AS part, u.count
    FROM uses AS u, parts AS w, parts AS p
    WHERE w.id = u.whole AND p.id = u.part AND p.weight >= 10
"""


def check() -> None:
    """Check that both levels agree with a join of the tables alone."""
    maintained, recomputed = engine.read("heavy_uses"), engine.query(FROM_TABLES)
    assert sorted(map(str, maintained.to_pylist())) == sorted(map(str, recomputed.to_pylist()))


engine.apply({"parts": [{"id": 1, "name": "cart", "weight": 90}, {"id": 2, "name": "wheel", "weight": 12}]}, time=1)
engine.apply({"uses": [{"whole": 1, "part": 2, "count": 4}]}, time=2)
print(engine.read("heavy_uses").to_pylist())
check()

# A lighter wheel: one row of a table changes, and both views over it follow in the same batch.
applied = engine.apply({"parts": hj.upserts([{"id": 2, "name": "wheel", "weight": 8}])}, time=3)
print({view: changes.num_rows for view, changes in applied.diffs.items()})
check()
print(engine.explain("heavy_uses"))
