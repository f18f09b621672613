"""The console answers what its page asks: what an engine does and holds, contents, changes, queries."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator

import pytest

import halfjoin as hj
from halfjoin.console.bottleneck import bottleneck
from halfjoin.console.details import collections
from halfjoin.console.watch import behind
from halfjoin.engine.batch.activity import Activity, BatchWork, Work
from halfjoin.engine.statements.stats import SinkStats, SourceStats
from halfjoin.server.access import Access
from halfjoin.server.scram import verifier
from tests.support.paging import Page, Reply, paging


@pytest.fixture
def engine() -> Iterator[hj.Engine]:
    with hj.Engine(clock="own") as made:
        made.execute("CREATE TABLE t (k bigint PRIMARY KEY, x bigint)")
        made.execute("CREATE MATERIALIZED VIEW v AS SELECT x, count(*) AS n FROM t GROUP BY x")
        made.apply({"t": [{"k": 1, "x": 5}, {"k": 2, "x": 5}]}, time=1)
        yield made


@pytest.fixture
def page(engine: hj.Engine) -> Iterator[Page]:
    with paging(engine) as made:
        yield made


def asked(page: Page, sql: str) -> Reply:
    return page.post("/api/query", json.dumps({"sql": sql}).encode())


def test_a_batch_is_noted_with_the_work_of_each_node(engine: hj.Engine) -> None:
    (batch,) = engine.activity().recent
    assert batch.tables == {"t": 2} and batch.upper == 2 and batch.nodes["v"].rows == 1
    engine.apply({}, time=9)
    assert engine.activity().batches == 2 and engine.activity().rows == 2


def test_a_transaction_of_definitions_and_rows_is_noted(engine: hj.Engine) -> None:
    engine.execute("BEGIN; CREATE TABLE u (k bigint); SET TIME = 5; INSERT INTO u VALUES (1), (2); COMMIT")
    assert engine.activity().batches == 2 and engine.activity().recent[-1].tables == {"u": 2}


def test_refused_batches_are_not_noted(engine: hj.Engine) -> None:
    with pytest.raises(hj.InvalidRow):
        engine.apply({"t": [{"k": 1, "x": 0}]}, time=2)
    assert engine.activity().batches == 1


def test_activity_keeps_a_thousand_batches() -> None:
    activity = Activity()
    for number in range(1500):
        activity.add(number, "local", 0.001, {"t": 1}, {})
    assert len(activity.recent) == 1000 and activity.batches == 1500 == activity.rows == activity.within[0]


def test_the_overview_follows_the_engine(page: Page, engine: hj.Engine) -> None:
    engine.apply({"t": [{"k": 3, "x": 7}]}, time=5)
    until = time.monotonic() + 30
    while page.get("/api/overview").json().get("upper") != 6 and time.monotonic() < until:
        time.sleep(0.1)
    found = page.get("/api/overview").json()
    assert found["upper"] == 6 and (found["batches"], found["rows"]) == (2, 3)
    assert (found["tables"], found["views"]) == (1, 1)
    assert found["recent"][0]["tables"] == {"t": 1} and found["recent"][0]["changed"]["v"] == 1


def test_events_push_the_overview(page: Page) -> None:
    events = page.events("/api/events")
    assert "bottleneck" in next(events) and "bottleneck" in next(events)


def test_a_view_has_its_text_plan_work_and_state(page: Page) -> None:
    found = page.get("/api/views/v").json()
    assert found["sql"].startswith("CREATE MATERIALIZED VIEW v AS") and found["work"]["v"]["rows"] == 1
    assert found["in"] == {"t": 2} and found["held"]["v"]["rows"] == 1 and found["plan"]["nodes"]
    assert page.get("/api/views/t").json()["plan"] is None
    assert page.get("/api/views/none").status == 404


def test_nodes_and_arrangements_have_the_names_of_explain_everywhere(page: Page, engine: hj.Engine) -> None:
    engine.execute("""
        CREATE TABLE u (x bigint, n bigint);
        CREATE MATERIALIZED VIEW s AS SELECT t.x, sum(n) AS n FROM t JOIN u ON t.x = u.x GROUP BY t.x;
        CREATE MATERIALIZED VIEW g AS SELECT t.k FROM t, generate_series(1, t.x) AS i, u WHERE u.x = i;
        CREATE MATERIALIZED VIEW r AS WITH RECURSIVE r(x, n) AS
            (SELECT x, n FROM u UNION SELECT r.x, u.n FROM r JOIN u ON r.n = u.x) SELECT * FROM r""")
    engine.apply({"u": [{"x": 5, "n": 6}, {"x": 6, "n": 7}]}, time=5)
    stats, (*_, batch) = engine.stats(), engine.activity().recent
    said = "".join(engine.explain(view) for view in "vsgr")
    nodes = {one.name for one in stats.collections if one.kind == "node"}
    assert {name.partition("#")[0] for name in nodes} == {"join", "loop", "passing", "reduce"}
    assert {f"node {name} (" in said for name in nodes} == {True} and nodes > batch.nodes.keys() - set("vsgr") != set()
    found = page.get("/api/collections").json()
    assert {one["name"] for one in found["collections"]} == nodes | set("tuvsgr")
    assert [one["name"] for one in found["arrangements"]] == [one.name for one in stats.arrangements]
    listed = {line[3:].rpartition(": ")[0] for line in said.splitlines() if ": existing" in line}
    assert "t(generate_series(1, x))" in listed <= {one.name for one in stats.arrangements}
    for view in "vsgr":
        shown = page.get(f"/api/views/{view}").json()
        assert {one["name"] for one in shown["plan"]["nodes"]} | shown["work"].keys() <= nodes | {view}
        drawn = engine.explain(view, format="mermaid").replace("#35;", "#") + engine.explain(view, format="html")
        assert all(drawn.count(one["name"]) > 1 for one in shown["plan"]["nodes"])


def test_contents_are_those_of_a_time(page: Page, engine: hj.Engine) -> None:
    engine.apply({"t": hj.deletes([{"k": 1}])}, time=5)
    assert page.get("/api/views/v/contents").json()["rows"] == [["5", "1"]]
    assert page.get("/api/views/v/contents?as_of=1").json()["rows"] == [["5", "2"]]
    assert "InvalidTime" in page.get("/api/views/v/contents?as_of=99").json()["error"]


def test_a_view_that_cannot_be_read_says_why(page: Page, engine: hj.Engine) -> None:
    engine.execute("CREATE MATERIALIZED VIEW w AS SELECT 1 / x AS y FROM t")
    engine.apply({"t": [{"k": 9, "x": 0}]}, time=7)
    assert "division by zero" in page.get("/api/views/w/contents").json()["error"]
    assert bottleneck(engine.stats(), []).startswith("w cannot be read")


def test_the_rows_for_which_a_view_fails_are_shown(page: Page, engine: hj.Engine) -> None:
    engine.execute("""
        CREATE TABLE d (x bigint, y bigint);
        CREATE MATERIALIZED VIEW w AS SELECT t.k, sum(100 / (d.y - 3)) AS q FROM t JOIN d ON t.x = d.x GROUP BY t.k;
        CREATE MATERIALIZED VIEW above AS SELECT sqrt(q::double precision) AS r FROM w""")
    assert page.get("/api/views/above").json()["errors"] is None
    engine.apply({"t": [{"k": 9, "x": 8}], "d": [{"x": 5, "y": 3}, {"x": 8, "y": 2}]}, time=7)
    found = page.get("/api/views/above").json()["errors"]
    assert [one["name"] for one in found["columns"]] == ["view", "error", "row", "count"] and not found["more"]
    assert found["rows"] == [
        ["above", "cannot take square root of a negative number in sqrt(w.q::double precision)", "w.q = -100", "1"],
        ["a part of w", "division by zero in 100 / (d.y - 3)", "d.y = 3", "2"]]  # fmt: skip
    engine.execute("CREATE MATERIALIZED VIEW many AS SELECT 1 / (x - x) AS y FROM d")
    engine.apply({"d": [{"x": n, "y": 1} for n in range(40)]}, time=8)
    found = page.get("/api/views/many").json()["errors"]
    assert len(found["rows"]) == 10 and found["more"] and found["rows"][9][2].startswith("d.x = ")


def test_what_is_held_tells_who_shares_it(page: Page) -> None:
    found = page.get("/api/collections").json()
    by_name = {one["name"]: one for one in found["collections"]}
    assert by_name["v"]["frees"] > by_name["v"]["row_bytes"] and by_name["t"]["frees"] is None
    assert by_name["t"]["users"] == ["v"]
    assert [one["kind"] for one in found["collections"]].count("node") == 1


def test_dropping_a_view_frees_what_is_said(engine: hj.Engine) -> None:
    engine.execute("""
        CREATE TABLE c (id bigint PRIMARY KEY, n text);
        CREATE MATERIALIZED VIEW a AS SELECT c.n, sum(t.x) AS s FROM t JOIN c ON t.x = c.id GROUP BY 1;
        CREATE MATERIALIZED VIEW b AS SELECT c.n, count(*) AS s FROM t JOIN c ON t.x = c.id GROUP BY 1;
        CREATE MATERIALIZED VIEW d AS SELECT n, s FROM a ORDER BY s LIMIT 3;
        CREATE MATERIALIZED VIEW e AS SELECT t.k, u.k AS l FROM t JOIN t AS u ON t.x = u.x;
        CREATE MATERIALIZED VIEW f AS SELECT k, max(x) OVER (PARTITION BY x % 2) AS m FROM t""")
    rows = {"c": [{"id": n, "n": str(n % 5)} for n in range(20)], "t": [{"k": 10 + n, "x": n % 20} for n in range(90)]}
    engine.apply(rows, time=5)
    for view in "fedba":
        held = {one["name"]: one["frees"] for one in collections(engine)["collections"]}
        before = engine.stats().memory
        engine.execute(f"DROP MATERIALIZED VIEW {view}")
        assert before - engine.stats().memory == held[view], view
        assert (held.get("a") is None) == (view in "fed")  # d reads it


def test_a_view_of_a_schema_is_shown(page: Page, engine: hj.Engine) -> None:
    engine.execute('CREATE SCHEMA "S s"; CREATE MATERIALIZED VIEW "S s"."V" AS SELECT x FROM t')
    engine.apply({"t": [{"k": 3, "x": 7}]}, time=5)
    found = page.get("/api/views/S%20s.V").json()
    assert found["plan"] is not None and 'VIEW "S s"."V"' in found["sql"]
    assert page.get("/api/views/S%20s.V/contents").json()["count"] == 3


def test_a_query_answers_rows_and_plan_or_an_error(page: Page) -> None:
    found = asked(page, "SELECT x, NULL AS y FROM t ORDER BY k").json()
    assert found["rows"] == [["5", None], ["5", None]] and found["columns"][0] == {"name": "x", "number": True}
    assert "unknown column" in asked(page, "SELECT z FROM t").json()["error"]
    assert "error" in asked(page, "DELETE FROM t").json()
    assert page.post("/api/query", b"sql=SELECT 1", "application/x-www-form-urlencoded").status == 415
    assert asked(page, "x" * 200_000).status == 413
    assert page.post("/api/query", b"[1]").status == 400


def test_only_some_rows_are_sent(page: Page, engine: hj.Engine) -> None:
    found = asked(page, "SELECT repeat('x', 5000) AS s FROM generate_series(1, 5000)").json()
    assert found["count"] == 5000 and len(found["rows"]) == 200 and len(found["rows"][0][0]) == 400


def test_changes_are_pushed_as_they_come(page: Page, engine: hj.Engine) -> None:
    pushes = page.events("/api/views/v/changes")
    for number in range(20):
        found = next(pushes)
        if found["changed"]:
            break
        engine.apply({"t": [{"k": 100 + number, "x": 8}]}, time=10 + number)
    assert found["changed"] and "__diff" in [one["name"] for one in found["columns"]]


def sent(page: Page, batch: object, **headers: str) -> Reply:
    return page.post("/batch", json.dumps(batch).encode(), **headers)


def test_batches_come_over_http(page: Page, engine: hj.Engine) -> None:
    engine.execute("CREATE TABLE n (k bigint, x numeric(20,4), j jsonb)")
    row = {"k": 1, "x": 0.1, "j": {"a": [1.5]}, "__time": 9}
    assert sent(page, {"t": {"upserts": [{"k": 1, "x": 6}]}, "n": [row]}).status == 400  # no default time
    found = sent(page, {"t": [{"k": 3, "x": 5, "__time": 9}], "n": [row]})
    assert found.json() == {"time": 9, "upper": 10, "changed": {"v": 2}}
    shown = engine.query("SELECT x::text AS x, j::text AS j FROM n").to_pylist()
    assert shown == [{"x": "0.1000", "j": '{"a": [1.5]}'}]


def test_a_repeated_key_changes_nothing(page: Page, engine: hj.Engine) -> None:
    batch = {"t": [{"k": 3, "x": 5, "__time": 9}]}
    first, again = (sent(page, batch, **{"Idempotency-Key": "a"}) for _ in range(2))
    assert first.status == 200 and again.json() == first.json() and engine.activity().batches == 2
    assert sent(page, {"t": [{"k": 4, "x": 5, "__time": 9}]}, **{"Idempotency-Key": "a"}).status == 409


@pytest.mark.parametrize(("batch", "said"), [
    ([1], "not an object"), ({"none": []}, "unknown table"), ({"t": 3}, "expected a list of rows"),
    ({"t": {"rows": 3}}, "expected a list of rows"), ({"t": {"changes": []}}, "one of rows, inserts"),
    ({"t": [3]}, "a row must be a dict"), ({"t": [{"k": 1, "x": 5, "__time": 9}]}, "t"),
])  # fmt: skip
def test_a_refused_batch_says_why(page: Page, engine: hj.Engine, batch: object, said: str) -> None:
    found = sent(page, batch)
    assert found.status == 400 and said in found.json()["error"] and len(found.json()["sqlstate"]) == 5
    assert page.post("/batch", b"{").status == 400 and page.post("/batch", b"{}", kind="text/plain").status == 415
    assert engine.activity().batches == 1


def test_metrics_are_prometheus_text(page: Page) -> None:
    lines = page.get("/metrics").text.splitlines()
    assert 'halfjoin_batch_seconds_bucket{le="+Inf"} 1.0' in lines and "halfjoin_batch_seconds_count 1.0" in lines
    assert "halfjoin_batches_total 1.0" in lines and 'halfjoin_collection_updates{kind="table",name="t"} 2.0' in lines


def test_health_is_known_without_a_password(engine: hj.Engine) -> None:
    with paging(engine, Access({"ada": verifier("secret")})) as page:
        assert page.get("/healthz").json() == {"ok": True, "upper": 2}
        assert page.get("/").status == 401 and page.get("/api/overview").status == 401
        for user, word, status in (("ada", "secret", 200), ("ada", "wrong", 401), ("bob", "secret", 401)):
            token = base64.b64encode(f"{user}:{word}".encode()).decode()
            assert page.get("/", Authorization=f"Basic {token}").status == status
        assert page.get("/", Authorization="Basic %%%").status == 401


def test_a_closed_engine_is_not_healthy(page: Page, engine: hj.Engine) -> None:
    engine.close()
    assert page.get("/healthz").status == 503


def test_names_of_other_sites_reach_nothing(page: Page) -> None:
    assert page.get("/api/overview", Host="evil.example").status == 400


def test_the_page_loads_nothing_from_elsewhere(page: Page) -> None:
    assert "http" not in page.get("/").text
    assert "default-src 'self'" in page.get("/").headers["content-security-policy"]


@pytest.mark.parametrize(("tables", "nodes", "seconds", "said"), [
    ({"t": 10}, {"j": Work(500, 0.01)}, 0.02, "j makes or looks up 50 rows for each row"),
    ({"t": 10}, {"j": Work(5, 0.01, 0.0, 500), "k": Work(9, 0.011)}, 0.03, "j makes or looks up 50 rows"),
    ({"t": 10}, {}, 0.03, "No view has work"),
    ({"t": 10}, {"j": Work(5, 0.03), "k": Work(5, 0.03)}, 0.09, "stands out"),
    ({"t": 10}, {"j": Work(5, 0.09)}, 0.1, "j takes 90% of the time"),
    ({"t": 10}, {"j": Work(5, 0.001)}, 0.1, "checking rows and writing the journal"),
])  # fmt: skip
def test_the_bottleneck_is_said_in_a_sentence(
    engine: hj.Engine, tables: dict[str, int], nodes: dict[str, Work], seconds: float, said: str
) -> None:
    batch = BatchWork(0.0, 2, "local", seconds, tables, nodes)
    assert said in bottleneck(engine.stats(), [batch])
    assert "Nothing has come in" in bottleneck(engine.stats(), [])


def test_what_does_not_go_on_is_said_first(engine: hj.Engine) -> None:
    def said() -> str:
        return bottleneck(engine.stats(), [])

    engine.execute("CREATE MATERIALIZED VIEW w AS SELECT max(1 / x) AS y FROM t")
    engine.apply({"t": [{"k": 9, "x": 0}]}, time=7)
    assert said() == "w cannot be read: an expression fails for 1 row."
    assert behind(engine.stats())[0] == {"what": "view w", "far": "", "why": "an expression fails for 1 row"}
    engine.apply({"t": hj.deletes([{"k": 9}])}, time=8)
    assert said().startswith("Nothing has come in") and behind(engine.stats()) == []
    stuck = SinkStats(name="s", collection="v", target="x", upper=1, waiting=1, error="no space")
    stats = engine.stats().model_copy(update={"sinks": [stuck]})
    assert bottleneck(stats, []) == "The sink s does not get on: no space"
    assert behind(stats) == [{"what": "sink s", "far": "1 batch", "why": "no space"}]


def test_what_is_far_behind_is_said(engine: hj.Engine) -> None:
    stats = engine.stats()
    sink = SinkStats(name="s", collection="v", target="x", upper=1, waiting=12, error=None)
    assert bottleneck(stats.model_copy(update={"sinks": [sink]}), []).startswith("The sink s is 12 batches behind")
    source = SourceStats(name="f", kind="FILES", into=["t"], options="{}", state="running", position=None, rows=0,
                         bad=0, batches=0, at=None, lag=7, unit="files", error=None)  # fmt: skip
    found = stats.model_copy(update={"sources": [source]})
    assert bottleneck(found, []).startswith("The source f is 7 files behind. Nothing")
    assert behind(found) == [{"what": "source f", "far": "7 files", "why": ""}]
    full = stats.model_copy(update={"memory": 95, "budget": 100})
    assert bottleneck(full, []).startswith("State takes")
