"""The console's page in a browser: it shows what the engine does, is used by mouse and keys, and bears a flood."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

import halfjoin as hj
from tests.support.paging import paging

playwright = pytest.importorskip("playwright.sync_api", reason="no playwright: pip install '.[test-console]'")
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [pytest.mark.skipif(BROWSER is None, reason="there is no browser: apt-get install chromium"),
              pytest.mark.xdist_group("browser")]  # fmt: skip


@pytest.fixture
def engine() -> Iterator[hj.Engine]:
    with hj.Engine(clock="own") as made:
        made.execute("""
            CREATE TABLE orders (k bigint PRIMARY KEY, c bigint, x bigint);
            CREATE TABLE customer (id bigint PRIMARY KEY);
            CREATE MATERIALIZED VIEW per AS SELECT c, sum(x) AS s FROM orders JOIN customer ON c = id GROUP BY c;
        """)
        made.apply({"orders": [{"k": 1, "c": 7, "x": 5}], "customer": [{"id": 7}]}, time=1)
        yield made


@pytest.fixture
def address(engine: hj.Engine) -> Iterator[str]:
    with paging(engine) as page:
        yield page.address


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as running:
        made = running.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    context = browser.new_context(base_url=address)
    made = context.new_page()
    problems: list[str] = []
    made.on("pageerror", lambda error: problems.append(str(error)))
    made.on("console", lambda one: problems.append(one.text) if one.type == "error" else None)
    yield made
    context.close()
    assert not problems


def test_the_overview_follows_batches(page: Any, engine: hj.Engine) -> None:
    page.goto("/")
    page.get_by_text("Last batches").wait_for()
    engine.apply({"orders": [{"k": 2, "c": 7, "x": 1}, {"k": 3, "c": 7, "x": 1}]}, time=5)
    page.get_by_text("orders 2").wait_for()
    assert page.get_by_text("Loading").count() == 0


def test_a_plan_is_read_node_by_node(page: Any) -> None:
    page.goto("/#/views")
    page.get_by_role("link", name="per").click()
    page.get_by_label("plan", exact=True).wait_for()
    page.get_by_role("button", name=re.compile("^passing#")).press("Enter")
    page.get_by_text("look up orders.c in customer(id)").wait_for()
    page.get_by_role("button", name="orders").click()
    page.get_by_role("heading", name="orders").wait_for()


def test_the_names_of_explain_are_shown_whole(page: Any, engine: hj.Engine) -> None:
    nodes = [one.name for one in engine.stats().collections if one.kind == "node"]
    assert nodes and all(name in engine.explain("per") for name in nodes)
    page.goto("/#/view/per")
    for name in nodes:
        drawn = page.get_by_role("button", name=name, exact=True)
        assert name in drawn.text_content()
        inside = "(one) => one.querySelector('text').getBBox().width <= one.querySelector('rect').getBBox().width - 20"
        assert drawn.evaluate(inside)
        drawn.click()
        page.get_by_role("heading", name=name, exact=True).wait_for()
    page.goto("/#/state")
    for name in nodes:
        page.get_by_role("cell", name=name, exact=True).first.wait_for()
    page.goto("/#/")
    page.get_by_text(f"{nodes[0]} 1").wait_for()


def test_a_view_of_a_schema_with_long_names_is_shown(browser: Any, address: str, engine: hj.Engine) -> None:
    schema, view = "s" * 63, "v" * 63
    engine.execute(f"CREATE SCHEMA {schema}; CREATE MATERIALIZED VIEW {schema}.{view} AS SELECT k FROM orders")
    context = browser.new_context(base_url=address, viewport={"width": 360, "height": 800})
    made = context.new_page()
    made.goto("/#/views")
    made.get_by_role("link", name=view).click()
    made.get_by_role("cell", name="1", exact=True).first.wait_for()
    for where in (f"view/{schema}.{view}", "state", "views", ""):
        made.goto(f"/#/{where}")
        made.wait_for_timeout(1200)
        assert made.evaluate("document.documentElement.scrollWidth <= innerWidth"), where
    made.goto(f"/#/view/{schema}.{view}")
    assert f"{schema}.{view}" in made.get_by_role("button", name=f"{schema}.{view}").text_content()
    context.close()


def test_contents_go_back_in_time(page: Any, engine: hj.Engine) -> None:
    engine.apply({"orders": [{"k": 2, "c": 7, "x": 90}]}, time=5)
    page.goto("/#/view/per")
    page.get_by_role("cell", name="95").first.wait_for()
    page.get_by_label("time").fill("1")
    page.get_by_text("as of 1").wait_for()
    page.get_by_role("cell", name="5", exact=True).first.wait_for()


def test_rows_that_fail_are_listed_with_their_values(page: Any, engine: hj.Engine) -> None:
    engine.execute("CREATE MATERIALIZED VIEW ratio AS SELECT k, 100 / (x - k) AS r FROM orders")
    engine.apply({"orders": [{"k": k, "c": 7, "x": k} for k in range(20, 45)]}, time=5)
    page.goto("/#/view/ratio")
    page.get_by_text("ratio cannot be read: an expression fails for these rows, and for more.").wait_for()
    page.get_by_role("cell", name="division by zero in 100 / (orders.x - orders.k)").first.wait_for()
    assert page.locator(".says tbody tr").count() == 10
    page.get_by_role("cell", name="orders.k = 20, orders.x = 20", exact=True).wait_for()
    engine.apply({"orders": hj.deletes([{"k": k} for k in range(20, 45)])}, time=6)
    page.get_by_text("cannot be read").first.wait_for(state="detached")


def test_changes_are_followed(page: Any, engine: hj.Engine) -> None:
    page.goto("/#/view/per")
    page.get_by_role("button", name="follow").click()
    page.get_by_text("Waiting for a change").wait_for()
    for time in range(10, 400):
        engine.apply({"orders": [{"k": time, "c": 7, "x": 1000}]}, time=time)
        if page.locator("tr.gone").count():
            break
        page.wait_for_timeout(300)
    assert page.locator("tr.come").count()


def test_a_query_is_run_by_keys(page: Any) -> None:
    page.goto("/#/query")
    page.get_by_label("query").fill("SELECT 40 + 2 AS answer")
    page.keyboard.press("Control+Enter")
    page.get_by_role("cell", name="42").first.wait_for()
    page.get_by_label("query").fill("SELECT nothing")
    page.get_by_role("button", name="run").click()
    page.get_by_role("alert").get_by_text("unknown column 'nothing'").wait_for()


@pytest.mark.parametrize("width", [360, 1300])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_cut_off_or_too_small(browser: Any, address: str, width: int, scheme: Any) -> None:
    context = browser.new_context(base_url=address, color_scheme=scheme, viewport={"width": width, "height": 800})
    made = context.new_page()
    for where in ("", "views", "view/per", "state", "query"):
        made.goto(f"/#/{where}")
        made.wait_for_timeout(1500)
        assert made.evaluate("document.documentElement.scrollWidth <= innerWidth"), where
        sizes = made.evaluate("""[...document.querySelectorAll('main *, header *')]
            .filter((one) => one.textContent.trim()).map((one) => parseFloat(getComputedStyle(one).fontSize))""")
        assert min(sizes) >= 12, where
    context.close()


def test_two_hundred_views_and_a_flood_do_not_freeze_it(page: Any, engine: hj.Engine) -> None:
    for number in range(200):
        engine.execute(f"CREATE MATERIALIZED VIEW w{number} AS SELECT k FROM orders WHERE x = {number}")
    page.goto("/#/view/per")
    page.get_by_role("button", name="follow").click()
    page.get_by_text("Waiting for a change").wait_for()
    for time in range(100, 110):
        rows = [{"k": 1000 * time + number, "c": 7, "x": number} for number in range(1000)]
        engine.apply({"orders": rows}, time=time)
    assert page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(1))))") == 1
    page.goto("/#/state")
    page.get_by_role("link", name="w199").wait_for()
    assert page.locator("tbody tr").count() > 200
