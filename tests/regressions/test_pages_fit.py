"""Pages of plans: all drawings lie inside their box and their picture, and a page has one legend."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import halfjoin as hj
from examples.demo_page import page
from halfjoin.planner.explain.picture import ADVANCE

_WIDE = "SELECT a.x FROM a JOIN b ON b.x = a.x JOIN c ON c.x = b.x JOIN d ON d.x = c.x JOIN e ON e.x = d.x"
_LONG = "SELECT s.y FROM a_table_with_a_very_long_name t, generate_series(t.x, t.a_very_long_name_of_a_column) AS s(y)"
_SVG = "{http://www.w3.org/2000/svg}"


def _engine() -> hj.Engine:
    engine = hj.Engine()
    for name in "abcde":
        engine.execute(f"CREATE TABLE {name} (x bigint)")
    engine.execute("CREATE TABLE a_table_with_a_very_long_name (x bigint, a_very_long_name_of_a_column bigint)")
    engine.execute(f"CREATE MATERIALIZED VIEW wide AS {_WIDE}")
    engine.execute(f"CREATE MATERIALIZED VIEW long AS {_LONG}")
    return engine


def _picture(plan: str) -> ElementTree.Element:
    text = re.search("<svg.*?</svg>", plan, re.DOTALL)
    assert text is not None
    return ElementTree.fromstring(text[0].replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1))


def test_text_of_plans_lies_inside_its_box() -> None:
    engine = _engine()
    for view in ("wide", "long"):
        picture = _picture(engine.explain(view, format="html"))
        width = float(picture.attrib["viewBox"].split()[2])
        boxes = picture.findall(f"{_SVG}g")
        assert boxes
        for box in boxes:
            (rect,) = box.findall(f"{_SVG}rect")
            right = float(rect.attrib["x"]) + float(rect.attrib["width"])
            assert right <= width
            for line in box.findall(f"{_SVG}text"):
                assert float(line.attrib["x"]) + ADVANCE * len(line.text or "") <= right


def test_a_plan_of_five_inputs_fits_a_page_of_1280() -> None:
    picture = _picture(_engine().explain("wide", format="html"))
    least = re.search(r"min-width:(\d+)px", picture.attrib["style"])
    assert least is not None and int(least[1]) <= 1280 - 2 * 16


def test_the_demo_page_has_one_legend_and_all_views() -> None:
    engine = _engine()
    views = {"wide": (_WIDE, engine.explain("wide", format="html")), "long": (_LONG, engine.explain("long", "html"))}
    latencies = [(1, 2.0, 100.0), (1, 4.0, 120.0), (100, 10.0, 50.0)]
    made = page("a title", "a verdict", latencies, views)
    assert made.count('class="key"') == 1 and made.count("<section>") == 2 and made.count("<html") == 1
    assert "a verdict" in made and _WIDE in made and _LONG in made
    assert ">36.7 x<" in made and ">5.0 x<" in made and ">3<" in made and ">110<" in made  # ratios, and medians
