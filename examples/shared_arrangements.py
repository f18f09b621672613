"""Ten views over the same inputs need no more indexes than one, because views share arrangements."""

import halfjoin as hj

engine = hj.Engine()
engine.execute("""
    CREATE TABLE stations (id bigint PRIMARY KEY, city text);
    CREATE TABLE trips (id bigint PRIMARY KEY, origin bigint, target bigint, minutes integer);
""")
cities = ("Oslo", "Bergen", "Bodo")
engine.apply(
    {
        "stations": [{"id": i, "city": cities[i % 3]} for i in range(30)],
        "trips": [{"id": i, "origin": i % 30, "target": (i * 7) % 30, "minutes": i % 50} for i in range(1_000)],
    },
    time=1,
)

VIEW = """
    SELECT t.id, a.city AS origin, b.city AS target, t.minutes
    FROM trips AS t, stations AS a, stations AS b
    WHERE t.origin = a.id AND t.target = b.id AND t.minutes > {}
"""
held = []
for number in range(10):
    engine.execute(f"CREATE MATERIALIZED VIEW slower_than_{number} AS {VIEW.format(number)}")
    held.append(sum(arrangement.rows for arrangement in engine.stats().arrangements))

for arrangement in engine.stats().arrangements:
    print(f"{arrangement.name}: {arrangement.rows} rows, {arrangement.bytes} bytes, shared by {len(arrangement.users)}")
print("index entries with 1 view:", held[0], "and with 10:", held[-1])
assert held[0] == held[-1]

engine.apply({"stations": hj.upserts([{"id": 3, "city": "Narvik"}])}, time=2)
for number in range(10):
    maintained, recomputed = engine.read(f"slower_than_{number}"), engine.query(VIEW.format(number))
    assert sorted(map(str, maintained.to_pylist())) == sorted(map(str, recomputed.to_pylist()))
