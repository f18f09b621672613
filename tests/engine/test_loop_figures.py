"""stats() and EXPLAIN say what a recursive query keeps, and what the last batch did in each of its rounds."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

import halfjoin as hj
from halfjoin.console.bottleneck import bottleneck

VIEW = """
    CREATE MATERIALIZED VIEW v AS
    WITH RECURSIVE reach(node) AS (SELECT 1::bigint UNION SELECT edge.b FROM reach JOIN edge ON edge.a = reach.node)
    SELECT node FROM reach
"""


@pytest.fixture
def engine() -> hj.Engine:
    engine = hj.Engine(clock="own")
    engine.execute("CREATE TABLE edge (a bigint, b bigint); CREATE TABLE other (a bigint)")
    engine.execute(VIEW)
    engine.apply({"edge": [{"a": number, "b": number + 1} for number in range(1, 21)]}, time=1)
    return engine


def rounds(engine: hj.Engine) -> list[int]:
    (found,) = (one for one in engine.stats().collections if one.binding is not None)
    assert found.binding == "reach" and found.kind == "node" and found.users == ["v"]
    return found.rounds


def test_stats_count_the_rounds_of_the_last_batch(engine: hj.Engine) -> None:
    assert rounds(engine) == [0, *([1] * 20)]
    engine.apply({"edge": [{"a": 4, "b": 40}, {"a": 40, "b": 41}, {"a": 40, "b": 42}]}, time=2)
    assert rounds(engine) == [0, 0, 0, 0, 1, 2]
    engine.apply({"other": [{"a": 1}]}, time=3)  # the loop does not run
    assert rounds(engine) == [0, 0, 0, 0, 1, 2]
    engine.apply({"edge": [{"a": 77, "b": 78}]}, time=4)  # no round makes anything
    assert rounds(engine) == []


def test_explain_shows_a_recursive_query(engine: hj.Engine) -> None:
    said = ("the recursive query reach (node), at most 5,000 rounds", "keeps 21 updates",
            "the last batch made 20 updates in 21 rounds: 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, ...")  # fmt: skip
    for format in ("text", "mermaid", "html"):
        assert all(line in engine.explain("v", format) for line in said)
    nodes = json.loads(engine.explain("v", "json"))["nodes"]
    (binding,) = (node["binding"] for node in nodes if node["binding"] is not None)
    assert binding["bytes"] > 0 and {**binding, "bytes": 0} == {
        "name": "reach", "columns": ["node"], "most": 5000, "updates": 21, "bytes": 0, "rounds": [0, *([1] * 20)]}
    planned = engine.explain(VIEW.partition("AS")[2])
    assert said[0] in planned and "last batch" in planned  # it shares the node


def test_a_loop_that_is_opened_again_has_no_last_batch(tmp_path: Path) -> None:
    with hj.Engine(tmp_path / "w", clock="own") as engine:
        engine.execute("CREATE TABLE edge (a bigint, b bigint)")
        engine.execute(VIEW)
        engine.apply({"edge": [{"a": 1, "b": 2}]}, time=1)
        assert rounds(engine) == [0, 1]
    with hj.Engine(tmp_path / "w") as engine:
        assert rounds(engine) == []
        engine.apply({"edge": [{"a": 2, "b": 3}]}, time=2)
        assert rounds(engine) == [0, 0, 1] and engine.read("v").num_rows == 3


def test_seconds_are_told_of_each_node_of_a_recursive_query(monkeypatch: pytest.MonkeyPatch, engine: hj.Engine) -> None:
    nodes = {one["name"] for one in json.loads(engine.explain("v", "json"))["nodes"]}
    monkeypatch.setattr("halfjoin.engine.loop.rounds.perf_counter", count().__next__)  # each step takes 1 second
    engine.apply({"edge": [{"a": 4, "b": 40}, {"a": 40, "b": 41}, {"a": 40, "b": 42}]}, time=2)
    batch = engine.activity().recent[-1]
    steps = 2 * 4  # in rounds 0, 4, 5 and 6 a node takes what has come, and merges its runs
    assert {name: work.seconds for name, work in batch.nodes.items() if name in nodes} == dict.fromkeys(nodes, steps)
    loop = next(one.name for one in engine.stats().collections if one.binding)
    only = replace(batch, seconds=8.0, nodes={loop: batch.nodes[loop]})
    assert bottleneck(engine.stats(), [only]).startswith(f"{loop} (the recursive query reach of v) takes 100%")


def test_the_seconds_of_nodes_are_no_more_than_the_batch_took(engine: hj.Engine) -> None:
    engine.apply({"edge": [{"a": number, "b": number % 7} for number in range(40)]}, time=2)
    for batch in engine.activity().recent:
        assert 0 < sum(work.seconds for work in batch.nodes.values()) <= batch.seconds
