"""The general reduce: your own function of a group cuts each user's clicks into sessions, which stay up to date."""

import random

import pyarrow as pa

import halfjoin as hj

PAUSE = 30 * 60  # seconds without a click that end a session


def sessions(clicks: pa.RecordBatch) -> pa.RecordBatch:
    """The sessions of one user, whose clicks come in order. `__diff` says how many clicks are alike."""
    found: list[dict[str, int]] = []
    for at, count in zip(clicks["at"].to_pylist(), clicks["__diff"].to_pylist(), strict=True):
        if not found or at - found[-1]["ended"] > PAUSE:
            found.append({"started": at, "ended": at, "clicks": 0})
        found[-1]["ended"] = at
        found[-1]["clicks"] += count
    return pa.RecordBatch.from_pylist(found)


engine = hj.Engine(clock="own")
engine.register_reduce("sessions", sessions, returns={"started": "bigint", "ended": "bigint", "clicks": "bigint"})
engine.execute("CREATE TABLE clicks (user_id text, at bigint, page text)")
engine.execute("""
    CREATE MATERIALIZED VIEW session AS
    SELECT r.user_id, r.* FROM sessions(TABLE clicks PARTITION BY user_id ORDER BY at) AS r
""")
engine.execute("""
    CREATE MATERIALIZED VIEW longest AS
    SELECT user_id, max(ended - started) AS seconds FROM session GROUP BY user_id
""")

rng = random.Random(7)
clicks: list[dict[str, object]] = []
history: list[list[dict[str, object]]] = []
for time in range(8):
    new: list[dict[str, object]] = [
        {"user_id": f"u{rng.randrange(5)}", "at": 600 * rng.randrange(60), "page": rng.choice("abc")} for _ in range(9)
    ]
    old = [clicks.pop(rng.randrange(len(clicks))) for _ in range(3 if clicks else 0)]  # clicks of robots are taken out
    clicks += new
    applied = engine.apply({"clicks": [*new, *({**click, "__diff": -1} for click in old)]}, time=time)
    history.append(list(clicks))

print("what the last batch changed for one user:")
for row in applied.diffs["session"].sort_by([("started", "ascending")]).to_pylist():
    if row["user_id"] == "u2":
        print("  ", row)
print("the longest:", engine.read("longest").sort_by("user_id").to_pylist())

for time, there in enumerate(history):  # another way: a click starts a session if none was shortly before
    expected = []
    for user in {click["user_id"] for click in there}:
        moments = [click["at"] for click in there if click["user_id"] == user]
        starts = sorted({at for at in moments if not any(at - PAUSE <= other < at for other in moments)})
        for start, end in zip(starts, [*starts[1:], float("inf")], strict=True):
            inside = [at for at in moments if start <= at < end]
            expected.append((user, start, max(inside), len(inside)))
    read = engine.read("session", as_of=time).to_pylist()
    assert sorted(tuple(row.values()) for row in read) == sorted(expected)
    lengths = sorted((user, ended - started) for user, started, ended, _ in expected)
    longest = engine.read("longest", as_of=time).to_pylist()
    assert {row["user_id"]: row["seconds"] for row in longest} == dict(lengths)
