"""History: read contents as of any retained time, and the changes from one time to another."""

from collections import Counter

import halfjoin as hj

PAIRS = "SELECT l.name AS one, r.name AS other FROM staff AS l JOIN staff AS r ON l.room = r.room AND l.name < r.name"

engine = hj.Engine(retain=100)
engine.execute("CREATE TABLE staff (name text PRIMARY KEY, room integer NOT NULL)")
engine.execute(f"CREATE MATERIALIZED VIEW pairs AS {PAIRS}")

engine.apply({"staff": [{"name": "Ann", "room": 1}, {"name": "Bo", "room": 1}, {"name": "Cy", "room": 2}]}, time=10)
engine.apply({"staff": hj.upserts([{"name": "Bo", "room": 2}])}, time=20)
engine.apply({"staff": [{"name": "Di", "room": 2}]}, time=30)

for time in (10, 20, 30):
    print(f"as of {time}:", engine.read("pairs", as_of=time).to_pylist())
print("the same in SQL:", engine.execute("SELECT count(*) AS n FROM pairs AS OF 20").to_pylist())

# A subscription starts with a snapshot as of a time, and continues with every later change.
held: Counter[tuple[str, str]] = Counter()
for changes in engine.subscribe("pairs", as_of=10, up_to=31):
    for row in changes.to_pylist():
        print(f"{row['__time']}: {row['__diff']:+d} {row['one']} and {row['other']}")
        held[row["one"], row["other"]] += row["__diff"]

recomputed = Counter((row["one"], row["other"]) for row in engine.query(PAIRS).to_pylist())
assert +held == recomputed
assert recomputed == Counter((row["one"], row["other"]) for row in engine.read("pairs").to_pylist())
