"""An org chart that a mistake turns into a circle: CYCLE finds it, and the view heals when the mistake is undone."""

from collections import defaultdict

import halfjoin as hj

engine = hj.Engine()
engine.execute("""
    CREATE TABLE employees (name text PRIMARY KEY, boss text);
    CREATE MATERIALIZED VIEW chart AS
        WITH RECURSIVE below(boss, name) AS (
            SELECT boss, name FROM employees WHERE boss IS NOT NULL
            UNION ALL
            SELECT below.boss, e.name FROM below JOIN employees AS e ON e.boss = below.name
        ) CYCLE name SET again USING path
        SELECT boss, name, again, path FROM below;
    CREATE MATERIALIZED VIEW circles AS SELECT name, path FROM chart WHERE boss = name AND NOT again;
    CREATE MATERIALIZED VIEW reports AS
        SELECT boss, count(DISTINCT name) AS people FROM chart WHERE boss <> name GROUP BY boss;
""")
BOSSES: dict[str, str | None] = {}


def check() -> None:
    """Check the chart against walks from each boss down to the first name that comes again."""
    below = defaultdict(list)
    for name, boss in BOSSES.items():
        below[boss].append(name)
    expected = []
    for boss in BOSSES:
        walks = [[name] for name in below[boss]]
        while walks:
            walk = walks.pop()
            again = walk[-1] in walk[:-1]
            expected.append((boss, walk[-1], again, [f"({name})" for name in walk]))
            if not again:
                walks += [[*walk, name] for name in below[walk[-1]]]
    assert sorted(map(str, expected)) == sorted(str(tuple(row.values())) for row in engine.read("chart").to_pylist())


def hire(time: int, **bosses: str | None) -> None:
    """Give people bosses, new ones or others."""
    BOSSES.update(bosses)
    engine.apply({"employees": hj.upserts([{"name": name, "boss": boss} for name, boss in bosses.items()])}, time=time)
    print({row["boss"]: row["people"] for row in engine.read("reports").to_pylist()})
    check()


hire(1, Ada=None, Ben="Ada", Cleo="Ada", Dan="Ben", Eve="Dan")

# Ben is put below Eve, who is below him. Nobody waits forever: the three of them are a circle.
hire(2, Ben="Eve")
for row in engine.query("SELECT name, path FROM circles ORDER BY name").to_pylist():
    print(row["name"], "->", " ".join(row["path"]))
assert sorted(engine.read("circles")["name"].to_pylist()) == ["Ben", "Dan", "Eve"]

hire(3, Ben="Ada")
assert engine.read("circles").num_rows == 0
