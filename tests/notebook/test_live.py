"""Live views: what the display shows in the end is what the view holds."""

from __future__ import annotations

from pathlib import Path
from queue import Queue

import pytest

import halfjoin as hj


@pytest.fixture
def engine() -> hj.Engine:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (a integer)")
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT a, count(*) AS n FROM t GROUP BY a")
    return engine


def until(drawn: Queue[str], text: str) -> str:
    """The first drawing that has a text."""
    while text not in (html := drawn.get(timeout=60)):
        pass
    return html


def test_a_display_follows_the_view(engine: hj.Engine) -> None:
    drawn: Queue[str] = Queue()
    live = engine.view("v").live(every=0)
    live.follow(drawn.put)
    assert "0 rows before the first batch" in drawn.get(timeout=60)
    engine.execute("INSERT INTO t VALUES (7), (8)")
    assert "2 rows in, 0 rows out" in until(drawn, "2 rows as of")
    engine.execute("DELETE FROM t WHERE a = 8")
    until(drawn, "1 row as of")
    live.close()
    assert "ended" in until(drawn, "ended")
    live.join()
    engine.execute("INSERT INTO t VALUES (9)")
    assert drawn.empty()


def test_many_batches_are_few_drawings(engine: hj.Engine) -> None:
    drawn: Queue[str] = Queue()
    live = engine.view("v").live(every=3600)
    live.follow(drawn.put)
    for number in range(50):
        engine.apply({"t": [{"a": number}]})
    live.close()
    live.join()
    texts = [drawn.get_nowait() for _ in range(drawn.qsize())]
    assert len(texts) <= 5 and "50 rows as of" in texts[-1]


def test_only_the_first_rows_are_drawn(engine: hj.Engine) -> None:
    engine.apply({"t": [{"a": number} for number in range(100)]})
    html = engine.view("v").live(rows=3, order_by="a DESC")._repr_html_()
    assert html.count("<tr") == 4 and ">99<" in html and ">96<" not in html and "100 rows" in html


def test_a_cell_run_again_ends_the_older_display(engine: hj.Engine) -> None:
    first, second = engine.view("v").live(every=0), engine.view("v").live(every=0)
    older: Queue[str] = Queue()
    first.follow(older.put)
    second.follow(lambda html: None)
    until(older, "ended")
    first.join()
    second.close()
    second.join()


def test_a_dropped_view_says_so(engine: hj.Engine) -> None:
    drawn: Queue[str] = Queue()
    live = engine.view("v").live(every=0)
    live.follow(drawn.put)
    engine.execute("DROP MATERIALIZED VIEW v")
    until(drawn, "materialized view")
    live.join()


def test_the_display_ends_with_the_engine(engine: hj.Engine) -> None:
    live = engine.view("v").live(every=0)
    live.follow(lambda html: None)
    engine.close()
    live.join()


def test_a_reader_follows_the_writer(tmp_path: Path) -> None:
    with hj.Engine(tmp_path) as writer:
        writer.execute("CREATE TABLE t (a integer); CREATE MATERIALIZED VIEW v AS SELECT a FROM t")
        with hj.Engine(tmp_path, read_only=True) as reader:
            drawn: Queue[str] = Queue()
            live = reader.view("v").live(every=0.01)
            live.follow(drawn.put)
            writer.execute("INSERT INTO t VALUES (1), (2), (3)")
            until(drawn, "3 rows as of")
            live.close()
            live.join()


def test_what_cannot_be_followed_is_refused(engine: hj.Engine) -> None:
    with pytest.raises(hj.UnsupportedSQL, match="table"):
        engine.view("t").live()
    with pytest.raises(hj.UnknownName):
        engine.view("v").live(order_by="nothing")
