"""Bad input, as a new user may type it: each error's class and text are in `bad_input.txt`.

Each case is `SQL> a statement` (its further lines after `...> `) or `>>> a call`, then the error's class and full
text. `HALFJOIN_UPDATE=1` writes the current texts to the file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import halfjoin as hj

SCRIPT = Path(__file__).with_name("bad_input.txt")
SETUP = """
    CREATE TABLE customers (id bigint PRIMARY KEY, name text NOT NULL);
    CREATE TABLE orders (id bigint PRIMARY KEY, customer bigint, amount integer);
    CREATE TABLE notes (text varchar(10));
    CREATE MATERIALIZED VIEW big AS SELECT id, amount FROM orders WHERE amount > 10;
    CREATE MATERIALIZED VIEW ratio AS SELECT id, 100 / amount AS share FROM orders;
"""
CASES = [tuple(block.split("\n!", 1)) for block in SCRIPT.read_text().strip("\n").split("\n\n")]


@pytest.fixture
def engine() -> hj.Engine:
    engine = hj.Engine(retain=100)
    engine.execute(SETUP)
    engine.apply(
        {
            "customers": [{"id": 1, "name": "Ann"}],
            "orders": [{"id": 1, "customer": 1, "amount": 20}, {"id": 2, "customer": 1, "amount": 5}],
        },
        time=4,
    )
    engine.apply({"orders": [{"id": 7, "customer": 1, "amount": 0}]}, time=5, batch_id="first")
    engine.execute("SET TIME = 6")
    return engine


def attempt(written: str, engine: hj.Engine) -> Callable[[], object]:
    """Run the statement or the call of a case."""
    if written.startswith("SQL> "):
        sql = "\n".join(line[5:] for line in written.splitlines())
        return lambda: engine.execute(sql)
    return lambda: eval(written.removeprefix(">>> "), {"hj": hj, "engine": engine})


@pytest.mark.parametrize(("written", "expected"), CASES, ids=[case[0].splitlines()[0] for case in CASES])
def test_refused_with_reason_place_and_remedy(written: str, expected: str, engine: hj.Engine) -> None:
    contents = {name: engine.read(name) for name in ("customers", "orders", "big")}
    with pytest.raises(hj.HalfjoinError) as caught:
        attempt(written, engine)()
    said = f"{type(caught.value).__name__}: {caught.value}"
    said = re.sub("submitted at [-:0-9 ]+ UTC", "submitted at ... UTC", said)
    if "HALFJOIN_UPDATE" in os.environ:
        SCRIPT.write_text(SCRIPT.read_text().replace(f"{written}\n!{expected}", f"{written}\n!{said}"))
    else:
        assert said == expected
    if "close()" not in written:
        assert {name: engine.read(name) for name in contents} == contents, "something of what was refused is kept"


def test_every_error_class_is_tried() -> None:
    tried = {expected.split(":", 1)[0] for _, expected in CASES}
    public = (getattr(hj, name) for name in hj.__all__)
    assert tried >= {one.__name__ for one in public if isinstance(one, type) and issubclass(one, hj.HalfjoinError)}
