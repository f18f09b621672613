"""The process that a test kills: numbered steps with known outcomes, each noted once it is acknowledged.

`python -m tests.support.crashing FOLDER NOTES FIRST` carries out the steps FIRST, FIRST + 1, ... until it is killed.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path

import halfjoin as hj
from halfjoin.engine.storage import filing, stored_run, upkeep
from tests.oracle.rows import Bag

LASTS = 7  # time units for which a row of u is in the view of recent rows
DEEP = 4  # steps from one k to one that is larger by 10, each a round
TABLES = "CREATE TABLE t (k bigint PRIMARY KEY, v text NOT NULL); CREATE TABLE u (k bigint, n integer)"
VIEW = (
    "CREATE INDEX IF NOT EXISTS by_text ON t (v);"  # an arrangement of its own where t is on disk
    "CREATE MATERIALIZED VIEW joined AS SELECT t.k, u.n FROM t, u WHERE t.k = u.k;"
    "CREATE MATERIALIZED VIEW counted AS SELECT n, count(*) AS c, max(k) AS m FROM joined GROUP BY n;"
    "CREATE MATERIALIZED VIEW last AS SELECT k, n FROM u ORDER BY k DESC, n LIMIT 3;"
    "CREATE MATERIALIZED VIEW padded AS SELECT t.k, u.n FROM t LEFT JOIN u ON t.k = u.k;"
    f"CREATE MATERIALIZED VIEW steps AS WITH RECURSIVE r(k, d) AS (SELECT k, 0 FROM u UNION "
    f"SELECT u.k, r.d + 1 FROM r JOIN u ON u.k = r.k + 10 WHERE r.d < {DEEP}) SELECT k, d FROM r;"
    f"CREATE MATERIALIZED VIEW recent AS SELECT n, count(*) AS c FROM u WHERE mz_now() <= n + {LASTS} GROUP BY n"
)
SINKS = """CREATE SINK IF NOT EXISTS joined FROM joined INTO DELTA 'joined';
    CREATE SINK IF NOT EXISTS t FROM t INTO DELTA 'of/t'"""
BUDGETS = (None, 1, 20_000)  # of memory, by turns: everything is in it, nothing, some
ROWS = 6  # inserted into t by a batch


def kind(step: int) -> str:
    """The kind of a step: one in five defines something, three in 16 flush, compact, plan anew, others are batches."""
    if step < 2:
        return "first definitions"
    if step % 5 == 2:
        return "create"
    if step % 10 == 4:
        return "drop"
    return {3: "flush", 7: "compact", 11: "refresh"}.get(step % 16, "batch")


def batch(step: int) -> dict[str, list[dict[str, object]]]:
    """The batch of a step: it inserts rows, and at times deletes a row of an earlier batch."""
    rows: list[dict[str, object]] = [{"k": step * 10 + i, "v": f"row {i} " * (step % 40)} for i in range(ROWS)]
    if step % 3 == 0 and step > 12 and kind(step - 6) == "batch":
        rows.append({"k": (step - 6) * 10, "v": "row 0 " * ((step - 6) % 40), "__diff": -1})
    return {"t": rows, "u": [{"k": step * 10 + i, "n": step} for i in (0, 0, 1)]}


def carry_out(engine: hj.Engine, step: int) -> None:
    """Carry out one step. Returns when the step is acknowledged."""
    match kind(step):
        case "first definitions":
            engine.execute(f"{VIEW}; {SINKS}" if step else TABLES)
        case "create":
            engine.execute(f"CREATE OR REPLACE MATERIALIZED VIEW extra AS SELECT k FROM t WHERE k % {step} = 0")
        case "drop":
            engine.execute("DROP MATERIALIZED VIEW extra")
        case "flush":
            engine.flush()
        case "compact":
            engine.compact()
        case "refresh":
            engine.execute("REFRESH PLAN joined")
        case "batch":
            engine.apply(batch(step), time=step, batch_id=str(step))  # type: ignore[arg-type]


def contents(last: int) -> dict[str, Bag]:
    """The contents of the tables and views after the steps up to `last`."""
    t: Bag = Counter()
    u: Bag = Counter()
    extra = None
    for step in range(last + 1):
        match kind(step):
            case "create":
                extra = step
            case "drop":
                extra = None
            case "batch":
                rows = batch(step)
                for row in rows["t"]:
                    t[row["k"], row["v"]] += row.get("__diff", 1)  # type: ignore[operator]
                u.update((row["k"], row["n"]) for row in rows["u"])
    found: dict[str, Bag] = {}
    if last >= 0:
        found |= {"t": Counter({row: n for row, n in t.items() if n}), "u": u}
        keys = {row[0] for row, n in t.items() if n}
        if last >= 1:
            found |= _views(u, keys)
        if extra is not None:
            found["extra"] = Counter((k,) for k in keys if k % extra == 0)
    return found


def _views(u: Bag, keys: set[object]) -> dict[str, Bag]:
    """The contents of the views: `keys` are those of t."""
    joined = Counter({row: count for row, count in u.items() if row[0] in keys})
    alone = Counter({(k, None): 1 for k in keys if not any(k == row[0] for row in joined)})
    groups: dict[int, list[int]] = {}
    for k, n in joined.elements():
        groups.setdefault(n, []).append(k)
    now = max((n for _, n in u), default=0)
    recent = Counter(n for _, n in u.elements() if now <= n + LASTS)
    there = {k for k, _ in u}
    steps = {(k, d) for k in there for d in range(DEEP + 1) if all(k - 10 * i in there for i in range(d + 1))}
    return {"joined": joined, "counted": Counter({(n, len(ks), max(ks)): 1 for n, ks in groups.items()}),
            "last": Counter(sorted(u.elements(), key=lambda row: (-row[0], row[1]))[:3]), "padded": joined + alone,
            "steps": Counter(steps),
            "recent": Counter(dict.fromkeys(recent.items(), 1))}  # fmt: skip


def main(folder: Path, notes: Path, first: int) -> None:
    """Carry out steps for ever."""
    upkeep.FLUSH_BYTES = 6_000  # flushing is nearly always under way
    stored_run.SEARCHED_ROWS = 20
    filing.BULK_ROWS = 7
    memory = BUDGETS[first % len(BUDGETS)]
    handle = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    with hj.Engine(folder, retain=40, memory=memory) as engine:
        if first > 1:  # there may have been no time for it after the view was made
            engine.execute(SINKS)
        os.write(handle, b"open\n")
        for step in range(first, sys.maxsize):
            carry_out(engine, step)
            os.write(handle, f"{step}\n".encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
