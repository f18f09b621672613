"""Which modules import each other in a circle: strongly connected components, as a loop in a loop."""

import halfjoin as hj

CIRCLES = """
    CREATE MATERIALIZED VIEW circles AS
    WITH MUTUALLY RECURSIVE
        -- An edge is removed once its ends are known to be in different components.
        edge (a text, b text) AS (SELECT a, b FROM imports EXCEPT SELECT a, b FROM removed),
        -- The first of all modules that reach a module, along the edges that are left.
        first_to (module text, first text) AS (
            WITH MUTUALLY RECURSIVE label (module text, first text) AS (
                SELECT module, min(first) FROM (
                    SELECT a AS module, a AS first FROM edge
                    UNION ALL SELECT edge.b, least(edge.b, label.first) FROM edge JOIN label ON label.module = edge.a
                ) GROUP BY module)
            SELECT module, first FROM label),
        -- The first of all modules that a module reaches.
        first_from (module text, first text) AS (
            WITH MUTUALLY RECURSIVE label (module text, first text) AS (
                SELECT module, min(first) FROM (
                    SELECT b AS module, b AS first FROM edge
                    UNION ALL SELECT edge.a, least(edge.a, label.first) FROM edge JOIN label ON label.module = edge.b
                ) GROUP BY module)
            SELECT module, first FROM label),
        removed (a text, b text) AS (
            SELECT a, b FROM removed
            UNION
            SELECT edge.a, edge.b FROM edge
            WHERE (SELECT first FROM first_to WHERE module = a) <> (SELECT first FROM first_to WHERE module = b)
               OR (SELECT first FROM first_from WHERE module = a) <> (SELECT first FROM first_from WHERE module = b))
    SELECT a AS module, (SELECT first FROM first_to WHERE module = a) AS circle FROM edge
    UNION
    SELECT b, (SELECT first FROM first_to WHERE module = b) FROM edge
"""


def recomputed(edges: set[tuple[str, str]]) -> dict[str, str]:
    """Each module that reaches itself, with the first of those that it reaches and that reach it."""
    modules = {module for edge in edges for module in edge}
    reached = {module: {b for a, b in edges if a == module} for module in modules}
    for middle in modules:
        for module in modules:
            if middle in reached[module]:
                reached[module] |= reached[middle]
    return {module: min(other for other in reached[module] if module in reached[other])
            for module in modules if module in reached[module]}  # fmt: skip


engine = hj.Engine()
engine.execute("CREATE TABLE imports (a text, b text)")
engine.execute(CIRCLES)

edges = {("cli", "engine"), ("engine", "storage"), ("storage", "errors"), ("engine", "errors"), ("web", "cli")}
steps = [
    ("a tree of imports", edges, 1),
    ("errors imports storage", {("errors", "storage")}, 1),
    ("storage imports engine", {("storage", "engine")}, 1),
    ("engine imports web", {("engine", "web")}, 1),
    ("cli does not import engine any more", {("cli", "engine")}, -1),
    ("errors does not import storage any more", {("errors", "storage")}, -1),
]
there: set[tuple[str, str]] = set()
for time, (title, changed, diff) in enumerate(steps, 1):
    engine.apply({"imports": [{"a": a, "b": b, "__diff": diff} for a, b in changed]}, time=time)
    there = there | changed if diff > 0 else there - changed
    found = {row["module"]: row["circle"] for row in engine.read("circles").to_pylist()}
    assert found == recomputed(there), title
    circles = [sorted(m for m in found if found[m] == first) for first in sorted(set(found.values()))]
    print(f"{title}: {' and '.join(', '.join(circle) for circle in circles) or 'no circle'}")
