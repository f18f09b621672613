"""Apply Debezium's messages to a table with a key: repeated messages do no harm, and a view follows the source."""

import json

import halfjoin as hj

engine = hj.Engine()
engine.execute("""
    CREATE TABLE people (id bigint PRIMARY KEY, city text, born date, seen timestamp);
    CREATE TABLE cities (city text PRIMARY KEY, country text);
    CREATE MATERIALIZED VIEW abroad AS
        SELECT p.id, c.country FROM people AS p JOIN cities AS c ON c.city = p.city WHERE c.country <> 'Norway';
""")
engine.apply({"cities": [{"city": "Oslo", "country": "Norway"}, {"city": "Rome", "country": "Italy"}]}, time=0)


def person(id: int, city: str) -> dict[str, object]:
    """A row as Debezium writes it: days and microseconds since 1970."""
    return {"id": id, "city": city, "born": 7305, "seen": 1_700_000_000_000_000 + id}


topic = [
    json.dumps({"op": op, "before": before, "after": after})
    for op, before, after in [
        ("r", None, person(1, "Oslo")),
        ("c", None, person(2, "Rome")),
        ("u", person(1, "Oslo"), person(1, "Rome")),
        ("d", person(2, "Rome"), None),
        ("u", person(1, "Rome"), person(3, "Rome")),
    ]
]
delivered = [topic[:2], topic[1:4], topic[2:]]  # at least once: some messages come again

for time, messages in enumerate(delivered, start=1):
    # The message has no schema, so the caller says that `seen` counts microseconds.
    rows = hj.debezium(messages, encodings={"seen": "MicroTimestamp"})
    print(engine.apply({"people": rows}, time=time).diffs["abroad"].to_pylist())

(row,) = engine.read("people").to_pylist()
assert (row["id"], row["city"], str(row["born"]), row["seen"].year) == (3, "Rome", "1990-01-01", 2023)
assert engine.read("abroad").to_pylist() == [{"id": 3, "country": "Italy"}]
