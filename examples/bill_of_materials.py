"""A bill of materials: what each product costs, with all parts of its parts, while parts change and move.

And a family tree, for who is of one generation: the recursion of Datalog's textbooks.
"""

import random

import halfjoin as hj

engine = hj.Engine()
engine.execute("""
    CREATE TABLE part (name text PRIMARY KEY, cents bigint NOT NULL);
    CREATE TABLE uses (whole text, part text, quantity bigint NOT NULL, PRIMARY KEY (whole, part));
    CREATE MATERIALIZED VIEW cost AS
        WITH MUTUALLY RECURSIVE
            total (part text, cents bigint) AS (
                SELECT part, sum(cents)::bigint FROM (
                    SELECT name AS part, cents FROM part
                    UNION ALL
                    SELECT uses.whole, uses.quantity * total.cents FROM total JOIN uses ON uses.part = total.part
                ) GROUP BY part
            )
        SELECT part, cents FROM total;
""")


def total(name: str) -> int:
    """What a part costs with all its parts."""
    (found,) = engine.query(f"SELECT cents FROM cost WHERE part = '{name}'").column("cents").to_pylist()
    return int(found)


engine.execute("""
    INSERT INTO part VALUES ('bicycle', 4000), ('wheel', 1500), ('spoke', 20), ('rim', 900), ('frame', 9000),
                            ('bell', 350);
    INSERT INTO uses VALUES ('bicycle', 'wheel', 2), ('bicycle', 'frame', 1), ('bicycle', 'bell', 1),
                            ('wheel', 'spoke', 36), ('wheel', 'rim', 1);
""")
print("a bicycle costs", total("bicycle"))
assert total("bicycle") == 4000 + 2 * (1500 + 36 * 20 + 900) + 9000 + 350
engine.execute("UPDATE part SET cents = 25 WHERE name = 'spoke'")
engine.execute("UPDATE uses SET whole = 'frame' WHERE part = 'bell'")  # the bell comes with the frame now
print("with dearer spokes, and the bell on the frame,", total("bicycle"), "and the frame", total("frame"))
assert total("bicycle") == 4000 + 2 * (1500 + 36 * 25 + 900) + 9000 + 350
assert total("frame") == 9350

# Many parts, and branches that move. A part is made of parts with greater numbers, so nothing is a part of itself.
choice = random.Random(1)
cents = {f"part {number:02}": choice.randrange(1, 100) for number in range(60)}
names = list(cents)
uses = {(names[choice.randrange(number)], names[number]): choice.randrange(1, 4) for number in range(1, 60)}
engine.apply({
    "part": [{"name": name, "cents": one} for name, one in cents.items()],
    "uses": [{"whole": a, "part": b, "quantity": n} for (a, b), n in uses.items()],
})  # fmt: skip
for _ in range(20):
    number = choice.randrange(1, 60)
    old = next(pair for pair in uses if pair[1] == names[number])
    new = (names[choice.randrange(number)], names[number])
    quantity = uses.pop(old)
    uses[new] = quantity
    engine.apply({"uses": [{"whole": a, "part": b, "quantity": quantity, "__diff": diff}
                           for (a, b), diff in ((old, -1), (new, 1))]})  # fmt: skip
    expected: dict[str, int] = {}
    for name in reversed(names):
        expected[name] = cents[name] + sum(n * expected[b] for (a, b), n in uses.items() if a == name)
    found = {row["part"]: row["cents"] for row in engine.read("cost").to_pylist()}
    assert {name: found[name] for name in names} == expected

engine.execute("""
    CREATE TABLE child (name text PRIMARY KEY, parent text NOT NULL);
    CREATE MATERIALIZED VIEW same_generation AS
        WITH RECURSIVE same(x, y) AS (
            SELECT a.name, b.name FROM child a JOIN child b ON a.parent = b.parent
            UNION
            SELECT a.name, b.name FROM same JOIN child a ON a.parent = same.x JOIN child b ON b.parent = same.y
        )
        SELECT x, y FROM same WHERE x < y;
""")
people = [f"person {number:02}" for number in range(40)]
parent: dict[str, str] = {}
for number in [*range(1, 40), *(choice.randrange(1, 40) for _ in range(20))]:  # at first all, then some move
    child, new_parent = people[number], people[choice.randrange(number)]
    old_rows = [{"name": child, "parent": parent[child], "__diff": -1}] if child in parent else []
    parent[child] = new_parent
    engine.apply({"child": [*old_rows, {"name": child, "parent": new_parent, "__diff": 1}]})
    depth = {people[0]: 0}
    for person in people[1:]:
        if person in parent:
            depth[person] = depth[parent[person]] + 1
    same = {(x, y) for x in depth for y in depth if x < y and depth[x] == depth[y]}
    assert {(row["x"], row["y"]) for row in engine.read("same_generation").to_pylist()} == same
print(len(same), "pairs of one generation among", len(people), "people")
