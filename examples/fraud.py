"""A bank's network of fraud: who is at risk, and who is cleared when an accusation turns out to be wrong.

Whoever got money from a customer at risk is at risk. Customers pay each other in circles, so an engine that patched its
last answer would never clear them: each would be at risk because of another one. Here what puts a customer at risk is
always a customer who came into the view in an earlier round. (After "Differential dataflow" by Frank McSherry.)
"""

import random

import halfjoin as hj

engine = hj.Engine()
engine.execute("""
    CREATE TABLE accused (customer text PRIMARY KEY);
    CREATE TABLE paid (giver text NOT NULL, taker text NOT NULL, cents bigint NOT NULL);
    CREATE MATERIALIZED VIEW at_risk AS
        WITH RECURSIVE risk(customer) AS (
            SELECT customer FROM accused
            UNION
            SELECT paid.taker FROM risk JOIN paid ON paid.giver = risk.customer WHERE paid.cents >= 10000
        )
        SELECT customer FROM risk;
""")


def at_risk() -> list[str]:
    """Who is at risk now."""
    return sorted(engine.read("at_risk").column("customer").to_pylist())


engine.execute("INSERT INTO accused VALUES ('Ann'), ('Zoe')")
engine.execute("""
    INSERT INTO paid VALUES ('Ann', 'Bob', 50000), ('Bob', 'Cid', 20000), ('Cid', 'Bob', 30000), ('Cid', 'Dan', 90000),
                            ('Ann', 'Eve', 500), ('Zoe', 'Dan', 70000)
""")
print("accused are Ann and Zoe, at risk are", ", ".join(at_risk()))
assert at_risk() == ["Ann", "Bob", "Cid", "Dan", "Zoe"]  # Eve got too little

engine.execute("DELETE FROM accused WHERE customer = 'Ann'")
print("Ann was accused wrongly, at risk are", ", ".join(at_risk()))
assert at_risk() == ["Dan", "Zoe"]  # Bob and Cid pay each other, and nobody else taints them. Zoe taints Dan

# The same with many customers. After each change the answer is computed again, by walking along the payments.
choice = random.Random(1)
customers = [f"customer {number}" for number in range(200)]
accused = {"Zoe"}
paid = {(row["giver"], row["taker"], row["cents"]) for row in engine.read("paid").to_pylist()}
cleared = 0
for _ in range(40):
    changes: dict[str, list[dict[str, object]]] = {"paid": [], "accused": []}
    for row in {(choice.choice(customers), choice.choice(customers), choice.choice([5_000, 20_000])) for _ in range(9)}:
        if row not in paid:
            paid.add(row)
            changes["paid"].append(dict(zip(("giver", "taker", "cents"), row, strict=True), __diff=1))
    who = choice.choice(customers[:5])  # accused now, or cleared of it
    changes["accused"].append({"customer": who, "__diff": -1 if who in accused else 1})
    accused ^= {who}
    before = set(at_risk())
    engine.apply(changes)
    cleared = max(cleared, len(before - set(at_risk())))

    expected, found = set(accused), list(accused)
    while found:
        giver = found.pop()
        more = {taker for one, taker, cents in paid if one == giver and cents >= 10_000} - expected
        expected |= more
        found += more
    assert set(at_risk()) == expected
print(f"of {len(customers)} customers, one withdrawn accusation cleared {cleared}")
assert cleared > 1
