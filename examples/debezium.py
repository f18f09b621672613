"""Turn a change stream of before and after images into the table that it describes, with weights."""

import halfjoin as hj

UNPACKED = """
    SELECT c.before_id AS id, c.before_city AS city FROM changes AS c, repeat_row(-1) WHERE c.op IN ('u', 'd')
    UNION ALL
    SELECT c.after_id AS id, c.after_city AS city FROM changes AS c, repeat_row(1) WHERE c.op IN ('c', 'u')
"""

engine = hj.Engine()
engine.execute("""
    CREATE TABLE changes (op text, before_id bigint, before_city text, after_id bigint, after_city text);
    CREATE TABLE cities (city text PRIMARY KEY, country text);
""")
engine.execute(f"CREATE MATERIALIZED VIEW people AS {UNPACKED}")
engine.execute("""
    CREATE MATERIALIZED VIEW people_abroad AS
    SELECT p.id, c.country FROM people AS p JOIN cities AS c ON c.city = p.city WHERE c.country <> 'Norway'
""")
engine.apply({"cities": [{"city": "Oslo", "country": "Norway"}, {"city": "Rome", "country": "Italy"}]}, time=0)


def change(op: str, before: tuple[int, str] | None = None, after: tuple[int, str] | None = None) -> dict[str, object]:
    """An event as Debezium sends it: c(reate), u(pdate) or d(elete)."""
    (bid, bcity), (aid, acity) = before or (None, None), after or (None, None)
    return {"op": op, "before_id": bid, "before_city": bcity, "after_id": aid, "after_city": acity}


people: dict[int, str] = {}
events = [
    change("c", after=(1, "Oslo")),
    change("c", after=(2, "Rome")),
    change("u", before=(1, "Oslo"), after=(1, "Rome")),
    change("d", before=(2, "Rome")),
    change("u", before=(1, "Rome"), after=(3, "Rome")),
]
for time, event in enumerate(events, start=1):
    applied = engine.apply({"changes": [event]}, time=time)
    print(event["op"], applied.diffs["people_abroad"].to_pylist())
    people.pop(event["before_id"], None)  # type: ignore[call-overload]
    if event["op"] != "d":
        people[event["after_id"]] = event["after_city"]  # type: ignore[index, assignment]
    assert {row["id"]: row["city"] for row in engine.read("people").to_pylist()} == people
    abroad = {row["id"] for row in engine.read("people_abroad").to_pylist()}
    assert abroad == {person for person, city in people.items() if city == "Rome"}
