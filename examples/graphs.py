"""Recursive views over a graph whose edges come and go: what is reachable, shortest paths, components, k-core.

After each batch every view is compared with an algorithm of the textbooks that starts from nothing.
"""

import heapq
import random
from collections import Counter, defaultdict

import halfjoin as hj

Roads = Counter[tuple[int, int, int]]

engine = hj.Engine()
engine.execute("CREATE TABLE road (a bigint NOT NULL, b bigint NOT NULL, km bigint NOT NULL)")

# From town 0, along the roads.
engine.execute("""
    CREATE MATERIALIZED VIEW reachable AS
    WITH RECURSIVE r(town) AS (
        SELECT 0::bigint
        UNION
        SELECT road.b FROM r JOIN road ON road.a = r.town
    )
    SELECT town FROM r
""")

# The shortest way to each town. A town may be found anew with fewer kilometres in a later round; the rounds end when
# none is. Circles do no harm: going round once more is longer.
engine.execute("""
    CREATE MATERIALIZED VIEW distance AS
    WITH MUTUALLY RECURSIVE
        best (town bigint, km bigint) AS (
            SELECT town, min(km) FROM (
                SELECT 0::bigint AS town, 0::bigint AS km
                UNION ALL
                SELECT road.b, best.km + road.km FROM best JOIN road ON road.a = best.town
            ) GROUP BY town
        )
    SELECT town, km FROM best
""")

# Towns that roads join in whatever direction have one label: the least of their numbers.
engine.execute("""
    CREATE MATERIALIZED VIEW component AS
    WITH MUTUALLY RECURSIVE
        label (town bigint, least bigint) AS (
            SELECT town, min(least) FROM (
                SELECT a AS town, a AS least FROM road
                UNION ALL
                SELECT b, b FROM road
                UNION ALL
                SELECT road.b, label.least FROM label JOIN road ON road.a = label.town
                UNION ALL
                SELECT road.a, label.least FROM label JOIN road ON road.b = label.town
            ) GROUP BY town
        )
    SELECT town, least FROM label
""")

# The 3-core: what is left when towns with less than 3 roads are taken away, again and again. `less` grows from round to
# round, and `degree` counts only the roads between towns that are not in it.
engine.execute("""
    CREATE MATERIALIZED VIEW core AS
    WITH MUTUALLY RECURSIVE
        way (a bigint, b bigint) AS (SELECT a, b FROM road UNION SELECT b, a FROM road),
        degree (town bigint, roads bigint) AS (
            SELECT a, count(*) FROM way WHERE NOT EXISTS (SELECT 1 FROM less WHERE less.town = way.b) GROUP BY a
        ),
        less (town bigint) AS (
            SELECT DISTINCT a FROM way
            WHERE NOT EXISTS (SELECT 1 FROM degree WHERE degree.town = way.a AND degree.roads >= 3)
        )
    SELECT DISTINCT a AS town FROM way WHERE NOT EXISTS (SELECT 1 FROM less WHERE less.town = way.a)
""")


def distances(roads: Roads) -> dict[int, int]:
    """Dijkstra's algorithm, from town 0."""
    found, waiting = dict[int, int](), [(0, 0)]
    while waiting:
        km, town = heapq.heappop(waiting)
        if town not in found:
            found[town] = km
            for a, b, more in roads:
                if a == town:
                    heapq.heappush(waiting, (km + more, b))
    return found


def labels(roads: Roads) -> dict[int, int]:
    """The least town of each component, by union and find."""
    above = {town: town for a, b, _ in roads for town in (a, b)}

    def top(town: int) -> int:
        while above[town] != town:
            town = above[town]
        return town

    for a, b, _ in roads:
        first, second = sorted((top(a), top(b)))
        above[second] = first
    return {town: top(town) for town in above}


def core(roads: Roads) -> set[int]:
    """The towns that are left when those with less than 3 roads are taken away until there are none."""
    ways = defaultdict(set)
    for a, b, _ in roads:
        ways[a].add(b)
        ways[b].add(a)
    while less := [town for town, others in ways.items() if len(others) < 3]:
        for town in less:
            for other in ways.pop(town):
                if other in ways:
                    ways[other].discard(town)
    return set(ways)


choice = random.Random(1)
roads: Roads = Counter()
for number in range(25):
    batch = [((choice.randrange(30), choice.randrange(30), choice.randrange(1, 9)), 1)
             for _ in range(60 if number == 0 else 2)]  # fmt: skip
    batch.append(((0, choice.randrange(1, 30), choice.randrange(1, 9)), 1))
    if number:  # roads go, too, and one of them is on the shortest way to a town
        km = distances(roads)
        used = [(a, b, more) for a, b, more in roads if a in km and km[b] == km[a] + more]
        gone = {choice.choice(used or list(roads)), choice.choice(list(roads)), choice.choice(list(roads))}
        batch += [(road, -1) for road in gone]
    for road, diff in batch:
        roads[road] += diff
    roads = +roads  # without those of which there are none
    engine.apply({"road": [dict(zip(("a", "b", "km"), road, strict=True), __diff=diff) for road, diff in batch]})

    rows = {view: [tuple(row.values()) for row in engine.read(view).to_pylist()]
            for view in ("reachable", "distance", "component", "core")}  # fmt: skip
    assert sorted(rows["distance"]) == sorted(distances(roads).items())
    assert sorted(rows["reachable"]) == sorted((town,) for town in distances(roads))
    assert sorted(rows["component"]) == sorted(labels(roads).items())
    assert sorted(rows["core"]) == sorted((town,) for town in core(roads))
    if number % 8 == 0:
        print(f"batch {number}: {len(rows['reachable'])} towns can be reached, the farthest is "
              f"{max(km for _, km in rows['distance'])} km away; {len({least for _, least in rows['component']})} "
              f"components; {len(rows['core'])} towns in the 3-core")  # fmt: skip
