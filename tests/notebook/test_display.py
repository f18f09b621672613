"""What notebooks show: escaped, with a bounded number of rows, and nothing from elsewhere."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.display.changes import VIEWS
from halfjoin.engine.display.html import LONGEST
from halfjoin.engine.display.plan import Plan
from halfjoin.engine.display.rows import COLUMNS, ROWS, rows_html
from halfjoin.notebook.extension import result_html

HOSTILE = "<script>alert('&')</script>"


class _Checked(HTMLParser):
    """Checks that tags are closed, and that nothing is loaded."""

    VOID = ("br", "meta", "path", "rect", "line")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows = self.cells = 0
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert tag not in ("script", "link", "img", "style")
        assert not {name for name, _ in attributes} & {"src", "href", "onclick", "class"} - {"class"}
        self.rows += tag == "tr"
        self.cells += tag == "td"
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture
def engine() -> hj.Engine:
    engine = hj.Engine(clock="own")
    engine.execute("CREATE TABLE t (a integer, s text); CREATE MATERIALIZED VIEW v AS SELECT s, a FROM t")
    return engine


def test_values_and_names_are_escaped(engine: hj.Engine) -> None:
    engine.execute(f'CREATE MATERIALIZED VIEW "{HOSTILE}" AS SELECT s AS "{HOSTILE}" FROM t')
    applied = engine.apply({"t": [{"a": 1, "s": HOSTILE}, {"a": None, "s": None}]}, time=1)
    shown = (applied, engine, engine.stats(), engine.view(HOSTILE), engine.view("v"), engine.explain(HOSTILE))
    for one in shown:
        html = one._repr_html_()
        assert html is not None and "<script" not in html
        _Checked(html)
    assert "&lt;script&gt;" in engine.view("v")._repr_html_()
    assert "NULL</i>" in engine.view("v")._repr_html_()


def test_rows_columns_and_texts_are_bounded() -> None:
    wide = pa.table({f"c{number}": ["x" * 1000] * 1000 for number in range(100)})
    html = rows_html(wide)
    found = _Checked(html)
    assert (found.rows, found.cells) == (ROWS + 1, ROWS * COLUMNS)
    assert "980 more rows, 70 more columns" in html
    assert "x" * LONGEST not in html


def test_values_look_as_in_psql(engine: hj.Engine) -> None:
    rows = engine.query("SELECT true AS b, 1.50::numeric(4, 2) AS n, ARRAY[1, NULL] AS a, "
                        "interval '1 month 2 days' AS i, timestamp '2020-01-02' AS t, '\\x00ff'::bytea AS y")
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", rows_html(rows))
    assert cells == ["t", "1.50", "{1,NULL}", "1 mon 2 days", "2020-01-02 00:00:00", "\\x00ff"]


def test_types_that_sql_lacks_are_shown() -> None:
    odd = pa.table({"m": pa.array([[(1, 2)]], pa.map_(pa.int32(), pa.int32())), "n": pa.nulls(1)})
    assert "[(1, 2)]" in rows_html(odd)


def test_a_batch_tells_what_came_and_went(engine: hj.Engine) -> None:
    engine.apply({"t": [{"a": 1, "s": "x"}, {"a": 2, "s": "y"}]}, time=1)
    html = engine.apply({"t": hj.deletes([{"a": 1, "s": "x"}])}, time=2)._repr_html_()
    assert re.findall(r"<td[^>]*>([^<]*)</td>", html)[:3] == ["v", "0", "1"]
    assert "no view changed" in engine.apply({}, time=3)._repr_html_()
    engine.execute("CREATE MATERIALIZED VIEW w AS SELECT 1 / a AS q FROM t")
    assert "w cannot be read" in engine.apply({"t": [{"a": 0, "s": "z"}]}, time=4)._repr_html_()


def test_many_views_are_counted_instead_of_listed(engine: hj.Engine) -> None:
    for number in range(VIEWS + 5):
        engine.execute(f"CREATE MATERIALIZED VIEW v{number} AS SELECT a + {number} AS n FROM t")
    assert "6 more views" in engine.apply({"t": [{"a": 1, "s": "x"}]}, time=1)._repr_html_()


def test_a_plan_is_text_and_shows_its_lines(engine: hj.Engine) -> None:
    text = engine.explain("v")
    assert isinstance(text, str) and text.startswith("v (s text, a integer)\n└─") and "<pre" in Plan(text)._repr_html_()
    page = Plan(engine.explain("v", format="html"))._repr_html_()
    assert page.startswith("<iframe srcdoc=") and " sandbox " in page and "<!doctype" not in page


def test_a_closed_engine_shows_its_text_alone(engine: hj.Engine) -> None:
    engine.close()
    assert engine._repr_html_() is None


def test_a_view_is_asked_anew(engine: hj.Engine) -> None:
    view = engine.view("v")
    assert view.sql.startswith("CREATE MATERIALIZED VIEW v AS")
    assert "0 rows" in view._repr_html_()
    engine.apply({"t": [{"a": 1, "s": "x"}]}, time=1)
    assert "1 row<" in view._repr_html_() and view.read().num_rows == 1 and view.explain() == engine.explain("v")
    with pytest.raises(hj.UnknownName):
        engine.view("none")


def test_an_answer_without_rows_shows_its_tag(engine: hj.Engine) -> None:
    made = engine.execute("SET TIME = 1; INSERT INTO t VALUES (1, 'x')")
    assert made is not None and "INSERT 0 1" in result_html(made)
    assert "1 row<" in result_html(engine.query("SELECT * FROM t"))


def test_the_notebook_is_stored_without_outputs() -> None:
    nbformat = pytest.importorskip("nbformat")
    for path in Path(__file__).parents[2].glob("examples/notebooks/*.ipynb"):
        cells = [cell for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]
        assert cells and not any(cell.outputs or cell.execution_count for cell in cells)


def test_a_batch_tells_its_time_by_the_clock_of_the_warehouse(tmp_path: Path, engine: hj.Engine) -> None:
    at, rows = 1_700_000_000_000, {"t": [{"a": 1, "s": "x"}]}
    said = ("batch at time 1700000000000 (2023-11-14 22:13:20 UTC)", "upper 1700000000001 (2023-11-14 22:13:20 UTC)")
    with hj.Engine(tmp_path, clock="wall") as wall:
        wall.execute("CREATE TABLE t (a integer, s text)")
        first = wall.apply(rows, time=at, batch_id="one")
        again = wall.apply(rows, time=at, batch_id="one")
        assert all(text in one._repr_html_() for one in (first, again) for text in said)
    assert "batch at time 7</b>" in engine.apply(rows, time=7)._repr_html_()
