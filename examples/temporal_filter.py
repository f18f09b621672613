"""Let rows come and go as time passes, though nobody writes a row: `mz_now()` in WHERE."""

import halfjoin as hj

engine = hj.Engine()
engine.execute("CREATE TABLE offers (id bigint PRIMARY KEY, starts bigint NOT NULL, ends bigint)")
engine.execute("""
    CREATE MATERIALIZED VIEW open_offers AS
    SELECT id, ends FROM offers WHERE starts <= mz_now() AND (ends IS NULL OR mz_now() < ends)
""")
offers = [
    {"id": 1, "starts": 0, "ends": 5},
    {"id": 2, "starts": 3, "ends": 9},
    {"id": 3, "starts": 7, "ends": None},
    {"id": 4, "starts": 6, "ends": 6},  # never open
]
engine.apply({"offers": offers}, time=0)

# Time passes: the view changes although no row does.
for change in engine.advance(to=12).diffs["open_offers"].sort_by("__time").to_pylist():
    print(f"at {change['__time']}: offer {change['id']} {'opens' if change['__diff'] > 0 else 'closes'}")

for time in range(12):
    is_open = {o["id"] for o in offers if o["starts"] <= time and (o["ends"] is None or time < o["ends"])}
    assert {row["id"] for row in engine.read("open_offers", as_of=time).to_pylist()} == is_open
